/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Any bytes as a recording of either format: opened, asked, given out to all takers twice, named. What starts as
 * neither format is a list of wire records, which become a spool of right checksums; that is made perf.data, too, and
 * what came out is read.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "capture/layout.h"
#include "event/stream.h"
#include "maps/maps.h"
#include "recording/recording.h"
#include "recording/to_perf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORDS_MAX = 5000 };

static volatile size_t seen;

struct takers {
	struct rt_recording_sink sink;
	struct rt_event_sink side;
	unsigned records;
};

static struct rt_error *enough(struct takers *t)
{
	return ++t->records > RECORDS_MAX ? rt_error_new(RT_E_LIMIT, "enough") : NULL;
}

static struct rt_error *check(struct takers *t, const struct rt_wire_head *record)
{
	if ((uintptr_t)record % 8 || !rt_record_valid(record, record->size))
		abort();
	return enough(t);
}

static struct rt_error *take_wire(struct rt_recording_sink *self, const struct rt_wire_head *record)
{
	return check((struct takers *)(void *)self, record);
}

static struct rt_error *take_side(struct rt_event_sink *self, const struct rt_wire_head *record)
{
	return check((struct takers *)(void *)((char *)self - offsetof(struct takers, side)), record);
}

static struct rt_error *take_perf(struct rt_recording_sink *self, const struct rt_perf_event *events,
				  const struct rt_perf_record *record)
{
	if (record->type == RT_PERF_SAMPLE)
		seen += events[record->event].attr.type;
	seen += record->bytes.data[record->bytes.size - 1];
	return enough((struct takers *)(void *)self);
}

static void ask(const struct rt_recording *recording)
{
	struct rt_recording_info info = rt_recording_info(recording);
	const struct rt_bpf_image *const *images;
	const char *const *lost;
	size_t count;

	for (const char *const *word = info.command; word && *word; word++)
		seen += strlen(*word);
	seen += info.header->arch ? strlen(info.header->arch) : 0;
	seen += strlen(info.format) + (rt_recording_damage(recording) ? strlen(rt_recording_damage(recording)) : 0);
	images = rt_recording_bpf(recording, &count);
	for (size_t i = 0; i < count; i++)
		seen += images[i]->function_count;
	count = rt_recording_bpf_lost(recording, &lost);
	for (size_t i = 0; i < count; i++)
		seen += strlen(lost[i]);
}

static void read_all(struct rt_bytes bytes)
{
	_cleanup_(rt_maps_destroyp) struct rt_maps *maps = NULL;
	/* the draining unwinds copied stacks with it; without maps it opens no file */
	_cleanup_(rt_chain_destroyp) struct rt_chain *chain = NULL;
	_cleanup_(rt_recording_closep) struct rt_recording *recording = NULL;
	_cleanup_error_ struct rt_error *err = rt_recording_open(bytes, "fuzz", &recording);
	int status;

	if (!err)
		err = rt_maps_create(&maps);
	if (!err)
		err = rt_chain_create(maps, NULL, &chain);
	if (err)
		return;
	ask(recording);
	rt_error_free(rt_recording_code(recording, chain));
	for (int again = 0; again < 2; again++) {
		struct takers t = { .sink = { .wire = take_wire, .perf = take_perf, .all = again },
				    .side = { take_side } };

		t.sink.side = &t.side;

		rt_error_free(rt_recording_drain(recording, &t.sink));
		ask(recording);
		seen += rt_recording_status(recording, &status) + rt_recording_unwound(recording).samples;
	}
}

/* The first byte: options of the conversion. */
static struct rt_error *convert(struct rt_bytes spool, uint8_t flags)
{
	static const char kallsyms[] =
		"ffffffff81000000 T _text\nffffffff81000100 t near [mod]\n0 T hidden\n"
		"ffffffff81000080 T __bpf_call_base\n"
		"ffffffff81000100 T again\nffffffff81200000 d data\nffffffff81300000 t p\t[bpf]\n";
	const struct rt_to_perf_options options = { .version = "1",
						    .zstd_level = flags & 2 ? 1 : 0,
						    .pipe = flags & 4,
						    .kallsyms = { (const uint8_t *)kallsyms, sizeof(kallsyms) - 1 } };
	uint8_t header[RT_PERF_HEADER_BYTES];
	struct rt_to_perf_result result = { 0 };
	_cleanup_(rt_sink_deinit) struct rt_sink out;
	_cleanup_free_ uint8_t *copy = NULL; /* exactly as long as it is */
	struct rt_error *err;

