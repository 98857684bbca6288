/* SPDX-License-Identifier: GPL-2.0-only */
#include "session/binaries.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "session/binaries_priv.h"

enum { BINARIES_MAX = 1 << 16, OPEN_MAX = 1024, OPEN_MIN = 16 };

/* Copies that are set aside before it is known whether they are wanted. */
#define STASH_FILE_MAX (UINT64_C(256) << 20)
#define STASH_TOTAL_MAX (UINT64_C(2) << 30)

struct binary {
	struct rt_build_id id;
	char *path;    /* as its first process saw it; owned */
	int fd;        /* the file, or its copy; -1: not held */
	int debug_fd;  /* copy of its debug file; -1: none */
	bool cached;   /* the cache has it */
	bool was_kept; /* ... because of us */
	bool hit;
	uint64_t used; /* when it was last mapped, in steps */
};

struct rt_binaries {
	struct rt_binaries_options options;
	struct rt_cache *cache;
	struct rt_map by_id; /* head of the id -> index + 1 */
	RT_VEC(struct binary) list;
	struct rt_map modules;      /* of the stream -> index + 1 */
	struct rt_map sample_types; /* by ATTR id */
	struct rt_hits hits;
	uint64_t steps, stashed_bytes;
	size_t open, open_max;
	bool vdso_hit;
	struct rt_error *failure; /* the first file that could not be kept */
};

/* What is made in the cache belongs to its user, and root's rights must not help there: its links may lead anywhere. */
static void enter(const struct rt_binaries *b)
{
	if (b->options.as_user)
		rt_fs_act_as(b->options.uid, b->options.gid);
}

static void leave(const struct rt_binaries *b)
{
	if (b->options.as_user)
		rt_fs_act_as(geteuid(), getegid());
}

struct rt_error *rt_binaries_create(const struct rt_binaries_options *options, struct rt_binaries **ret)
{
	_cleanup_(rt_binaries_destroyp) struct rt_binaries *b = calloc(1, sizeof(*b));
	struct rt_error *err;

	if (!b)
		return rt_error_nomem();
	b->options = *options;
	b->hits.all = options->all;
	enter(b);
	err = rt_cache_open(options->root, true, &b->cache);
	leave(b);
	RT_TRY(err);
	b->options.root = NULL;
	*ret = rt_take(b);
	return NULL;
}

/* ---- holding files ---- */

/* Limits are raised after we were made: asked for when the first file is held. */
static size_t open_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur / 4 >= OPEN_MAX)
		return OPEN_MAX;
	return limit.rlim_cur / 4 > OPEN_MIN ? (size_t)limit.rlim_cur / 4 : OPEN_MIN;
}

static void let_go(struct rt_binaries *b, struct binary *bin)
{
	if (bin->fd >= 0) {
		close(rt_take_fd(&bin->fd));
		b->open--;
	}
	if (bin->debug_fd >= 0) {
		close(rt_take_fd(&bin->debug_fd));
		b->open--;
	}
}

static int stash(struct rt_binaries *b, int fd)
{
	struct rt_error *err;
	struct stat st;
	int copy = -1;

	if (fstat(fd, &st) || (uint64_t)st.st_size > STASH_FILE_MAX ||
	    b->stashed_bytes + (uint64_t)st.st_size > STASH_TOTAL_MAX)
		return -1;
	enter(b);
	err = rt_cache_stash(b->cache, fd, &copy);
	leave(b);
	if (err) {
		rt_log_debug("binaries", "%s", err->message);
		rt_error_free(err);
		return -1;
	}
	b->stashed_bytes += (uint64_t)st.st_size;
	return copy;
}

/* The debug file that was found when the file was set aside, or is beside it now. */
static void put_debug(struct rt_binaries *b, struct binary *bin)
{
	_cleanup_close_ int elf = -1;
	struct rt_error *err;

	if (bin->debug_fd < 0) {
		/* the cache's copy cannot be cut under our hands */
		err = rt_cache_get(b->cache, bin->id.id, bin->id.size, RT_CACHE_ELF, &elf);
		rt_error_free(err);
		if (err)
			return;
		bin->debug_fd = rt_mapped_debug(elf, bin->path, AT_FDCWD, access(bin->path, F_OK) != 0);
		b->open += bin->debug_fd >= 0;
	}
	if (bin->debug_fd < 0)
		return;
	enter(b);
	err = rt_cache_put_fd(b->cache, bin->id.id, bin->id.size, bin->path, RT_CACHE_DEBUG, bin->debug_fd, NULL);
	leave(b);
	if (err)
		rt_log_debug("binaries", "%s: %s", bin->path, err->message);
	rt_error_free(err);
}

