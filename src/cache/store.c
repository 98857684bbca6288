/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeping a file: written beside its place, then renamed into it; the link comes last. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/parts.h"

static struct rt_error *cannot(const struct rt_cache *cache, const char *what)
{
	bool full = errno == ENOSPC || errno == EDQUOT;

	return rt_error_errno(full ? RT_E_DISK_FULL : RT_E_UNWRITABLE, errno, "cannot write %s/%s", cache->root, what);
}

/* A path of the traced system names a folder here: it must not lead out of it. */
static bool plain_path(const char *path)
{
	const char *part = path;

	if (path[0] != '/' && path[0] != '[')
		return false;
	for (;;) {
		const char *end = strchrnul(part, '/');
		size_t len = (size_t)(end - part);

		if ((len == 1 && part[0] == '.') || (len == 2 && part[0] == '.' && part[1] == '.') || len > 255)
			return false;
		if (!*end)
			return strlen(path) < 4000;
		part = end + 1;
	}
}

/* Opens the folder path below dirfd, made where it is missing. Links are not followed. -1: errno */
static int make_folder(int dirfd, const char *path)
{
	_cleanup_free_ char *copy = strdup(path);
	_cleanup_close_ int at = dup(dirfd);
	char *rest = copy;

	while (copy && at >= 0 && rest) {
		char *part = strsep(&rest, "/");
		int next;

		if (!*part)
			continue;
		if (mkdirat(at, part, 0755) && errno != EEXIST)
			return -1;
		next = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -1;
		close(at);
		at = next;
	}
	return copy ? rt_take_fd(&at) : -1;
}

static bool write_all(int fd, struct rt_bytes bytes)
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

static struct rt_error *write_file(const struct rt_cache *cache, int folder, const char *name, struct rt_bytes bytes,
				   bool executable)
{
	char temp[64];
	_cleanup_close_ int fd = -1;

	snprintf(temp, sizeof(temp), ".%s.%d.tmp", name, getpid());
	unlinkat(folder, temp, 0);
	fd = openat(folder, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, executable ? 0755 : 0644);
	if (fd < 0)
		return cannot(cache, name);
	if (!write_all(fd, bytes) || close(rt_take_fd(&fd)) || renameat(folder, temp, folder, name)) {
		struct rt_error *err = cannot(cache, name);

		unlinkat(folder, temp, 0);
		return err;
	}
	return NULL;
}

/* The folder that the id's link leads to, -1: none */
static int linked_folder(const struct rt_cache *cache, const char *link)
{
	return rt_cache_openat(cache->fd, link, O_PATH | O_DIRECTORY);
}

static struct rt_error *make_link(const struct rt_cache *cache, const char *link, const char *path)
{
	_cleanup_free_ char *target = NULL, *above = strdup(link);
	_cleanup_close_ int folder = -1;
	const char *hex = link + strlen(".build-id/");

	if (!above || asprintf(&target, "../..%s%s/%.2s%s", path[0] == '/' ? "" : "/", path, hex, hex + 3) < 0)
		return rt_error_nomem();
	*strrchr(above, '/') = 0;
	folder = make_folder(cache->fd, above);
	if (folder < 0)
		return cannot(cache, above);
	/* somebody was faster: the first path owns the id */
	if (symlinkat(target, folder, hex + 3) && errno != EEXIST)
		return cannot(cache, link);
	return NULL;
}

struct rt_error *rt_cache_put(struct rt_cache *cache, const uint8_t *id, size_t id_size, const char *path,
			      enum rt_cache_part part, struct rt_bytes bytes, bool *ret_new)
{
	_cleanup_free_ char *link = rt_cache_link(id, id_size), *below = NULL;
	_cleanup_close_ int folder = -1, lock = -1;
	const char *name = rt_cache_part_name(part), *hex;
	struct stat st;
	bool made = false;

	if (!link)
		return id_size && id_size <= RT_CACHE_ID_MAX ? rt_error_nomem()
							     : rt_error_new(RT_E_FORMAT, "%s has no build-id", path);
	if (!plain_path(path))
		return rt_error_new(RT_E_FORMAT, "%s is no path that a cache can hold", path);
	if (cache->fd < 0)
		return rt_error_new(RT_E_UNWRITABLE, "the build-id cache %s is not there", cache->root);
	lock = openat(cache->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0 || flock(lock, LOCK_EX))
		return cannot(cache, "");
	folder = linked_folder(cache, link);
	if (folder < 0) {
		hex = link + strlen(".build-id/");
		if (asprintf(&below, "%s/%.2s%s", path, hex, hex + 3) < 0)
			return rt_error_nomem();
		folder = make_folder(cache->fd, below);
		if (folder < 0)
			return cannot(cache, below);
	}
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode)) {
		RT_TRY(write_file(cache, folder, name, bytes, part == RT_CACHE_ELF));
		made = true;
	}
	if (below)
		RT_TRY(make_link(cache, link, path));
	if (ret_new)
		*ret_new = made;
	return NULL;
}
