/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeping a file: written beside its place, then renamed into it; the link comes last. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "cache/parts.h"
#include "elf/image.h"

#define PROBES_BYTES_MAX (64u << 20)

struct rt_error *rt_cache_unwritable(const struct rt_cache *cache, const char *what)
{
	bool full = errno == ENOSPC || errno == EDQUOT;

	return rt_error_errno(full ? RT_E_DISK_FULL : RT_E_UNWRITABLE, errno, "cannot write %s/%s", cache->root, what);
}

bool rt_cache_is_plain(const char *path)
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

int rt_cache_make_folder(int dirfd, const char *path)
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

int rt_cache_above(const struct rt_cache *cache, const char *link)
{
	_cleanup_free_ char *above = strdup(link);

	if (!above)
		return -1;
	*strrchr(above, '/') = 0;
	return rt_cache_make_folder(cache->fd, above);
}

/* What a put keeps. */
struct source {
	struct rt_bytes bytes;
	int fd;       /* instead of bytes; -1: bytes */
	bool replace; /* what is there goes in any case */
};

struct name {
	const uint8_t *id;
	size_t id_size;
	const char *path;
	enum rt_cache_part part;
};

static bool holds(int fd, const struct name *name)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	struct rt_error *err = rt_image_open_fd(fd, name->path, &image);

	if (err) {
		rt_error_free(err);
		return false;
	}
	if (name->part == RT_CACHE_DEBUG && image->build_id_is_hash)
		return true;
	return rt_cache_is_id(image, name->id, name->id_size);
}

static bool is_checked(const struct source *source, enum rt_cache_part part)
{
	return source->fd >= 0 && (part == RT_CACHE_ELF || part == RT_CACHE_DEBUG);
}

/* Into the open temporary file. */
static struct rt_error *fill(const struct rt_cache *cache, int fd, const struct name *name, const struct source *source)
{
	if (source->fd < 0 ? !rt_cache_write(fd, source->bytes) : !rt_cache_copy(source->fd, fd))
		return rt_cache_unwritable(cache, rt_cache_part_name(name->part));
	if (is_checked(source, name->part) && !holds(fd, name))
		return rt_error_new(RT_E_BUILD_ID, "%s changed meanwhile: it is not the file that ran", name->path);
	return NULL;
}

static struct rt_error *write_file(const struct rt_cache *cache, int folder, const struct name *name,
				   const struct source *source)
{
	const char *part = rt_cache_part_name(name->part);
	_cleanup_close_ int fd = -1;
	struct rt_error *err;
	char temp[64];

	snprintf(temp, sizeof(temp), ".%s.%d.tmp", part, getpid());
	unlinkat(folder, temp, 0);
	fd = openat(folder, temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    name->part == RT_CACHE_ELF ? 0755 : 0644);
	if (fd < 0)
		return rt_cache_unwritable(cache, part);
	err = fill(cache, fd, name, source);
	if (!err && (close(rt_take_fd(&fd)) || renameat(folder, temp, folder, part)))
		err = rt_cache_unwritable(cache, part);
	if (err)
		unlinkat(folder, temp, 0);
	return err;
}

/* The folder that the id's link leads to, -1: none */
static int linked_folder(const struct rt_cache *cache, const char *link)
{
	return rt_cache_openat(cache->fd, link, O_PATH | O_DIRECTORY);
}

static struct rt_error *make_link(const struct rt_cache *cache, const char *link, const char *path)
{
	_cleanup_free_ char *target = NULL, *below = rt_cache_below(path, link), *cut = strdup(link);
	_cleanup_close_ int folder = -1;

	if (!cut || !below || asprintf(&target, "../..%s%s", path[0] == '/' ? "" : "/", below) < 0)
		return rt_error_nomem();
	folder = rt_cache_above(cache, link);
	if (folder < 0)
		return rt_cache_unwritable(cache, link);
	/* somebody was faster: the first path owns the id */
	if (symlinkat(target, folder, strrchr(link, '/') + 1) && errno != EEXIST)
		return rt_cache_unwritable(cache, link);
	if (rt_cache_cut_link(cut) && symlinkat(target, folder, strrchr(cut, '/') + 1) && errno != EEXIST)
		return rt_cache_unwritable(cache, cut);
	return NULL;
}

