/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Walks over the data section (of a pipe: over everything behind its 16 bytes of header), record by record.
 * Two kinds of fault are kept apart. A feature that does not fit costs this feature. A record that does not fit
 * ends the data: behind it nothing is known to be a record. Both are told by rt_perf_reader_damage().
 */
#include "perfdata/reader.h"

#include <string.h>

#include "perfdata/attr.h"
#include "perfdata/feature.h"
#include "perfdata/head.h"
#include "perfdata/inflate.h"
#include "perfdata/reading.h"

enum { DAMAGES_MAX = 4 }; /* sentences that are kept */

struct rt_perf_reader {
	struct rt_bytes bytes;
	struct rt_perf_header header;
	struct rt_perf_events events;
	struct rt_perf_decoder *decoder;
	struct rt_perf_inflate *inflate; /* NULL until something is compressed */
	size_t pos, end;                 /* of the data that are not read yet */
	size_t record_at;                /* where the current record starts, or the compressed one that it is in */
	size_t ids;                      /* of all events, against sections that overlap */
	bool inflating, ended;
	unsigned damages;
	char *damage;
};

/* Keeps err as a sentence about damage; only what is no damage (no memory) comes back. */
static struct rt_error *spoiled(struct rt_perf_reader *r, struct rt_error *err)
{
	_cleanup_error_ struct rt_error *kept = err;
	char *text;

	if (!err || (err->code != RT_E_TRUNCATED && err->code != RT_E_FORMAT))
		return rt_take(kept);
	if (r->damages++ >= DAMAGES_MAX)
		return NULL;
	if (asprintf(&text, "%s%s%s", r->damage ? r->damage : "", r->damage ? "; " : "", err->message) < 0)
		return rt_error_nomem();
	free(r->damage);
	r->damage = text;
	return NULL;
}

static struct rt_error *add_event(struct rt_perf_reader *r, struct rt_bytes attr, struct rt_cursor *ids, uint64_t count)
{
	struct rt_perf_event fresh = { 0 };

	if (r->events.list.len == RT_PERF_EVENTS_MAX || count > r->bytes.size / 8 - r->ids)
		return rt_error_new(RT_E_TRUNCATED, "more events or ids than the file can hold");
	RT_TRY(rt_perf_attr_read(attr, r->header.big_endian, &fresh.attr));
	RT_TRY(rt_perf_event_ids(&fresh, ids, count));
	/* adding may move the list: after this, nothing may fail before the decoder knows */
	if (!rt_vec_push(&r->events.list, fresh)) {
		free(fresh.ids);
		return rt_error_nomem();
	}
	r->ids += count;
	return rt_perf_decoder_events(r->decoder, r->events.list.data, r->events.list.len);
}

/* The events of a file. Without all of them samples could not be told apart, so a fault here is final. */
static struct rt_error *read_attrs(struct rt_perf_reader *r, const struct rt_perf_head *head)
{
	uint64_t count = head->attrs.size / head->attr_size;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t at = head->attrs.offset + i * head->attr_size, offset, size;
		struct rt_bytes attr, ids;
		struct rt_cursor c;

		if (!rt_bytes_sub(r->bytes, at, head->attr_size, &attr))
			return rt_error_new(RT_E_TRUNCATED, "it ends before event %llu at 0x%llx",
					    (unsigned long long)i, (unsigned long long)at);
		c = rt_cursor_make(attr, r->header.big_endian);
		if (!rt_cursor_skip(&c, head->attr_size - 16) || !rt_cursor_u64(&c, &offset) ||
		    !rt_cursor_u64(&c, &size) || !rt_bytes_sub(r->bytes, offset, size, &ids))
			return rt_error_new(RT_E_TRUNCATED, "the ids of event %llu are not in it",
					    (unsigned long long)i);
		c = rt_cursor_make(ids, r->header.big_endian);
		RT_TRY(add_event(r, rt_bytes_make(attr.data, attr.size - 16), &c, size / 8));
	}
	return NULL;
}

static struct rt_error *read_feature(struct rt_perf_reader *r, unsigned feature, struct rt_bytes bytes)
{
	struct rt_cursor c = rt_cursor_make(bytes, r->header.big_endian);

	RT_TRY(rt_perf_feature_read(feature, &c, r->decoder, &r->events, &r->header));
	r->header.features[feature / 64] |= UINT64_C(1) << feature % 64;
	return NULL;
}

