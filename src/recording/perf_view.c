/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * perf.data as a recording. Lifetimes are read in the file's order, gets and puts in batches (batch.h), which gives
 * the order in which the session yielded them; perf's own records by time.
 */
#include <stdlib.h>
#include <string.h>

#include "perfdata/reftrace_events.h"
#include "recording/batch.h"
#include "recording/moved.h"
#include "recording/parts.h"

/* What kind of event a record's is, by its name. */
static enum rt_reftrace_kind kind_of(const struct rt_perf_event *events, size_t count, unsigned index,
				     const char **ret_word, size_t *ret_len)
{
	*ret_word = "";
	*ret_len = 0;
	if (index >= count || !events[index].name)
		return RT_REFTRACE_NONE;
	return rt_reftrace_name(events[index].name, NULL, ret_word, ret_len);
}

struct rt_error *rt_recording_learn(struct rt_recording *r)
{
	size_t count;
	const struct rt_perf_event *events = rt_perf_reader_events(r->perf, &count);
	const struct rt_perf_header *header = rt_perf_reader_header(r->perf);
	const char *word;
	size_t len;

	/* the events of a pipe come with its records */
	r->has_wire = r->has_perf = header->pipe;
	for (unsigned i = 0; i < count; i++) {
		bool ours = kind_of(events, count, i, &word, &len) != RT_REFTRACE_NONE;

		r->has_wire |= ours;
		r->has_perf |= !ours;
	}
	r->has_perf |= header->bpf_prog_count != 0;
	for (size_t i = 0; i < header->command_count; i++) {
		char *copy = strdup(header->command[i]);

		if (!copy || !rt_vec_push(&r->command, copy)) {
			free(copy);
			return rt_error_nomem();
		}
	}
	return r->command.len && !rt_vec_push(&r->command, NULL) ? rt_error_nomem() : NULL;
}

/* The traced program's own words, instead of those of the recorder. */
static struct rt_error *take_command(struct rt_recording *r, struct rt_bytes data)
{
	const char *at = (const char *)data.data, *end = at + data.size;

	for (size_t i = 0; i < r->command.len; i++)
		free(r->command.data[i]);
	rt_vec_clear(&r->command);
	while (at < end) {
		size_t len = strnlen(at, (size_t)(end - at));
		char *copy = strndup(at, len);

		if (!copy || !rt_vec_push(&r->command, copy)) {
			free(copy);
			return rt_error_nomem();
		}
		at += len + 1;
	}
	return rt_vec_push(&r->command, NULL) ? NULL : rt_error_nomem();
}

static struct rt_error *take_meta(struct rt_recording *r, const struct rt_perf_record *record, bool big_endian,
				  const char *word, size_t len, struct rt_recording_sink *sink)
{
	uint64_t buffer[(RT_REFTRACE_META_MAX + 7) / 8];
	struct rt_bytes data;
	const char *text;
	int32_t status;

	if (!rt_reftrace_meta_read(record->sample.raw, big_endian, &text, &data) || data.size > sizeof(buffer))
		return rt_recording_note_damage(r, "a record of reftrace's own cannot be read");
	if (len == 7 && !memcmp(word, "command", 7))
		return take_command(r, data);
	if (len == 6 && !memcmp(word, "status", 6)) {
		if (data.size != sizeof(status))
			return NULL;
		memcpy(&status, data.data, sizeof(status));
		r->status = status;
		r->has_status = true;
		return NULL;
	}
	if (data.size)
		memcpy(buffer, data.data, data.size);
	if (!rt_record_valid(buffer, data.size))
		return rt_recording_note_damage(r, "a record of reftrace's own is damaged");
	return sink->wire(sink, (const struct rt_wire_head *)(const void *)buffer);
}

static struct rt_error *report_cut(struct rt_recording *r, const char *why, struct rt_recording_sink *sink)
{
	_cleanup_free_ struct rt_wire_loss *loss = NULL;