/* How much a file tells: debug information, symbols. */
static unsigned richness(int fd, const char *path)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	struct rt_error *err = rt_image_open_fd(fd, path, &image);
	struct rt_bytes section;

	rt_error_free(err);
	if (err)
		return 0;
	return rt_image_section(image, ".debug_info", &section, NULL) * 2u +
	       rt_image_section(image, ".symtab", &section, NULL);
}

/* Is there something already that stays? */
static bool is_there(int folder, const struct name *name, const struct source *source)
{
	const char *part = rt_cache_part_name(name->part);
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (fstatat(folder, part, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return false;
	if (!is_checked(source, name->part) || name->part != RT_CACHE_ELF)
		return true;
	fd = openat(folder, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && holds(fd, name) && richness(fd, name->path) >= richness(source->fd, name->path);
}

void rt_cache_drop_folder(const struct rt_cache *cache, const char *below)
{
	_cleanup_free_ char *path = strdup(below);
	char *slash;

	while (path && *path && !unlinkat(cache->fd, path + (*path == '/'), AT_REMOVEDIR)) {
		slash = strrchr(path, '/');
		if (!slash)
			return;
		*slash = 0;
	}
}

static struct rt_error *no_id(const char *path, size_t id_size)
{
	if (!id_size)
		return rt_error_new(RT_E_FORMAT, "%s has no build-id", path);
	return rt_error_new(RT_E_FORMAT, "%s has a build-id of %zu bytes: a cache holds %d to %d", path, id_size,
			    RT_CACHE_ID_MIN, RT_CACHE_ID_MAX);
}

static struct rt_error *enter(struct rt_cache *cache, const uint8_t *id, size_t id_size, struct rt_cache_entry *e)
{
	e->link = rt_cache_link(id, id_size);
	if (!e->link)
		return rt_cache_takes(id_size) ? rt_error_nomem() : no_id(e->path, id_size);
	if (!rt_cache_is_plain(e->path))
		return rt_error_new(RT_E_FORMAT, "%s is no path that a cache can hold", e->path);
	if (cache->fd < 0)
		return rt_error_new(RT_E_UNWRITABLE, "the build-id cache %s is not there", cache->root);
	RT_TRY(rt_cache_lock(cache, &e->lock));
	e->folder = linked_folder(cache, e->link);
	if (e->folder >= 0)
		return NULL;
	e->below = rt_cache_below(e->path, e->link);
	if (!e->below)
		return rt_error_nomem();
	e->folder = rt_cache_make_folder(cache->fd, e->below);
	return e->folder < 0 ? rt_cache_unwritable(cache, e->below) : NULL;
}

struct rt_error *rt_cache_enter(struct rt_cache *cache, const uint8_t *id, size_t id_size, const char *path,
				struct rt_cache_entry *ret)
{
	struct rt_error *err;

	*ret = (struct rt_cache_entry){ .folder = -1, .lock = -1, .path = path };
	err = enter(cache, id, id_size, ret);
	if (err)
		rt_cache_entry_deinit(ret);
	return err;
}

struct rt_error *rt_cache_leave(struct rt_cache *cache, struct rt_cache_entry *e, struct rt_error *err)
{
	if (err && e->below)
		rt_cache_drop_folder(cache, e->below);
	if (!err && e->below)
		err = make_link(cache, e->link, e->path);
	else if (!err)
		err = rt_cache_note_path(cache, e->link, e->folder, e->path);
	rt_cache_entry_deinit(e);
	return err;
}

void rt_cache_entry_deinit(struct rt_cache_entry *e)
{
	rt_closep(&e->folder);
	rt_closep(&e->lock);
	free(e->link);
	free(e->below);
}

static struct rt_error *put(struct rt_cache *cache, const struct name *name, const struct source *source, bool *ret_new)
{
	struct rt_cache_entry entry;
	struct rt_error *err = NULL;
	bool made = false;

	RT_TRY(rt_cache_enter(cache, name->id, name->id_size, name->path, &entry));
	if (source->replace || !is_there(entry.folder, name, source)) {
		err = write_file(cache, entry.folder, name, source);
		made = !err;
	}
	RT_TRY(rt_cache_leave(cache, &entry, err));
	if (ret_new)
		*ret_new = made;
	return NULL;
}

/* As it is on the disk, or empty where there is none yet. */
static struct rt_error *read_probes(const struct rt_cache *cache, int folder, struct rt_probes *ret)
{
	_cleanup_close_ int fd = rt_cache_openat(folder, "probes", O_RDONLY | O_NOFOLLOW);
	_cleanup_free_ char *text = NULL;
	size_t size;

	*ret = (struct rt_probes){ 0 };
	if (fd < 0)
		return errno == ENOENT ? NULL : rt_cache_unwritable(cache, "probes");
	/* not mapped: perf cuts the file and writes it anew */
	RT_TRY(rt_fs_read_fd(fd, "probes", PROBES_BYTES_MAX, &text, &size));
	return rt_probes_parse(rt_bytes_make(text, size), ret);
}

static struct rt_error *write_probes(const struct rt_cache *cache, int folder, const struct rt_probes *probes)
{
	const struct name name = { .part = RT_CACHE_PROBES };
	struct source source = { .fd = -1 };
	struct rt_error *err;
	struct rt_sink text;

	rt_sink_init_memory(&text);
	rt_probes_write(probes, &text);
	err = rt_sink_end(&text);
	source.bytes = rt_bytes_make(text.buffer, text.buffer ? strlen(text.buffer) : 0);
	if (!err)
		err = write_file(cache, folder, &name, &source);
	rt_sink_deinit(&text);
	return err;
}

struct rt_error *rt_cache_change_probes(struct rt_cache *cache, const uint8_t *id, size_t id_size, const char *path,
					struct rt_error *(*change)(struct rt_probes *probes, void *arg), void *arg)
{
	struct rt_probes probes = { 0 };
	struct rt_cache_entry entry;
	struct rt_error *err;

	RT_TRY(rt_cache_enter(cache, id, id_size, path, &entry));
	err = read_probes(cache, entry.folder, &probes);
	if (!err)
		err = change(&probes, arg);
	if (!err)
		err = write_probes(cache, entry.folder, &probes);
	rt_probes_deinit(&probes);
	return rt_cache_leave(cache, &entry, err);
}

struct rt_error *rt_cache_read_probes(const struct rt_cache *cache, const uint8_t *id, size_t id_size,
				      struct rt_probes *ret)
{
	_cleanup_free_ char *link = rt_cache_link(id, id_size);
	_cleanup_close_ int folder = link && cache->fd >= 0 ? linked_folder(cache, link) : -1;

	if (link && cache->fd >= 0 && folder < 0 && rt_cache_perfs_link(cache, id, id_size, link))
		folder = linked_folder(cache, link);
	*ret = (struct rt_probes){ 0 };
	return folder < 0 ? NULL : read_probes(cache, folder, ret);
}

struct rt_error *rt_cache_put(struct rt_cache *cache, const uint8_t *id, size_t id_size, const char *path,
			      enum rt_cache_part part, struct rt_bytes bytes, bool *ret_new)
{
	const struct source source = { .bytes = bytes, .fd = -1 };
	const struct name name = { id, id_size, path, part };

	return put(cache, &name, &source, ret_new);
}

struct rt_error *rt_cache_put_fd(struct rt_cache *cache, const uint8_t *id, size_t id_size, const char *path,
				 enum rt_cache_part part, int fd, bool *ret_new)
{
	const struct source source = { .fd = fd };
	const struct name name = { id, id_size, path, part };

	return put(cache, &name, &source, ret_new);
}

struct rt_error *rt_cache_replace_fd(struct rt_cache *cache, const uint8_t *id, size_t id_size, const char *path,
				     enum rt_cache_part part, int fd)
{
	const struct source source = { .fd = fd, .replace = true };
	const struct name name = { id, id_size, path, part };

	return put(cache, &name, &source, NULL);
}

bool rt_cache_holds(const struct rt_cache *cache, const uint8_t *id, size_t id_size)
{
	const struct name name = { id, id_size, "", RT_CACHE_ELF };
	_cleanup_close_ int fd = -1;
	struct rt_error *err = rt_cache_get(cache, id, id_size, RT_CACHE_ELF, &fd);

	rt_error_free(err);
	return !err && holds(fd, &name);
}

struct rt_error *rt_cache_stash(struct rt_cache *cache, int fd, int *ret_fd)
{
	_cleanup_close_ int copy = -1;

	if (cache->fd < 0)
		return rt_error_new(RT_E_UNWRITABLE, "the build-id cache %s is not there", cache->root);
	copy = openat(cache->fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (copy < 0 || !rt_cache_copy(fd, copy))
		return rt_cache_unwritable(cache, "a copy");
	*ret_fd = rt_take_fd(&copy);
	return NULL;
}