/* The table behind the data, and what it points to. */
static struct rt_error *read_features(struct rt_perf_reader *r, const struct rt_perf_head *head)
{
	uint64_t at = head->data.offset + head->data.size;

	for (unsigned feature = 0; feature < RT_PERF_FEAT_BITS; feature++) {
		struct rt_perf_section section;
		struct rt_bytes bytes;
		struct rt_error *err;

		if (!(head->features[feature / 64] >> feature % 64 & 1))
			continue;
		if (!rt_perf_section_read(r->bytes, at, r->header.big_endian, &section))
			return spoiled(
				r, rt_error_new(RT_E_TRUNCATED,
						"the table of features is cut at 0x%zx, feature %u and on are missing",
						r->bytes.size, feature));
		at += RT_PERF_SECTION_BYTES;
		if (!rt_bytes_sub(r->bytes, section.offset, section.size, &bytes))
			err = rt_error_new(RT_E_TRUNCATED, "it is not in the file");
		else
			err = read_feature(r, feature, bytes);
		RT_TRY(spoiled(
			r, rt_error_wrap(err, "feature %u at 0x%llx", feature, (unsigned long long)section.offset)));
	}
	return NULL;
}

static struct rt_error *open_file(struct rt_perf_reader *r)
{
	struct rt_perf_head head;

	RT_TRY(rt_perf_head_read(r->bytes, r->header.big_endian, &head));
	RT_TRY(read_attrs(r, &head));
	if (head.data.offset > r->bytes.size)
		return rt_error_new(RT_E_TRUNCATED, "it ends at 0x%zx, its data start at 0x%llx", r->bytes.size,
				    (unsigned long long)head.data.offset);
	r->pos = head.data.offset;
	r->end = r->bytes.size;
	if (rt_perf_head_unfinished(&head, r->bytes, r->header.big_endian)) {
		r->header.unfinished = true;
		return spoiled(
			r, rt_error_new(RT_E_TRUNCATED,
					"its recorder never finished it: data from 0x%zx are read to the end at 0x%zx, "
					"its features are missing",
					r->pos, r->end));
	}
	if (head.data.size > r->bytes.size - r->pos)
		return spoiled(
			r, rt_error_new(RT_E_TRUNCATED,
					"it ends at 0x%zx, its data at 0x%zx say %llu bytes; its features are missing",
					r->bytes.size, r->pos, (unsigned long long)head.data.size));
	r->end = r->pos + head.data.size;
	return read_features(r, &head);
}

struct rt_error *rt_perf_reader_create(struct rt_bytes bytes, const char *name, struct rt_perf_reader **ret)
{
	_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return rt_error_nomem();
	r->bytes = bytes;
	RT_TRY(rt_perf_magic_read(bytes, name, &r->header.big_endian, &r->header.pipe));
	RT_TRY(rt_perf_decoder_create(NULL, 0, r->header.big_endian, &r->decoder));
	if (r->header.pipe) {
		r->pos = RT_PERF_PIPE_HEADER_BYTES;
		r->end = bytes.size;
	} else {
		RT_TRY(rt_error_wrap(open_file(r), "%s", name));
	}
	*ret = rt_take(r);
	return NULL;
}

void rt_perf_reader_destroy(struct rt_perf_reader *r)
{
	if (!r)
		return;
	rt_perf_header_deinit(&r->header);
	rt_perf_events_deinit(&r->events);
	rt_perf_decoder_destroy(r->decoder);
	rt_perf_inflate_destroy(r->inflate);
	free(r->damage);
	free(r);
}

const struct rt_perf_header *rt_perf_reader_header(const struct rt_perf_reader *r)
{
	return &r->header;
}

const struct rt_perf_event *rt_perf_reader_events(const struct rt_perf_reader *r, size_t *ret_count)
{
	*ret_count = r->events.list.len;
	return r->events.list.data;
}

bool rt_perf_reader_find(const struct rt_perf_reader *r, uint64_t id, unsigned *ret)
{
	return rt_perf_decoder_find(r->decoder, id, ret);
}

const char *rt_perf_reader_damage(const struct rt_perf_reader *r)
{
	return r->damage;
}

