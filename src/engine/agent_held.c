/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/agent_held.h"

#include <stdlib.h>

static struct rt_agent_held_block *block_new(struct rt_agent_held_pool *pool)
{
	struct rt_agent_held_block *b = pool->spare;

	if (b) {
		pool->spare = b->next;
	} else if (pool->made < RT_AGENT_HELD_BLOCKS) {
		b = malloc(sizeof(*b));
		pool->made += b != NULL;
	}
	if (b)
		b->next = NULL;
	return b;
}

static void drop_first(struct rt_agent_held_pool *pool, struct rt_agent_held *held)
{
	struct rt_agent_held_block *b = held->first;

	held->first = b->next;
	held->told = 0;
	if (!held->first)
		held->last = NULL;
	b->next = pool->spare;
	pool->spare = b;
}

void rt_agent_held_take(struct rt_agent_held_pool *pool, struct rt_agent_held *held)
{
	const uint32_t nr = held->first == held->last ? held->filled : RT_AGENT_HELD_EVENTS;

	if (++held->told == nr)
		drop_first(pool, held);
}

struct rt_wire_event *rt_agent_held_add(struct rt_agent_held_pool *pool, struct rt_agent_held *held)
{
	if (!held->last || held->filled == RT_AGENT_HELD_EVENTS) {
		struct rt_agent_held_block *b = block_new(pool);

		if (!b)
			return NULL;
		if (held->last)
			held->last->next = b;
		else
			held->first = b;
		held->last = b;
		held->filled = 0;
	}
	return &held->last->event[held->filled++];
}

void rt_agent_held_clear(struct rt_agent_held_pool *pool, struct rt_agent_held *held)
{
	while (held->first)
		drop_first(pool, held);
}

void rt_agent_held_deinit(struct rt_agent_held_pool *pool)
{
	while (pool->spare) {
		struct rt_agent_held_block *b = pool->spare;

		pool->spare = b->next;
		free(b);
	}
	pool->made = 0;
}
