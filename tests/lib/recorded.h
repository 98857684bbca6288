/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes perf.data files for tests, and asks perf about them. */
#pragma once

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "perfdata/reftrace_events.h"
#include "perfdata/writer.h"

#include "built.h"

/* A literal for the char * of struct rt_perf_header. */
#define TEXT(literal) ((char *)(uintptr_t)(literal))

#define RECORDED_SAMPLE_TYPE \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
	 PERF_SAMPLE_PERIOD)

struct recorded {
	char *path;
	int fd;
	struct rt_sink sink;
	struct rt_perf_writer *writer;
};

static inline struct recorded *recorded_open(const char *name, const struct rt_perf_writer_options *options)
{
	struct recorded *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->path = built_path(name);
	r->fd = open(r->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(r->fd >= 0);
	rt_sink_init_fd(&r->sink, r->fd, r->path);
	assert_ok(rt_perf_writer_create(&r->sink, options, &r->writer));
	/* newer perfs ask for it */
	assert_ok(
		rt_perf_writer_features(r->writer, &(struct rt_perf_header){ .cpus_available = 4, .cpus_online = 4 }));
	return r;
}

/* Ends the file; its path is the caller's. */
static inline char *recorded_close(struct recorded *r)
{
	char *path = r->path;
	struct rt_bytes header;

	assert_ok(rt_perf_writer_end(r->writer));
	assert_ok(rt_sink_end(&r->sink));
	header = rt_perf_writer_header(r->writer);
	assert_int_equal(pwrite(r->fd, header.data, header.size, 0), header.size);
	rt_perf_writer_destroy(r->writer);
	rt_sink_deinit(&r->sink);
	close(r->fd);
	free(r);
	return path;
}

/* A software event (cpu-clock) with one id. */
static inline struct rt_perf_event recorded_clock(uint64_t *id, uint64_t more_fields)
{
	return (struct rt_perf_event){
		.attr = { .type = PERF_TYPE_SOFTWARE,
			  .size = sizeof(struct perf_event_attr),
			  .config = PERF_COUNT_SW_CPU_CLOCK,
			  .sample_period = 1000000,
			  .sample_type = RECORDED_SAMPLE_TYPE | more_fields,
			  .read_format = PERF_FORMAT_ID,
			  .sample_id_all = 1,
			  .mmap = 1,
			  .mmap2 = 1,
			  .comm = 1,
			  .task = 1,
			  .ksymbol = 1,
			  .bpf_event = 1,
			  .use_clockid = 1,
			  .clockid = CLOCK_MONOTONIC },
		.ids = id,
		.id_count = 1,
		.name = (char *)(uintptr_t) "cpu-clock",
	};
}

/* What every record says about its time and task. */
static inline struct rt_perf_record recorded_at(uint32_t type, unsigned event, uint64_t time_ns, uint32_t pid,
						uint32_t tid)
{
	return (struct rt_perf_record){
		.type = type,
		.misc = RT_PERF_USER,
		.event = event,
		.id = { .time_ns = time_ns, .pid = pid, .tid = tid, .cpu = 1, .has_time = true },
	};
}

/* What perf prints on stdout, blanks squeezed; its stderr must be empty. Caller frees. */
static inline char *recorded_ask(const char *perf, const char *words)
{
	char *out = built_output("%s %s 2>stderr | tr -s ' \\t' ' '", perf, words);
	/* said about every file when fields are chosen for all kinds of event at once */
	char *complaints = built_output("grep -v \"^'trace' not valid for\" stderr");

	if (complaints[0])
		fail_msg("%s %s: %s", perf, words, complaints);
	free(complaints);
	return out;
}

static inline unsigned recorded_count(const char *text, const char *needle)
{
	unsigned n = 0;

	for (const char *p = strstr(text, needle); p; p = strstr(p + 1, needle))
		n++;
	return n;
}

static inline void recorded_says(const char *text, const char *needle)
{
	if (strstr(text, needle))
		return;
	fprintf(stderr, "%s", text); /* larger than cmocka's messages may be */
	fail_msg("there is no '%s' in it", needle);
}

/* The perf that is installed, and $RT_PERF_TOO (a newer one, say); NULL at the end. */
static inline const char *const *recorded_perfs(void)
{
	static const char *perfs[3];
	const char *too = getenv("RT_PERF_TOO");

	perfs[0] = "perf";
	perfs[1] = too && too[0] ? too : NULL;
	return perfs;
}