struct rt_error *rt_perf_reader_decode(struct rt_perf_reader *r, struct rt_bytes bytes, struct rt_perf_record *ret)
{
	return rt_perf_decode(r->decoder, bytes, ret);
}

bool rt_perf_reader_lasting(const struct rt_perf_reader *r, struct rt_bytes bytes)
{
	uintptr_t start = (uintptr_t)r->bytes.data, at = (uintptr_t)bytes.data;

	return at >= start && at - start < r->bytes.size;
}

/* The size bytes behind a record that belong to it without being counted in its size. */
static struct rt_error *take_appendix(struct rt_perf_reader *r, uint64_t size, struct rt_bytes *ret)
{
	if (size > r->end - r->pos || !rt_bytes_sub(r->bytes, r->pos, size, ret))
		return rt_error_new(RT_E_TRUNCATED, "%llu bytes follow it, %zu are left", (unsigned long long)size,
				    r->end - r->pos);
	r->pos += size;
	return NULL;
}

static struct rt_error *take_attr(struct rt_perf_reader *r, struct rt_cursor *c)
{
	uint32_t size;
	struct rt_cursor attr = *c;
	struct rt_bytes bytes;

	if (!rt_cursor_skip(&attr, 4) || !rt_cursor_u32(&attr, &size))
		return rt_error_new(RT_E_FORMAT, "its attributes are cut");
	if (!rt_cursor_bytes(c, size ? size : RT_PERF_ATTR_MIN, &bytes))
		return rt_error_new(RT_E_FORMAT, "its attributes say %u bytes, %zu are there", size, rt_cursor_left(c));
	return add_event(r, bytes, c, rt_cursor_left(c) / 8);
}

/* EVENT_UPDATE: of what it can say, only the name concerns us. */
static struct rt_error *take_update(struct rt_perf_reader *r, struct rt_cursor *c)
{
	enum { UPDATE_NAME = 2 };
	uint64_t type, id;
	const char *name;
	unsigned event;
	char *copy;

	if (!rt_cursor_u64(c, &type) || !rt_cursor_u64(c, &id) || (type == UPDATE_NAME && !rt_cursor_string(c, &name)))
		return rt_error_new(RT_E_FORMAT, "its fields are cut");
	if (type != UPDATE_NAME || !rt_perf_decoder_find(r->decoder, id, &event))
		return NULL;
	copy = strdup(name);
	if (!copy)
		return rt_error_nomem();
	free(r->events.list.data[event].name);
	r->events.list.data[event].name = copy;
	return NULL;
}

/* HEADER_FEATURE: a fault in its contents costs the feature, not what follows. */
static struct rt_error *take_feature(struct rt_perf_reader *r, struct rt_cursor *c)
{
	struct rt_bytes bytes;
	uint64_t feature;

	if (!rt_cursor_u64(c, &feature))
		return rt_error_new(RT_E_FORMAT, "its number is cut");
	if (feature >= RT_PERF_FEAT_BITS || !rt_cursor_bytes(c, rt_cursor_left(c), &bytes))
		return NULL;
	return spoiled(r, rt_error_wrap(read_feature(r, (unsigned)feature, bytes), "feature %llu at 0x%zx",
					(unsigned long long)feature, r->record_at));
}

static struct rt_error *take_tracing(struct rt_perf_reader *r, struct rt_cursor *c)
{
	uint32_t size;

	if (!rt_cursor_u32(c, &size))
		return rt_error_new(RT_E_FORMAT, "its size is cut");
	RT_TRY(take_appendix(r, size, &r->header.tracing_data));
	r->header.features[0] |= UINT64_C(1) << RT_PERF_FEAT_TRACING_DATA;
	return NULL;
}

static struct rt_error *take_auxtrace(struct rt_perf_reader *r, struct rt_cursor *c)
{
	struct rt_bytes ignored;
	uint64_t size;

	if (!rt_cursor_u64(c, &size))
		return rt_error_new(RT_E_FORMAT, "its size is cut");
	return take_appendix(r, size, &ignored);
}

static struct rt_error *take_compressed(struct rt_perf_reader *r, uint32_t type, struct rt_cursor *c)
{
	uint64_t size = rt_cursor_left(c);
	struct rt_bytes piece;

