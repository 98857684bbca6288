/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Encodes records into a chunk and hands whole chunks to the sink, each with one write. Once a write failed, nothing
 * more is written: bytes after a torn chunk could not be found again.
 */
#include "capture/spool.h"

#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <zlib.h>

#include "capture/encode.h"
#include "capture/layout.h"

struct rt_spool_writer {
	struct rt_event_sink sink; /* first: the writer is its own event sink */
	struct rt_sink *out;
	struct rt_spool_chunk head; /* of the chunk being filled */
	struct rt_spool_encoder *encoder;
	uint32_t chunks; /* written so far */
	bool ended;
	struct rt_error *failed; /* the first failure: every later call repeats it */
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* An error that is kept is given out as a copy. */
static struct rt_error *repeat(const struct rt_error *err)
{
	struct rt_error *copy = rt_error_new(err->code, "%s", err->message);

	if (copy->code != err->code)
		return copy; /* out of memory: a static error */
	copy->errnum = err->errnum;
	if (err->fix)
		rt_error_fix(copy, "%s", err->fix);
	return copy;
}

/* What the sink says after everything written so far went to the kernel. */
static struct rt_error *settle(struct rt_spool_writer *w)
{
	w->failed = rt_sink_end(w->out);
	return w->failed ? repeat(w->failed) : NULL;
}

/* Writes the words that fit, and how many these are: a longer command line is cut, not refused. */
static void header_strings(struct rt_spool_header *head, struct rt_sink *text, const char *const *command)
{
	struct utsname u;

	for (size_t i = 0; command && command[i]; i++) {
		size_t len = strlen(command[i]) + 1;

		if (len > RT_SPOOL_HEADER_MAX / 2 - text->len)
			break;
		rt_sink_write(text, command[i], len);
		head->command_count++;
	}
	if (!uname(&u))
		rt_sink_printf(text, "%s %s %s", u.sysname, u.release, u.machine);
	rt_sink_write(text, "", 1);
	head->string_bytes = (uint32_t)text->len;
	rt_sink_write(text, "\0\0\0\0\0\0\0", RT_WIRE_ALIGN(head->string_bytes) - head->string_bytes);
}

static struct rt_error *write_header(struct rt_spool_writer *w, const char *const *command)
{
	struct rt_spool_header head = {
		.magic = RT_SPOOL_MAGIC,
		.order = RT_SPOOL_ORDER,
		.version = RT_SPOOL_VERSION,
		.pointer_bytes = sizeof(void *),
		.start_monotonic_ns = now_ns(CLOCK_MONOTONIC),
		.start_realtime_ns = now_ns(CLOCK_REALTIME),
	};
	_cleanup_(rt_sink_deinit) struct rt_sink text;
	uLong crc;

	rt_sink_init_memory(&text);
	header_strings(&head, &text, command);
	RT_TRY(rt_sink_end(&text));
	head.size = (uint32_t)(sizeof(head) + text.len);
	crc = crc32(0, (const Bytef *)&head, sizeof(head));
	head.crc = (uint32_t)crc32(crc, (const Bytef *)text.buffer, (uInt)text.len);
	rt_sink_write(w->out, &head, sizeof(head));
	rt_sink_write(w->out, text.buffer, text.len);
	return settle(w);
}

/* Seals the current chunk and gives it to the sink, which is not flushed here. */
static void write_chunk(struct rt_spool_writer *w, struct rt_bytes payload)
{
	struct rt_spool_chunk *head = &w->head;

	memcpy(head->magic, RT_SPOOL_CHUNK_MAGIC, sizeof(head->magic));
	head->number = ++w->chunks;
	head->payload_bytes = (uint32_t)payload.size;
	head->payload_crc = (uint32_t)crc32(0, payload.data, (uInt)payload.size);
	head->header_crc = (uint32_t)crc32(0, (const Bytef *)head, offsetof(struct rt_spool_chunk, header_crc));
	rt_sink_write(w->out, head, sizeof(*head));
	rt_sink_write(w->out, payload.data, payload.size);
	*head = (struct rt_spool_chunk){ 0 };
}

static struct rt_error *add_record(struct rt_event_sink *self, const struct rt_wire_head *record)
{
	struct rt_spool_writer *w = (struct rt_spool_writer *)(void *)self;
	struct rt_spool_chunk *head = &w->head;

	if (w->failed)
		return repeat(w->failed);
	if (w->ended)
		return rt_error_new(RT_E_INTERNAL, "a record after the end of the recording");
	if (!rt_record_valid(record, record->size))
		return rt_error_new(RT_E_INTERNAL, "a malformed record (kind %u, %u bytes) cannot be recorded",
				    record->kind, record->size);
	if (!rt_spool_encoder_add(w->encoder, record)) {
		RT_TRY(rt_spool_writer_flush(w));
		if (!rt_spool_encoder_add(w->encoder, record))
			return rt_error_new(RT_E_INTERNAL, "a record of %u bytes fits into no chunk", record->size);
	}
	head->records++;
	if (record->time_ns) {
		if (!head->first_ns || record->time_ns < head->first_ns)
			head->first_ns = record->time_ns;
		if (record->time_ns > head->last_ns)
			head->last_ns = record->time_ns;
	}
	return NULL;
}

struct rt_error *rt_spool_writer_create(struct rt_sink *sink, const char *const *command, struct rt_spool_writer **ret)
{
	_cleanup_(rt_spool_writer_destroyp) struct rt_spool_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return rt_error_nomem();
	w->sink.record = add_record;
	w->out = sink;
	RT_TRY(rt_spool_encoder_create(&w->encoder));
	RT_TRY(write_header(w, command));
	*ret = rt_take(w);
	return NULL;
}

struct rt_event_sink *rt_spool_writer_sink(struct rt_spool_writer *writer)
{
	return &writer->sink;
}

struct rt_error *rt_spool_writer_flush(struct rt_spool_writer *writer)
{
	struct rt_bytes payload;

	if (writer->failed)
		return repeat(writer->failed);
	if (!writer->head.records)
		return NULL;
	writer->failed = rt_spool_encoder_finish(writer->encoder, &payload);
	if (writer->failed)
		return repeat(writer->failed);
	write_chunk(writer, payload);
	return settle(writer);
}

struct rt_error *rt_spool_writer_end(struct rt_spool_writer *writer, int program_status)
{
	RT_TRY(rt_spool_writer_flush(writer));
	if (writer->ended)
		return rt_error_new(RT_E_INTERNAL, "the recording was ended twice");
	writer->ended = true;
	writer->head.flags = RT_SPOOL_END;
	writer->head.status = program_status;
	write_chunk(writer, rt_bytes_make("", 0));
	return settle(writer);
}

void rt_spool_writer_destroy(struct rt_spool_writer *writer)
{
	if (!writer)
		return;
	rt_error_free(writer->failed);
	rt_spool_encoder_destroy(writer->encoder);
	free(writer);
}
