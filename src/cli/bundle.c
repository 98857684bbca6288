/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fs.h"
#include "base/intern.h"
#include "cli/input.h"
#include "cli/pipeline.h"

enum { FRAMES_MAX = 64, CHAIN_MAX = 1024, SOURCE_MAX = 16 << 20 };

/* What the recording's frames name. */
struct needs {
	struct rt_recording_sink sink;
	struct rt_pipeline *pipeline;
	struct rt_map places;  /* (pc, pid) -> 1: named already */
	struct rt_map modules; /* module id -> 1 */
	struct rt_intern sources;
	RT_VEC(uint32_t) source_modules; /* by source id - 1: one module that was compiled from it */
	RT_VEC(uint32_t) source_lines;
};

static struct rt_error *need_source(struct needs *n, const struct rt_frame *f)
{
	size_t known = n->sources.items.len;

	if (!f->file || f->file[0] != '/')
		return NULL;
	if (!rt_intern_string(&n->sources, f->file))
		return rt_error_nomem();
	if (n->sources.items.len == known)
		return NULL;
	return rt_vec_push(&n->source_modules, f->module_id) && rt_vec_push(&n->source_lines, f->line)
		       ? NULL
		       : rt_error_nomem();
}

static struct rt_error *need(struct needs *n, uint32_t pid, uint64_t time_ns, uint64_t pc, bool is_return)
{
	struct rt_frame frames[FRAMES_MAX];
	bool made;
	size_t count;

	if (!rt_map_put(&n->places, rt_key_make(pc, (uint64_t)pid << 1 | is_return), &made))
		return rt_error_nomem();
	if (!made || pc >> 63)
		return NULL;
	count = n->pipeline->namer->name(n->pipeline->namer, pid, time_ns, pc, is_return, frames, FRAMES_MAX);
	for (size_t i = 0; i < count; i++) {
		if (frames[i].module_id && !rt_map_put(&n->modules, rt_key_make(frames[i].module_id, 0), NULL))
			return rt_error_nomem();
		RT_TRY(need_source(n, &frames[i]));
	}
	return NULL;
}

static struct rt_error *take_wire(struct rt_recording_sink *self, const struct rt_wire_head *record)
{
	struct needs *n = (struct needs *)(void *)self;
	const struct rt_wire_stack *stack = (const struct rt_wire_stack *)(const void *)record;

	RT_TRY(n->pipeline->names.record(&n->pipeline->names, record));
	if (record->kind != RT_WIRE_STACK)
		return NULL;
	for (unsigned i = 0; i < stack->nr; i++)
		RT_TRY(need(n, record->pid, record->time_ns, stack->frame[i].pc,
			    !(stack->frame[i].flags & RT_FRAME_SITE)));
	return NULL;
}

static struct rt_error *take_perf(struct rt_recording_sink *self, const struct rt_perf_event *events,
				  const struct rt_perf_record *r)
{
	struct needs *n = (struct needs *)(void *)self;

	if (r->type != RT_PERF_SAMPLE)
		return NULL;
	RT_TRY(need(n, RT_SIDE_PID(r->id.pid), r->id.time_ns, r->sample.ip, false));
	for (uint64_t i = 0; i < r->sample.chain_count && i < CHAIN_MAX; i++) {
		if (r->sample.chain[i] < (uint64_t)PERF_CONTEXT_MAX)
			RT_TRY(need(n, RT_SIDE_PID(r->id.pid), r->id.time_ns, r->sample.chain[i], i > 1));
	}
	return NULL;
}

static struct rt_error *add_object(struct rt_archive_writer *w, const char *hex, const char *part, const char *origin,
				   struct rt_bytes bytes, struct rt_bundle_counts *counts)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "objects/%s/%s", hex, part) < 0)
		return rt_error_nomem();
	RT_TRY(rt_archive_add(w, path, hex, origin, bytes));
	counts->files++;
	return NULL;
}

static struct rt_error *add_module(struct needs *n, uint32_t id, struct rt_archive_writer *w,
				   struct rt_bundle_counts *counts)
{
	char hex[2 * RT_BUILD_ID_WHOLE_MAX + 1];
	const char *path;
	const struct rt_image *image = rt_chain_image(n->pipeline->chain, id, &path);