	if (type == RT_PERF_COMPRESSED2 && !rt_cursor_u64(c, &size))
		return rt_error_new(RT_E_FORMAT, "its size is cut");
	if (!rt_cursor_bytes(c, size, &piece))
		return rt_error_new(RT_E_FORMAT, "it says %llu bytes, %zu are there", (unsigned long long)size,
				    rt_cursor_left(c));
	if (!r->inflate)
		RT_TRY(rt_perf_inflate_create(r->header.big_endian, &r->inflate));
	r->header.compressed = true;
	rt_perf_inflate_feed(r->inflate, piece);
	r->inflating = true;
	return NULL;
}

/* What a record says to the reader itself. */
static struct rt_error *interpret(struct rt_perf_reader *r, const struct rt_perf_record *record)
{
	struct rt_cursor c = rt_cursor_make(record->bytes, r->header.big_endian);

	c.pos = 8;
	switch (record->type) {
	case RT_PERF_HEADER_ATTR:
		return take_attr(r, &c);
	case RT_PERF_EVENT_UPDATE:
		return take_update(r, &c);
	case RT_PERF_HEADER_FEATURE:
		return take_feature(r, &c);
	case RT_PERF_HEADER_TRACING_DATA:
		return take_tracing(r, &c);
	case RT_PERF_HEADER_BUILD_ID:
		return rt_perf_build_id_read(record->bytes, r->header.big_endian, &r->header);
	case RT_PERF_AUXTRACE:
		return take_auxtrace(r, &c);
	case RT_PERF_COMPRESSED:
	case RT_PERF_COMPRESSED2:
		return take_compressed(r, record->type, &c);
	default:
		return NULL;
	}
}

/* Those point beyond themselves, or would have to outlive the buffer of the unpacked data. */
static bool only_outside(uint32_t type)
{
	return type == RT_PERF_HEADER_ATTR || type == RT_PERF_HEADER_FEATURE || type == RT_PERF_HEADER_TRACING_DATA ||
	       type == RT_PERF_AUXTRACE || type == RT_PERF_COMPRESSED || type == RT_PERF_COMPRESSED2;
}

static struct rt_error *read_record(struct rt_perf_reader *r, struct rt_bytes bytes, struct rt_perf_record *ret)
{
	RT_TRY(rt_perf_decode(r->decoder, bytes, ret));
	ret->offset = r->record_at;
	if (r->inflating) {
		if (only_outside(ret->type))
			return rt_error_new(RT_E_FORMAT, "a %s record cannot stand in compressed data",
					    rt_perf_type_name(ret->type));
		return ret->type == RT_PERF_EVENT_UPDATE || ret->type == RT_PERF_HEADER_BUILD_ID ? interpret(r, ret)
												 : NULL;
	}
	r->pos += ret->bytes.size;
	if (ret->type < RT_PERF_USER_FIRST)
		return NULL;
	return rt_error_wrap(interpret(r, ret), "%s record", rt_perf_type_name(ret->type));
}

/* One record, or none (a compressed one was opened, or used up). */
static struct rt_error *step(struct rt_perf_reader *r, struct rt_perf_record *ret, bool *ret_got)
{
	struct rt_bytes bytes;

	*ret_got = false;
	if (r->inflating) {
		RT_TRY(rt_perf_inflate_next(r->inflate, &bytes, &r->inflating));
		if (!r->inflating)
			return NULL;
	} else {
		r->record_at = r->pos;
		if (r->pos == r->end) {
			r->ended = true;
			if (r->inflate && rt_perf_inflate_left(r->inflate))
				return rt_error_new(RT_E_TRUNCATED, "compressed data end inside a record");
			return NULL;
		}
		bytes = rt_bytes_make(r->bytes.data + r->pos, r->end - r->pos);
	}
	RT_TRY(read_record(r, bytes, ret));
	*ret_got = r->inflating ? !only_outside(ret->type) : true;
	return NULL;
}

struct rt_error *rt_perf_reader_next(struct rt_perf_reader *r, struct rt_perf_record *ret, bool *ret_more)
{
	struct rt_perf_record record;
	bool got = false;

	while (!got && !r->ended) {
		struct rt_error *err = step(r, &record, &got);

		if (!err)
			continue;
		r->ended = true;
		got = false;
		RT_TRY(spoiled(r, rt_error_wrap(err, "at 0x%zx", r->record_at)));
	}
	if (got)
		*ret = record;
	*ret_more = got;
	return NULL;
}
