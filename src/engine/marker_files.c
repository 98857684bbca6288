/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/marker_files.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "engine/libraries.h"
#include "engine/mapped.h"

enum { MAPS_MAX = 64 * 1024 * 1024 };

bool rt_marker_fits(const struct rt_sdt_marker *marker, const char *provider, const char *name)
{
	return !fnmatch(provider, marker->provider, 0) && !fnmatch(name, marker->name, 0);
}

static void holder_deinit(struct rt_marker_holder *h)
{
	free(h->path);
	free(h->markers);
	rt_symtab_destroyp(&h->symtab);
	rt_dwarf_destroyp(&h->dwarf);
	rt_image_destroyp(&h->image);
	rt_image_destroyp(&h->notes);
	if (h->fd >= 0)
		close(h->fd);
}

void rt_marker_files_close(struct rt_marker_files *f)
{
	for (size_t i = 0; i < f->list.len; i++)
		holder_deinit(&f->list.data[i]);
	rt_vec_deinit(&f->list);
	rt_map_deinit(&f->seen);
	rt_cache_items_free(f->items, f->item_count);
	rt_cache_closep(&f->cache);
	free(f->other_id);
	*f = (struct rt_marker_files){ .target = f->target };
}

static struct rt_error *read_markers(struct rt_marker_files *f, const struct rt_image *image,
				     struct rt_marker_holder *h)
{
	struct rt_error *err = rt_sdt_read(image, &h->markers, &h->count);

	if (!rt_error_catch(&err, RT_E_FORMAT))
		return err;
	/* what was read before the damage is true */
	f->damaged = true;
	return NULL;
}

/* A program may be stripped of its notes; addresses are those of the file with the same build-id. */
static struct rt_error *read_cached_notes(struct rt_marker_files *f, struct rt_marker_holder *h)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_close_ int fd = -1;
	const struct rt_image *is = h->image;
	struct rt_error *err;

	if (!f->cache || !is->build_id_size || is->build_id_is_hash)
		return NULL;
	err = rt_cache_get(f->cache, is->build_id, is->build_id_size, RT_CACHE_ELF, &fd);
	if (!err)
		err = rt_image_open_fd(fd, h->path, &image);
	if (err && err->code == RT_E_NOMEM)
		return err;
	rt_error_free(err);
	if (!image || !rt_image_is_build(image, is->build_id, is->build_id_size))
		return NULL;
	RT_TRY(read_markers(f, image, h));
	h->notes = rt_take(image);
	return NULL;
}

/* What the cache keeps for a file; what cannot be read is nothing. The caller gives it back. */
static struct rt_error *read_kept(const struct rt_marker_files *f, const uint8_t *id, size_t id_size,
				  struct rt_probes *ret)
{
	struct rt_error *err = rt_cache_read_probes(f->cache, id, id_size, ret);

	if (err)
		*ret = (struct rt_probes){ 0 };
	if (err && err->code != RT_E_NOMEM)
		rt_error_free(rt_take(err));
	return err;
}

/* Does the cache keep definitions for the file? */
static struct rt_error *is_kept(const struct rt_marker_files *f, const struct rt_image *image, bool *ret)
{
	struct rt_probes probes;

	*ret = false;
	if (!f->cache)
		return NULL;
	RT_TRY(read_kept(f, image->build_id, image->build_id_size, &probes));
	for (size_t i = 0; i < probes.entries.len; i++)
		*ret |= !probes.entries.data[i].sdt;
	rt_probes_deinit(&probes);
	return NULL;
}

/* Takes fd. *ret: index, SIZE_MAX without markers or when it was looked at before. */
static struct rt_error *look(struct rt_marker_files *f, int fd, const char *path, size_t *ret)
{
	struct rt_marker_holder h = { .fd = fd };
	struct rt_error *err;
	struct stat st;
	bool fresh = false, kept = false;

