/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How large a cache may grow: what was not used for longest goes. The limit that is to hold from now on is a file
 * "limit" in the root, bytes in decimal, which perf leaves alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/text.h"
#include "cache/parts.h"

static int by_use(const void *a, const void *b)
{
	const struct rt_cache_item *x = a, *y = b;

	return (x->used_s > y->used_s) - (x->used_s < y->used_s);
}

struct rt_error *rt_cache_trim(struct rt_cache *cache, uint64_t max,
			       void (*gone)(const struct rt_cache_item *item, void *arg), void *arg, uint64_t *ret_left)
{
	struct rt_cache_item *items;
	struct rt_error *err = NULL;
	uint64_t sum = 0;
	size_t count;

	RT_TRY(rt_cache_list(cache, &items, &count));
	for (size_t i = 0; i < count; i++)
		sum += items[i].bytes;
	if (count)
		qsort(items, count, sizeof(*items), by_use);
	for (size_t i = 0; i < count && sum > max && !err; i++) {
		err = rt_cache_remove(cache, items[i].id, items[i].id_size);
		if (err)
			break;
		sum -= items[i].bytes;
		gone(&items[i], arg);
	}
	rt_cache_items_free(items, count);
	*ret_left = sum;
	return err;
}

uint64_t rt_cache_limit(const struct rt_cache *cache)
{
	_cleanup_close_ int fd = cache->fd < 0 ? -1 : rt_cache_openat(cache->fd, "limit", O_RDONLY | O_NOFOLLOW);
	_cleanup_free_ char *text = NULL;
	uint64_t max = 0;

	if (fd < 0)
		return 0;
	rt_error_free(rt_fs_read_fd(fd, "limit", 64, &text, NULL));
	return text && rt_parse_u64(text, strcspn(text, "\n"), 10, &max) ? max : 0;
}

struct rt_error *rt_cache_set_limit(struct rt_cache *cache, uint64_t max)
{
	_cleanup_close_ int lock = -1, fd = -1;
	char text[32], temp[64];
	int len = snprintf(text, sizeof(text), "%" PRIu64 "\n", max);

	if (cache->fd < 0)
		return rt_error_new(RT_E_UNWRITABLE, "the build-id cache %s is not there", cache->root);
	RT_TRY(rt_cache_lock(cache, &lock));
	if (!max)
		return unlinkat(cache->fd, "limit", 0) && errno != ENOENT ? rt_cache_unwritable(cache, "limit") : NULL;
	snprintf(temp, sizeof(temp), ".limit.%d.tmp", getpid());
	unlinkat(cache->fd, temp, 0);
	fd = openat(cache->fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd >= 0 && rt_cache_write(fd, rt_bytes_make(text, (size_t)len)) && !close(rt_take_fd(&fd)) &&
	    !renameat(cache->fd, temp, cache->fd, "limit"))
		return NULL;
	unlinkat(cache->fd, temp, 0);
	return rt_cache_unwritable(cache, "limit");
}
