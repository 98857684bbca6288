/* SPDX-License-Identifier: GPL-2.0-only */
/* Any bytes as a recording, spool or perf.data: drained to all takers, and a spool made perf.data, without fault. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recording/recording.h"
#include "recording/to_perf.h"

enum { RECORDS_MAX = 20000 };

struct taker {
	struct rt_recording_sink sink;
	unsigned records;
};

static struct rt_error *count(struct rt_recording_sink *self)
{
	struct taker *t = (struct taker *)(void *)self;

	return ++t->records > RECORDS_MAX ? rt_error_new(RT_E_LIMIT, "enough") : NULL;
}

static struct rt_error *wire(struct rt_recording_sink *self, const struct rt_wire_head *record)
{
	/* whatever the bytes are, what comes out is sound */
	if (!rt_record_valid(record, record->size))
		abort();
	return count(self);
}

static struct rt_error *perf(struct rt_recording_sink *self, const struct rt_perf_event *events,
			     const struct rt_perf_record *record)
{
	return count(self);
}

static void convert(struct rt_bytes bytes)
{
	const struct rt_to_perf_options how[] = { { .version = "fuzz", .zstd_level = 1 },
						  { .pipe = true, .kallsyms = { (const uint8_t *)"", 0 } } };

	for (size_t i = 0; i < sizeof(how) / sizeof(*how); i++) {
		uint8_t header[RT_PERF_HEADER_BYTES];
		struct rt_to_perf_result result;
		struct rt_sink sink;
		struct rt_error *err;

		rt_sink_init_memory(&sink);
		err = rt_to_perf(bytes, "fuzz", &how[i], &sink, header, &result);
		rt_error_free(err);
		free(result.damage);
		rt_sink_deinit(&sink);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct taker t = { .sink = { .wire = wire, .side = wire, .perf = perf, .all = true } };
	struct rt_recording *recording = NULL;
	struct rt_error *err = rt_recording_open(rt_bytes_make(data, size), "fuzz", &recording);

	if (!err)
		err = rt_recording_drain(recording, &t.sink);
	if (recording && !strcmp(rt_recording_info(recording).format, "spool"))
		convert(rt_bytes_make(data, size));
	rt_error_free(err);
	rt_recording_close(recording);
	return 0;
}
