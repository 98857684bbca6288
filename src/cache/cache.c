/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "cache/parts.h"

const char *rt_cache_part_name(enum rt_cache_part part)
{
	static const char *const names[] = {
		[RT_CACHE_ELF] = "elf",           [RT_CACHE_DEBUG] = "debug", [RT_CACHE_PROBES] = "probes",
		[RT_CACHE_KALLSYMS] = "kallsyms", [RT_CACHE_VDSO] = "vdso",   [RT_CACHE_KCORE] = "kcore",
	};

	return names[part];
}

char *rt_cache_link(const uint8_t *id, size_t size)
{
	static const char digit[] = "0123456789abcdef";
	char hex[2 * RT_CACHE_ID_MAX + 1], *text;

	if (!rt_cache_takes(size))
		return NULL;
	for (size_t i = 0; i < size; i++) {
		hex[2 * i] = digit[id[i] >> 4];
		hex[2 * i + 1] = digit[id[i] & 15];
	}
	hex[2 * size] = 0;
	return asprintf(&text, ".build-id/%.2s/%s", hex, hex + 2) < 0 ? NULL : text;
}

bool rt_cache_cut_link(char *link)
{
	enum { CUT = sizeof(".build-id/") - 1 + 2 * RT_BUILD_ID_MAX + 1 };

	if (strlen(link) <= CUT)
		return false;
	link[CUT] = 0;
	return true;
}

char *rt_cache_whole_link(const struct rt_cache *cache, const char *link)
{
	const char *high = link + strlen(".build-id/"), *low = high + 3, *name;
	char target[4096], *whole;
	struct stat st;
	ssize_t n = readlinkat(cache->fd, link, target, sizeof(target) - 1);

	if (n <= 0)
		return NULL;
	target[n] = 0;
	name = strrchr(target, '/');
	if (!name || strlen(name + 1) <= strlen(low) + 2 || strncmp(name + 1, high, 2) != 0 ||
	    strncmp(name + 3, low, strlen(low)) != 0 || asprintf(&whole, ".build-id/%.2s/%s", high, name + 3) < 0)
		return NULL;
	if (!fstatat(cache->fd, whole, &st, AT_SYMLINK_NOFOLLOW))
		return whole;
	free(whole);
	return NULL;
}

char *rt_cache_below(const char *path, const char *link)
{
	const char *hex = link + strlen(".build-id/");
	char *text;

	return asprintf(&text, "%s/%.2s%s", path, hex, hex + 3) < 0 ? NULL : text;
}

bool rt_cache_is_id(const struct rt_image *image, const uint8_t *id, size_t id_size)
{
	return rt_build_id_fits(image->build_id, image->build_id_size, id, id_size);
}

