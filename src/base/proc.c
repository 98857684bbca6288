/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/proc.h"

#include <ctype.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"

bool rt_proc_status(uint32_t tid, const char *key, unsigned base, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t key_len = strlen(key);
	char path[64];
	char *line;

	snprintf(path, sizeof(path), "/proc/%u/status", tid);
	struct rt_error *err = rt_fs_read(AT_FDCWD, path, 1 << 16, &text, NULL);

	if (err) {
		rt_error_free(err);
		return false;
	}
	for (line = text; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (!strncmp(line, key, key_len) && line[key_len] == ':') {
			char *start = line + key_len + 1 + strspn(line + key_len + 1, " \t");

			return rt_parse_u64(start, strspn(start, "0123456789abcdefABCDEF"), base, ret);
		}
	}
	return false;
}

char rt_proc_state(uint32_t tid)
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	char *end;

	snprintf(path, sizeof(path), "/proc/%u/stat", tid);
	struct rt_error *err = rt_fs_read(AT_FDCWD, path, 1 << 16, &text, NULL);

	if (err) {
		rt_error_free(err);
		return 0;
	}
	/* the name may hold parentheses and blanks: the last one closes it */
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : 0;
}

char *rt_proc_comm(uint32_t pid, char *text, size_t size)
{
	_cleanup_free_ char *comm = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	struct rt_error *err = rt_fs_read(AT_FDCWD, path, 4096, &comm, NULL);

	if (err) {
		rt_error_free(err);
		snprintf(text, size, "?");
		return text;
	}
	comm[strcspn(comm, "\n")] = 0;
	for (char *c = comm; *c; c++) {
		if (iscntrl((unsigned char)*c))
			*c = '?';
	}
	snprintf(text, size, "%s", comm);
	return text;
}

struct rt_error *rt_proc_check_untraced(uint32_t pid)
{
	char comm[64], other[64];
	uint64_t tracer;

	if (!rt_proc_status(pid, "TracerPid", 10, &tracer) || !tracer)
		return NULL;
	rt_proc_comm((uint32_t)tracer, other, sizeof(other));
	return rt_error_fix(rt_error_new(RT_E_TRACED, "process %u (%s) is traced by process %u (%s)", pid,
					 rt_proc_comm(pid, comm, sizeof(comm)), (uint32_t)tracer, other),
			    "detach %s first", other);
}

bool rt_proc_same_memory(uint32_t a, uint32_t b)
{
	return syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0) == 0;
}

void rt_proc_stand_alone(int fd, const char *name)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, name);
	if (fd != 0 && dup2(fd, 0) < 0)
		_exit(0);
	if (syscall(SYS_close_range, 1u, ~0u, 0u) < 0) {
		for (int i = 1; i < 4096; i++)
			close(i);
	}
	if (chdir("/") < 0)
		_exit(0);
}
