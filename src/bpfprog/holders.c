// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/PID/fdinfo names the program (prog_id) and the link (link_id) behind a
 * descriptor; a perf event is asked by BPF_TASK_FD_QUERY. A pin is opened and
 * then looked at in the same way.
 */
#include "bpfprog/holders.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/text.h"
#include "bpfprog/attached.h"
#include "bpfprog/links.h"
#include "bpfprog/mounts.h"

#define DEPTH_MAX 16   /* folders of a BPF file system */
#define PINS_MAX 65536 /* files in all of them */

struct look {
	struct rt_bpf_catalog *catalog;
	size_t pins;
};

static struct rt_bpf_holder *add(struct look *look, uint32_t prog, const struct rt_bpf_holder *holder)
{
	struct rt_bpf_entry *e = rt_bpf_catalog_find(look->catalog, prog);
	struct rt_bpf_holder *h;

	if (!e || e->gone || e->holders.len >= RT_BPF_TEXTS_MAX)
		return NULL;
	h = rt_vec_add(&e->holders);
	if (h)
		*h = *holder;
	return h;
}

/* The number behind key in text of lines "key:\tnumber". */
static bool number(const char *text, const char *key, uint32_t *ret)
{
	size_t len = strlen(key);

	for (const char *p = text; p && *p; p = strchr(p, '\n'), p += p ? 1 : 0) {
		uint64_t v;
		const char *n = p + len;

		if (strncmp(p, key, len) != 0 || *n != ':')
			continue;
		n += 1 + strspn(n + 1, " \t");
		if (!rt_parse_u64(n, strcspn(n, "\n"), 10, &v) || v > UINT32_MAX)
			return false;
		*ret = (uint32_t)v;
		return true;
	}
	return false;
}

static void read_comm(uint32_t pid, char *comm, size_t size)
{
	_cleanup_free_ char *text = NULL;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	rt_error_free(rt_fs_read(AT_FDCWD, path, 4096, &text, NULL));
	snprintf(comm, size, "%.*s", text ? (int)strcspn(text, "\n") : 1, text ? text : "?");
}

/* A perf event that runs a program. */
static void look_perf(struct look *look, uint32_t pid, int fd)
{
	struct rt_bpf_holder h = { .kind = RT_BPF_HELD_PERF, .pid = pid, .fd = fd };
	uint32_t len, prog = 0, type = 0;
	__u64 offset, address;
	struct rt_bpf_holder *added;
	char name[256] = "";

	len = sizeof(name);
	if (bpf_task_fd_query((int)pid, fd, 0, name, &len, &prog, &type, &offset, &address) || !prog)
		return;
	read_comm(pid, h.comm, sizeof(h.comm));
	added = add(look, prog, &h);
	if (added)
		added->text = strdup(name);
}

