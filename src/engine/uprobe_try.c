// SPDX-License-Identifier: GPL-2.0-only
/*
 * What works here. Nothing is concluded from version numbers or sysctls: each
 * thing is tried, and what is refused is named with what would allow it.
 */
#include <errno.h>
#include <fcntl.h>

#include <bpf/bpf.h>

#include "base/capability.h"
#include "base/fs.h"
#include "engine/tracefs.h"
#include "engine/uprobe_priv.h"

struct rt_error *rt_uprobe_denied(enum rt_attach_path path, int errnum, const char *what)
{
	const char *missing = NULL;

	if (path == RT_ATTACH_TRACEFS)
		return rt_tracefs_denied(errnum, what);
	if (!rt_capable(RT_CAP_SYS_ADMIN)) {
		if (!rt_capable(RT_CAP_BPF) && !rt_capable(RT_CAP_PERFMON))
			missing = "CAP_BPF and CAP_PERFMON";
		else if (!rt_capable(RT_CAP_BPF))
			missing = "CAP_BPF";
		else if (!rt_capable(RT_CAP_PERFMON))
			missing = "CAP_PERFMON";
	}
	if (!missing)
		return rt_tracefs_denied(errnum, what);
	return rt_error_fix(
		rt_error_new(RT_E_PRIVILEGE, "%s: %s missing", what, missing),
		"sudo reftrace ...\n"
		"or, for your own programs, once: sudo setcap cap_bpf,cap_perfmon+ep $(command -v reftrace)");
}

/* Error of a refused bpf(2). */
static struct rt_error *refused(int errnum, const char *feature)
{
	if (errnum == EPERM || errnum == EACCES)
		return rt_uprobe_denied(RT_ATTACH_MULTI, errnum, "cannot use BPF");
	return rt_error_errno(RT_E_KERNEL, errnum, "this kernel has no %s", feature);
}

/* A program that does nothing, of the kind that uprobes take. */
static int load_empty(uint32_t attach_type)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = (enum bpf_attach_type)attach_type);
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "rt_try", "GPL", code, 2, &opts);

	return fd < 0 ? -errno : fd;
}

static struct rt_error *try_multi(void)
{
	_cleanup_close_ int prog = load_empty(RT_ATTACH_TYPE_MULTI);
	uint64_t offset = 0, cookie = 0;
	struct rt_multi_request request = { .prog = prog,
					    .type = RT_ATTACH_TYPE_MULTI,
					    .pid = (uint32_t)getpid(),
					    .path = "/",
					    .offsets = &offset,
					    .cookies = &cookie,
					    .count = 1 };
	int link;

	if (prog < 0)
		return refused(-prog, "BPF programs for uprobes");
	/* a folder is refused in a way of its own where there are such links (libbpf asks so, too); to make a real one
	 * and take it away would wait for all processors */
	link = rt_multi_link(&request);
	if (link != -EBADF)
		return refused(link < 0 ? -link : EINVAL, "uprobe_multi links");
	return NULL;
}

static struct rt_error *try_tracefs(int root_fd)
{
	_cleanup_close_ int prog = load_empty(0);
	struct rt_tracefs *t = NULL;

	if (prog < 0)
		return refused(-prog, "BPF programs for uprobes");
	RT_TRY(rt_tracefs_create(root_fd, &t));
	rt_tracefs_destroy(t);
	return NULL;
}

struct rt_error *rt_uprobe_try(const struct rt_engine_options *options)
{
	int ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "rt_try", 0, 0, (uint32_t)sysconf(_SC_PAGESIZE), NULL);
	struct rt_error *err;

	if (ring < 0)
		return refused(errno, "BPF ring buffers");
	close(ring);
	if (options->attach == RT_ATTACH_TRACEFS)
		return try_tracefs(options->root_fd);
	err = try_multi();
	if (!err || options->attach == RT_ATTACH_MULTI)
		return err;
	if (err->code == RT_E_KERNEL) {
		rt_error_free(err);
		return try_tracefs(options->root_fd);
	}
	return err;
}
