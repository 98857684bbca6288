/* SPDX-License-Identifier: GPL-2.0-only */
#include "recording/translate.h"

#include <string.h>

#include "recording/recording.h"

/* Two files of one name and build-id are one module. */
static struct rt_key file_key(const char *path, const uint8_t *id, uint8_t size)
{
	size_t len = strlen(path);

	return rt_key_make(rt_hash(rt_hash(1, path, len), id, size), rt_hash(rt_hash(2, id, size), path, len));
}

struct rt_error *rt_translate_build_id(struct rt_translate *t, const char *path, const uint8_t *id, uint8_t size)
{
	struct rt_translate_id kept = { .size = size <= RT_BUILD_ID_MAX ? size : RT_BUILD_ID_MAX };
	uint64_t *slot = rt_map_put(&t->build_id_by_path, file_key(path, NULL, 0), NULL);

	memcpy(kept.id, id, kept.size);
	if (!slot || !rt_vec_push(&t->build_ids, kept))
		return rt_error_nomem();
	*slot = t->build_ids.len;
	return NULL;
}

struct rt_error *rt_translate_module(struct rt_translate *t, const struct rt_wire_module *module)
{
	uint64_t *slot;

	if (module->content_hash)
		return NULL;
	slot = rt_map_put(&t->module_by_name, file_key(module->path, module->build_id, module->build_id_size), NULL);
	if (!slot)
		return rt_error_nomem();
	*slot = module->id;
	return NULL;
}

static struct rt_error *module_of(struct rt_translate *t, const char *path, const uint8_t *id, uint8_t size,
				  struct rt_error *(*out)(void *arg, const struct rt_wire_head *record), void *arg,
				  uint32_t *ret)
{
	_cleanup_free_ struct rt_wire_module *module = NULL;
	bool made;
	uint64_t *slot = rt_map_put(&t->module_by_name, file_key(path, id, size), &made);

	if (!slot)
		return rt_error_nomem();
	if (made) {
		*slot = RT_SIDE_MODULE + t->modules++;
		module = rt_record_module((uint32_t)*slot, path);
		if (!module)
			return rt_error_nomem();
		module->build_id_size = size;
		memcpy(module->build_id, id, size);
		*ret = (uint32_t)*slot;
		return out(arg, &module->head);
	}
	*ret = (uint32_t)*slot;
	return NULL;
}

static struct rt_error *mapped(struct rt_translate *t, const struct rt_perf_record *record,
			       struct rt_error *(*out)(void *arg, const struct rt_wire_head *record), void *arg)
{
	const struct rt_perf_mmap *m = &record->mmap;
	struct rt_wire_map map = {
		.head = { .size = sizeof(map),
			  .kind = RT_WIRE_MAP,
			  .time_ns = record->id.time_ns,
			  .pid = RT_SIDE_PID(m->pid),
			  .tid = m->tid },
		.start = m->addr,
		.end = m->addr + m->len,
		.file_offset = m->pgoff,
	};
	const uint8_t *id = m->build_id;
	uint8_t size = m->build_id_size;
	/* perf's name for memory without a file */
	const char *path = !strcmp(m->filename, "//anon") ? "[anon]" : m->filename;

	/* the kernel's own image, and data */
	if (m->pid == UINT32_MAX || m->addr >> 63 || map.end < map.start || (record->misc & RT_PERF_MISC_MMAP_DATA))
		return NULL;
	if (!size) {
		const uint64_t *slot = rt_map_get(&t->build_id_by_path, file_key(path, NULL, 0));

		if (slot) {
			id = t->build_ids.data[*slot - 1].id;
			size = t->build_ids.data[*slot - 1].size;
		}
	}
	RT_TRY(module_of(t, path, id, size, out, arg, &map.module));
	return out(arg, &map.head);
}

struct rt_error *rt_translate_record(struct rt_translate *t, const struct rt_perf_record *record,
				     struct rt_error *(*out)(void *arg, const struct rt_wire_head *record), void *arg)
{
	struct rt_wire_task task = { .head = { .size = sizeof(task), .time_ns = record->id.time_ns } };

	switch (record->type) {
	case RT_PERF_MMAP:
	case RT_PERF_MMAP2:
		return mapped(t, record, out, arg);
	case RT_PERF_FORK:
		if (record->task.pid == record->task.ppid)
			return NULL;
		task.head.kind = RT_WIRE_FORK;
		task.head.pid = RT_SIDE_PID(record->task.ppid);
		task.head.time_ns = record->task.time_ns;
		task.other = RT_SIDE_PID(record->task.pid);
		return out(arg, &task.head);
	case RT_PERF_COMM:
		if (!record->comm.exec)
			return NULL;
		task.head.kind = RT_WIRE_EXEC;
		task.head.pid = RT_SIDE_PID(record->comm.pid);
		return out(arg, &task.head);
	default:
		return NULL;
	}
}

void rt_translate_deinit(struct rt_translate *t)
{
	rt_map_deinit(&t->module_by_name);
	rt_map_deinit(&t->build_id_by_path);
	rt_vec_deinit(&t->build_ids);
	*t = (struct rt_translate){ 0 };
}