	if (!why)
		return NULL;
	RT_TRY(rt_recording_note_damage(r, why));
	loss = rt_record_loss(RT_LOSS_CUT, 0, 0, why);
	if (!loss)
		return rt_error_nomem();
	return sink->wire(sink, &loss->head);
}

/* Lifetimes on their way to sink. */
struct wire_view {
	struct rt_recording *recording;
	struct rt_recording_sink *sink;
	bool big_endian;
	bool disordered; /* a batch did not fit together */
	struct rt_batch batch;
};

static struct rt_error *give_batch(struct wire_view *v)
{
	struct rt_batch *b = &v->batch;

	if (!b->events.len)
		return NULL;
	if (!rt_batch_to_stream(b))
		v->disordered = true;
	for (size_t i = 0; i < b->events.len; i++)
		RT_TRY(v->sink->wire(v->sink, &b->events.data[b->order[i]].head));
	rt_batch_clear(b);
	return NULL;
}

static struct rt_error *take_op(struct wire_view *v, const struct rt_perf_record *record)
{
	struct rt_reftrace_place place;
	struct rt_wire_event event;

	if (!rt_reftrace_op_read(record, v->big_endian, &event, &place)) {
		RT_TRY(give_batch(v));
		return report_cut(v->recording, "the raw bytes of an event cannot be read", v->sink);
	}
	if (place.batch != v->batch.number || rt_batch_full(&v->batch))
		RT_TRY(give_batch(v));
	v->batch.number = place.batch;
	if (!rt_vec_push(&v->batch.events, event) || !rt_vec_push(&v->batch.turns, place.turn))
		return rt_error_nomem();
	return NULL;
}

static struct rt_error *drain_wire(struct wire_view *v, struct rt_perf_reader *reader)
{
	for (;;) {
		const struct rt_perf_event *events;
		struct rt_perf_record record;
		size_t count, len;
		const char *word;
		bool more;

		RT_TRY(rt_perf_reader_next(reader, &record, &more));
		if (!more)
			break;
		if (record.type != RT_PERF_SAMPLE)
			continue;
		events = rt_perf_reader_events(reader, &count);
		switch (kind_of(events, count, record.event, &word, &len)) {
		case RT_REFTRACE_OP:
			RT_TRY(take_op(v, &record));
			break;
		case RT_REFTRACE_META:
			RT_TRY(give_batch(v));
			RT_TRY(take_meta(v->recording, &record, v->big_endian, word, len, v->sink));
			break;
		default:
			break;
		}
	}
	return give_batch(v);
}

struct rt_error *rt_recording_drain_wire(struct rt_recording *r, struct rt_recording_sink *sink)
{
	_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
	struct wire_view *v;
	struct rt_error *err;
	const char *damage;

	RT_TRY(rt_perf_reader_create(r->bytes, r->name, &reader));
	v = calloc(1, sizeof(*v));
	if (!v)
		return rt_error_nomem();
	v->recording = r;
	v->sink = sink;
	v->big_endian = rt_perf_reader_header(reader)->big_endian;
	err = drain_wire(v, reader);
	/* where the file ends too early, that is why a batch does not fit together */
	damage = rt_perf_reader_damage(reader);
	if (!damage && v->disordered)
		damage = "the order of some events cannot be read";
	rt_batch_deinit(&v->batch);
	free(v);
	RT_TRY(err);
	return report_cut(r, damage, sink);
}

static struct rt_error *give_side(void *arg, const struct rt_wire_head *record)
{
	struct rt_recording_sink *sink = arg;

	return sink->side->record(sink->side, record);
}

/* Modules that the stream of lifetimes names keep their numbers: one file is opened once. */
struct modules {
	struct rt_recording_sink sink;
	struct rt_translate *translate;
};

static struct rt_error *see_module(struct rt_recording_sink *self, const struct rt_wire_head *record)
{
	struct modules *m = (struct modules *)(void *)self;

