/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lifetimes of a recording as an .events text (reftrace.events(5)): what engine text reads back gives the same
 * findings. Pure: records in the order of the stream in, lines to a sink out. Memory grows with distinct stacks.
 */
#pragma once

#include "base/sink.h"
#include "event/names.h"
#include "event/stream.h"

struct rt_events;

/* namer must outlive the writer; it has to know the mappings of a stack when its first event comes. */
RT_CHECK struct rt_error *rt_events_create(struct rt_namer *namer, struct rt_events **ret);
void rt_events_destroy(struct rt_events *events);
RT_CLEANUP(struct rt_events *, rt_events_destroy);

/* Writes the lines of one record; kinds that are no part of lifetimes give none. */
RT_CHECK struct rt_error *rt_events_record(struct rt_events *events, const struct rt_wire_head *record,
					   struct rt_sink *sink);
