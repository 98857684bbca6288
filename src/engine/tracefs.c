/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/fs.h"

static bool locked_down(void)
{
	_cleanup_free_ char *text = NULL;

	rt_error_free(rt_fs_read(AT_FDCWD, "/sys/kernel/security/lockdown", 4096, &text, NULL));
	return text && strstr(text, "[confidentiality]");
}

int rt_tracefs_write(int dir, const char *line)
{
	_cleanup_close_ int fd = openat(dir, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);

	size_t len = strlen(line);
	ssize_t n;

	if (fd < 0)
		return errno;
	n = write(fd, line, len);
	if (n < 0)
		return errno;
	return (size_t)n == len ? 0 : EIO;
}

struct rt_error *rt_tracefs_denied(int errnum, const char *what)
{
	if (!rt_capable(RT_CAP_SYS_ADMIN))
		return rt_error_fix(rt_error_new(RT_E_PRIVILEGE, "%s: CAP_SYS_ADMIN is missing", what),
				    "sudo reftrace ...");
	if (locked_down())
		return rt_error_fix(rt_error_errno(RT_E_LOCKDOWN, errnum, "%s: kernel lockdown", what),
				    "boot without lockdown=confidentiality");
	return rt_error_errno(RT_E_PRIVILEGE, errnum, "%s, though the capabilities are there", what);
}

struct rt_error *rt_tracefs_open(int root_fd, bool mount_it, int *ret)
{
	static const char *const places[] = { "sys/kernel/tracing", "sys/kernel/debug/tracing" };
	_cleanup_close_ int root = root_fd == AT_FDCWD ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : dup(root_fd);

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		_cleanup_close_ int dir = openat(root, places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (dir >= 0 && !faccessat(dir, "uprobe_events", F_OK, 0)) {
			*ret = rt_take_fd(&dir);
			return NULL;
		}
		if (dir < 0 && errno == EACCES)
			return rt_tracefs_denied(errno, "cannot open tracefs");
	}
	if (mount_it && root_fd == AT_FDCWD &&
	    !mount("tracefs", "/sys/kernel/tracing", "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return rt_tracefs_open(root_fd, false, ret);
	if (mount_it && errno == EPERM)
		return rt_tracefs_denied(errno, "cannot mount tracefs");
	return rt_error_new(RT_E_KERNEL, "there is no tracefs with uprobe_events");
}
