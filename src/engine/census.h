/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Census: who still points to the live objects of a stopped process, and what
 * their counters say. Conservative scan of writable memory from its roots
 * (module data, thread stacks and registers, TLS), through reachable heap
 * memory. Yields HELD and COUNT records, so it can be recorded and replayed.
 */
#pragma once

#include "event/stream.h"

struct rt_census_object {
	uint64_t address;
	uint32_t size;          /* 0 = unknown; of a struct: what points into it is aligned */
	int32_t counter_offset; /* RT_COUNTER_UNKNOWN: not read */
	uint32_t counter_size;
	/* Memory as the kernel hands it out: a module's data and the allocator's blocks in it are not its own. */
	bool range;
};

struct rt_census_options {
	uint64_t max_bytes; /* memory to look at; beyond it the census is given up; 0 = 4 GiB */
	const int *tids;    /* stopped threads whose stacks and registers are roots */
	size_t tid_count;
	/* Per tid: where its live stack starts, when that is known to be above its sp (the frames
	 * of exit() overlay dead ones); 0 = at sp. NULL: none is known. */
	const uint64_t *stack_from;
};

/*
 * Looks through process pid (every thread stopped or gone; /proc/PID/mem must be
 * readable). Objects need not be sorted. For each object one COUNT (where its counter is
 * known) and HELD records: one per kind of holder with its number of pointers; an
 * object that nobody reaches gets one HELD with RT_HOLDER_NONE. What only an unreached object
 * leads to is held by that one (RT_HOLDER_OBJECT). Where the allocator has its memory back, that is said instead
 * (RT_HOLDER_FREED). Objects that are no addresses in writable memory get no HELD, but for ranges of other memory
 * (mapped files) whose size is told. A MARK (RT_MARK_CENSUS) closes it; RT_MARK_CENSUS_SKIPPED when it was given up.
 */
RT_CHECK struct rt_error *rt_census(uint32_t pid, uint32_t wire_pid, uint64_t time_ns,
				    const struct rt_census_object *objects, size_t count,
				    const struct rt_census_options *options, struct rt_event_sink *sink);
