/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a record needs whose turn comes soon (order.c): fetched in steps, first what tells where the rest is. All of it
 * is a guess. Any thread; no state. All are inlined: gcc takes a function that only fetches for one without effects,
 * and leaves out calls of it.
 */
#pragma once

#include "lifetime/state.h"

/* of the key of its object in by_object */
static inline __attribute__((always_inline)) uint32_t lt_fetch_hash(const struct rt_lifetime *lt,
								    const struct rt_wire_event *e)
{
	uint32_t type = e->point < LT_POINTS_KNOWN ? lt->type_of_point[e->point] : 0;

	return lt_index_hash(e->object, e->head.pid, type - 1);
}

static inline __attribute__((always_inline)) void lt_fetch_lines(const void *at, size_t size)
{
	const char *end = (const char *)at + size;

	for (const char *line = at; line < end; line += LT_LINE)
		__builtin_prefetch(line, 1);
	/* what does not begin with a line may end in one more */
	if (size % LT_LINE)
		__builtin_prefetch(end - 1, 1);
}

/* NULL = not known */
static inline __attribute__((always_inline)) const struct lt_inc *lt_fetch_life(const struct rt_lifetime *lt,
										uint32_t hash)
{
	const uint32_t ref = lt->by_object.len ? lt_index_guess(&lt->by_object, hash) : 0;
	const void *life;

	if (!ref)
		return NULL;
	life = rt_slab_at(&lt->slabs, ref & ~LT_PACKED);
	lt_fetch_lines(life, offsetof(struct lt_inc, before));
	return ref & LT_PACKED ? NULL : life;
}

/* where an event will be put down */
static inline __attribute__((always_inline)) void lt_fetch_ledger(const struct lt_inc *inc, int16_t delta)
{
	/* that a life ends nobody can predict: no branch, what is fetched otherwise is there already */
	const void *rest = inc->balance + delta <= 0 ? (const void *)&inc->before : inc;

	if (inc->life == LT_LIVE) {
		lt_fetch_lines(&inc->ledger[inc->nr], sizeof(*inc->ledger));
		lt_fetch_lines(rest, sizeof(*inc) - offsetof(struct lt_inc, before));
		return;
	}
	/* where the next life at its address will most likely lie */
	if (inc->before)
		lt_fetch_lines(inc->before, sizeof(*inc->before));
}

/* the ledger that is paired when the next life at the address of inc begins; NULL: inc lives */
static inline __attribute__((always_inline)) const void *lt_fetch_past(const struct lt_inc *inc, size_t *ret_bytes)
{
	if (inc->life == LT_LIVE)
		return NULL;
	/* the next life at its address begins, and this one is paired */
	lt_fetch_lines(&inc->before, sizeof(*inc) - offsetof(struct lt_inc, before));
	*ret_bytes = inc->nr * sizeof(*inc->ledger);
	return inc->ledger;
}
