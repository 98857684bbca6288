/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The order of gets and puts inside perf.data.
 *
 * A sample repeats its whole callchain, so a file is small when samples of one call site by one thread stand behind
 * each other: then only time, object, count and number differ, and the rest is one long match for zstd. perf orders
 * by time itself. What it cannot give back is the order in which the session yielded events: producers hand in theirs
 * a little late, and some have the same time. So each event says how far it stood from its place by time
 * (struct rt_reftrace_place), which is nearly always 0.
 *
 * One batch is full of events or ended by any other record of the stream. Inside recording/.
 */
#pragma once

#include "base/vec.h"
#include "perfdata/reftrace_events.h"
#include "wire/event.h"

/*
 * Larger ones make smaller files, but perf sorts by walking along a list, the longer the batch. Reference workload
 * (`./dev bench spool`), bytes an event and time of `perf script` for it, beside no batches at all: 4096 16.4 and
 * 1.1 times, 8192 14.5 and 1.25 times, 16384 13.2 and 1.5 times.
 */
#define RT_BATCH_MAX 8192

/* All zeroes is an empty one. */
struct rt_batch {
	RT_VEC(struct rt_wire_event) events; /* as they were added */
	RT_VEC(int16_t) turns;               /* of each; kept by whoever reads */
	uint32_t number;                     /* of this batch */
	uint16_t order[RT_BATCH_MAX];        /* of events: as they are to be given out */
	int16_t turn[RT_BATCH_MAX];          /* for each of order */
	uint16_t spare[RT_BATCH_MAX], rank[RT_BATCH_MAX];
	uint64_t keys[RT_BATCH_MAX];
};

static inline bool rt_batch_full(const struct rt_batch *batch)
{
	return batch->events.len == RT_BATCH_MAX;
}

/* Empty again; memory is kept. */
void rt_batch_clear(struct rt_batch *batch);
void rt_batch_deinit(struct rt_batch *batch);

/* Events are in the stream's order: order becomes the file's, turn what each has to say. */
void rt_batch_to_file(struct rt_batch *batch);

/*
 * Events and turns are in the file's order: order becomes the stream's. false: turns contradict each other (events
 * are missing, or damaged); then order is that of time.
 */
bool rt_batch_to_stream(struct rt_batch *batch);
