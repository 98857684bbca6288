/* SPDX-License-Identifier: GPL-2.0-only */
/* A file's bytes into another file: shared where the file system can, else copied by the kernel, else by us. */
#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cache/parts.h"

bool rt_cache_write(int fd, struct rt_bytes bytes)
{
	while (bytes.size) {
		ssize_t n = write(fd, bytes.data, bytes.size < 1u << 30 ? bytes.size : 1u << 30);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		bytes.data += n;
		bytes.size -= (size_t)n;
	}
	return true;
}

bool rt_cache_copy(int from, int to)
{
	enum { CHUNK = 1 << 18 };
	_cleanup_free_ uint8_t *chunk = NULL;
	off_t at = 0;
	ssize_t n;

	if (ioctl(to, FICLONE, from) == 0)
		return true;
	/* between file systems, and on old kernels, it refuses: the rest is read */
	while (copy_file_range(from, &at, to, NULL, 1u << 30, 0) > 0)
		;
	chunk = malloc(CHUNK);
	if (!chunk)
		return false;
	while ((n = pread(from, chunk, CHUNK, at))) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || !rt_cache_write(to, rt_bytes_make(chunk, (size_t)n)))
			return false;
		at += n;
	}
	return true;
}