static struct rt_error *put_file(struct rt_binaries *b, struct binary *bin)
{
	const struct rt_mapped_file file = { .path = bin->path, .id = &bin->id };
	struct rt_error *err;

	if (bin->fd < 0) {
		bin->fd = rt_mapped_open(&file);
		if (bin->fd < 0)
			return rt_error_new(RT_E_NOT_FOUND, "%s is gone, or another file is in its place", bin->path);
		b->open++;
	}
	enter(b);
	err = rt_cache_put_fd(b->cache, bin->id.id, bin->id.size, bin->path, RT_CACHE_ELF, bin->fd, &bin->was_kept);
	leave(b);
	if (!err)
		put_debug(b, bin);
	return err;
}

/* Into the cache, and let go. */
static bool keep(struct rt_binaries *b, struct binary *bin)
{
	struct rt_error *err = put_file(b, bin);

	let_go(b, bin);
	bin->cached = !err;
	if (!b->failure)
		b->failure = err;
	else
		rt_error_free(err);
	return bin->cached;
}

/* Too many are open: the one that was not mapped for longest is closed if its path leads to it still, else kept now. */
static void make_room(struct rt_binaries *b)
{
	struct binary *oldest = NULL;

	if (!b->open_max)
		b->open_max = open_max();
	while (b->open + 2 > b->open_max) {
		oldest = NULL;
		for (size_t i = 0; i < b->list.len; i++) {
			struct binary *bin = &b->list.data[i];

			if ((bin->fd >= 0 || bin->debug_fd >= 0) && (!oldest || bin->used < oldest->used))
				oldest = bin;
		}
		if (!oldest)
			return;
		if (oldest->fd >= 0 && !rt_mapped_is_at(oldest->fd, oldest->path))
			(void)keep(b, oldest);
		let_go(b, oldest);
	}
}

/* Takes over fd. pid: who has it mapped, 0 = not told. */
static void hold(struct rt_binaries *b, struct binary *bin, uint32_t pid, int fd)
{
	_cleanup_close_ int root = -1;
	int copy;

	make_room(b);
	if (rt_mapped_is_fleeting(fd, bin->path) && (copy = stash(b, fd)) >= 0) {
		close(fd);
		fd = copy;
		root = pid ? rt_mapped_root(pid) : -1;
		bin->debug_fd = rt_mapped_debug(fd, bin->path, root < 0 ? AT_FDCWD : root, false);
	}
	if (bin->debug_fd >= 0 && (copy = stash(b, bin->debug_fd)) >= 0) {
		close(bin->debug_fd);
		bin->debug_fd = copy;
	}
	bin->fd = fd;
	b->open += 1 + (bin->debug_fd >= 0);
}

/* ---- the table ---- */

/* *ret: NULL when there are too many, or another id has the same head. */
static struct rt_error *find(struct rt_binaries *b, const struct rt_build_id *id, const char *path, struct binary **ret)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path), tail = sizeof(deleted) - 1;
	struct binary *bin;
	uint64_t head[2] = { 0 }, *slot;
	bool fresh = false;

	*ret = NULL;
	memcpy(head, id->id, id->size < sizeof(head) ? id->size : sizeof(head));
	slot = rt_map_put(&b->by_id, rt_key_make(head[0], head[1]), &fresh);
	if (!slot)
		return rt_error_nomem();
	if (*slot) {
		bin = &b->list.data[*slot - 1];
		/* the kernel's records cut a long one */
		if (rt_build_id_fits(id->id, id->size, bin->id.id, bin->id.size))
			bin->id = *id;
		if (rt_build_id_fits(bin->id.id, bin->id.size, id->id, id->size))
			*ret = bin;
		return NULL;
	}
	if (b->list.len >= BINARIES_MAX)
		return NULL;
	bin = rt_vec_add(&b->list);
	if (!bin)
		return rt_error_nomem();
	if (len > tail && !strcmp(path + len - tail, deleted))
		len -= tail;
	*bin = (struct binary){ .id = *id, .path = strndup(path, len), .fd = -1, .debug_fd = -1 };
	if (!bin->path) {
		b->list.len--;
		return rt_error_nomem();
	}
	*slot = b->list.len;
	bin->cached = rt_cache_holds(b->cache, id->id, id->size);
	*ret = bin;
	return NULL;
}

struct rt_error *rt_binaries_module(struct rt_binaries *b, uint32_t module, const struct rt_image *image, int fd)
{
	struct rt_build_id id = { .size = image->build_id_size };
	struct binary *bin;
	uint64_t *slot;
	int own;

