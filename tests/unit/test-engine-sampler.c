/* SPDX-License-Identifier: GPL-2.0-only */
/* The sampler on this very process, user code only: an ordinary user may do that. */
#include "test.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "engine/sampler.h"
#include "event/blob.h"

enum { TYPES = 96 };

struct seen {
	struct rt_event_sink sink;
	unsigned attrs, ids, comm, host, formats;
	unsigned types[TYPES];
	uint64_t code_samples, maps_self, last_type;
	struct perf_event_attr attr;
	char host_text[8192];
};

static volatile unsigned long work_done;

__attribute__((noinline)) static void work(void)
{
	for (unsigned i = 0; i < 200000; i++)
		work_done += i;
}

static void take_perf(struct seen *s, const struct rt_wire_perf *perf, unsigned size)
{
	struct perf_event_header header;
	uint64_t ip;

	memcpy(&header, perf->data, sizeof(header));
	assert_true(header.size <= size - sizeof(*perf));
	assert_true(header.type < TYPES);
	assert_true(perf->attr >= 1 && perf->attr <= s->attrs);
	s->types[header.type]++;
	s->last_type = header.type;
	if (header.type == PERF_RECORD_SAMPLE) {
		memcpy(&ip, perf->data + 16, sizeof(ip));
		s->code_samples += ip - (uintptr_t)work < 128;
		assert_int_equal(perf->head.pid, getpid());
		assert_true(perf->head.time_ns != 0);
	} else if (header.type == PERF_RECORD_COMM) {
		s->comm++;
	} else if (header.type == PERF_RECORD_MMAP2) {
		uint64_t range[2];

		memcpy(range, perf->data + 16, sizeof(range));
		s->maps_self += (uintptr_t)work - range[0] < range[1];
	}
}

static struct rt_error *take(struct rt_event_sink *self, const struct rt_wire_head *record)
{
	struct seen *s = (struct seen *)(void *)self;

	assert_true(rt_record_valid(record, record->size));
	if (record->kind == RT_WIRE_ATTR) {
		const struct rt_wire_attr *attr = (const struct rt_wire_attr *)(const void *)record;

		s->attrs = attr->id;
		s->ids += attr->ids;
		if (attr->id == 1)
			memcpy(&s->attr, attr->data, sizeof(s->attr));
	} else if (record->kind == RT_WIRE_PERF) {
		take_perf(s, (const struct rt_wire_perf *)(const void *)record, record->size);
	} else if (record->kind == RT_WIRE_BLOB) {
		const struct rt_wire_blob *blob = (const struct rt_wire_blob *)(const void *)record;

		s->host += blob->what == RT_BLOB_HOST;
		s->formats += blob->what == RT_BLOB_TRACING_DATA;
		if (blob->what == RT_BLOB_HOST && blob->bytes < sizeof(s->host_text))
			memcpy(s->host_text, blob->data, blob->bytes);
	}
	return NULL;
}

static const char *const cpu_clock[] = { "cpu-clock:u" };

static struct rt_sampler_options options(void)
{
	return (struct rt_sampler_options){
		.events = cpu_clock, .event_count = 1, .frequency = 1000, .call_graph = true, .root_fd = AT_FDCWD
	};
}

/* Sandboxes may forbid perf_event_open: nothing to test then. */
static void need_perf(void)
{
	struct rt_sampler_options o = options();
	struct rt_error *err = rt_sampler_probe(&o);

	if (!err)
		return;
	print_message("skipped: %s\n", err->message);
	rt_error_free(err);
	skip();
}

