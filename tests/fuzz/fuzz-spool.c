/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The spool on foreign bytes. What starts as a file does is read as one; where its first checksum is 0, all are put
 * right first. Else the first byte says what the rest is: the payload of a chunk; columns whose lengths fit, which
 * chance would not find; a script of events that must come back as they were; records of any kind, through the writer
 * when their last byte is odd.
 *
 * Making a reader or a writer takes a hundred times as long as reading a small chunk: coder and decoder are kept for a
 * while, which costs nothing but that ASan knows less about the ends of the columns. Whole files have their own.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "capture/decode.h"
#include "capture/encode.h"
#include "capture/layout.h"
#include "capture/spool.h"
#include "event/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every record that comes out must be whole and 8-aligned, and there is an end. */
static void read_all(const void *data, size_t size)
{
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;
	_cleanup_error_ struct rt_error *err = rt_spool_reader_create(rt_bytes_make(data, size), "fuzz", &reader);
	const struct rt_wire_head *h;
	int status;

	if (err)
		return;
	for (const char *const *word = rt_spool_reader_command(reader); *word; word++)
		(void)!strlen(*word);
	for (;;) {
		struct rt_source *source = rt_spool_reader_source(reader);
		_cleanup_error_ struct rt_error *failed = source->next(source, &h);

		if (failed)
			return;
		if (!h)
			break;
		if ((uintptr_t)h % 8 || !rt_record_valid(h, h->size))
			abort();
	}
	if (rt_spool_reader_status(reader, &status) && status < -1)
		return;
}

/* Puts the checksums of a whole file right: header, then chunk by chunk. */
static void repair(uint8_t *file, size_t size)
{
	struct rt_spool_header head;
	struct rt_spool_chunk chunk;
	size_t at;

	memcpy(&head, file, sizeof(head));
	if (head.size < sizeof(head) || head.size > size)
		return;
	head.crc = 0;
	memcpy(file, &head, sizeof(head));
	head.crc = (uint32_t)crc32(0, file, head.size);
	memcpy(file, &head, sizeof(head));
	for (at = head.size; size - at >= sizeof(chunk); at += sizeof(chunk) + chunk.payload_bytes) {
		memcpy(&chunk, file + at, sizeof(chunk));
		if (chunk.payload_bytes <= size - at - sizeof(chunk))
			chunk.payload_crc = (uint32_t)crc32(0, file + at + sizeof(chunk), chunk.payload_bytes);
		chunk.header_crc =
			(uint32_t)crc32(0, (const Bytef *)&chunk, offsetof(struct rt_spool_chunk, header_crc));
		memcpy(file + at, &chunk, sizeof(chunk));
		if (chunk.payload_bytes > size - at - sizeof(chunk))
			return;
	}
}

static void read_file(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *copy = malloc(size);
	uint32_t crc;

	if (!copy || size < sizeof(struct rt_spool_header))
		return read_all(data, size);
	memcpy(copy, data, size);
	memcpy(&crc, data + offsetof(struct rt_spool_header, crc), sizeof(crc));
	if (!crc)
		repair(copy, size);
	read_all(copy, size);
}

/* Kept from input to input; never freed, but always reachable. */
static struct rt_spool_encoder *encoder;
static struct rt_spool_decoder *decoder;

static bool get_coders(void)
{
	static unsigned uses;

	if (uses++ % 256 == 0) {
		rt_spool_encoder_destroyp(&encoder);
		rt_spool_decoder_destroyp(&decoder);
		encoder = NULL;
		decoder = NULL;
		rt_error_free(rt_spool_encoder_create(&encoder));
		rt_error_free(rt_spool_decoder_create(&decoder));
	}
	return encoder && decoder;
}

/* Every record that comes out is whole; the events among them are compared with want, where that is given. */
static void read_payload(struct rt_bytes payload, uint32_t records, const struct rt_wire_event *want)
{
	const struct rt_wire_head *h;
	const char *fault;
	size_t n, sum = 0;

	if (rt_spool_decoder_begin(decoder, payload, records, &fault))
		return;
	while (!fault && (n = rt_spool_decoder_next(decoder, &h, &fault))) {
		if ((uintptr_t)h % 8 || !rt_record_valid(h, h->size))
			abort();
		if (want && (n > records - sum || memcmp(h, want + sum, n * sizeof(*want))))
			abort();
		sum += n;
	}
	if (sum > records || (want && (fault || sum != records)))
		abort();
}

