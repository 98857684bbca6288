/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file is written from front to end without seeking: id lists and attributes
 * first, then the data, then the features. Only the header has to be written
 * once more, and that is the caller's: the sink cannot go back.
 */
#include "perfdata/writer.h"

#include <string.h>

#include "base/vec.h"
#include "perfdata/compress.h"
#include "perfdata/encode.h"
#include "perfdata/features_write.h"

/* What perf 6.1 calls reserved in an attr, and refuses. */
enum {
	ATTR_FLAGS = 40, /* offset of the bit field */
	ATTR_FLAGS_KNOWN = 38,
	ATTR_RESERVED_2 = 110,
	ATTR_RESERVED_3 = 116,
	UPDATE_NAME = 2, /* PERF_EVENT_UPDATE__NAME */
};

_Static_assert(sizeof(struct perf_event_attr) >= PERF_ATTR_SIZE_VER7, "attr of Linux 6.1");
_Static_assert(__builtin_offsetof(struct perf_event_attr, aux_sample_size) == ATTR_RESERVED_2 + 2, "attr layout");

struct attr_entry { /* of the attribute table */
	uint8_t attr[PERF_ATTR_SIZE_VER7];
	uint64_t ids_offset, ids_size;
};

struct file_header {
	uint64_t magic, size, attr_size;
	uint64_t attrs_offset, attrs_size;
	uint64_t data_offset, data_size;
	uint64_t event_types_offset, event_types_size;
	uint64_t features[4];
};
_Static_assert(sizeof(struct file_header) == RT_PERF_HEADER_BYTES, "header");

enum state { DECLARING, WRITING, ENDED };

struct rt_perf_writer {
	struct rt_sink *sink;
	struct rt_perf_writer_options options;
	enum state state;
	RT_VEC(struct rt_perf_event) events;
	struct rt_perf_features features;
	struct rt_perf_compressor *compressor; /* NULL: records as they are */
	uint64_t plain;                        /* bytes of records that went straight to the sink */
	unsigned lost;
	struct file_header header;
	uint8_t scratch[RT_PERF_RECORD_MAX];
};

struct rt_error *rt_perf_writer_create(struct rt_sink *sink, const struct rt_perf_writer_options *options,
				       struct rt_perf_writer **ret)
{
	_cleanup_(rt_perf_writer_destroyp) struct rt_perf_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return rt_error_nomem();
	writer->sink = sink;
	rt_perf_features_init(&writer->features);
	if (options)
		writer->options = *options;
	if (writer->options.zstd_level)
		RT_TRY(rt_perf_compressor_create(sink, writer->options.zstd_level, &writer->compressor));
	*ret = rt_take(writer);
	return NULL;
}

void rt_perf_writer_destroy(struct rt_perf_writer *writer)
{
	if (!writer)
		return;
	for (size_t i = 0; i < writer->events.len; i++) {
		free(writer->events.data[i].ids);
		free(writer->events.data[i].name);
	}
	rt_vec_deinit(&writer->events);
	rt_perf_features_deinit(&writer->features);
	rt_perf_compressor_destroy(writer->compressor);
	free(writer);
}

static struct rt_error *expect(const struct rt_perf_writer *writer, enum state state, const char *what)
{
	static const char *const when[] = { "before the first record", "between begin and end", "after the end" };

	if (writer->state == state)
		return NULL;
	return rt_error_new(RT_E_INTERNAL, "perf.data: %s belong %s", what, when[state]);
}

/* Cuts what perf 6.1 does not know: it refuses the whole file for one such bit. */
static void cut_attr(struct perf_event_attr *attr)
{
	uint8_t *bytes = (uint8_t *)attr;
	uint64_t flags;

	attr->size = PERF_ATTR_SIZE_VER7;
	memcpy(&flags, bytes + ATTR_FLAGS, sizeof(flags));
	flags &= (1ull << ATTR_FLAGS_KNOWN) - 1;
	memcpy(bytes + ATTR_FLAGS, &flags, sizeof(flags));
	memset(bytes + ATTR_RESERVED_2, 0, 2);
	memset(bytes + ATTR_RESERVED_3, 0, 4);
	memset(bytes + PERF_ATTR_SIZE_VER7, 0, sizeof(*attr) - PERF_ATTR_SIZE_VER7);
}

struct rt_error *rt_perf_writer_event(struct rt_perf_writer *writer, const struct rt_perf_event *event)
{
	_cleanup_free_ uint64_t *ids = NULL;
	_cleanup_free_ char *name = NULL;
	struct rt_perf_event *copy;