	/* what never was a file: [anon]; of [vdso] there may be an image */
	if (path[0] != '/' && !image)
		return NULL;
	if (!image) {
		counts->missing++;
		return rt_archive_miss(w, NULL, path, "it is gone or was changed, and no cache has it");
	}
	rt_build_id_text(image->build_id, image->build_id_size, hex);
	RT_TRY(add_object(w, hex, "elf", path, image->bytes, counts));
	if (image->debug)
		RT_TRY(add_object(w, hex, "debug", path, image->debug->bytes, counts));
	for (size_t i = 0; n->pipeline->caches[i]; i++) {
		_cleanup_error_ struct rt_error *err = NULL;
		_cleanup_close_ int fd = -1;
		struct rt_bytes probes;

		err = rt_cache_get(n->pipeline->caches[i], image->build_id, image->build_id_size, RT_CACHE_PROBES, &fd);
		if (err)
			continue;
		RT_TRY(rt_fs_map(fd, path, &probes));
		err = add_object(w, hex, "probes", path, probes, counts);
		rt_fs_unmap(probes);
		return rt_take(err);
	}
	return NULL;
}

static struct rt_error *add_source(struct needs *n, size_t index, const char *symfs, struct rt_archive_writer *w,
				   struct rt_bundle_counts *counts)
{
	const char *file = rt_intern_text(&n->sources, (uint32_t)index + 1);
	struct rt_namer *namer = n->pipeline->namer;
	_cleanup_free_ char *plain = rt_fs_plain_path(file), *path = NULL, *inside = NULL, *text = NULL;
	struct rt_error *err;
	size_t size;

	/* a source that changed since is not the one that was compiled */
	if (!namer->source_line(namer, n->source_modules.data[index], file, n->source_lines.data[index] ?: 1, NULL)) {
		counts->missing++;
		return rt_archive_miss(w, NULL, file, "the source is not there, or newer than the program");
	}
	if (!plain || asprintf(&inside, "sources%s", plain) < 0 || asprintf(&path, "%s%s", symfs ?: "", file) < 0)
		return rt_error_nomem();
	err = rt_fs_read(AT_FDCWD, path, SOURCE_MAX, &text, &size);
	if (!err)
		err = rt_archive_add(w, inside, NULL, file, rt_bytes_make(text, size));
	if (!err) {
		counts->files++;
		return NULL;
	}
	counts->missing++;
	/* a path with odd parts is no reason to have no archive */
	if (err->code != RT_E_UNREADABLE && err->code != RT_E_FORMAT && err->code != RT_E_NOT_FOUND &&
	    err->code != RT_E_LIMIT)
		return err;
	text = (free(text), NULL);
	{
		struct rt_error *more = rt_archive_miss(w, NULL, file, err->message);

		rt_error_free(err);
		return more;
	}
}

static struct rt_error *add_all(struct needs *n, const struct rt_input *input, const char *symfs,
				struct rt_archive_writer *w, struct rt_bundle_counts *counts)
{
	const struct rt_map_slot *slot;
	size_t pos = 0;

	RT_TRY(rt_archive_add(w, rt_basename(input->path), NULL, input->path, input->bytes));
	counts->files++;
	while ((slot = rt_map_next(&n->modules, &pos)))
		RT_TRY(add_module(n, (uint32_t)slot->key.a, w, counts));
	for (size_t i = 0; i < n->sources.items.len; i++)
		RT_TRY(add_source(n, i, symfs, w, counts));
	RT_TRY(rt_fs_all_whole());
	return rt_archive_end(w);
}

static struct rt_error *look(struct rt_input *input, struct needs *n)
{
	n->sink = (struct rt_recording_sink){ .wire = take_wire };
	if (rt_recording_info(input->recording).has_perf) {
		RT_TRY(rt_input_code(input, n->pipeline));
		n->sink.side = &n->pipeline->names;
		n->sink.perf = take_perf;
	}
	return rt_recording_drain(input->recording, &n->sink);
}

struct rt_error *rt_bundle_write(const char *recording, const char *symfs, struct rt_sink *sink,
				 struct rt_bundle_counts *ret)
{
	const struct rt_pipeline_options how = { .symfs = symfs, .input = recording };
	_cleanup_(rt_archive_writer_destroyp) struct rt_archive_writer *w = NULL;
	struct rt_pipeline pipeline = { .fd = -1 };
	struct needs needs = { .pipeline = &pipeline };
	struct rt_input input = { 0 };
	struct rt_error *err = rt_input_open(recording, &input);

	*ret = (struct rt_bundle_counts){ 0 };
	if (!err && input.text)
		err = rt_error_new(RT_E_FORMAT, "%s is a text of events: it needs no archive", recording);
	if (!err)
		err = rt_pipeline_init(&pipeline, &how);
	if (!err)
		err = look(&input, &needs);
	if (!err)
		err = rt_archive_writer_create(sink, &w);
	if (!err)
		err = add_all(&needs, &input, symfs, w, ret);
	rt_map_deinit(&needs.places);
	rt_map_deinit(&needs.modules);
	rt_intern_deinit(&needs.sources);
	rt_vec_deinit(&needs.source_modules);
	rt_vec_deinit(&needs.source_lines);
	rt_pipeline_deinit(&pipeline);
	rt_input_close(&input);
	return err;
}