static void look_fd(struct look *look, uint32_t pid, const char *name)
{
	struct rt_bpf_holder h = { .kind = RT_BPF_HELD_FD, .pid = pid };
	_cleanup_free_ char *text = NULL;
	char path[64], target[64];
	uint64_t fd;
	uint32_t prog;
	ssize_t n;

	if (!rt_parse_u64(name, strlen(name), 10, &fd) || fd > INT32_MAX)
		return;
	h.fd = (int)fd;
	snprintf(path, sizeof(path), "/proc/%u/fd/%d", pid, h.fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = 0;
	if (strstr(target, "[perf_event]"))
		look_perf(look, pid, h.fd);
	/* "anon_inode:bpf-prog", "anon_inode:bpf_link" */
	if (!strstr(target, "bpf-prog") && !strstr(target, "bpf_link"))
		return;
	snprintf(path, sizeof(path), "/proc/%u/fdinfo/%d", pid, h.fd);
	rt_error_free(rt_fs_read(AT_FDCWD, path, 1 << 16, &text, NULL));
	if (!text || !number(text, "prog_id", &prog))
		return;
	(void)number(text, "link_id", &h.link);
	read_comm(pid, h.comm, sizeof(h.comm));
	(void)add(look, prog, &h);
}

static void look_process(struct look *look, const char *name)
{
	struct dirent *d;
	char path[48];
	uint64_t pid;
	DIR *dir;

	if (!rt_parse_u64(name, strlen(name), 10, &pid) || pid > INT32_MAX || pid == (uint64_t)getpid())
		return;
	snprintf(path, sizeof(path), "/proc/%u/fd", (unsigned)pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((d = readdir(dir)))
		look_fd(look, (uint32_t)pid, d->d_name);
	closedir(dir);
}

static void look_processes(struct look *look)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;

	if (!dir)
		return;
	while ((d = readdir(dir)))
		look_process(look, d->d_name);
	closedir(dir);
}

static void look_pin(struct look *look, const char *path)
{
	struct rt_bpf_holder h = { .kind = RT_BPF_HELD_PIN }, *added;
	_cleanup_close_ int fd = bpf_obj_get(path);
	_cleanup_free_ char *text = NULL;
	char info[48];
	uint32_t prog;

	if (fd < 0)
		return;
	snprintf(info, sizeof(info), "/proc/self/fdinfo/%d", fd);
	rt_error_free(rt_fs_read(AT_FDCWD, info, 1 << 16, &text, NULL));
	if (!text || !number(text, "prog_id", &prog))
		return;
	(void)number(text, "link_id", &h.link);
	added = add(look, prog, &h);
	if (added)
		added->text = strdup(path);
}

static void look_folder(struct look *look, const char *folder, dev_t dev, unsigned depth)
{
	DIR *dir = depth < DEPTH_MAX ? opendir(folder) : NULL;
	struct dirent *d;

	if (!dir)
		return;
	while ((d = readdir(dir)) && look->pins < PINS_MAX) {
		_cleanup_free_ char *path = NULL;
		struct stat st;

		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") ||
		    asprintf(&path, "%s/%s", folder, d->d_name) < 0)
			continue;
		if (fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) || st.st_dev != dev)
			continue;
		if (S_ISDIR(st.st_mode)) {
			look_folder(look, path, dev, depth + 1);
		} else if (S_ISREG(st.st_mode)) {
			look->pins++;
			look_pin(look, path);
		}
	}
	closedir(dir);
}

static void look_mount(void *arg, const char *path)
{
	struct stat st;

	if (!stat(path, &st))
		look_folder(arg, path, st.st_dev, 0);
}

/* Every link of the kernel. */
static void look_links(struct look *look)
{
	uint32_t id = 0;

	while (!bpf_link_get_next_id(id, &id)) {
		struct rt_bpf_holder h = { .kind = RT_BPF_HELD_LINK, .link = id }, *added;
		struct rt_bpf_entry *e;
		char text[192];
		uint32_t prog;

		if (!rt_bpf_link_describe(id, &prog, text, sizeof(text)))
			continue;
		added = add(look, prog, &h);
		if (added)
			added->text = strdup(text);
		e = rt_bpf_catalog_find(look->catalog, prog);
		if (e)
			rt_bpf_entry_attached(e, id, text);
	}
}

/* What is attached by a link is told of both: the link says it already. */
static bool by_link(const struct rt_bpf_entry *e)
{
	for (size_t i = 0; i < e->holders.len; i++) {
		if (e->holders.data[i].kind == RT_BPF_HELD_LINK)
			return true;
	}
	return false;
}

static void look_attached(void *arg, uint32_t prog, const char *target)
{
	struct look *look = arg;
	struct rt_bpf_holder h = { .kind = RT_BPF_HELD_ATTACHED }, *added;
	struct rt_bpf_entry *e = rt_bpf_catalog_find(look->catalog, prog);

	if (!e || e->gone || by_link(e))
		return;
	added = add(look, prog, &h);
	if (added)
		added->text = strdup(target);
	rt_bpf_entry_attached(e, 0, target);
}

struct rt_error *rt_bpf_holders_find(struct rt_bpf_catalog *catalog)
{
	struct look look = { .catalog = catalog };

	look_links(&look);
	rt_bpf_mounts_each("bpf", look_mount, &look);
	look_processes(&look);
	RT_TRY(rt_bpf_attached_each(look_attached, &look));
	for (size_t i = 0; i < catalog->entries.len; i++) {
		struct rt_bpf_entry *e = catalog->entries.data[i];

		e->held_unseen = !e->gone && !e->holders.len;
	}
	return NULL;
}