	RT_TRY(expect(writer, DECLARING, "events"));
	if (event->attr.sample_type >= PERF_SAMPLE_MAX)
		return rt_error_new(RT_E_UNSUPPORTED, "event %s has sample fields that perf 6.1 does not know",
				    event->name ? event->name : "?");
	if (event->id_count) {
		ids = calloc(event->id_count, sizeof(*ids));
		if (!ids)
			return rt_error_nomem();
		memcpy(ids, event->ids, event->id_count * sizeof(*ids));
	}
	if (event->name) {
		name = strdup(event->name);
		if (!name)
			return rt_error_nomem();
	}
	copy = rt_vec_add(&writer->events);
	if (!copy)
		return rt_error_nomem();
	*copy = (struct rt_perf_event){ event->attr, rt_take(ids), event->id_count, rt_take(name) };
	cut_attr(&copy->attr);
	return NULL;
}

/* Header, id lists, attribute table: everything before the data. */
static struct rt_error *begin_file(struct rt_perf_writer *writer)
{
	struct file_header *h = &writer->header;
	uint64_t at = sizeof(*h);

	*h = (struct file_header){ .magic = RT_PERF_MAGIC, .size = sizeof(*h), .attr_size = sizeof(struct attr_entry) };
	for (size_t i = 0; i < writer->events.len; i++)
		at += writer->events.data[i].id_count * sizeof(uint64_t);
	h->attrs_offset = at;
	h->attrs_size = writer->events.len * sizeof(struct attr_entry);
	h->data_offset = h->attrs_offset + h->attrs_size;
	rt_sink_write(writer->sink, h, sizeof(*h));
	for (size_t i = 0; i < writer->events.len; i++)
		rt_sink_write(writer->sink, writer->events.data[i].ids,
			      writer->events.data[i].id_count * sizeof(uint64_t));
	at = sizeof(*h);
	for (size_t i = 0; i < writer->events.len; i++) {
		const struct rt_perf_event *event = &writer->events.data[i];
		struct attr_entry entry = { .ids_offset = at, .ids_size = event->id_count * sizeof(uint64_t) };

		memcpy(entry.attr, &event->attr, sizeof(entry.attr));
		rt_sink_write(writer->sink, &entry, sizeof(entry));
		at += entry.ids_size;
	}
	return NULL;
}

/* Names where EVENT_DESC is too large for a record: one record each, by the event's first id. */
static void stream_names(struct rt_perf_writer *writer)
{
	for (size_t i = 0; i < writer->events.len; i++) {
		const struct rt_perf_event *event = &writer->events.data[i];
		struct perf_event_header header = { .type = RT_PERF_EVENT_UPDATE };
		struct rt_perf_put put = { .data = writer->scratch, .size = sizeof(writer->scratch) };

		if (!event->name || !event->id_count)
			continue;
		rt_perf_put(&put, &header, sizeof(header));
		rt_perf_put_u64(&put, UPDATE_NAME);
		rt_perf_put_u64(&put, event->ids[0]);
		rt_perf_put(&put, event->name, strlen(event->name) + 1);
		rt_perf_put_align(&put, 8);
		if (put.full)
			continue;
		header.size = (uint16_t)put.len;
		memcpy(writer->scratch, &header, sizeof(header));
		rt_sink_write(writer->sink, writer->scratch, put.len);
	}
}

static struct rt_error *begin_pipe(struct rt_perf_writer *writer)
{
	const uint64_t head[2] = { RT_PERF_MAGIC, RT_PERF_PIPE_HEADER_BYTES };

	rt_sink_write(writer->sink, head, sizeof(head));
	for (size_t i = 0; i < writer->events.len; i++) {
		const struct rt_perf_event *event = &writer->events.data[i];
		size_t size = sizeof(struct perf_event_header) + PERF_ATTR_SIZE_VER7;
		struct perf_event_header header = { .type = RT_PERF_HEADER_ATTR };

		if (event->id_count > (RT_PERF_RECORD_MAX - size) / sizeof(uint64_t))
			return rt_error_new(RT_E_LIMIT, "event %s has %zu ids, too many for a pipe",
					    event->name ? event->name : "?", event->id_count);
		header.size = (uint16_t)(size + event->id_count * sizeof(uint64_t));
		rt_sink_write(writer->sink, &header, sizeof(header));
		rt_sink_write(writer->sink, &event->attr, PERF_ATTR_SIZE_VER7);
		rt_sink_write(writer->sink, event->ids, event->id_count * sizeof(uint64_t));
	}
	if (writer->compressor)
		RT_TRY(rt_perf_features_compressed(&writer->features, writer->options.zstd_level, 0));
	RT_TRY(rt_perf_features_events(&writer->features, writer->events.data, writer->events.len));
	if (!rt_perf_features_fit(&writer->features, RT_PERF_FEAT_EVENT_DESC)) {
		rt_perf_features_drop(&writer->features, RT_PERF_FEAT_EVENT_DESC);
		stream_names(writer);
	}
	return rt_perf_features_stream(&writer->features, writer->sink, &writer->lost);
}

