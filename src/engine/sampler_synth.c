// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records about what was there before the events: the kernel tells only what happens. Same layouts as the kernel's
 * (linux/perf_event.h), time 0: before everything.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "base/fs.h"
#include "base/text.h"
#include "engine/mapped.h"
#include "engine/sampler_priv.h"

enum { MAPS_MAX = 64 * 1024 * 1024 };

void rt_synth_begin(struct rt_synth *r, uint32_t type, uint16_t misc)
{
	r->header = (struct perf_event_header){ .type = type, .misc = misc };
	r->size = sizeof(r->header);
}

void rt_synth_add(struct rt_synth *r, const void *data, size_t size)
{
	if (size > sizeof(r->bytes) - RT_TRAILER_BYTES - r->size)
		return;
	memcpy(r->bytes + r->size, data, size);
	r->size += size;
}

void rt_synth_string(struct rt_synth *r, const char *text)
{
	size_t room = sizeof(r->bytes) - RT_TRAILER_BYTES - 8 - r->size, len = strnlen(text, room);
	size_t end = RT_WIRE_ALIGN(r->size + len + 1);

	memcpy(r->bytes + r->size, text, len);
	memset(r->bytes + r->size + len, 0, end - r->size - len);
	r->size = end;
}

struct rt_error *rt_synth_end(struct rt_synth *r, struct rt_sampler *s, struct rt_event_sink *sink, uint32_t pid,
			      uint32_t tid)
{
	struct {
		uint32_t pid, tid;
		uint64_t time, cpu, id;
	} trailer = { .pid = pid, .tid = tid, .time = s->synth_ns, .id = s->sideband_id };

	_Static_assert(sizeof(trailer) == RT_TRAILER_BYTES, "trailer");
	memcpy(r->bytes + r->size, &trailer, sizeof(trailer));
	r->size += sizeof(trailer);
	r->header.size = (uint16_t)r->size;
	return rt_sampler_emit(s, sink, r->bytes);
}

struct rt_error *rt_sampler_emit_map(struct rt_sampler *s, struct rt_event_sink *sink, const struct rt_synth_map *map)
{
	struct rt_synth r;
	struct {
		uint32_t pid, tid;
		uint64_t start, bytes, offset;
	} head = { map->pid, map->tid, map->start, map->bytes, map->offset };
	union {
		struct {
			uint32_t major, minor;
			uint64_t inode, generation;
		} file;
		struct {
			uint8_t size, pad1;
			uint16_t pad2;
			uint8_t id[RT_BUILD_ID_MAX];
		} build;
	} what = { .file = { map->major, map->minor, map->inode, 0 } };
	uint32_t access[2] = { map->prot, map->flags };

	if (map->build_id.size) {
		memset(&what, 0, sizeof(what));
		what.build.size = map->build_id.size < RT_BUILD_ID_MAX ? map->build_id.size : RT_BUILD_ID_MAX;
		memcpy(what.build.id, map->build_id.id, what.build.size);
	}
	rt_synth_begin(&r, PERF_RECORD_MMAP2, (uint16_t)(map->cpumode | (map->build_id.size ? RT_MISC_BUILD_ID : 0)));
	rt_synth_add(&r, &head, sizeof(head));
	rt_synth_add(&r, &what, sizeof(what));
	rt_synth_add(&r, access, sizeof(access));
	rt_synth_string(&r, map->name);
	return rt_synth_end(&r, s, sink, map->pid, map->tid);
}

/* ---- processes ---- */

/* Build-ids that were read: most processes map the same few files. */
struct known_files {
	struct rt_map by_inode; /* device, inode -> index + 1 */
	RT_VEC(struct rt_build_id) ids;
};

static struct rt_build_id build_id_of(struct known_files *known, uint32_t pid, const struct rt_maps_line *line)
{
	struct rt_build_id id = { .size = 0 };
	struct rt_key key = rt_key_make((uint64_t)line->dev_major << 32 | line->dev_minor, line->inode);
	uint64_t *slot = rt_map_put(&known->by_inode, key, NULL);
	int fd;

	if (slot && *slot)
		return known->ids.data[*slot - 1];
	fd = rt_mapped_file(pid, line);
	if (fd < 0)
		return id;
	rt_build_id_of_file(fd, &id);
	close(fd);
	if (slot && rt_vec_push(&known->ids, id))
		*slot = known->ids.len;
	return id;
}

