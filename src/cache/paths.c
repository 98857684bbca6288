/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Further paths of an id. perf's layout has room for the first one only, whose folder the id's link leads to; the
 * others are lines of a file "paths" in that folder, which perf leaves alone, archives with the rest, and takes away
 * with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "cache/parts.h"

enum { BYTES_MAX = 256 << 10, PATHS_MAX = 64 };

void rt_cache_paths_free(struct rt_cache_paths *paths)
{
	for (size_t i = 0; i < paths->len; i++)
		free(paths->data[i]);
	rt_vec_deinit(paths);
}

/* Lines that are no path that we would write are of somebody else, and left out. */
struct rt_error *rt_cache_read_paths(int folder, struct rt_cache_paths *ret)
{
	_cleanup_close_ int fd = rt_cache_openat(folder, "paths", O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	_cleanup_free_ char *text = NULL;
	struct rt_error *err;
	char *rest, *line;

	if (fd < 0)
		return NULL;
	err = rt_fs_read_fd(fd, "paths", BYTES_MAX, &text, NULL);
	if (err && err->code == RT_E_NOMEM)
		return err;
	rt_error_free(err);
	rest = err ? NULL : text;
	while ((line = strsep(&rest, "\n"))) {
		char *copy;

		if (line[0] != '/' || !rt_cache_is_plain(line) || ret->len == PATHS_MAX)
			continue;
		copy = strdup(line);
		if (!copy || !rt_vec_push(ret, copy)) {
			free(copy);
			return rt_error_nomem();
		}
	}
	return NULL;
}

static struct rt_error *write_paths(const struct rt_cache *cache, int folder, const struct rt_cache_paths *paths)
{
	_cleanup_close_ int fd = -1;
	bool fine = true;
	char temp[64];

	if (!paths->len)
		return unlinkat(folder, "paths", 0) && errno != ENOENT ? rt_cache_unwritable(cache, "paths") : NULL;
	snprintf(temp, sizeof(temp), ".paths.%d.tmp", getpid());
	unlinkat(folder, temp, 0);
	fd = openat(folder, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return rt_cache_unwritable(cache, "paths");
	for (size_t i = 0; i < paths->len && fine; i++)
		fine = rt_cache_write(fd, rt_bytes_make(paths->data[i], strlen(paths->data[i]))) &&
		       rt_cache_write(fd, rt_bytes_make("\n", 1));
	if (fine && !close(rt_take_fd(&fd)) && !renameat(folder, temp, folder, "paths"))
		return NULL;
	unlinkat(folder, temp, 0);
	return rt_cache_unwritable(cache, "paths");
}

/* *ret: index of path, SIZE_MAX: it is not among them */
static size_t index_of(const struct rt_cache_paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->len; i++)
		if (!strcmp(paths->data[i], path))
			return i;
	return SIZE_MAX;
}

struct rt_error *rt_cache_note_path(const struct rt_cache *cache, const char *link, int folder, const char *path)
{
	struct rt_cache_paths paths = { 0 };
	_cleanup_free_ char *first = NULL, *copy = NULL;
	struct rt_error *err = rt_cache_origin_of(cache, link, &first);

