/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A side source: something that yields records beside the engine of a session
 * (the CPU sampler, the watcher of BPF programs, a control fifo). The session
 * calls it from its one thread:
 *
 *     start -> drain... -> stop        restate: between two drains
 *
 * Members that are NULL are not called. An error ends the run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/stream.h"

/* Whom the session records: plain pids. */
struct rt_side_target {
	const uint32_t *pids;
	size_t count;
	bool launched; /* the one pid waits before its exec; false: they run already */
};

struct rt_side_source {
	/* Once, before the launched program runs, or when the running ones are known. count 0: the whole system. */
	struct rt_error *(*start)(struct rt_side_source *self, const struct rt_side_target *target,
				  struct rt_event_sink *sink);
	/* Hands every record that waits to sink; never blocks. Called often: cheap when there is nothing. */
	struct rt_error *(*drain)(struct rt_side_source *self, struct rt_event_sink *sink);
	/* A new file begins: says again what a reader of that file alone needs. */
	struct rt_error *(*restate)(struct rt_side_source *self, struct rt_event_sink *sink);
	/* The end: the last records. Called once after a successful start. */
	struct rt_error *(*stop)(struct rt_side_source *self, struct rt_event_sink *sink);
	int fd; /* may be polled: readable when drain() is worth a call; -1: by timer (<= 100 ms) only */
};
