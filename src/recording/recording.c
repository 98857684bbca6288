/* SPDX-License-Identifier: GPL-2.0-only */
/* Opening either format, and handing its three parts to their takers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata/reftrace_events.h"
#include "recording/parts.h"
#include "recording/to_perf.h"

enum { PEEK_RECORDS = 4096 }; /* perf's events are announced before anything happens */

struct rt_error *rt_recording_open(struct rt_bytes bytes, const char *name, struct rt_recording **ret)
{
	_cleanup_(rt_recording_closep) struct rt_recording *r = calloc(1, sizeof(*r));
	struct rt_error *err;

	if (!r)
		return rt_error_nomem();
	r->bytes = bytes;
	r->name = name;
	err = rt_spool_reader_create(bytes, name, &r->spool);
	if (!err) {
		r->is_spool = true;
		RT_TRY(rt_recording_peek(r));
	} else if (err->code == RT_E_FORMAT) {
		rt_error_free(err);
		RT_TRY(rt_perf_reader_create(bytes, name, &r->perf));
		RT_TRY(rt_recording_learn(r));
	} else {
		return err;
	}
	*ret = rt_take(r);
	return NULL;
}

void rt_recording_close(struct rt_recording *r)
{
	if (!r)
		return;
	rt_spool_reader_destroy(r->spool);
	rt_perf_reader_destroy(r->perf);
	rt_sink_deinit(&r->converted);
	for (size_t i = 0; i < r->images.len; i++)
		rt_bpf_image_destroy(r->images.data[i]);
	for (size_t i = 0; i < r->functions.len; i++)
		free(r->functions.data[i].lines);
	for (size_t i = 0; i < r->bpf_lost.len; i++)
		free(r->bpf_lost.data[i]);
	for (size_t i = 0; i < r->command.len; i++)
		free(r->command.data[i]);
	rt_vec_deinit(&r->images);
	rt_vec_deinit(&r->functions);
	rt_vec_deinit(&r->bpf_lost);
	rt_vec_deinit(&r->command);
	free(r->damage);
	free(r);
}

/* Does a spool hold anything of perf's? */
struct rt_error *rt_recording_peek(struct rt_recording *r)
{
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;
	struct rt_source *source;

	RT_TRY(rt_spool_reader_create(r->bytes, r->name, &reader));
	source = rt_spool_reader_source(reader);
	for (unsigned i = 0; i < PEEK_RECORDS; i++) {
		const struct rt_wire_head *record;

		RT_TRY(source->next(source, &record));
		if (!record)
			break;
		r->has_wire |= record->kind == RT_WIRE_TYPE || record->kind == RT_WIRE_EVENT;
		r->has_perf |= record->kind == RT_WIRE_ATTR || record->kind == RT_WIRE_BLOB;
	}
	return NULL;
}

struct rt_error *rt_recording_prepare(struct rt_recording *r)
{
	const struct rt_to_perf_options how = { .zstd_level = 0 };
	uint8_t header[RT_PERF_HEADER_BYTES];

	if (r->perf)
		return NULL;
	/* of a conversion that failed half-way */
	rt_sink_deinit(&r->converted);
	rt_sink_init_memory(&r->converted);
	RT_TRY(rt_to_perf(r->bytes, r->name, &how, &r->converted, header, NULL));
	RT_TRY(rt_sink_end(&r->converted));
	if (r->converted.len < sizeof(header))
		return rt_error_new(RT_E_INTERNAL, "%s: nothing came out of it", r->name);
	memcpy(r->converted.buffer, header, sizeof(header));
	return rt_perf_reader_create(rt_bytes_make(r->converted.buffer, r->converted.len), r->name, &r->perf);
}

struct rt_recording_info rt_recording_info(const struct rt_recording *r)
{
	const char *const *command = (const char *const *)r->command.data;

	if (!command && r->is_spool)
		command = rt_spool_reader_command(r->spool);
	return (struct rt_recording_info){
		.format = r->is_spool ? "spool" : "perf.data",
		.command = command,
		.has_perf = r->has_perf,
		.has_wire = r->has_wire,
		.kernel = r->kernel,
		.header = r->perf ? rt_perf_reader_header(r->perf) : &r->no_header,
	};
}

bool rt_recording_status(const struct rt_recording *r, int *ret)
{
	if (!r->has_status)
		return false;
	*ret = r->status;
	return true;
}

const char *rt_recording_damage(const struct rt_recording *r)
{
	return r->damage;
}

struct rt_error *rt_recording_note_damage(struct rt_recording *r, const char *text)
{
	if (r->damage || !text)
		return NULL;
	r->damage = strdup(text);
	return r->damage ? NULL : rt_error_nomem();
}

static struct rt_error *drain_events(const struct rt_wire_event *events, size_t n, struct rt_recording_sink *sink)
{
	if (sink->events)
		return sink->events(sink, events, n);
	for (size_t i = 0; i < n; i++)
		RT_TRY(sink->wire(sink, &events[i].head));
	return NULL;
}

static struct rt_error *drain_spool(struct rt_recording *r, struct rt_recording_sink *sink)
{
	struct rt_spool_reader *fresh = NULL;

	RT_TRY(rt_spool_reader_create(r->bytes, r->name, &fresh));
	rt_spool_reader_destroy(r->spool);
	r->spool = fresh;
	for (;;) {
		const struct rt_wire_head *record;
		size_t n;

		RT_TRY(rt_spool_reader_next(r->spool, &record, &n));
		if (!record)
			break;
		if (record->kind == RT_WIRE_EVENT) {
			RT_TRY(drain_events(rt_record_event(record), n, sink));
			continue;
		}
		if (record->kind == RT_WIRE_LOSS) {
			const struct rt_wire_loss *loss = (const struct rt_wire_loss *)(const void *)record;

			if (loss->cause == RT_LOSS_CUT)
				RT_TRY(rt_recording_note_damage(r, loss->text));
		}
		if (record->kind != RT_WIRE_PERF && record->kind != RT_WIRE_ATTR)
			RT_TRY(sink->wire(sink, record));
	}
	r->has_status = rt_spool_reader_status(r->spool, &r->status);
	return NULL;
}

struct rt_error *rt_recording_drain(struct rt_recording *r, struct rt_recording_sink *sink)
{
	if (sink->wire && r->is_spool)
		RT_TRY(drain_spool(r, sink));
	if (sink->wire && !r->is_spool)
		RT_TRY(rt_recording_drain_wire(r, sink));
	if (!sink->side && !sink->perf)
		return NULL;
	if (!r->has_perf && !sink->all)
		return NULL;
	RT_TRY(rt_recording_prepare(r));
	return rt_recording_drain_perf(r, sink);
}