static struct rt_error *emit_maps(struct rt_sampler *s, struct rt_event_sink *sink, struct known_files *known,
				  uint32_t pid)
{
	_cleanup_free_ char *text = NULL;
	struct rt_maps_line line;
	char path[64], *at;
	struct rt_error *err;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	err = rt_fs_read(AT_FDCWD, path, MAPS_MAX, &text, NULL);
	if (err) {
		rt_error_free(err); /* gone, or not ours: its samples stay without names */
		return NULL;
	}
	at = text;
	while (rt_maps_parse_line(&at, &line)) {
		struct rt_synth_map map = {
			.pid = pid,
			.tid = pid,
			.start = line.start,
			.bytes = line.end - line.start,
			.offset = line.offset,
			.major = line.dev_major,
			.minor = line.dev_minor,
			.inode = line.inode,
			.prot = (line.readable ? PROT_READ : 0u) | (line.writable ? PROT_WRITE : 0u) |
				(line.executable ? PROT_EXEC : 0u),
			.flags = line.shared ? MAP_SHARED : MAP_PRIVATE,
			.cpumode = PERF_RECORD_MISC_USER | (line.executable ? 0 : PERF_RECORD_MISC_MMAP_DATA),
			.name = *line.path ? line.path : "//anon",
		};

		/* unwind tables lie in mappings of their own, beside the code: perf looks for them there */
		if (!line.executable && !(s->options.stack_bytes && line.readable && *line.path == '/'))
			continue;
		if (!strcmp(line.path, "[vsyscall]"))
			continue;
		if (*line.path == '/' && line.inode)
			map.build_id = build_id_of(known, pid, &line);
		RT_TRY(rt_sampler_emit_map(s, sink, &map));
	}
	return NULL;
}

static struct rt_error *emit_thread(struct rt_sampler *s, struct rt_event_sink *sink, uint32_t pid, uint32_t tid,
				    uint32_t parent)
{
	_cleanup_free_ char *comm = NULL;
	char path[64];
	struct rt_synth r;
	uint32_t who[4] = { pid, parent, tid, parent };
	uint64_t time = 0;
	struct rt_error *err;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", pid, tid);
	err = rt_fs_read(AT_FDCWD, path, 256, &comm, NULL);
	if (err) {
		rt_error_free(err);
		return NULL;
	}
	comm[strcspn(comm, "\n")] = 0;
	rt_synth_begin(&r, PERF_RECORD_FORK, 0);
	rt_synth_add(&r, who, sizeof(who));
	rt_synth_add(&r, &time, sizeof(time));
	RT_TRY(rt_synth_end(&r, s, sink, pid, tid));
	rt_synth_begin(&r, PERF_RECORD_COMM, 0);
	who[1] = tid;
	rt_synth_add(&r, who, 2 * sizeof(who[0]));
	rt_synth_string(&r, comm);
	return rt_synth_end(&r, s, sink, pid, tid);
}

static uint32_t parent_of(uint32_t pid)
{
	_cleanup_free_ char *text = NULL;
	char path[64], *end;
	uint64_t parent = 0;
	struct rt_error *err;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	err = rt_fs_read(AT_FDCWD, path, 4096, &text, NULL);
	if (err) {
		rt_error_free(err);
		return 0;
	}
	/* pid (comm) state ppid: the comm may hold anything */
	end = strrchr(text, ')');
	if (end && strlen(end) > 4)
		rt_parse_u64(end + 4, strspn(end + 4, "0123456789"), 10, &parent);
	return (uint32_t)parent;
}

static struct rt_error *emit_process(struct rt_sampler *s, struct rt_event_sink *sink, struct known_files *known,
				     uint32_t pid)
{
	_cleanup_free_ uint32_t *tids = NULL;
	size_t count = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	if (!rt_numbers_in(path, &tids, &count))
		return NULL;
	for (size_t i = 0; i < count; i++)
		RT_TRY(emit_thread(s, sink, pid, tids[i], tids[i] == pid ? parent_of(pid) : pid));
	/* before its exec a launched program still has our mappings */
	if (s->launched && !s->started && !s->options.system_wide)
		return NULL;
	return emit_maps(s, sink, known, pid);
}

struct rt_error *rt_sampler_emit_tasks(struct rt_sampler *s, struct rt_event_sink *sink)
{
	_cleanup_free_ uint32_t *pids = NULL;
	struct known_files known = { 0 };
	struct rt_error *err = NULL;
	size_t count = 0;

	if (s->options.system_wide) {
		if (!rt_numbers_in("/proc", &pids, &count))
			return rt_error_new(RT_E_UNREADABLE, "cannot list /proc");
	} else {
		size_t pos = 0;

		pids = calloc(s->tasks.len + 1, sizeof(*pids));
		if (!pids)
			return rt_error_nomem();
		for (struct rt_map_slot *slot; (slot = rt_map_next(&s->tasks, &pos));)
			pids[count++] = (uint32_t)slot->key.a;
	}
	for (size_t i = 0; !err && i < count; i++)
		err = emit_process(s, sink, &known, pids[i]);
	rt_map_deinit(&known.by_inode);
	rt_vec_deinit(&known.ids);
	return err;
}
