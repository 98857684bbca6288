// SPDX-License-Identifier: GPL-2.0-only
#include "bpfprog/links.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "bpfprog/catalog.h"

/* Newer kinds than the build's own linux/bpf.h may know. */
enum {
	LINK_RAW_TRACEPOINT = 1,
	LINK_TRACING = 2,
	LINK_CGROUP = 3,
	LINK_ITER = 4,
	LINK_NETNS = 5,
	LINK_XDP = 6,
	LINK_PERF_EVENT = 7,
	LINK_KPROBE_MULTI = 8,
	LINK_NETFILTER = 10,
	LINK_TCX = 11,
	LINK_UPROBE_MULTI = 12,
	LINK_NETKIT = 13,
};

/* struct bpf_link_info; what follows the first three words depends on the type. */
struct link_info {
	uint32_t type, id, prog, pad;
	union {
		struct {
			uint64_t text;
			uint32_t size;
		} name;            /* raw_tracepoint, iter */
		uint32_t words[4]; /* tracing, netns, xdp, tcx, netkit */
		struct {
			uint64_t id;
			uint32_t attach_type;
		} cgroup;
		struct {
			uint32_t type, pad;
			uint64_t text;
			uint32_t size, offset;
		} perf;
		struct {
			uint64_t addresses;
			uint32_t count, flags;
		} kprobe_multi;
		struct {
			uint64_t text, offsets, ref_ctr, cookies;
			uint32_t size, count, flags, pid;
		} uprobe_multi;
		uint64_t room[16];
	};
};

static bool query(int fd, struct link_info *info)
{
	uint32_t size = sizeof(*info);

	return !bpf_obj_get_info_by_fd(fd, info, &size);
}

static void describe_perf(const struct link_info *info, const char *name, char *text, size_t size)
{
	static const char *const kinds[] = { "perf_event", "uprobe",     "uretprobe", "kprobe",
					     "kretprobe",  "tracepoint", "perf_event" };
	const char *kind = info->perf.type < sizeof(kinds) / sizeof(*kinds) ? kinds[info->perf.type] : "perf_event";

	if (info->perf.type >= 1 && info->perf.type <= 4 && name[0])
		snprintf(text, size, "%s %s+0x%x", kind, name, info->perf.offset);
	else
		snprintf(text, size, "%s%s%s", kind, name[0] ? " " : "", name);
}

static void describe(const struct link_info *info, const char *name, char *text, size_t size)
{
	const char *kind = rt_bpf_link_name(info->type);

	switch (info->type) {
	case LINK_RAW_TRACEPOINT:
	case LINK_ITER:
		snprintf(text, size, "%s %s", kind, name);
		break;
	case LINK_TRACING:
		snprintf(text, size, "%s %s, BTF id %u of object %u", kind, rt_bpf_attach_name(info->words[0]),
			 info->words[2], info->words[1]);
		break;
	case LINK_CGROUP:
		snprintf(text, size, "%s %s of cgroup %llu", kind, rt_bpf_attach_name(info->cgroup.attach_type),
			 (unsigned long long)info->cgroup.id);
		break;
	case LINK_NETNS:
		snprintf(text, size, "%s %s of inode %u", kind, rt_bpf_attach_name(info->words[1]), info->words[0]);
		break;
	case LINK_XDP:
		snprintf(text, size, "%s of interface %u", kind, info->words[0]);
		break;
	case LINK_TCX:
	case LINK_NETKIT:
		snprintf(text, size, "%s %s of interface %u", kind, rt_bpf_attach_name(info->words[1]), info->words[0]);
		break;
	case LINK_PERF_EVENT:
		describe_perf(info, name, text, size);
		break;
	case LINK_KPROBE_MULTI:
		snprintf(text, size, "%s at %u functions", kind, info->kprobe_multi.count);
		break;
	case LINK_UPROBE_MULTI:
		snprintf(text, size, "%s at %u places of %s", kind, info->uprobe_multi.count, name);
		break;
	default:
		snprintf(text, size, "%s", kind);
	}
}

bool rt_bpf_link_describe(uint32_t id, uint32_t *ret_prog, char *text, size_t size)
{
	_cleanup_close_ int fd = bpf_link_get_fd_by_id(id);
	struct link_info info = { 0 }, named = { 0 };
	char name[128] = "";

	if (fd < 0 || !query(fd, &info))
		return false;
	if (info.type == LINK_RAW_TRACEPOINT || info.type == LINK_ITER) {
		named.name.text = (uint64_t)(uintptr_t)name;
		named.name.size = sizeof(name);
	} else if (info.type == LINK_PERF_EVENT && info.perf.type != 6) {
		named.perf.text = (uint64_t)(uintptr_t)name;
		named.perf.size = sizeof(name);
	} else if (info.type == LINK_UPROBE_MULTI) {
		named.uprobe_multi.text = (uint64_t)(uintptr_t)name;
		named.uprobe_multi.size = sizeof(name);
	}
	/* a name that does not fit, or a kernel that has none: the rest is still good */
	if (!query(fd, &named))
		name[0] = 0;
	name[sizeof(name) - 1] = 0;
	describe(&info, name, text, size);
	*ret_prog = info.prog;
	return true;
}
