/* SPDX-License-Identifier: GPL-2.0-only */
/* What a cache holds, whether it is sound, and taking things out of it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/vec.h"
#include "cache/parts.h"
#include "elf/image.h"

enum { DEPTH_MAX = 4 }; /* of folders below an entry: perf's kcore has one */

struct list {
	const struct rt_cache *cache;
	RT_VEC(struct rt_cache_item) items;
	size_t kernel; /* index of the item whose copies of memory are looked at */
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "ab" and "cdef" to bytes; false: no build-id */
static bool read_id(const char *high, const char *low, struct rt_cache_item *item)
{
	char text[2 * RT_CACHE_ID_MAX + 3];
	int n = snprintf(text, sizeof(text), "%s%s", high, low);

	if (strlen(high) != 2 || n >= (int)sizeof(text) || n % 2 || n / 2 > RT_CACHE_ID_MAX)
		return false;
	for (int i = 0; i < n; i += 2) {
		int a = hex_digit(text[i]), b = hex_digit(text[i + 1]);

		if (a < 0 || b < 0)
			return false;
		item->id[i / 2] = (uint8_t)(a << 4 | b);
	}
	item->id_size = (size_t)n / 2;
	return true;
}

/* Calls each(list, above, name) for what a folder holds. */
static struct rt_error *each_name(struct list *l, const char *path, const char *above,
				  struct rt_error *(*each)(struct list *l, const char *above, const char *name))
{
	int fd = rt_cache_openat(l->cache->fd, path, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct rt_error *err = NULL;
	struct dirent *entry;

	if (!dir) {
		int errnum = errno;

		if (fd >= 0)
			close(fd);
		return errnum == ENOENT || errnum == ENOTDIR
			       ? NULL
			       : rt_error_errno(RT_E_UNREADABLE, errnum, "cannot read %s/%s", l->cache->root, path);
	}
	while (!err && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			err = each(l, above, entry->d_name);
	closedir(dir);
	return err;
}

static bool count_file(int folder, const char *name, struct rt_cache_item *item)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return false;
	item->bytes += (uint64_t)st.st_size;
	if (item->used_s < st.st_atim.tv_sec)
		item->used_s = st.st_atim.tv_sec;
	if (item->used_s < st.st_mtim.tv_sec)
		item->used_s = st.st_mtim.tv_sec;
	return true;
}

static void look_into(int folder, struct rt_cache_item *item)
{
	for (int part = 0; part < RT_CACHE_FILES; part++)
		item->has[part] = count_file(folder, rt_cache_part_name((enum rt_cache_part)part), item);
}

static void item_deinit(struct rt_cache_item *item)
{
	free(item->path);
	rt_cache_paths_free(&item->others);
}

bool rt_cache_item_is_at(const struct rt_cache_item *item, const char *path)
{
	bool is = item->path && !strcmp(item->path, path);

	for (size_t i = 0; i < item->others.len; i++)
		is |= !strcmp(item->others.data[i], path);
	return is;
}

static struct rt_error *add_item(struct list *l, const char *high, const char *low)
{
	struct rt_cache_item item = { 0 };
	_cleanup_free_ char *link = NULL, *whole = NULL;
	_cleanup_close_ int folder = -1;

	if (!read_id(high, low, &item))
		return NULL;
	link = rt_cache_link(item.id, item.id_size);
	if (!link)
		return rt_error_nomem();
	whole = rt_cache_whole_link(l->cache, link);
	if (whole)
		return NULL;
	folder = rt_cache_openat(l->cache->fd, link, O_PATH | O_DIRECTORY);
	if (folder >= 0) {
		struct rt_error *err = rt_cache_origin(l->cache, item.id, item.id_size, &item.path);

		if (err && err->code == RT_E_NOMEM)
			return err;
		rt_error_free(err);
		look_into(folder, &item);
		err = rt_cache_read_paths(folder, &item.others);
		if (err) {
			item_deinit(&item);
			return err;
		}
	}
	if (!rt_vec_push(&l->items, item)) {
		item_deinit(&item);
		return rt_error_nomem();
	}
	return NULL;
}

static struct rt_error *list_high(struct list *l, const char *above, const char *name)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/%s", above, name) < 0)
		return rt_error_nomem();
	return each_name(l, path, name, add_item);
}

/* One copy, of the kernel of the last item. */
static struct rt_error *look_into_kcore(struct list *l, const char *above, const char *name)
{
	struct rt_cache_item *item = &l->items.data[l->kernel];
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int folder = -1;

