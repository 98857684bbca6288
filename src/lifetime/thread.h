/* SPDX-License-Identifier: GPL-2.0-only */
/* What each event does to its thread, where it comes from a plain stack after a plain one: thread.c knows the rest. */
#pragma once

#include "lifetime/lanes.h"
#include "lifetime/state.h"

/*
 * How many frames the two have in common, whose outermost frames stand at one place. A node stands for all outside of
 * it, too, so equal ones are counted: where they end nobody can predict. What fills up the last LT_NODES is equal to
 * none.
 */
static inline uint32_t lt_plain_common(const struct rt_lifetime *lt, const struct lt_plain *was,
				       const struct lt_plain *now)
{
	const uint32_t *a = &lt->nodes.data[was->nodes], *b = &lt->nodes.data[now->nodes];
	uint32_t most = was->nr < now->nr ? was->nr : now->nr;
	lt_lanes same = { 0 };

	for (uint32_t i = 0; i < most; i += LT_NODES) {
		same -= lt_lanes_load(a + i) == lt_lanes_load(b + i); /* true is -1 */
		same -= lt_lanes_load(a + i + LT_LANES) == lt_lanes_load(b + i + LT_LANES);
	}
	return lt_lanes_sum(same);
}

/*
 * The first `kept` of nr frames are the same run as before; the others get new numbers, each the one behind its
 * caller's: less their place, they are all one number. How many are kept nobody can predict: as many are written as
 * there are frames, and what stands behind the last one means nothing.
 */
static inline void lt_thread_number(struct rt_lifetime *lt, struct lt_thread *t, uint32_t kept, uint32_t nr)
{
	const lt_lanes base = lt_lanes_all(lt->next_act + 1 - kept);

	for (uint32_t i = 0; i < nr; i += LT_ACTS) {
		for (uint32_t k = 0; k < LT_ACTS; k += LT_LANES)
			memcpy(t->act + kept + i + k, &base, sizeof(base));
	}
	lt->next_act += nr - kept;
}

_Static_assert(RT_STACK_MAX % LT_ACTS == 0 && LT_NODES == 2 * LT_LANES, "whole lanes");

/* the outermost frame of the stack at sp stands where that of the last one did */
static inline bool lt_thread_one_place(const struct lt_thread *t, const struct lt_plain *now, uint64_t sp)
{
	return t->sp + t->plain.outer_cfa == sp + now->outer_cfa;
}

/*
 * t was last seen with a plain stack, and is again, so that nodes tell all; of stacks that are cut, if they begin with
 * the same frame: any other has to be looked for.
 */
static inline bool lt_thread_follows(const struct rt_lifetime *lt, const struct lt_thread *t,
				     const struct lt_plain *now, uint64_t sp)
{
	if (!now->nr || !t->plain.nr)
		return false;
	if (!now->cut && !t->plain.cut)
		return true;
	return now->cut && t->plain.cut && lt_thread_one_place(t, now, sp) &&
	       lt->nodes.data[t->plain.nodes] == lt->nodes.data[now->nodes];
}

/* after lt_thread_follows(): the frames that have the same nodes are the same */
static inline void lt_thread_see_plain(struct rt_lifetime *lt, struct lt_thread *t, uint32_t stack,
				       const struct lt_plain *now, uint64_t sp)
{
	uint32_t kept = lt_thread_one_place(t, now, sp) ? lt_plain_common(lt, &t->plain, now) : 0;
	uint32_t nr = t->outside + now->nr;

	kept += t->outside;
	lt_thread_number(lt, t, kept, nr);
	t->proven = t->proven < kept ? t->proven : nr;
	t->nr = nr;
	t->stale = true;
	t->stack = stack;
	t->sp = sp;
	t->plain = *now;
}

/* t is in the stack that it was in */
static inline bool lt_thread_stands(const struct lt_thread *t, const struct lt_use *use, uint64_t sp)
{
	return t->stack && t->stack == use->stack && t->sp == sp && t->jumped == use->jumped;
}

/*
 * No thread does anything before its beginning or after its end: the times are not true. It is the time that counts,
 * not the place in the stream: a record that came too late for the window tells the truth.
 */
static inline bool lt_thread_lifeless(const struct lt_thread *t, const struct lt_process *p, uint64_t time_ns)
{
	return time_ns < t->from_ns || time_ns > t->until_ns ||
	       (p->ended && time_ns > p->end_ns && time_ns - p->end_ns > LT_CLOCK_NS);
}

/* t did something at last, or was born */
static inline void lt_thread_turn(struct rt_lifetime *lt, struct lt_thread *t)
{
	struct lt_turn *newest = &lt->newest_turn, *turn = &t->turn;

	turn->newer->older = turn->older;
	turn->older->newer = turn->newer;
	turn->newer = newest;
	turn->older = newest->older;
	turn->older->newer = turn;
	newest->older = turn;
}

/* e was the last thing that t did */
static inline void lt_thread_last(struct rt_lifetime *lt, struct lt_thread *t, const struct rt_wire_event *e,
				  uint32_t type, int16_t delta)
{
	t->last_ns = e->head.time_ns;
	t->last_object = e->object;
	t->last_type = type;
	t->last_delta = delta;
	t->told = true;
	lt_thread_turn(lt, t);
}
