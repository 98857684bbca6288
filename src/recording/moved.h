/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Samples that hold the values of counters (PERF_SAMPLE_READ, as perf record -e '{a,b}:S' makes them) say how far each
 * counter of the group is, not what the sample stands for. As perf does, a sample is made for each counter that has
 * moved since it was last read, of that counter's event, with what it moved by as its period.
 */
#pragma once

#include "base/map.h"
#include "perfdata/reader.h"

/* Zero is valid: nothing was read yet. */
struct rt_moved {
	struct rt_map last; /* (id, thread of an inherited counter, or 0) -> value */
};

void rt_moved_deinit(struct rt_moved *moved);

/*
 * Calls give for each sample that record, a sample of an event with PERF_SAMPLE_READ, stands for; in time order.
 * Counters that no event of the reader has are left out. record is changed meanwhile. Errors: give's, RT_E_NOMEM.
 */
RT_CHECK struct rt_error *rt_moved_give(struct rt_moved *moved, const struct rt_perf_reader *reader,
					struct rt_perf_record *record,
					struct rt_error *(*give)(void *arg, const struct rt_perf_record *record),
					void *arg);