	if (asprintf(&path, "%s/%s", above, name) < 0)
		return rt_error_nomem();
	folder = rt_cache_openat(l->cache->fd, path, O_PATH | O_DIRECTORY);
	if (folder < 0 || !count_file(folder, "kcore", item))
		return NULL;
	item->has[RT_CACHE_KCORE] = true;
	(void)count_file(folder, "kallsyms", item);
	(void)count_file(folder, "modules", item);
	return NULL;
}

/* That the id of item was seen as a kcore, too. */
static struct rt_error *note_kcore(struct rt_cache_item *item)
{
	char *path;

	if (rt_cache_item_is_at(item, RT_CACHE_KCORES))
		return NULL;
	path = strdup(RT_CACHE_KCORES);
	if (path && !item->path)
		item->path = path;
	else if (!path || !rt_vec_push(&item->others, path)) {
		free(path);
		return rt_error_nomem();
	}
	return NULL;
}

/* Copies of the memory of one kernel, which may have its names in the cache, too. */
static struct rt_error *add_kernel(struct list *l, const char *above, const char *name)
{
	char high[3] = { name[0], name[0] ? name[1] : 0, 0 };
	struct rt_cache_item item = { 0 };
	_cleanup_free_ char *path = NULL;
	struct rt_error *err;
	bool fresh;

	if (strlen(name) < 2 || !read_id(high, name + 2, &item))
		return NULL;
	for (l->kernel = 0; l->kernel < l->items.len; l->kernel++)
		if (l->items.data[l->kernel].id_size == item.id_size &&
		    !memcmp(l->items.data[l->kernel].id, item.id, item.id_size))
			break;
	fresh = l->kernel == l->items.len;
	if (asprintf(&path, "%s/%s", above, name) < 0 || (fresh && !rt_vec_push(&l->items, item)))
		return rt_error_nomem();
	err = each_name(l, path, path, look_into_kcore);
	if (!err && l->items.data[l->kernel].has[RT_CACHE_KCORE])
		return note_kcore(&l->items.data[l->kernel]);
	l->items.len -= fresh;
	return err;
}

struct rt_error *rt_cache_list(const struct rt_cache *cache, struct rt_cache_item **ret, size_t *ret_count)
{
	struct list l = { .cache = cache };
	struct rt_error *err = cache->fd < 0 ? NULL : each_name(&l, ".build-id", ".build-id", list_high);

	if (!err && cache->fd >= 0)
		err = each_name(&l, RT_CACHE_KCORES, RT_CACHE_KCORES, add_kernel);
	if (err) {
		rt_cache_items_free(l.items.data, l.items.len);
		return err;
	}
	*ret = l.items.data;
	*ret_count = l.items.len;
	return NULL;
}

void rt_cache_items_free(struct rt_cache_item *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		item_deinit(&items[i]);
	free(items);
}

static bool part_holds(const struct rt_cache *cache, const struct rt_cache_item *item, enum rt_cache_part part)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_close_ int fd = -1;
	struct rt_error *err = rt_cache_get(cache, item->id, item->id_size, part, &fd);

	if (!err)
		err = rt_image_open_fd(fd, "", &image);
	if (err) {
		rt_error_free(err);
		return false;
	}
	return rt_cache_is_id(image, item->id, item->id_size);
}

const char *rt_cache_check(const struct rt_cache *cache, const struct rt_cache_item *item)
{
	if (!item->path)
		return "its link leads nowhere";
	if (item->has[RT_CACHE_ELF] && !part_holds(cache, item, RT_CACHE_ELF))
		return "its elf file has another build-id";
	if (item->has[RT_CACHE_DEBUG] && !part_holds(cache, item, RT_CACHE_DEBUG))
		return "its debug file has another build-id";
	if (item->has[RT_CACHE_VDSO] && !part_holds(cache, item, RT_CACHE_VDSO))
		return "its vdso has another build-id";
	for (int part = 0; part < RT_CACHE_PARTS; part++)
		if (item->has[part])
			return NULL;
	return "it has no file";
}

