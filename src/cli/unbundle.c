/* SPDX-License-Identifier: GPL-2.0-only */
/* Taking a recording and its files out of an archive: into a new folder, and nowhere else. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cache/cache.h"
#include "cli/bundle.h"

struct unpacking {
	int folder;
	struct rt_cache *cache;
	char *recording;
};

/* Opens the folder of path below at, made where it is missing; *ret_name: the last part. -1: errno */
static int folder_of(int at, const char *path, const char **ret_name)
{
	_cleanup_close_ int fd = dup(at);

	for (;;) {
		const char *slash = strchr(path, '/');
		_cleanup_free_ char *part = NULL;
		int next;

		if (!slash || fd < 0)
			break;
		part = strndup(path, (size_t)(slash - path));
		if (!part || (mkdirat(fd, part, 0755) && errno != EEXIST))
			return -1;
		next = openat(fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -1;
		close(fd);
		fd = next;
		path = slash + 1;
	}
	*ret_name = path;
	return rt_take_fd(&fd);
}

static struct rt_error *put_file(struct unpacking *u, const char *path, struct rt_bytes bytes)
{
	const char *name;
	_cleanup_close_ int folder = folder_of(u->folder, path, &name), fd = -1;
	struct rt_sink sink;
	struct rt_error *err;

	if (folder >= 0)
		fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return rt_error_errno(RT_E_UNWRITABLE, errno, "cannot make %s", path);
	rt_sink_init_fd(&sink, fd, path);
	rt_sink_write(&sink, bytes.data, bytes.size);
	err = rt_sink_end(&sink);
	rt_sink_deinit(&sink);
	return err;
}

static bool id_of(const char *hex, uint8_t *ret, size_t *ret_size)
{
	size_t len = hex ? strlen(hex) : 0;

	if (!len || len % 2 || len / 2 > RT_CACHE_ID_MAX)
		return false;
	for (size_t i = 0; i < len / 2; i++) {
		uint64_t v;

		if (!rt_parse_u64(hex + 2 * i, 2, 16, &v))
			return false;
		ret[i] = (uint8_t)v;
	}
	*ret_size = len / 2;
	return true;
}

static struct rt_error *put_object(struct unpacking *u, const struct rt_archive_item *item, struct rt_bytes bytes)
{
	const char *name = strrchr(item->path, '/') + 1;
	uint8_t id[RT_CACHE_ID_MAX];
	struct rt_error *err;
	size_t size;

	for (enum rt_cache_part part = RT_CACHE_ELF; part < RT_CACHE_FILES; part++) {
		if (strcmp(name, rt_cache_part_name(part)) != 0 || !id_of(item->build_id, id, &size))
			continue;
		err = rt_cache_put(u->cache, id, size, item->origin, part, bytes, NULL);
		/* a path of the other machine that no folder can have */
		if (rt_error_catch(&err, RT_E_FORMAT))
			err = rt_cache_put(u->cache, id, size, "/unknown", part, bytes, NULL);
		return err;
	}
	return rt_error_new(RT_E_FORMAT, "%s is nothing that belongs to a recording", item->path);
}

static struct rt_error *take(void *arg, const struct rt_archive_item *item, struct rt_bytes bytes)
{
	struct unpacking *u = arg;

	if (!strncmp(item->path, "objects/", 8))
		return put_object(u, item, bytes);
	if (!strchr(item->path, '/') && item->path[0] != '.' && !u->recording) {
		u->recording = strdup(item->path);
		if (!u->recording)
			return rt_error_nomem();
	} else if (strncmp(item->path, "sources/", 8) != 0) {
		return rt_error_new(RT_E_FORMAT, "%s is nothing that belongs to a recording", item->path);
	}
	return put_file(u, item->path, bytes);
}

/* Everything is looked at before the first file is written. */
static struct rt_error *check(const struct rt_archive *archive)
{
	size_t count;
	const struct rt_archive_item *items = rt_archive_items(archive, &count);
	bool recording = false;

	for (size_t i = 0; i < count; i++) {
		const char *path = items[i].path;
		bool good = false;

		if (!path)
			continue;
		if (!strncmp(path, "objects/", 8)) {
			const char *name = strrchr(path, '/') + 1;
			uint8_t id[RT_CACHE_ID_MAX];
			size_t size;

			for (enum rt_cache_part part = RT_CACHE_ELF; part < RT_CACHE_FILES; part++)
				good |= !strcmp(name, rt_cache_part_name(part)) && id_of(items[i].build_id, id, &size);
		} else if (!strncmp(path, "sources/", 8)) {
			good = true;
		} else if (!strchr(path, '/') && path[0] != '.' && !recording) {
			good = recording = true;
		}
		if (!good)
			return rt_error_new(RT_E_FORMAT, "%s is nothing that belongs to a recording", path);
	}
	return NULL;
}

static struct rt_error *make_folder(const char *folder, int *ret)
{
	struct dirent *entry;
	bool empty = true;
	DIR *dir;

	if (mkdir(folder, 0777) && errno != EEXIST)
		return rt_error_errno(RT_E_UNWRITABLE, errno, "cannot make %s", folder);
	dir = opendir(folder);
	if (!dir)
		return rt_error_errno(RT_E_UNREADABLE, errno, "cannot open %s", folder);
	while ((entry = readdir(dir)))
		empty &= !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	closedir(dir);
	if (!empty)
		return rt_error_fix(rt_error_new(RT_E_UNWRITABLE, "%s is not empty", folder),
				    "name a new folder: -C DIR");
	*ret = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? rt_error_errno(RT_E_UNREADABLE, errno, "cannot open %s", folder) : NULL;
}

struct rt_error *rt_bundle_unpack(struct rt_archive *archive, const char *folder, char **ret_recording)
{
	struct unpacking u = { .folder = -1 };
	_cleanup_free_ char *cache = NULL;
	struct rt_error *err = check(archive);

	if (!err)
		err = make_folder(folder, &u.folder);
	if (!err && asprintf(&cache, "%s/.debug", folder) < 0)
		err = rt_error_nomem();
	if (!err)
		err = rt_cache_open(cache, true, &u.cache);
	if (!err)
		err = rt_archive_each(archive, take, &u);
	rt_cache_close(u.cache);
	rt_closep(&u.folder);
	if (err) {
		free(u.recording);
		return err;
	}
	*ret_recording = u.recording;
	return NULL;
}
