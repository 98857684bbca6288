/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events that wait outside of the rings: queues, one for each thread, over one pool of blocks, so that all together
 * never take more than RT_AGENT_HELD_BLOCKS. One thread uses them.
 */
#pragma once

#include "wire/event.h"

enum {
	RT_AGENT_HELD_EVENTS = 255, /* of a block: 16 KiB with its link */
	RT_AGENT_HELD_BLOCKS = 256, /* 4 MiB */
};

struct rt_agent_held_block {
	struct rt_wire_event event[RT_AGENT_HELD_EVENTS];
	struct rt_agent_held_block *next;
};

/* All zeroes: empty. */
struct rt_agent_held_pool {
	struct rt_agent_held_block *spare;
	uint32_t made; /* blocks in all */
};

/* All zeroes: empty. Blocks belong to it until they are empty. */
struct rt_agent_held {
	struct rt_agent_held_block *first, *last;
	uint32_t told, filled; /* of first's events; of last's */
};

/* The event that waits longest; NULL: none does. Valid until it is taken. */
static inline const struct rt_wire_event *rt_agent_held_next(const struct rt_agent_held *held)
{
	return held->first ? &held->first->event[held->told] : NULL;
}

/* Forgets the event that waits longest; there is one. */
void rt_agent_held_take(struct rt_agent_held_pool *pool, struct rt_agent_held *held);
/* Place for one more event behind all others, to be filled in; NULL: no memory is left for it, nothing changed. */
struct rt_wire_event *rt_agent_held_add(struct rt_agent_held_pool *pool, struct rt_agent_held *held);
/* Forgets all. */
void rt_agent_held_clear(struct rt_agent_held_pool *pool, struct rt_agent_held *held);
/* No queue uses it any more. */
void rt_agent_held_deinit(struct rt_agent_held_pool *pool);