	rt_sink_init_memory(&out);
	err = rt_to_perf(spool, "fuzz", &options, &out, header, &result);
	free(result.damage);
	RT_TRY(err);
	RT_TRY(rt_sink_end(&out));
	if (!options.pipe)
		memcpy(out.buffer, header, sizeof(header));
	copy = malloc(out.len);
	if (!copy)
		return rt_error_nomem();
	memcpy(copy, out.buffer, out.len);
	read_all(rt_bytes_make(copy, out.len));
	return NULL;
}

/* A spool of one chunk; every record stands in it as it is: fuzz-spool.c is where they are encoded. */
static void write_spool(struct rt_sink *sink, struct rt_bytes records, uint32_t count)
{
	static const char strings[8] = "prog\0-x";
	struct rt_spool_header head = { .magic = RT_SPOOL_MAGIC,
					.order = RT_SPOOL_ORDER,
					.version = RT_SPOOL_VERSION,
					.pointer_bytes = sizeof(void *),
					.size = sizeof(head) + sizeof(strings),
					.command_count = 2,
					.string_bytes = sizeof(strings) };
	struct rt_spool_extent extents[RT_SPOOL_COLUMNS] = {
		[RT_SPOOL_LANE] = { count, count ? 1 : 0 },
		[RT_SPOOL_VERBATIM] = { (uint32_t)records.size, (uint32_t)records.size },
	};
	struct rt_spool_chunk chunk = { .magic = RT_SPOOL_CHUNK_MAGIC, .number = 1, .records = count };
	struct rt_spool_chunk end = {
		.magic = RT_SPOOL_CHUNK_MAGIC, .flags = RT_SPOOL_END, .number = 2, .status = 256
	};
	uint8_t lane = RT_SPOOL_LANE_VERBATIM;
	uLong crc;

	crc = crc32(0, (const Bytef *)&head, sizeof(head));
	head.crc = (uint32_t)crc32(crc, (const Bytef *)strings, sizeof(strings));
	rt_sink_write(sink, &head, sizeof(head));
	rt_sink_write(sink, strings, sizeof(strings));
	chunk.payload_bytes = (uint32_t)(sizeof(extents) + extents[RT_SPOOL_LANE].stored + records.size);
	crc = crc32(0, (const Bytef *)extents, sizeof(extents));
	crc = crc32(crc, &lane, extents[RT_SPOOL_LANE].stored);
	chunk.payload_crc = (uint32_t)crc32(crc, records.data, (uInt)records.size);
	chunk.header_crc = (uint32_t)crc32(0, (const Bytef *)&chunk, offsetof(struct rt_spool_chunk, header_crc));
	rt_sink_write(sink, &chunk, sizeof(chunk));
	rt_sink_write(sink, extents, sizeof(extents));
	rt_sink_write(sink, &lane, extents[RT_SPOOL_LANE].stored);
	rt_sink_write(sink, records.data, records.size);
	end.header_crc = (uint32_t)crc32(0, (const Bytef *)&end, offsetof(struct rt_spool_chunk, header_crc));
	rt_sink_write(sink, &end, sizeof(end));
}

static void read_records(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint64_t *copy = malloc(size + 8);
	_cleanup_(rt_sink_deinit) struct rt_sink sink;
	_cleanup_free_ uint8_t *spool = NULL;
	uint32_t count = 0;
	size_t at = 0;

	rt_sink_init_memory(&sink);
	if (!copy || !size || size > RT_SPOOL_VERBATIM_MAX)
		return;
	memcpy(copy, data + 1, size - 1);
	for (; size - 1 - at >= 8 && count < RT_SPOOL_RECORDS_MAX; count++) {
		const struct rt_wire_head *h = (const void *)((const uint8_t *)copy + at);

		if (!rt_record_valid(h, size - 1 - at))
			break;
		at += h->size;
	}
	write_spool(&sink, rt_bytes_make(copy, at), count);
	/* exactly as long as it is: reading beyond it is seen by ASan */
	spool = sink.err ? NULL : malloc(sink.len);
	if (!spool)
		abort();
	memcpy(spool, sink.buffer, sink.len);
	/* most of the time goes into making readers: one way for each input */
	if (data[0] & 1)
		rt_error_free(convert(rt_bytes_make(spool, sink.len), data[0]));
	else
		read_all(rt_bytes_make(spool, sink.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 8 &&
	    (!memcmp(data, "PERFILE2", 8) || !memcmp(data, "2ELIFREP", 8) || !memcmp(data, "RTSPOOL", 7))) {
		read_all(rt_bytes_make(data, size));
		if (data[0] == 'R')
			rt_error_free(convert(rt_bytes_make(data, size), 2));
	} else {
		read_records(data, size);
	}
	return 0;
}