	*ret = SIZE_MAX;
	if (fstat(fd, &st) || !rt_map_put(&f->seen, rt_key_make((uint64_t)st.st_dev, (uint64_t)st.st_ino), &fresh)) {
		holder_deinit(&h);
		return rt_error_nomem();
	}
	h.path = strdup(path);
	err = h.path ? NULL : rt_error_nomem();
	if (!err && fresh) {
		f->looked_at++;
		err = rt_image_open_fd(fd, path, &h.image);
		if (!err)
			err = read_markers(f, h.image, &h);
		if (!err && !h.count)
			err = read_cached_notes(f, &h);
		if (!err && h.count)
			err = rt_symtab_create(h.image, &h.symtab);
		if (!err && h.count)
			err = rt_dwarf_create(h.notes ?: h.image, &h.dwarf);
		if (!err && !h.count)
			err = is_kept(f, h.image, &kept);
		if (!err)
			err = rt_image_whole(h.image);
	}
	if (!err && (h.count || kept)) {
		if (rt_vec_push(&f->list, h)) {
			*ret = f->list.len - 1;
			return NULL;
		}
		err = rt_error_nomem();
	}
	holder_deinit(&h);
	return err;
}

/* What is no ELF file has no markers. */
static struct rt_error *look_if_elf(struct rt_marker_files *f, int fd, const char *path, size_t *ret)
{
	struct rt_error *err = look(f, fd, path, ret);

	if (err && err->code != RT_E_NOMEM)
		rt_error_free(rt_take(err));
	return err;
}

struct rt_error *rt_marker_files_mapped(struct rt_marker_files *f, uint32_t pid, const struct rt_maps_line *line,
					size_t *ret)
{
	int fd = rt_mapped_file(pid, line);
	struct rt_error *err = NULL;

	*ret = SIZE_MAX;
	/* a process that is gone by now: what lies there will be what it had */
	if (fd < 0 && !line->inode)
		err = rt_fs_open_file(AT_FDCWD, line->path, false, &fd);
	if (err && err->code != RT_E_NOMEM)
		rt_error_free(rt_take(err));
	RT_TRY(err);
	return fd < 0 ? NULL : look_if_elf(f, fd, line->path, ret);
}

static struct rt_error *look_at_process(struct rt_marker_files *f, uint32_t pid)
{
	_cleanup_free_ char *text = NULL;
	struct rt_maps_line line;
	char path[64], *at;
	size_t index;
	struct rt_error *err;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	err = rt_fs_read(AT_FDCWD, path, MAPS_MAX, &text, NULL);
	if (err) {
		/* gone, or not ours: whoever opens its events says so */
		rt_error_free(err);
		return NULL;
	}
	at = text;
	while (rt_maps_parse_line(&at, &line)) {
		/* opening is dear, and most processes map the same few files. The device is numbered in another way
		 * than stat's: no key of the one kind may be one of the other. */
		struct rt_key key = rt_key_make(~((uint64_t)line.dev_major << 32 | line.dev_minor), line.inode);

		if (!line.executable || *line.path != '/' || !line.inode || rt_map_get(&f->seen, key))
			continue;
		RT_TRY(rt_marker_files_mapped(f, pid, &line, &index));
		if (!rt_map_put(&f->seen, key, NULL))
			return rt_error_nomem();
	}
	return NULL;
}

static struct rt_error *look_at_every_process(struct rt_marker_files *f)
{
	_cleanup_free_ uint32_t *pids = NULL;
	size_t count = 0;

	if (!rt_numbers_in("/proc", &pids, &count))
		return rt_error_new(RT_E_UNREADABLE, "cannot list /proc");
	for (size_t i = 0; i < count; i++)
		RT_TRY(look_at_process(f, pids[i]));
	return NULL;
}

static struct rt_error *look_at_path(struct rt_marker_files *f, const char *path, size_t *ret)
{
	int fd = -1;

	RT_TRY(rt_fs_open_file(AT_FDCWD, path, false, &fd));
	return look(f, fd, path, ret);
}

static struct rt_error *look_at_command(struct rt_marker_files *f)
{
	struct rt_libraries_options options = { f->target->library_path, f->target->preload };
	struct rt_libraries libraries = { 0 };
	struct rt_error *err = rt_libraries_of_command(f->target->command, &options, &libraries);
	size_t index;

	for (size_t i = 0; !err && i < libraries.paths.len; i++) {
		err = look_at_path(f, libraries.paths.data[i], &index);
		if (err && err->code != RT_E_NOMEM)
			rt_error_free(rt_take(err));
	}
	rt_libraries_deinit(&libraries);
	return err;
}

