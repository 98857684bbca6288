/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/pipeline.h"
#include "base/clock.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "cli/fetch.h"
#include "cli/file.h"
#include "report/words.h"

static struct rt_error *record_spool(struct rt_pipeline *p, const struct rt_wire_head *record)
{
	struct rt_event_sink *sink = rt_spool_writer_sink(p->writer);
	struct rt_error *err = p->parts ? rt_part_writer_record(p->parts, record, sink) : NULL;

	if (!err)
		err = sink->record(sink, record);
	if (!err || p->recording_only)
		return err;
	/* the report is worth more than the recording: go on without it, and say so at the end */
	p->recording_error = err;
	rt_spool_writer_destroy(p->writer);
	p->writer = NULL;
	return NULL;
}

/* Samples and what belongs to them: nothing for the analysis. */
static struct rt_error *record_perf(struct rt_pipeline *p, const struct rt_wire_head *record)
{
	const struct rt_wire_perf *perf = (const struct rt_wire_perf *)(const void *)record;
	struct perf_event_header header;
	uint64_t lost;

	if (record->kind == RT_WIRE_PERF) {
		memcpy(&header, perf->data, sizeof(header));
		p->samples += header.type == PERF_RECORD_SAMPLE;
		if (header.type == PERF_RECORD_LOST && record->size >= sizeof(*perf) + 24) {
			/* header, event id, number */
			memcpy(&lost, perf->data + 16, sizeof(lost));
			p->lost += lost;
		}
	}
	return p->writer ? record_spool(p, record) : NULL;
}

static struct rt_error *record_names(struct rt_event_sink *self, const struct rt_wire_head *record)
{
	struct rt_pipeline *p =
		(struct rt_pipeline *)(void *)((char *)self - __builtin_offsetof(struct rt_pipeline, names));

	RT_TRY(rt_maps_record(p->maps, record));
	return p->chain ? rt_chain_record(p->chain, record) : NULL;
}

static void say_doubt(const char *text)
{
	struct rt_arena arena = { 0 };

	fprintf(stderr, "reftrace: warning: may hit wrong places: %s\n", rt_clean(&arena, text));
	rt_arena_deinit(&arena);
}

static struct rt_error *record(struct rt_event_sink *self, const struct rt_wire_head *record)
{
	struct rt_pipeline *p = (struct rt_pipeline *)(void *)self;

	if (record->kind == RT_WIRE_EVENT) {
		p->events++;
	} else if (record->kind == RT_WIRE_SITE) {
		p->events += ((const struct rt_wire_site *)(const void *)record)->all.n;
	} else if (record->kind == RT_WIRE_LOSS) {
		const struct rt_wire_loss *loss = (const struct rt_wire_loss *)(const void *)record;

		if (loss->cause == RT_LOSS_RING)
			p->lost += loss->value ? loss->value : 1;
		else if (loss->cause == RT_LOSS_CUT && !p->cut)
			p->cut = strdup(loss->text);
		else if (loss->cause == RT_LOSS_DOUBT && p->say_doubts)
			say_doubt(loss->text);
	}
	if (record->time_ns) {
		p->first_ns = p->first_ns ? p->first_ns : record->time_ns;
		p->last_ns = record->time_ns;
	}
	if (p->binaries)
		RT_TRY(rt_binaries_record(p->binaries, record));
	if (record->kind == RT_WIRE_PERF || record->kind == RT_WIRE_ATTR)
		return record_perf(p, record);
	/* nearly all are events, and these say nothing about mappings and modules */
	if (record->kind != RT_WIRE_EVENT) {
		RT_TRY(rt_maps_record(p->maps, record));
		if (p->chain)
			RT_TRY(rt_chain_record(p->chain, record));
	}
	RT_TRY(rt_lifetime_record(p->lifetime, record));
	return p->writer ? record_spool(p, record) : NULL;
}