struct rt_error *rt_cache_lock(const struct rt_cache *cache, int *ret)
{
	*ret = openat(cache->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 || flock(*ret, LOCK_EX) ? rt_cache_unwritable(cache, "") : NULL;
}

int rt_cache_openat(int dirfd, const char *path, int flags)
{
	return rt_fs_openat2(dirfd, path, flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NONBLOCK),
			     RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

static char *default_root(void)
{
	const char *dir = getenv("PERF_BUILDID_DIR"), *home = getenv("HOME");
	char *text;

	if (dir && *dir)
		return strdup(dir);
	if (!home || !*home)
		return NULL;
	return asprintf(&text, "%s/.debug", home) < 0 ? NULL : text;
}

struct rt_error *rt_cache_open(const char *root, bool create, struct rt_cache **ret)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return rt_error_nomem();
	cache->fd = -1;
	cache->root = root ? strdup(root) : default_root();
	if (!cache->root)
		return rt_error_fix(rt_error_new(RT_E_NOT_FOUND, "no folder for the build-id cache: HOME is not set"),
				    "name one in the environment: PERF_BUILDID_DIR=/path");
	if (create && mkdir(cache->root, 0755) && errno != EEXIST)
		return rt_error_errno(RT_E_UNWRITABLE, errno, "cannot make the build-id cache %s", cache->root);
	cache->fd = open(cache->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (cache->fd < 0 && (create || errno != ENOENT))
		return rt_error_errno(RT_E_UNREADABLE, errno, "cannot open the build-id cache %s", cache->root);
	*ret = rt_take(cache);
	return NULL;
}

void rt_cache_close(struct rt_cache *cache)
{
	if (!cache)
		return;
	rt_closep(&cache->fd);
	free(cache->root);
	free(cache);
}

const char *rt_cache_root(const struct rt_cache *cache)
{
	return cache->root;
}

static struct rt_error *absent(const struct rt_cache *cache, const char *link, const char *part)
{
	return rt_error_new(RT_E_NOT_FOUND, "%s/%s/%s is not there", cache->root, link, part);
}

static struct rt_error *get_linked(const struct rt_cache *cache, const char *link, enum rt_cache_part part, int *ret_fd)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (asprintf(&path, "%s/%s", link, rt_cache_part_name(part)) < 0)
		return rt_error_nomem();
	fd = rt_cache_openat(cache->fd, path, O_RDONLY);
	/* files of the oldest layout: the link leads to the file itself */
	if (fd < 0 && errno == ENOTDIR && part == RT_CACHE_ELF)
		fd = rt_cache_openat(cache->fd, link, O_RDONLY);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return absent(cache, link, rt_cache_part_name(part));
	if (fd < 0 || fstat(fd, &st))
		return rt_error_errno(RT_E_UNREADABLE, errno, "cannot read %s/%s", cache->root, path);
	if (!S_ISREG(st.st_mode))
		return rt_error_new(RT_E_UNREADABLE, "%s/%s is not a regular file", cache->root, path);
	*ret_fd = rt_take_fd(&fd);
	return NULL;
}

bool rt_cache_perfs_link(const struct rt_cache *cache, const uint8_t *id, size_t id_size, char *link)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_error_ struct rt_error *err = NULL;
	_cleanup_close_ int fd = -1;

	if (!rt_cache_cut_link(link))
		return false;
	err = get_linked(cache, link, RT_CACHE_ELF, &fd);
	if (!err)
		err = rt_image_open_fd(fd, link, &image);
	return !err && rt_image_is_build(image, id, id_size);
}

struct rt_error *rt_cache_get(const struct rt_cache *cache, const uint8_t *id, size_t id_size, enum rt_cache_part part,
			      int *ret_fd)
{
	_cleanup_free_ char *link = rt_cache_link(id, id_size);
	struct rt_error *err;

	if (!link)
		return rt_cache_takes(id_size) ? rt_error_nomem() : absent(cache, "", "a build-id");
	if (cache->fd < 0)
		return absent(cache, link, rt_cache_part_name(part));
	err = get_linked(cache, link, part, ret_fd);
	if (err && err->code == RT_E_NOT_FOUND && rt_cache_perfs_link(cache, id, id_size, link)) {
		rt_error_free(err);
		err = get_linked(cache, link, part, ret_fd);
	}
	return err;
}

struct rt_error *rt_cache_origin(const struct rt_cache *cache, const uint8_t *id, size_t id_size, char **ret)
{
	_cleanup_free_ char *link = rt_cache_link(id, id_size);

	if (!link)
		return rt_cache_takes(id_size) ? rt_error_nomem() : absent(cache, "", "a build-id");
	return rt_cache_origin_of(cache, link, ret);
}

struct rt_error *rt_cache_origin_of(const struct rt_cache *cache, const char *link, char **ret)
{
	char target[4096], *slash, *start = target;
	ssize_t n;

	n = cache->fd < 0 ? -1 : readlinkat(cache->fd, link, target, sizeof(target) - 1);
	if (n <= 0)
		return absent(cache, link, "");
	target[n] = 0;
	slash = strrchr(target, '/');
	if (strncmp(target, "../..", 5) != 0 || !slash || slash < target + 6)
		return rt_error_new(RT_E_FORMAT, "%s/%s leads to %s, which no cache has", cache->root, link, target);
	*slash = 0;
	start += 5;
	/* "[kernel.kallsyms]" and the like are no paths */
	if (start[1] == '[')
		start++;
	*ret = strdup(start);
	return *ret ? NULL : rt_error_nomem();
}