	/* a path with a line feed could not be told from two */
	if (err || path[0] != '/' || strchr(path, '\n') || !strcmp(first, path))
		return err;
	err = rt_cache_read_paths(folder, &paths);
	if (!err && index_of(&paths, path) == SIZE_MAX) {
		/* of too many, those that came first are the least likely to be there still */
		if (paths.len == PATHS_MAX) {
			free(paths.data[0]);
			memmove(paths.data, paths.data + 1, --paths.len * sizeof(*paths.data));
		}
		copy = strdup(path);
		if (!copy || !rt_vec_push(&paths, copy))
			err = rt_error_nomem();
		else
			copy = NULL;
		if (!err)
			err = write_paths(cache, folder, &paths);
	}
	rt_cache_paths_free(&paths);
	return err;
}

/* The folder of an entry, which moves from one folder to another, and the link to it. */
struct move {
	int from, to, links; /* folders */
	const char *hex;     /* name of the entry in from and to */
	const char *rest;    /* name of the link in links */
	const char *cut;     /* of the other one, of a longer id; NULL: it has none */
	char *way, *target;  /* to the new place: out of from; out of links */
};

/*
 * At each moment the link leads to the entry: the step that moves the entry leaves a link to its new place at the old
 * one. false: errno
 */
static bool move(const struct move *m)
{
	char temp[64];

	snprintf(temp, sizeof(temp), ".%d.tmp", getpid());
	unlinkat(m->links, temp, 0);
	if (symlinkat(m->target, m->links, temp))
		return false;
	if (symlinkat(m->way, m->to, m->hex))
		goto fault;
	if (renameat2(m->from, m->hex, m->to, m->hex, RENAME_EXCHANGE)) {
		/* this file system cannot do two in one */
		unlinkat(m->to, m->hex, 0);
		if (renameat(m->from, m->hex, m->to, m->hex))
			goto fault;
	}
	if (renameat(m->links, temp, m->links, m->rest))
		goto fault;
	if (m->cut && (symlinkat(m->target, m->links, temp) || renameat(m->links, temp, m->links, m->cut)))
		goto fault;
	unlinkat(m->from, m->hex, 0);
	return true;
fault:
	unlinkat(m->links, temp, 0);
	return false;
}

/* "../" for each folder of path, then below */
static char *way_out(const char *path, const char *below)
{
	_cleanup_free_ char *up = strdup("");
	char *way;

	for (const char *p = path; up && *p; p++) {
		char *more;

		if (*p == '/' || (p > path && p[-1] != '/'))
			continue;
		if (asprintf(&more, "%s../", up) < 0)
			return NULL;
		free(up);
		up = more;
	}
	return !up || asprintf(&way, "%s%s", up, below) < 0 ? NULL : way;
}

/* The folder moves to where the next path wants it, and the link with it. */
static struct rt_error *move_entry(const struct rt_cache *cache, const char *link, const char *from, const char *to)
{
	_cleanup_free_ char *new = rt_cache_below(to + 1, link), *way = NULL, *target = NULL, *cut = strdup(link),
			    *whole = NULL;
	_cleanup_close_ int from_fd = -1, to_fd = -1, links_fd = -1;
	struct move m = { 0 };

	way = new ? way_out(from, new) : NULL;
	if (!way || !cut || asprintf(&target, "../../%s", new) < 0)
		return rt_error_nomem();
	m.way = way;
	m.target = target;
	m.hex = strrchr(new, '/') + 1;
	m.rest = strrchr(link, '/') + 1;
	if (rt_cache_cut_link(cut))
		whole = rt_cache_whole_link(cache, cut);
	if (whole && !strcmp(whole, link))
		m.cut = strrchr(cut, '/') + 1;
	/* what is planted on the way is not followed */
	m.from = from_fd = rt_cache_make_folder(cache->fd, from);
	m.to = to_fd = rt_cache_make_folder(cache->fd, to);
	m.links = links_fd = rt_cache_above(cache, link);
	if (from_fd < 0 || to_fd < 0 || links_fd < 0 || !move(&m)) {
		struct rt_error *err = rt_cache_unwritable(cache, new);

		rt_cache_drop_folder(cache, to);
		return err;
	}
	rt_cache_drop_folder(cache, from);
	return NULL;
}

struct rt_error *rt_cache_remove_path(struct rt_cache *cache, const uint8_t *id, size_t id_size, const char *path)
{
	_cleanup_free_ char *link = rt_cache_link(id, id_size), *first = NULL;
	_cleanup_close_ int lock = -1, folder = -1;
	struct rt_cache_paths paths = { 0 };
	struct rt_error *err;
	size_t at;

	if (!link || cache->fd < 0)
		return rt_error_new(RT_E_NOT_FOUND, "%s has no such build-id", cache->root);
	RT_TRY(rt_cache_lock(cache, &lock));
	folder = rt_cache_openat(cache->fd, link, O_PATH | O_DIRECTORY);
	RT_TRY(rt_cache_origin_of(cache, link, &first));
	if (!rt_cache_is_plain(first))
		return rt_error_new(RT_E_FORMAT, "%s/%s leads to %s, where no cache keeps anything", cache->root, link,
				    first);
	err = folder < 0 ? rt_cache_unwritable(cache, link) : rt_cache_read_paths(folder, &paths);
	at = index_of(&paths, path);
	if (!err && at == SIZE_MAX && (strcmp(first, path) != 0 || !paths.len))
		err = rt_error_new(RT_E_NOT_FOUND, "%s is no further path of this build-id", path);
	/* the first one's place goes to the next */
	if (!err && at == SIZE_MAX) {
		at = 0;
		err = move_entry(cache, link, first, paths.data[0]);
	}
	if (!err) {
		free(paths.data[at]);
		memmove(paths.data + at, paths.data + at + 1, (--paths.len - at) * sizeof(*paths.data));
		err = write_paths(cache, folder, &paths);
	}
	rt_cache_paths_free(&paths);
	return err;
}
