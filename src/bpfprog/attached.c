// SPDX-License-Identifier: GPL-2.0-only
#include "bpfprog/attached.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/map.h"
#include "base/text.h"
#include "bpfprog/catalog.h"
#include "bpfprog/mounts.h"

enum {
	DEPTH_MAX = 32, /* control groups in each other */
	CGROUPS_MAX = 1 << 16,
	NETS_MAX = 4096,
	PROGS_MAX = 64, /* of one kind at one control group: the kernel's own limit */
};

struct look {
	void (*found)(void *arg, uint32_t prog, const char *target);
	void *arg;
	/* (device, inode) of what was looked at -> 1: a control group has a path for each mount of cgroup2 */
	struct rt_map cgroups, nets;
	int own_net;
	dev_t own_dev;
	ino_t own_ino;
	struct rt_error *err; /* we are in a namespace that is not ours */
};

/* true also where seen is full. */
static bool seen_before(struct rt_map *seen, size_t max, const struct stat *st)
{
	bool made = false;

	if (seen->len >= max)
		return true;
	return !rt_map_put(seen, rt_key_make(st->st_dev, st->st_ino), &made) || !made;
}

/* ---- control groups ---- */

/* Kinds of attachment to a control group: enum bpf_attach_type; newer ones than the build's header are refused. */
static const uint8_t cgroup_kinds[] = {
	BPF_CGROUP_INET_INGRESS,
	BPF_CGROUP_INET_EGRESS,
	BPF_CGROUP_INET_SOCK_CREATE,
	BPF_CGROUP_SOCK_OPS,
	BPF_CGROUP_DEVICE,
	BPF_CGROUP_INET4_BIND,
	BPF_CGROUP_INET6_BIND,
	BPF_CGROUP_INET4_CONNECT,
	BPF_CGROUP_INET6_CONNECT,
	BPF_CGROUP_INET4_POST_BIND,
	BPF_CGROUP_INET6_POST_BIND,
	BPF_CGROUP_UDP4_SENDMSG,
	BPF_CGROUP_UDP6_SENDMSG,
	BPF_CGROUP_SYSCTL,
	BPF_CGROUP_UDP4_RECVMSG,
	BPF_CGROUP_UDP6_RECVMSG,
	BPF_CGROUP_GETSOCKOPT,
	BPF_CGROUP_SETSOCKOPT,
	BPF_CGROUP_INET4_GETPEERNAME,
	BPF_CGROUP_INET6_GETPEERNAME,
	BPF_CGROUP_INET4_GETSOCKNAME,
	BPF_CGROUP_INET6_GETSOCKNAME,
	BPF_CGROUP_INET_SOCK_RELEASE,
	BPF_LSM_CGROUP,
};

static void look_cgroup(struct look *look, int fd, const char *path)
{
	for (size_t i = 0; i < sizeof(cgroup_kinds); i++) {
		uint32_t ids[PROGS_MAX], count = PROGS_MAX, flags;

		if (bpf_prog_query(fd, cgroup_kinds[i], 0, &flags, ids, &count))
			continue;
		for (uint32_t k = 0; k < count && k < PROGS_MAX; k++) {
			_cleanup_free_ char *target = NULL;

			if (asprintf(&target, "cgroup %s, %s", path, rt_bpf_attach_name(cgroup_kinds[i])) < 0)
				target = NULL;
			if (target)
				look->found(look->arg, ids[k], target);
		}
	}
}