/* A cache that cannot be read knows nothing. */
static struct rt_error *open_cache(struct rt_marker_files *f)
{
	struct rt_error *err = rt_cache_open(f->target->cache_root, false, &f->cache);

	if (!err)
		err = rt_cache_list(f->cache, &f->items, &f->item_count);
	if (err && err->code == RT_E_NOMEM)
		return err;
	rt_error_free(err);
	return NULL;
}

struct rt_error *rt_marker_files_open(const struct rt_marker_target *target, struct rt_marker_files *ret)
{
	struct rt_marker_files f = { .target = target };
	struct rt_error *err = open_cache(&f);

	if (!err && target->command)
		err = look_at_command(&f);
	for (size_t i = 0; !err && i < target->pid_count; i++)
		err = look_at_process(&f, target->pids[i]);
	if (!err && target->every_process)
		err = look_at_every_process(&f);
	if (err) {
		rt_marker_files_close(&f);
		return err;
	}
	*ret = f;
	return NULL;
}

/* "sdt_PROVIDER:NAME=NAME" */
static bool entry_fits(const struct rt_probes_entry *e, const char *provider, const char *name)
{
	const char *colon = strchr(e->spec, ':'), *end = colon ? colon + strcspn(colon, "=") : NULL;
	_cleanup_free_ char *group = NULL, *event = NULL;

	if (!e->sdt || !colon || strncmp(e->spec, "sdt_", 4) != 0)
		return false;
	group = strndup(e->spec + 4, (size_t)(colon - e->spec) - 4);
	event = strndup(colon + 1, (size_t)(end - colon) - 1);
	return group && event && !fnmatch(provider, group, 0) && !fnmatch(name, event, 0);
}

static struct rt_error *item_fits(struct rt_marker_files *f, const struct rt_cache_item *item, const char *provider,
				  const char *name, bool *ret)
{
	struct rt_probes probes;

	*ret = false;
	RT_TRY(read_kept(f, item->id, item->id_size, &probes));
	for (size_t i = 0; i < probes.entries.len; i++)
		*ret |= entry_fits(&probes.entries.data[i], provider, name);
	rt_probes_deinit(&probes);
	return NULL;
}

/* What lies at the item's path now, if it is what the cache knows. */
static struct rt_error *look_at_item(struct rt_marker_files *f, const struct rt_cache_item *item, const char *path)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_close_ int fd = -1;
	struct rt_error *err = rt_fs_open_file(AT_FDCWD, path, false, &fd);
	size_t index;

	if (!err)
		err = rt_image_open_fd(fd, path, &image);
	if (err && err->code == RT_E_NOMEM)
		return err;
	/* gone: of another host, or unmounted */
	if (err) {
		rt_error_free(err);
		return NULL;
	}
	if (!rt_image_is_build(image, item->id, item->id_size)) {
		if (!f->other_id)
			f->other_id = strdup(path);
		return NULL;
	}
	return look_if_elf(f, rt_take_fd(&fd), path, &index);
}

struct rt_error *rt_marker_files_cached(struct rt_marker_files *f, const char *provider, const char *name)
{
	for (size_t i = 0; i < f->item_count; i++) {
		const struct rt_cache_item *item = &f->items[i];
		bool fits;

		if (!item->has[RT_CACHE_PROBES] || !item->path || *item->path != '/')
			continue;
		RT_TRY(item_fits(f, item, provider, name, &fits));
		if (fits)
			RT_TRY(look_at_item(f, item, item->path));
		for (size_t k = 0; fits && k < item->others.len; k++)
			RT_TRY(look_at_item(f, item, item->others.data[k]));
	}
	return NULL;
}

struct rt_error *rt_marker_files_add(struct rt_marker_files *f, const char *path, size_t *ret)
{
	_cleanup_close_ int fd = -1;
	struct stat st, known;

	RT_TRY(rt_fs_open_file(AT_FDCWD, path, false, &fd));
	for (size_t i = 0; i < f->list.len; i++) {
		if (!fstat(fd, &st) && !fstat(f->list.data[i].fd, &known) && st.st_dev == known.st_dev &&
		    st.st_ino == known.st_ino) {
			*ret = i;
			return NULL;
		}
	}
	return look(f, rt_take_fd(&fd), path, ret);
}