TEST(samples_this_process)
{
	struct rt_sampler_options o = options();
	uint32_t pid = (uint32_t)getpid();
	struct rt_side_target target = { &pid, 1, false };
	struct seen seen = { .sink = { take } };
	struct rt_sampler_stats stats;
	struct rt_sampler *s = NULL;
	unsigned rounds;

	need_perf();
	assert_ok(rt_sampler_open(&o, &s));
	assert_string_equal(rt_sampler_names(s), "cpu-clock:u");
	assert_ok(rt_sampler_start(s, &target, &seen.sink));
	assert_int_equal(seen.attr.size, 128);
	assert_true(seen.attr.use_clockid && seen.attr.clockid == CLOCK_MONOTONIC && seen.attr.sample_id_all);
	assert_true(seen.attr.freq && seen.attr.sample_freq == 1000 && seen.attr.exclude_kernel && seen.attr.inherit);
	assert_int_equal(seen.attr.sample_type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
							PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
							PERF_SAMPLE_CALLCHAIN);
	assert_true(seen.comm >= 1 && seen.maps_self == 1 && seen.host == 1 && seen.formats == 0);
	assert_non_null(strstr(seen.host_text, "clockid 1\n"));
	/* until there are ten, at most a thousand turns of the loop */
	for (unsigned i = 0; i < 1000 && seen.code_samples < 10; i++) {
		work();
		assert_ok(rt_sampler_drain(s, &seen.sink));
	}
	assert_true(seen.code_samples >= 10);
	rounds = seen.types[68];
	assert_true(rounds >= 1);
	assert_ok(rt_sampler_stop(s, &seen.sink));
	rt_sampler_stats(s, &stats);
	assert_int_equal(stats.samples, seen.types[PERF_RECORD_SAMPLE]);
	assert_int_equal(stats.lost, 0);
	assert_int_equal(stats.unreadable, 0);
	rt_sampler_close(s);
}

TEST(off_and_on)
{
	struct rt_sampler_options o = options();
	uint32_t pid = (uint32_t)getpid();
	struct rt_side_target target = { &pid, 1, false };
	struct seen seen = { .sink = { take } };
	struct rt_sampler *s = NULL;

	need_perf();
	o.delayed = true;
	assert_ok(rt_sampler_open(&o, &s));
	assert_ok(rt_sampler_start(s, &target, &seen.sink));
	for (unsigned i = 0; i < 50; i++)
		work();
	assert_ok(rt_sampler_drain(s, &seen.sink));
	assert_int_equal(seen.types[PERF_RECORD_SAMPLE], 0);
	rt_sampler_enable(s, true);
	for (unsigned i = 0; i < 1000 && !seen.types[PERF_RECORD_SAMPLE]; i++) {
		work();
		assert_ok(rt_sampler_drain(s, &seen.sink));
	}
	assert_true(seen.types[PERF_RECORD_SAMPLE] > 0);
	assert_ok(rt_sampler_stop(s, &seen.sink));
	rt_sampler_close(s);
}

/* A full ring: what is missing is told, record by record of the rest or at the end. */
TEST(losses_are_told)
{
	struct rt_sampler_options o = options();
	uint32_t pid = (uint32_t)getpid();
	struct rt_side_target target = { &pid, 1, false };
	struct seen seen = { .sink = { take } };
	struct rt_sampler_stats stats;
	struct rt_sampler *s = NULL;

	need_perf();
	o.ring_bytes = 4096;
	o.frequency = 10000;
	assert_ok(rt_sampler_open(&o, &s));
	assert_ok(rt_sampler_start(s, &target, &seen.sink));
	for (unsigned i = 0; i < 200; i++)
		work();
	assert_ok(rt_sampler_stop(s, &seen.sink));
	rt_sampler_stats(s, &stats);
	assert_true(seen.types[PERF_RECORD_LOST] > 0);
	assert_true(stats.lost > 0);
	rt_sampler_close(s);
}

TEST(refusals)
{
	struct rt_sampler_options o = options();
	struct rt_sampler *s = NULL;
	uint32_t pid = 0x3ffffe;
	struct rt_side_target target = { &pid, 1, false };
	struct seen seen = { .sink = { take } };

	need_perf();
	o.frequency = UINT64_C(1) << 40;
	assert_code(rt_sampler_open(&o, &s), RT_E_USAGE);
	o = options();
	assert_ok(rt_sampler_open(&o, &s));
	assert_code(rt_sampler_start(s, &target, &seen.sink), RT_E_NO_PROCESS);
	rt_sampler_close(s);
}

TEST_MAIN();
