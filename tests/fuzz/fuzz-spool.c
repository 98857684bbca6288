/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The spool on foreign bytes. What starts as a file does is read as one, as it is and with its checksums put right.
 * Else the first byte says what the rest is: a payload whose headers and checksums are right; columns whose lengths
 * fit, too, which chance would not find; a script of events that must come back as they were; records for the verbatim
 * column of a file with a command line. One way for each input, as most of the time goes into making a reader.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "capture/layout.h"
#include "capture/spool.h"

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

static void read_repaired(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *copy = malloc(size);

	if (!copy || size < sizeof(struct rt_spool_header))
		return;
	memcpy(copy, data, size);
	repair(copy, size);
	/* else it was read already */
	if (memcmp(copy, data, size) != 0)
		read_all(copy, size);
}

/* A file of one chunk with this payload. */
static void read_payload(const uint8_t *data, size_t size, uint32_t records)
{
	struct rt_spool_header head = { .magic = RT_SPOOL_MAGIC,
					.order = RT_SPOOL_ORDER,
					.version = RT_SPOOL_VERSION,
					.pointer_bytes = sizeof(void *),
					.size = sizeof(head) };
	struct rt_spool_chunk chunk = { .magic = RT_SPOOL_CHUNK_MAGIC, .number = 1 };
	_cleanup_free_ uint8_t *file = malloc(sizeof(head) + sizeof(chunk) + size);

	if (!file)
		return;
	chunk.records = records;
	chunk.payload_bytes = (uint32_t)size;
	memcpy(file, &head, sizeof(head));
	memcpy(file + sizeof(head), &chunk, sizeof(chunk));
	if (size)
		memcpy(file + sizeof(head) + sizeof(chunk), data, size);
	repair(file, sizeof(head) + sizeof(chunk) + size);
	read_all(file, sizeof(head) + sizeof(chunk) + size);
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
	read_payload(payload, sizeof(extents) + size - 1, records);
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

/* Writes the script's events, each at least once, and reads them back. */
static void round_trip(const uint8_t *data, size_t size)
{
	_cleanup_(rt_spool_writer_destroyp) struct rt_spool_writer *writer = NULL;
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;
	_cleanup_(rt_sink_deinit) struct rt_sink sink;
	struct rt_wire_event e = { 0 };
	const struct rt_wire_head *h;

	rt_sink_init_memory(&sink);
	if (rt_spool_writer_create(&sink, NULL, &writer))
		return;
	for (size_t i = 0; i + 4 <= size; i += 4) {
		struct rt_event_sink *to = rt_spool_writer_sink(writer);

		next_event(&e, data + i);
		if (to->record(to, &e.head))
			abort();
	}
	if (rt_spool_writer_end(writer, 0) ||
	    rt_spool_reader_create(rt_bytes_make(sink.buffer, sink.len), "fuzz", &reader))
		abort();
	e = (struct rt_wire_event){ 0 };
	for (size_t i = 0; i + 4 <= size; i += 4) {
		struct rt_source *source = rt_spool_reader_source(reader);

		next_event(&e, data + i);
		if (source->next(source, &h) || !h || memcmp(h, &e, sizeof(e)))
			abort();
	}
}

/* Records of other kinds through writer and reader: what is valid comes back as it was. */
static void other_records(const uint8_t *data, size_t size)
{
	static const char *const command[] = { "prog", "-x", NULL };
	_cleanup_(rt_spool_writer_destroyp) struct rt_spool_writer *writer = NULL;
	_cleanup_free_ uint64_t *copy = malloc(size + 8);
	_cleanup_(rt_sink_deinit) struct rt_sink sink;

	rt_sink_init_memory(&sink);
	if (!copy || rt_spool_writer_create(&sink, command, &writer))
		return;
	memcpy(copy, data, size);
	for (size_t at = 0; at + 8 <= size;) {
		const struct rt_wire_head *h = (const void *)((const uint8_t *)copy + at);
		struct rt_event_sink *to = rt_spool_writer_sink(writer);

		if (!rt_record_valid(h, size - at))
			break;
		if (to->record(to, h))
			abort();
		at += h->size;
		if (data[size - 1] & 1 && rt_spool_writer_flush(writer))
			abort();
	}
	if (rt_spool_writer_end(writer, 256))
		abort();
	read_all(sink.buffer, sink.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 8 && !memcmp(data, RT_SPOOL_MAGIC, 8)) {
		read_all(data, size);
		read_repaired(data, size);
		return 0;
	}
	switch (size ? data[0] % 4 : 4) {
	case 0:
		read_payload(data + 1, size - 1, size > 1 ? data[1] : 0);
		break;
	case 1:
		read_columns(data + 1, size - 1);
		break;
	case 2:
		round_trip(data + 1, size - 1);
		break;
	case 3:
		other_records(data + 1, size - 1);
		break;
	default:
		break;
	}
	read_all(data, size);
	return 0;
}