static void look_cgroups(struct look *look, const char *path, unsigned depth)
{
	DIR *dir = depth < DEPTH_MAX && look->cgroups.len < CGROUPS_MAX ? opendir(path) : NULL;
	struct dirent *d;
	struct stat st;

	if (!dir)
		return;
	/* on also below one that is known: the mount that it was met in may have ended at DEPTH_MAX */
	if (!fstat(dirfd(dir), &st) && !seen_before(&look->cgroups, CGROUPS_MAX, &st))
		look_cgroup(look, dirfd(dir), path);
	while ((d = readdir(dir))) {
		_cleanup_free_ char *below = NULL;

		if (d->d_type != DT_DIR || !strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		if (asprintf(&below, "%s/%s", path, d->d_name) < 0)
			below = NULL;
		if (below)
			look_cgroups(look, below, depth + 1);
	}
	closedir(dir);
}

static void look_mount(void *arg, const char *path)
{
	look_cgroups(arg, path, 0);
}

/* ---- network namespaces ---- */

static void look_dissector(struct look *look, int net, const char *label)
{
	uint32_t ids[PROGS_MAX], count = PROGS_MAX, flags;

	if (bpf_prog_query(net, BPF_FLOW_DISSECTOR, 0, &flags, ids, &count))
		return;
	for (uint32_t i = 0; i < count && i < PROGS_MAX; i++) {
		char target[192];

		snprintf(target, sizeof(target), "flow_dissector%s", *label ? label : " of the network namespace");
		look->found(look->arg, ids[i], target);
	}
}

/* name: how the namespace is called, for people. */
static void look_net(struct look *look, const char *path, const char *name)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char label[160] = "";
	struct stat st;
	bool own;

	if (fd < 0 || look->err || fstat(fd, &st) || seen_before(&look->nets, NETS_MAX, &st))
		return;
	own = st.st_dev == look->own_dev && st.st_ino == look->own_ino;
	if (!own)
		snprintf(label, sizeof(label), " in network namespace %.100s", name);
	look_dissector(look, fd, label);
	if (own) {
		rt_bpf_attached_net(label, look->found, look->arg);
		return;
	}
	if (setns(fd, CLONE_NEWNET))
		return;
	rt_bpf_attached_net(label, look->found, look->arg);
	if (setns(look->own_net, CLONE_NEWNET))
		look->err = rt_error_errno(RT_E_SYSTEM, errno, "cannot come back from network namespace %s", name);
}

/* Those of ip netns: also without a process. */
static void look_named_nets(struct look *look)
{
	static const char folder[] = "/run/netns";
	DIR *dir = opendir(folder);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		_cleanup_free_ char *path = NULL;

		if (*d->d_name == '.' || asprintf(&path, "%s/%s", folder, d->d_name) < 0)
			continue;
		look_net(look, path, d->d_name);
	}
	if (dir)
		closedir(dir);
}

static void look_process_nets(struct look *look)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char path[64], name[64], comm[32] = "?";
		_cleanup_free_ char *text = NULL;
		struct stat st;
		uint64_t pid;

		if (!rt_parse_u64(d->d_name, strlen(d->d_name), 10, &pid) || pid > INT32_MAX)
			continue;
		snprintf(path, sizeof(path), "/proc/%u/ns/net", (unsigned)pid);
		if (stat(path, &st) || rt_map_get(&look->nets, rt_key_make(st.st_dev, st.st_ino)))
			continue;
		snprintf(name, sizeof(name), "/proc/%u/comm", (unsigned)pid);
		rt_error_free(rt_fs_read(AT_FDCWD, name, 4096, &text, NULL));
		if (text)
			snprintf(comm, sizeof(comm), "%.*s", (int)strcspn(text, "\n"), text);
		snprintf(name, sizeof(name), "of %s[%u]", comm, (unsigned)pid);
		look_net(look, path, name);
	}
	if (dir)
		closedir(dir);
}

static struct rt_error *look_nets(struct look *look)
{
	_cleanup_close_ int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (own < 0 || fstat(own, &st)) {
		rt_bpf_attached_net("", look->found, look->arg);
		return NULL;
	}
	look->own_net = own;
	look->own_dev = st.st_dev;
	look->own_ino = st.st_ino;
	look_net(look, "/proc/self/ns/net", "ours");
	look_named_nets(look);
	look_process_nets(look);
	rt_map_deinit(&look->nets);
	return look->err;
}

struct rt_error *rt_bpf_attached_each(void (*found)(void *arg, uint32_t prog, const char *target), void *arg)
{
	struct look look = { .found = found, .arg = arg };

	rt_bpf_mounts_each("cgroup2", look_mount, &look);
	rt_map_deinit(&look.cgroups);
	return look_nets(&look);
}
