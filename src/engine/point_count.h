/* SPDX-License-Identifier: GPL-2.0-only */
/* What became of the hits of one point, over all CPUs or threads. */
#pragma once

#include "event/stream.h"
#include "wire/probe.h"

struct rt_point_count {
	struct rt_probe_count sum;
	uint64_t records; /* events handed on */
	uint64_t waiting; /* entries whose return the engine would have shown, had the function returned */
};

void rt_point_count_add(struct rt_point_count *count, const struct rt_probe_count *part);
/* Hits are events and drops. */
bool rt_point_count_balances(const struct rt_point_count *count);
/*
 * So many threads ended in a hook: takes hits that were not told of off count, and calls whose return was not seen, at
 * most *struck of both, and these off *struck. What a thread was about to do when it entered a hook it has not done.
 */
void rt_point_count_struck(struct rt_point_count *count, uint64_t *struck);
/* Returns that were not seen though they may have happened. */
uint64_t rt_point_count_missed(const struct rt_point_count *count);

/* A LOSS record of something that did not arrive, of now; nothing where value is 0. */
RT_CHECK struct rt_error *rt_point_say_loss(struct rt_event_sink *sink, enum rt_loss cause, uint32_t point,
					    uint64_t value, const char *text);
/* HITS and LOSS records of a point; full: what there was no room in; missed: why returns are not seen. */
RT_CHECK struct rt_error *rt_point_say(struct rt_event_sink *sink, uint32_t point, const struct rt_point_count *count,
				       const char *full, const char *missed);