/* Everything in a folder, links as links. false: errno */
static bool empty_folder(int dirfd, unsigned depth)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool fine = dir != NULL;

	while (fine && (entry = readdir(dir))) {
		_cleanup_close_ int below = -1;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || !unlinkat(fd, entry->d_name, 0))
			continue;
		below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		fine = below >= 0 && depth && empty_folder(below, depth - 1) &&
		       !unlinkat(fd, entry->d_name, AT_REMOVEDIR);
	}
	if (dir)
		closedir(dir);
	return fine;
}

bool rt_cache_drop_tree(int dirfd, const char *name)
{
	_cleanup_close_ int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && empty_folder(fd, DEPTH_MAX) && !unlinkat(dirfd, name, AT_REMOVEDIR);
}

/* The copies of a kernel's memory. The cache is locked. */
static struct rt_error *remove_kcore(struct rt_cache *cache, const uint8_t *id, size_t id_size, bool *ret_was)
{
	_cleanup_free_ char *below = rt_cache_kcore_folder(id, id_size);
	_cleanup_close_ int folder = below ? rt_fs_openat2(cache->fd, below, O_PATH | O_DIRECTORY | O_CLOEXEC,
							   RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)
					   : -1;

	*ret_was = folder >= 0;
	if (folder < 0)
		return NULL;
	if (!empty_folder(folder, DEPTH_MAX))
		return rt_cache_unwritable(cache, below);
	rt_cache_drop_folder(cache, below);
	return NULL;
}

struct rt_error *rt_cache_remove_kcore(struct rt_cache *cache, const uint8_t *id, size_t id_size)
{
	_cleanup_close_ int lock = -1;
	bool was = false;

	if (cache->fd >= 0) {
		RT_TRY(rt_cache_lock(cache, &lock));
		RT_TRY(remove_kcore(cache, id, id_size, &was));
	}
	return was ? NULL : rt_error_new(RT_E_NOT_FOUND, "%s has no memory of this kernel", cache->root);
}

struct rt_error *rt_cache_remove(struct rt_cache *cache, const uint8_t *id, size_t id_size)
{
	_cleanup_free_ char *link = rt_cache_link(id, id_size), *path = NULL, *below = NULL, *cut = NULL, *whole = NULL;
	_cleanup_close_ int lock = -1, folder = -1, above = -1;
	bool kcore = false;
	struct stat st;

	if (!link || cache->fd < 0)
		return rt_error_new(RT_E_NOT_FOUND, "%s has no such build-id", cache->root);
	RT_TRY(rt_cache_lock(cache, &lock));
	RT_TRY(remove_kcore(cache, id, id_size, &kcore));
	if (fstatat(cache->fd, link, &st, AT_SYMLINK_NOFOLLOW))
		return kcore ? NULL : rt_error_new(RT_E_NOT_FOUND, "%s has no such build-id", cache->root);
	folder = rt_cache_openat(cache->fd, link, O_PATH | O_DIRECTORY);
	if (folder >= 0) {
		RT_TRY(rt_cache_origin(cache, id, id_size, &path));
		below = rt_cache_below(path, link);
		if (!below)
			return rt_error_nomem();
		if (!empty_folder(folder, DEPTH_MAX))
			return rt_cache_unwritable(cache, below);
		rt_cache_drop_folder(cache, below);
	}
	above = rt_cache_above(cache, link);
	cut = strdup(link);
	if (!cut)
		return rt_error_nomem();
	if (rt_cache_cut_link(cut))
		whole = rt_cache_whole_link(cache, cut);
	if (above < 0 || (whole && !strcmp(whole, link) && unlinkat(above, strrchr(cut, '/') + 1, 0)) ||
	    unlinkat(above, strrchr(link, '/') + 1, 0))
		return rt_cache_unwritable(cache, link);
	return NULL;
}
