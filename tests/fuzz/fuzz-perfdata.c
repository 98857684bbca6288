/* SPDX-License-Identifier: GPL-2.0-only */
/* Any bytes as perf.data: read in its own order and by time without fault; each record lies in what was read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata/reader.h"
#include "perfdata/tracing.h"

enum { RECORDS_MAX = 20000 };

/* Touches everything that a record points to. */
static uint64_t touch(const struct rt_perf_record *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->bytes.size; i++)
		sum += r->bytes.data[i];
	switch (r->type) {
	case RT_PERF_SAMPLE:
		for (uint64_t i = 0; i < r->sample.chain_count; i++)
			sum += r->sample.chain[i];
		for (unsigned i = 0; i < r->sample.user_reg_count; i++)
			sum += r->sample.user_regs[i];
		for (size_t i = 0; i < r->sample.raw.size; i++)
			sum += r->sample.raw.data[i];
		for (size_t i = 0; i < r->sample.user_stack_size; i++)
			sum += r->sample.user_stack.data[i];
		return sum + r->sample.read.size;
	case RT_PERF_MMAP:
	case RT_PERF_MMAP2:
		return sum + strlen(r->mmap.filename) + r->mmap.build_id_size;
	case RT_PERF_COMM:
		return sum + strlen(r->comm.comm);
	case RT_PERF_KSYMBOL:
		return sum + strlen(r->ksymbol.name);
	case RT_PERF_TEXT_POKE:
		return sum + r->poke.old.size + r->poke.new.size;
	default:
		return sum;
	}
}

static void print(const struct rt_perf_reader *reader, const struct rt_perf_record *r, struct rt_tracing **tracing)
{
	const struct rt_trace_event *event;
	const struct rt_perf_event *events;
	struct rt_sink out;
	size_t count;

	if (!*tracing)
		rt_error_free(rt_tracing_create(rt_perf_reader_header(reader)->tracing_data, tracing));
	events = rt_perf_reader_events(reader, &count);
	if (r->event >= count)
		abort();
	event = *tracing ? rt_tracing_event(*tracing, events[r->event].attr.config) : NULL;
	if (!event)
		return;
	rt_sink_init_memory(&out);
	rt_trace_print(*tracing, event, r->sample.raw, &out);
	rt_sink_deinit(&out);
}

static struct rt_error *read_all(struct rt_bytes bytes, bool by_time)
{
	_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
	_cleanup_(rt_perf_order_destroyp) struct rt_perf_order *order = NULL;
	_cleanup_(rt_tracing_destroyp) struct rt_tracing *tracing = NULL;
	static volatile uint64_t sum;

	RT_TRY(rt_perf_reader_create(bytes, "fuzz", &reader));
	RT_TRY(rt_perf_order_create(reader, &order));
	for (unsigned i = 0; i < RECORDS_MAX; i++) {
		struct rt_perf_record r;
		bool more;

		RT_TRY(by_time ? rt_perf_order_next(order, &r, &more) : rt_perf_reader_next(reader, &r, &more));
		if (!more)
			break;
		if (r.offset >= bytes.size || r.bytes.size < 8)
			abort();
		sum = sum + touch(&r);
		if (r.type == RT_PERF_SAMPLE && i < 100)
			print(reader, &r, &tracing);
	}
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	rt_error_free(read_all(rt_bytes_make(data, size), false));
	rt_error_free(read_all(rt_bytes_make(data, size), true));
	return 0;
}