struct rt_error *rt_perf_writer_begin(struct rt_perf_writer *writer)
{
	RT_TRY(expect(writer, DECLARING, "events"));
	writer->state = WRITING;
	return writer->options.pipe ? begin_pipe(writer) : begin_file(writer);
}

static struct rt_error *write_data(struct rt_perf_writer *writer, struct rt_bytes record, uint32_t type)
{
	if (!writer->compressor) {
		rt_sink_write(writer->sink, record.data, record.size);
		writer->plain += record.size;
		return NULL;
	}
	RT_TRY(rt_perf_compressor_add(writer->compressor, record));
	/* whoever reads the pipe can sort and show what came before a round's end */
	if (writer->options.pipe && type == RT_PERF_FINISHED_ROUND)
		return rt_perf_compressor_flush(writer->compressor);
	return NULL;
}

struct rt_error *rt_perf_writer_raw(struct rt_perf_writer *writer, struct rt_bytes record)
{
	struct perf_event_header header;

	RT_TRY(expect(writer, WRITING, "records"));
	if (record.size < sizeof(header))
		return rt_error_new(RT_E_FORMAT, "a record of %zu bytes has no header", record.size);
	memcpy(&header, record.data, sizeof(header));
	if (header.size != record.size || record.size % 8)
		return rt_error_new(RT_E_FORMAT, "a record of %zu bytes says %u, or is no multiple of 8", record.size,
				    header.size);
	return write_data(writer, record, header.type);
}

struct rt_error *rt_perf_writer_record(struct rt_perf_writer *writer, const struct rt_perf_record *record)
{
	const struct rt_perf_event *event;
	struct rt_perf_record with_id;
	size_t size;

	RT_TRY(expect(writer, WRITING, "records"));
	if (record->event >= writer->events.len)
		return rt_error_new(RT_E_INTERNAL, "a record of event %u, there are %zu", record->event,
				    writer->events.len);
	event = &writer->events.data[record->event];
	if (!record->id.id && event->id_count) {
		with_id = *record;
		with_id.id.id = event->ids[0];
		record = &with_id;
	}
	RT_TRY(rt_perf_encode(&event->attr, record, writer->scratch, sizeof(writer->scratch), &size));
	return write_data(writer, rt_bytes_make(writer->scratch, size), record->type);
}

struct rt_error *rt_perf_writer_features(struct rt_perf_writer *writer, const struct rt_perf_header *header)
{
	if (writer->state == ENDED)
		return expect(writer, WRITING, "features");
	return rt_perf_features_take(&writer->features, header);
}

static struct rt_error *end_file(struct rt_perf_writer *writer)
{
	struct file_header *h = &writer->header;

	h->data_size = writer->plain;
	if (writer->compressor) {
		uint64_t given = rt_perf_compressor_given(writer->compressor);
		uint64_t taken = rt_perf_compressor_taken(writer->compressor);

		h->data_size += given;
		RT_TRY(rt_perf_features_compressed(&writer->features, writer->options.zstd_level,
						   given ? (taken + given / 2) / given : 0));
	}
	RT_TRY(rt_perf_features_events(&writer->features, writer->events.data, writer->events.len));
	return rt_perf_features_write(&writer->features, writer->sink, h->data_offset + h->data_size, h->features);
}

struct rt_error *rt_perf_writer_end(struct rt_perf_writer *writer)
{
	RT_TRY(expect(writer, WRITING, "records"));
	writer->state = ENDED;
	if (writer->compressor)
		RT_TRY(rt_perf_compressor_flush(writer->compressor));
	if (writer->options.pipe)
		return rt_perf_features_stream(&writer->features, writer->sink, &writer->lost);
	return end_file(writer);
}

struct rt_bytes rt_perf_writer_header(const struct rt_perf_writer *writer)
{
	if (writer->options.pipe)
		return rt_bytes_make(NULL, 0);
	return rt_bytes_make(&writer->header, sizeof(writer->header));
}

unsigned rt_perf_writer_lost(const struct rt_perf_writer *writer)
{
	return writer->lost;
}
