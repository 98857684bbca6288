/* SPDX-License-Identifier: GPL-2.0-only */
/* Counting mode: what engines have counted of processes that are over, as records, until they are told. */
#pragma once

#include "base/vec.h"
#include "event/stream.h"
#include "wire/probe.h"

struct rt_counted {
	RT_VEC(struct rt_wire_head *) records; /* owned */
	bool nomem;                            /* something could not be kept: told by rt_counted_say() */
};

/* An object, to be filled: RT_TALLY_SITES sites have room. NULL: out of memory. */
struct rt_wire_tally *rt_counted_tally(struct rt_counted *c, uint32_t wire_pid, uint64_t object, uint32_t type);
/* One more of its sites, for which there has to be room. */
void rt_counted_tally_site(struct rt_wire_tally *t, struct rt_wire_counted site);
RT_CHECK struct rt_error *rt_counted_site(struct rt_counted *c, uint32_t wire_pid, struct rt_wire_counted all,
					  enum rt_counted_what what);
/* Hands on what is kept, and drops it. */
RT_CHECK struct rt_error *rt_counted_say(struct rt_counted *c, struct rt_event_sink *sink);
void rt_counted_drop(struct rt_counted *c);