struct rt_error *rt_pipeline_events(struct rt_pipeline *p, const struct rt_wire_event *events, size_t n)
{
	/* who reads a recording keeps no other one of it: nobody but the analysis takes events */
	if (p->writer || p->binaries) {
		for (size_t i = 0; i < n; i++)
			RT_TRY(record(&p->sink, &events[i].head));
		return NULL;
	}
	p->events += n;
	for (size_t i = 0; i < n && !p->first_ns; i++)
		p->first_ns = events[i].head.time_ns;
	for (size_t i = n; i-- > 0;) {
		p->last_ns = events[i].head.time_ns ?: p->last_ns;
		if (events[i].head.time_ns)
			break;
	}
	return rt_lifetime_events(p->lifetime, events, n);
}

static struct rt_error *record_events(struct rt_event_sink *self, struct rt_wire_event *events, size_t n)
{
	return rt_pipeline_events((struct rt_pipeline *)(void *)self, events, n);
}

/* The cache that lies beside the recording, as an archive unpacks it; then that of the user behind sudo, then ours. */
static struct rt_error *open_caches(struct rt_pipeline *p, const char *input)
{
	_cleanup_free_ char *beside = NULL, *user = NULL;
	const char *slash = input ? strrchr(input, '/') : NULL;
	struct rt_error *err = NULL;
	size_t n = 0;

	if (input) {
		int folder = slash ? (int)(slash - input + 1) : 0;

		if (asprintf(&beside, "%.*s.debug", folder, input) < 0 ||
		    asprintf(&p->sources, "%.*s%ssources", folder, input, folder ? "" : "./") < 0)
			return rt_error_nomem();
		RT_TRY(rt_cache_open(beside, false, &p->caches[n++]));
	}
	/* a cache that cannot be read is one that has nothing */
	RT_TRY(rt_user_cache_root(&user));
	if (user)
		err = rt_cache_open(user, false, &p->caches[n]);
	n += user && !err;
	rt_error_free(err);
	rt_error_free(rt_cache_open(NULL, false, &p->caches[n]));
	return NULL;
}

static struct rt_error *open_file(struct rt_pipeline *p)
{
	RT_TRY(rt_file_create(p->recording, &p->fd));
	rt_sink_init_fd(&p->file, p->fd, p->recording);
	return rt_spool_writer_create(&p->file, p->command, &p->writer);
}

struct rt_error *rt_pipeline_open_recording(struct rt_pipeline *p, const char *const *earlier, size_t count)
{
	RT_TRY(open_file(p));
	return p->parts ? rt_part_writer_begin(p->parts, rt_now_ns(), earlier, count, rt_spool_writer_sink(p->writer))
			: NULL;
}

struct rt_error *rt_pipeline_close_recording(struct rt_pipeline *p)
{
	if (p->parts)
		RT_TRY(rt_part_writer_end(p->parts, rt_now_ns(), rt_spool_writer_sink(p->writer)));
	RT_TRY(rt_spool_writer_end(p->writer, -1));
	rt_spool_writer_destroy(rt_take(p->writer));
	rt_sink_deinit(&p->file);
	close(rt_take_fd(&p->fd));
	return NULL;
}

/* A server that fails once would be waited for again with each file. */
static struct rt_error *fetch(void *arg, struct rt_image *image)
{
	struct rt_pipeline *p = arg;
	struct rt_error *err = p->fetch && !image->build_id_is_hash ? rt_fetch_missing(p->fetch, image) : NULL;

	if (err)
		p->fetch = NULL;
	return err;
}

struct rt_error *rt_pipeline_init(struct rt_pipeline *ret, const struct rt_pipeline_options *options)
{
	struct rt_chain_options chain = { .symfs = options->symfs, .fetch = fetch, .fetch_arg = ret };

