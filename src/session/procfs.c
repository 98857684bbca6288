/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Small questions to /proc. The asked process may vanish at any time: that is
 * an ordinary answer, not an error.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/fs.h"
#include "base/text.h"
#include "session/internal.h"

uint64_t rt_proc_auxv(uint32_t pid, uint64_t key)
{
	_cleanup_free_ char *data = NULL;
	size_t size = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/auxv", pid);
	struct rt_error *err = rt_fs_read(AT_FDCWD, path, 1 << 16, &data, &size);

	if (err) {
		rt_error_free(err);
		return 0;
	}
	for (size_t i = 0; i + 16 <= size; i += 16) {
		uint64_t pair[2];

		memcpy(pair, data + i, sizeof(pair));
		if (pair[0] == key)
			return pair[1];
	}
	return 0;
}

char *rt_proc_environment(uint32_t pid, size_t *ret_size)
{
	enum { ENVIRONMENT_MAX = 4 << 20 };
	char *data = NULL, path[64];

	*ret_size = 0;
	snprintf(path, sizeof(path), "/proc/%u/environ", pid);
	rt_error_free(rt_fs_read(AT_FDCWD, path, ENVIRONMENT_MAX, &data, ret_size));
	return data;
}

bool rt_proc_tasks(uint32_t pid, uint32_t **ret, size_t *ret_count)
{
	RT_VEC(uint32_t) tids = { 0 };
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while ((entry = readdir(dir)) != NULL) {
		uint64_t tid;

		if (!rt_parse_u64(entry->d_name, strlen(entry->d_name), 10, &tid) || !tid || tid > UINT32_MAX)
			continue;
		if (!rt_vec_push(&tids, (uint32_t)tid)) {
			rt_vec_deinit(&tids);
			closedir(dir);
			return false;
		}
	}
	closedir(dir);
	*ret = tids.data;
	*ret_count = tids.len;
	return true;
}

uint64_t rt_proc_cpu_ns(uint32_t pid)
{
	struct timespec spent;
	clockid_t clock;

	if (clock_getcpuclockid((pid_t)pid, &clock) || clock_gettime(clock, &spent))
		return 0;
	return (uint64_t)spent.tv_sec * 1000000000u + (uint64_t)spent.tv_nsec;
}

bool rt_proc_in_exec(uint32_t pid, uint32_t tid)
{
	_cleanup_free_ char *text = NULL;
	uint64_t nr;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/syscall", pid, tid);
	struct rt_error *err = rt_fs_read(AT_FDCWD, path, 4096, &text, NULL);

	if (err) {
		rt_error_free(err);
		return false;
	}
	return rt_parse_u64(text, strspn(text, "0123456789"), 10, &nr) && (nr == SYS_execve || nr == SYS_execveat);
}

size_t rt_proc_read(uint32_t pid, uint64_t addr, void *buffer, size_t size)
{
	struct iovec local = { buffer, size };
	struct iovec remote = { (void *)(uintptr_t)addr, size };
	ssize_t n = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);

	return n > 0 ? (size_t)n : 0;
}