	memcpy(id.id, image->build_id, sizeof(id.id));
	RT_TRY(find(b, &id, image->name, &bin));
	if (!bin)
		return NULL;
	slot = rt_map_put(&b->modules, rt_key_make(module, 0), NULL);
	if (!slot)
		return rt_error_nomem();
	*slot = (uint64_t)(bin - b->list.data) + 1;
	bin->used = ++b->steps;
	if (bin->fd >= 0 || bin->cached)
		return NULL;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (own >= 0)
		hold(b, bin, 0, own);
	return NULL;
}

static struct rt_error *perf_record(struct rt_binaries *b, const struct rt_wire_perf *record)
{
	struct rt_binaries_mapping map;
	struct binary *bin;
	bool is_map;
	int fd;

	RT_TRY(rt_hits_perf(&b->hits, &b->sample_types, record, &map, &is_map));
	if (!is_map)
		return NULL;
	RT_TRY(find(b, &map.id, map.file.path, &bin));
	if (!bin)
		return NULL;
	bin->used = ++b->steps;
	RT_TRY(rt_hits_map(&b->hits, map.file.pid, map.file.start, map.file.end, (uint32_t)(bin - b->list.data)));
	if (bin->fd >= 0 || bin->cached)
		return NULL;
	map.file.id = &bin->id;
	map.file.path = bin->path;
	fd = rt_mapped_open(&map.file);
	if (fd < 0)
		return NULL;
	/* all of one that the record has cut */
	(void)rt_build_id_of_file(fd, &bin->id);
	hold(b, bin, map.file.pid, fd);
	return NULL;
}

static struct rt_error *attr_record(struct rt_binaries *b, const struct rt_wire_attr *record)
{
	struct perf_event_attr attr = { 0 };
	size_t room = record->head.size - sizeof(*record);
	uint64_t *slot;

	if (record->attr_bytes > room || record->attr_bytes < PERF_ATTR_SIZE_VER0)
		return NULL;
	memcpy(&attr, record->data, record->attr_bytes < sizeof(attr) ? record->attr_bytes : sizeof(attr));
	slot = rt_map_put(&b->sample_types, rt_key_make(record->id, 0), NULL);
	if (!slot)
		return rt_error_nomem();
	*slot = attr.sample_type;
	return NULL;
}

struct rt_error *rt_binaries_record(struct rt_binaries *b, const struct rt_wire_head *head)
{
	const void *r = head;
	const struct rt_wire_stack *stack = r;
	const struct rt_wire_map *map = r;
	const uint64_t *slot;

	switch (head->kind) {
	case RT_WIRE_STACK:
		for (unsigned i = 0; i < stack->nr; i++)
			RT_TRY(rt_hits_address(&b->hits, head->pid, stack->frame[i].pc));
		return NULL;
	case RT_WIRE_MAP:
		slot = rt_map_get(&b->modules, rt_key_make(map->module, 0));
		return slot ? rt_hits_map(&b->hits, head->pid, map->start, map->end, (uint32_t)*slot - 1) : NULL;
	case RT_WIRE_FORK:
		return rt_hits_fork(&b->hits, head->pid, ((const struct rt_wire_task *)r)->other);
	case RT_WIRE_ATTR:
		return attr_record(b, r);
	case RT_WIRE_PERF:
		return perf_record(b, r);
	default:
		return NULL;
	}
}

/* ---- the end ---- */

static void mark(void *arg, uint32_t binary)
{
	struct rt_binaries *b = arg;

	if (binary == RT_HITS_VDSO)
		b->vdso_hit = true;
	else
		b->list.data[binary].hit = true;
}

struct rt_error *rt_binaries_put(struct rt_binaries *b, struct rt_binaries_result *ret)
{
	struct rt_binaries_result result = { 0 };

	RT_TRY(rt_hits_each(&b->hits, mark, b));
	for (size_t i = 0; i < b->list.len; i++) {
		struct binary *bin = &b->list.data[i];

		if (!bin->hit && !b->hits.all)
			continue;
		if (!bin->cached)
			(void)keep(b, bin);
		result.kept += bin->was_kept;
		result.known += bin->cached && !bin->was_kept;
		result.missing += !bin->cached;
	}
	result.kernel = b->hits.kernel || b->hits.all;
	result.vdso = b->vdso_hit || b->hits.all;
	result.failure = result.missing ? rt_take(b->failure) : NULL;
	rt_error_free(rt_take(b->failure));
	*ret = result;
	return NULL;
}

void rt_binaries_destroy(struct rt_binaries *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->list.len; i++) {
		let_go(b, &b->list.data[i]);
		free(b->list.data[i].path);
	}
	rt_vec_deinit(&b->list);
	rt_map_deinit(&b->by_id);
	rt_map_deinit(&b->modules);
	rt_map_deinit(&b->sample_types);
	rt_hits_deinit(&b->hits);
	rt_error_free(b->failure);
	rt_cache_close(b->cache);
	free(b);
}
