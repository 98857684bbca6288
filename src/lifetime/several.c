/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A run of a function that takes more references to an object than it gives back, at more than one place of its code:
 * one of them may be too many. Not where healthy objects are taken so, too: a cache that stores what it hands out takes
 * one for itself and one for its caller.
 */
#include "lifetime/answer.h"
#include "lifetime/slot.h"

/* the function that took the reference returned the object */
static bool hands_up(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t ev)
{
	const struct lt_event *mine = &inc->ledger[ev];
	const struct lt_src *src = lt_src(lt, lt_event_src(lt, mine));

	for (uint32_t i = ev + 1; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (lt_point_hands(lt_event_point(lt, e)) && lt_point_is(lt_event_point(lt, e), src) &&
		    lt_inside(lt, mine, e))
			return true;
	}
	return false;
}

/* event number ev is a get of a run that took more than it gave back */
static bool is_one_of_several(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t ev)
{
	const struct lt_event *mine = &inc->ledger[ev];
	uint32_t function = lt_event_function(lt, mine);
	uint32_t last = ev;
	bool twice = false;
	int gets = 0, puts = 0, handed = 0, stored = 0;

	if (mine->op == RT_OP_GET && (lt_event_several(mine) || lt_jumped_again(lt, inc, (uint16_t)ev)))
		return true;
	if (!mine->act || mine->op != RT_OP_GET)
		return false;
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->act != mine->act || lt_event_function(lt, e) != function)
			continue;
		gets += e->op == RT_OP_GET && e->delta > 0;
		handed += lt_point_hands(lt_event_point(lt, e));
		puts += e->delta < 0;
		stored += lt_slot_fills(lt, e);
		last = i;
		twice |= e->op == RT_OP_GET && e->delta > 0 && lt_twice_in_run(lt, mine, e);
	}
	for (uint32_t i = last + 1; i < inc->nr && twice; i++) {
		if (lt_put_by_jump(lt, mine, &inc->ledger[i])) {
			puts++;
			break;
		}
	}
	/*
	 * What it gave back may be what it was handed, where two gets in one line want to be explained; else it keeps
	 * what it stores, and gave away what it returned.
	 */
	if (!twice || lt_twice_in_line(lt, inc, (uint16_t)ev))
		return twice && puts < gets + handed;
	return puts + stored + hands_up(lt, inc, ev) < gets;
}

static struct rt_key key_of(const struct lt_answer *a, const struct lt_inc *inc, uint32_t ev)
{
	return rt_key_make(lt_event_function(a->lt, &inc->ledger[ev]), inc->type);
}

/* the other one of the two that a helper took in one line, of which event number ev is one; LT_NO_EVENT: there is none
 */
static uint16_t other_by_helper(const struct lt_answer *a, const struct lt_inc *inc, uint16_t ev)
{
	uint16_t first = lt_first_by_helper(a->lt, inc, ev);

	for (uint16_t k = ev + 1; first == LT_NO_EVENT && k < inc->nr; k++) {
		if (inc->ledger[k].delta)
			return lt_first_by_helper(a->lt, inc, k) == ev ? k : LT_NO_EVENT;
	}
	return first;
}

/*
 * The function that had a helper take two in one line; 0: none had. What the helper keeps in a slot it took for that:
 * "a = make(), b = make()" has each keep one; but one slot keeps just one.
 */
static uint32_t taker_by_helper(const struct lt_answer *a, const struct lt_inc *inc, uint32_t ev)
{
	const struct lt_event *e = &inc->ledger[ev];
	uint16_t other;

	if (e->op != RT_OP_GET)
		return 0;
	if (e->flags & LT_EV_KEPT) {
		other = other_by_helper(a, inc, (uint16_t)ev);
		if (other == LT_NO_EVENT || !(inc->ledger[other].flags & LT_EV_KEPT) ||
		    inc->ledger[other].slot != e->slot)
			return 0;
	}
	return lt_twice_by_helper(a->lt, inc, (uint16_t)ev);
}

static struct rt_key key_by_helper(const struct lt_answer *a, const struct lt_inc *inc, uint32_t src)
{
	return rt_key_make(lt_src(a->lt, src)->function, UINT64_C(1) << 32 | inc->type);
}

static void count(const struct lt_answer *a, const struct lt_inc *inc, struct rt_map *counts)
{
	for (uint32_t i = 0; i < inc->nr; i++) {
		uint32_t by = taker_by_helper(a, inc, i);

		if (is_one_of_several(a->lt, inc, i))
			lt_count_one(counts, key_of(a, inc, i));
		if (by)
			lt_count_one(counts, key_by_helper(a, inc, by));
	}
}

void lt_several_left(struct lt_answer *a, const struct lt_inc *inc)
{
	count(a, inc, &a->several_left);
}

void lt_several_healthy(struct lt_answer *a, const struct lt_inc *inc)
{
	count(a, inc, &a->several_healthy);
}

bool lt_took_twice(const struct lt_answer *a, const struct lt_ref *ref)
{
	struct rt_key key = key_of(a, ref->inc, ref->ev);

	return is_one_of_several(a->lt, ref->inc, ref->ev) &&
	       lt_counted(&a->several_healthy, key) * a->healthy_each < lt_counted(&a->several_left, key);
}

uint32_t lt_took_twice_by_helper(const struct lt_answer *a, const struct lt_ref *ref)
{
	uint32_t by = ref->ev == LT_NO_EVENT ? 0 : taker_by_helper(a, ref->inc, ref->ev);
	struct rt_key key;

	if (!by)
		return 0;
	key = key_by_helper(a, ref->inc, by);
	return lt_counted(&a->several_healthy, key) * a->healthy_each < lt_counted(&a->several_left, key) ? by : 0;
}