	if (record->kind != RT_WIRE_MODULE)
		return NULL;
	return rt_translate_module(m->translate, (const struct rt_wire_module *)(const void *)record);
}

static struct rt_error *prepare_side(struct rt_recording *r, const struct rt_recording_sink *sink,
				     struct rt_translate *t)
{
	struct modules modules = { .sink = { .wire = see_module }, .translate = t };
	const struct rt_perf_header *header = rt_perf_reader_header(r->perf);

	for (size_t i = 0; i < header->build_id_count; i++)
		RT_TRY(rt_translate_build_id(t, header->build_ids[i].path, header->build_ids[i].id,
					     header->build_ids[i].size));
	/* who does not read the lifetimes never saw their modules */
	return r->has_wire && sink->wire ? rt_recording_drain(r, &modules.sink) : NULL;
}

/* perf's records on their way to sink. */
struct perf_view {
	struct rt_recording *recording;
	struct rt_recording_sink *sink;
	struct rt_translate translate;
	struct rt_moved moved;
};

static struct rt_error *give_perf(void *arg, const struct rt_perf_record *record)
{
	struct perf_view *v = arg;
	size_t count;

	return v->sink->perf(v->sink, rt_perf_reader_events(v->recording->perf, &count), record);
}

static struct rt_error *give_sample(struct perf_view *v, const struct rt_perf_event *events, size_t count,
				    struct rt_perf_record *record)
{
	uint64_t chain[RT_USER_CHAIN_MAX];
	const char *word;
	size_t len;

	if (!v->sink->all && kind_of(events, count, record->event, &word, &len) != RT_REFTRACE_NONE)
		return NULL;
	if (!v->sink->perf)
		return NULL;
	if (record->event >= count)
		return give_perf(v, record);
	/* by the mappings at its time: only where these are given as well */
	if (v->sink->side)
		rt_recording_unwind(v->recording, &events[record->event], record, chain);
	if (events[record->event].attr.sample_type & PERF_SAMPLE_READ)
		return rt_moved_give(&v->moved, v->recording->perf, record, give_perf, v);
	return give_perf(v, record);
}

static struct rt_error *give(struct perf_view *v, struct rt_perf_record *record)
{
	size_t count;
	const struct rt_perf_event *events = rt_perf_reader_events(v->recording->perf, &count);

	if (record->type == RT_PERF_SAMPLE)
		return give_sample(v, events, count, record);
	if (v->sink->side)
		RT_TRY(rt_translate_record(&v->translate, record, give_side, v->sink));
	return v->sink->perf ? give_perf(v, record) : NULL;
}

struct rt_error *rt_recording_drain_perf(struct rt_recording *r, struct rt_recording_sink *sink)
{
	const struct rt_bytes bytes = r->is_spool ? rt_bytes_make(r->converted.buffer, r->converted.len) : r->bytes;
	_cleanup_(rt_perf_order_destroyp) struct rt_perf_order *order = NULL;
	struct rt_perf_reader *reader = NULL;
	struct perf_view view = { .recording = r, .sink = sink };
	struct rt_error *err;
	bool more = true;

	r->unwound = (struct rt_unwound){ 0 };
	/* a reader is read once; the one that is kept is for its header */
	err = prepare_side(r, sink, &view.translate);
	if (!err)
		err = rt_perf_reader_create(bytes, r->name, &reader);
	if (!err) {
		rt_perf_reader_destroy(r->perf);
		r->perf = reader;
		err = rt_perf_order_create(reader, &order);
	}
	while (!err && more) {
		struct rt_perf_record record;

		err = rt_perf_order_next(order, &record, &more);
		if (!err && more)
			err = give(&view, &record);
	}
	if (!err)
		err = rt_recording_note_damage(r, rt_perf_reader_damage(r->perf));
	rt_translate_deinit(&view.translate);
	rt_moved_deinit(&view.moved);
	return err;
}