/* Deals the bytes out to columns of fitting lengths: those of lane and event first, the rest in equal parts. */
static void read_columns(const uint8_t *data, size_t size)
{
	struct rt_spool_extent extents[RT_SPOOL_COLUMNS] = { 0 };
	uint32_t records = size ? data[0] : 0, events = 0, left;
	_cleanup_free_ uint8_t *payload = malloc(sizeof(extents) + size);

	if (!payload || !size || size > 32768 || 7 * records + 1 > size)
		return;
	for (uint32_t i = 1; i <= records; i++)
		events += data[i] != RT_SPOOL_LANE_VERBATIM;
	extents[RT_SPOOL_LANE].bytes = records;
	for (int i = RT_SPOOL_SITE_LO; i <= RT_SPOOL_TIME_HI; i++)
		extents[i].bytes = events;
	left = (uint32_t)size - 1 - records - 5 * events;
	for (int i = RT_SPOOL_TIME_FAR; i < RT_SPOOL_VERBATIM; i++)
		extents[i].bytes = left / 10;
	extents[RT_SPOOL_VERBATIM].bytes = left - left / 10 * 9;
	for (int i = 0; i < RT_SPOOL_COLUMNS; i++)
		extents[i].stored = extents[i].bytes;
	memcpy(payload, extents, sizeof(extents));
	memcpy(payload + sizeof(extents), data + 1, size - 1);
	read_payload(rt_bytes_make(payload, sizeof(extents) + size - 1), records, NULL);
}

/* Each four bytes change one field of the last event: which, two bytes of value, how far these are shifted. */
static void next_event(struct rt_wire_event *e, const uint8_t *data)
{
	void *const fields[] = { &e->head.op, &e->head.seq, &e->head.time_ns, &e->head.pid, &e->head.tid,
				 &e->object,  &e->aux,      &e->sp,           &e->count,    &e->point,
				 &e->stack,   &e->delta,    &e->flags };
	static const size_t sizes[] = { 1, 4, 8, 4, 4, 8, 8, 8, 4, 4, 4, 2, 2 };
	uint64_t value = (uint64_t)(data[1] | data[2] << 8) << data[3] % 64;

	e->head.size = sizeof(*e);
	e->head.kind = RT_WIRE_EVENT;
	e->head.seq++;
	if (data[0] < sizeof(sizes) / sizeof(*sizes))
		memcpy(fields[data[0]], &value, sizes[data[0]]);
}

/* Each event of the script there and back. */
static void round_trip(const uint8_t *data, size_t size)
{
	size_t count = size / 4;
	_cleanup_free_ struct rt_wire_event *events = calloc(count + 1, sizeof(*events));
	struct rt_wire_event e = { 0 };
	struct rt_bytes payload;

	if (!events || count > RT_SPOOL_RECORDS_MAX)
		return;
	for (size_t i = 0; i < count; i++) {
		next_event(&e, data + 4 * i);
		events[i] = e;
		if (!rt_spool_encoder_add(encoder, &events[i].head))
			abort();
	}
	if (rt_spool_encoder_finish(encoder, &payload))
		abort();
	read_payload(payload, (uint32_t)count, events);
}

/* A file of them, of small chunks. */
static void write_file(const void *records, size_t size)
{
	static const char *const command[] = { "prog", "-x", NULL };
	_cleanup_(rt_spool_writer_destroyp) struct rt_spool_writer *writer = NULL;
	_cleanup_(rt_sink_deinit) struct rt_sink sink;

	rt_sink_init_memory(&sink);
	if (rt_spool_writer_create(&sink, command, &writer))
		return;
	for (size_t at = 0, n = 1; at < size; n++) {
		const struct rt_wire_head *h = (const void *)((const uint8_t *)records + at);
		struct rt_event_sink *to = rt_spool_writer_sink(writer);

		if (to->record(to, h) || (n % 8 == 0 && rt_spool_writer_flush(writer)))
			abort();
		at += h->size;
	}
	if (rt_spool_writer_end(writer, 256))
		abort();
	read_all(sink.buffer, sink.len);
}

/* As many records as are valid. */
static void any_records(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint64_t *copy = malloc(size + 8);
	struct rt_bytes payload;
	uint32_t count = 0;
	size_t at = 0;

	if (!copy || !size)
		return;
	memcpy(copy, data, size);
	for (; at + 8 <= size; count++) {
		const struct rt_wire_head *h = (const void *)((const uint8_t *)copy + at);

		if (!rt_record_valid(h, size - at))
			break;
		if (!rt_spool_encoder_add(encoder, h))
			abort();
		at += h->size;
	}
	if (rt_spool_encoder_finish(encoder, &payload))
		abort();
	read_payload(payload, count, NULL);
	if (data[size - 1] & 1)
		write_file(copy, at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 8 && !memcmp(data, RT_SPOOL_MAGIC, 8)) {
		read_file(data, size);
		return 0;
	}
	read_all(data, size);
	if (!size || !get_coders())
		return 0;
	switch (data[0] % 4) {
	case 0:
		read_payload(rt_bytes_make(data + 1, size - 1), size > 1 ? data[1] : 0, NULL);
		break;
	case 1:
		read_columns(data + 1, size - 1);
		break;
	case 2:
		round_trip(data + 1, size - 1);
		break;
	default:
		any_records(data + 1, size - 1);
		break;
	}
	return 0;
}