	*ret = (struct rt_pipeline){
		.sink = { record, record_events }, .names = { record_names }, .fd = -1, .file = { .fd = -1 }
	};
	RT_TRY(rt_maps_create(&ret->maps));
	ret->namer = options->namer;
	ret->fetch = options->fetch && options->fetch->debuginfod ? options->fetch : NULL;
	if (!ret->namer) {
		RT_TRY(open_caches(ret, options->input));
		chain.sources = ret->sources;
		chain.caches = (const struct rt_cache *const *)ret->caches;
		RT_TRY(rt_chain_create(ret->maps, &chain, &ret->chain));
		ret->namer = rt_chain_namer(ret->chain);
	}
	RT_TRY(rt_lifetime_create(&options->lifetime, ret->namer, &ret->lifetime));
	if (!options->recording)
		return NULL;
	ret->recording = options->recording;
	ret->recording_only = options->recording_only;
	ret->command = options->command;
	/* two recordings cannot begin in one nanosecond of one boot, and another boot has another wall clock */
	if (options->parts)
		RT_TRY(rt_part_writer_create(ret->maps, rt_now_ns() ^ (uint64_t)time(NULL) << 32, &ret->parts));
	return open_file(ret);
}

void rt_pipeline_deinit(struct rt_pipeline *p)
{
	rt_spool_writer_destroyp(&p->writer);
	rt_part_writer_destroyp(&p->parts);
	rt_sink_deinit(&p->file);
	rt_closep(&p->fd);
	rt_error_free(p->recording_error);
	free(p->cut);
	rt_lifetime_destroyp(&p->lifetime);
	rt_chain_destroyp(&p->chain);
	rt_image_destroyp(&p->vdso);
	free(p->sources);
	for (size_t i = 0; p->caches[i]; i++)
		rt_cache_close(p->caches[i]);
	rt_maps_destroyp(&p->maps);
	*p = (struct rt_pipeline){ .fd = -1 };
}

static void give_image(void *arg, uint32_t module, const struct rt_image *image, int fd)
{
	struct rt_pipeline *p = arg;

	/* without it the report says what is missing */
	if (p->binaries)
		rt_error_free(rt_binaries_module(p->binaries, module, image, fd));

	/* without it the chain opens the file itself */
	if (p->chain)
		rt_error_free(rt_chain_give_image(p->chain, module, image));
}

static void live(void *arg, uint32_t pid, bool (*visit)(const struct rt_live *live, void *visit_arg), void *visit_arg)
{
	struct rt_pipeline *p = arg;

	rt_lifetime_live(p->lifetime, pid, visit, visit_arg);
}

struct rt_error *rt_pipeline_flush(struct rt_pipeline *p)
{
	struct rt_error *err;

	if (!p->writer)
		return NULL;
	err = rt_spool_writer_flush(p->writer);
	if (!err || p->recording_only)
		return err;
	p->recording_error = err;
	rt_spool_writer_destroy(p->writer);
	p->writer = NULL;
	return NULL;
}

static struct rt_error *tick(void *arg)
{
	struct rt_pipeline *p = arg;

	if (p->on_tick)
		p->on_tick(p->on_tick_arg);
	return rt_pipeline_flush(p);
}

static struct rt_error *moment(void *arg)
{
	struct rt_pipeline *p = arg;

	return p->on_moment ? p->on_moment(p->on_moment_arg) : NULL;
}

struct rt_session_hooks rt_pipeline_hooks(struct rt_pipeline *pipeline)
{
	return (struct rt_session_hooks){
		.sink = &pipeline->sink,
		.image = give_image,
		.live = live,
		.tick = tick,
		.moment = moment,
		.arg = pipeline,
	};
}

struct rt_error *rt_pipeline_cut(struct rt_pipeline *pipeline, const char *why)
{
	_cleanup_free_ struct rt_wire_loss *loss = rt_record_loss(RT_LOSS_CUT, 0, 0, why);

	if (!loss)
		return rt_error_nomem();
	loss->head.time_ns = pipeline->last_ns;
	return record(&pipeline->sink, &loss->head);
}

struct rt_error *rt_pipeline_end_recording(struct rt_pipeline *pipeline, int program_status)
{
	struct rt_error *err = pipeline->recording_error;

	pipeline->recording_error = NULL;
	if (err)
		return err;
	return pipeline->writer ? rt_spool_writer_end(pipeline->writer, program_status) : NULL;
}

struct rt_error *rt_pipeline_verdict(struct rt_pipeline *pipeline, const struct rt_verdict **ret)
{
	return rt_lifetime_verdict(pipeline->lifetime, ret);
}
