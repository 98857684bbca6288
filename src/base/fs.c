/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { AGAIN_MAX = 1000 };

/* O_NONBLOCK: a fifo in the file's place must not hang us */
#define RT_OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

static struct rt_error *open_error(const char *path, int errnum)
{
	bool gone = errnum == ENOENT || errnum == ESRCH || errnum == ENOTDIR;

	return rt_error_errno(gone ? RT_E_NOT_FOUND : RT_E_UNREADABLE, errnum, "cannot read %s", path);
}

struct rt_error *rt_fs_read_fd(int fd, const char *path, size_t max, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *buf = NULL;
	size_t len = 0, cap = 0;

	for (;;) {
		ssize_t n;

		if (len + 1 >= cap) {
			size_t want = cap ? cap * 2 : 4096;
			char *bigger = realloc(buf, want);

			if (!bigger)
				return rt_error_nomem();
			buf = bigger;
			cap = want;
		}
		n = read(fd, buf + len, cap - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return open_error(path, errno);
		if (!n)
			break;
		len += (size_t)n;
		if (len > max)
			return rt_error_new(RT_E_LIMIT, "%s is longer than %zu bytes", path, max);
	}
	buf[len] = 0;
	*ret = rt_take(buf);
	if (ret_size)
		*ret_size = len;
	return NULL;
}

struct rt_error *rt_fs_read(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? open_error(path, errno) : rt_fs_read_fd(fd, path, max, ret, ret_size);
}

static struct rt_error *check_regular(int fd, const char *path)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return open_error(path, errno);
	return S_ISREG(st.st_mode) ? NULL : rt_error_new(RT_E_UNREADABLE, "%s is not a regular file", path);
}

struct rt_error *rt_fs_open_file(int dirfd, const char *path, bool nofollow, int *ret)
{
	_cleanup_close_ int fd = openat(dirfd, path, RT_OPEN_FLAGS | (nofollow ? O_NOFOLLOW : 0));

	RT_TRY(check_regular(fd, path));
	*ret = rt_take_fd(&fd);
	return NULL;
}

int rt_fs_openat2(int dirfd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (unsigned)flags, .resolve = resolve };
	int fd = -1;

	for (unsigned i = 0; i < AGAIN_MAX; i++) {
		fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd;
}

struct rt_error *rt_fs_open_inside(int root, const char *path, int *ret)
{
	_cleanup_close_ int fd = -1;

	if (root == AT_FDCWD)
		return rt_fs_open_file(root, path, false, ret);
	fd = rt_fs_openat2(root, path, RT_OPEN_FLAGS, RESOLVE_IN_ROOT);
	RT_TRY(check_regular(fd, path));
	*ret = rt_take_fd(&fd);
	return NULL;
}

char *rt_fs_plain_path(const char *path)
{
	char *out = malloc(strlen(path) + 2);
	size_t n = 0;

	while (out && *path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && path[0] == '.' && path[1] == '.') {
			while (n && out[--n] != '/')
				;
		} else if (len && !(len == 1 && path[0] == '.')) {
			out[n++] = '/';
			memcpy(out + n, path, len);
			n += len;
		}
		path += len;
		path += *path == '/';
	}
	if (out && !n)
		out[n++] = '/';
	if (out)
		out[n] = 0;
	return out;
}

const char *rt_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

void rt_fs_act_as(uid_t uid, gid_t gid)
{
	setfsgid(gid);
	setfsuid(uid);
}
