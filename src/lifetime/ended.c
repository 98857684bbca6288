/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who was to end it. Functions that by their name end something (a destructor, what takes out of a container) are
 * looked at for the objects that they are given, whatever they are declared to take. One that was given a lost object,
 * and in whose run nothing was put, had the last word on it, unless it is known to leave healthy objects alone: then it
 * is given what is not its own.
 */
#include "lifetime/answer.h"

static const struct lt_point *point_of(const struct lt_answer *a, const struct lt_event *e)
{
	return &a->lt->points.data[a->lt->uses.data[e->use].point];
}

static bool is_end(const struct lt_answer *a, const struct lt_event *e)
{
	return e->op == RT_OP_MOVE && lt_point_ends(point_of(a, e));
}

/* e was done by the function that g enters, or by what that calls or jumps to */
static bool is_within(const struct lt_answer *a, const struct lt_event *e, const struct lt_event *g)
{
	return e->tid == g->tid && (lt_nested(a->lt, e, g) || lt_tail_called(a->lt, e, g) || lt_jumped_to(a->lt, e, g));
}

/* a reference was put, or taken, in the run that event number i enters */
static bool counted_within(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	for (uint32_t k = i + 1; k < inc->nr; k++) {
		if (inc->ledger[k].delta && is_within(a, &inc->ledger[k], &inc->ledger[i]))
			return true;
	}
	return false;
}

static struct rt_key key_of(const struct lt_answer *a, const struct lt_inc *inc, const struct lt_event *e)
{
	return rt_key_make(point_of(a, e)->name, inc->type);
}

void lt_ends_healthy(struct lt_answer *a, uint32_t type, uint32_t klass)
{
	uint32_t at = 0;
	struct lt_inc *inc;

	while ((inc = lt_row_newer(&a->lt->graves, &at))) {
		for (uint32_t i = 0; inc->type == type && inc->klass == klass && !inc->forced && i < inc->nr; i++) {
			const struct lt_event *e = &inc->ledger[i];

			if (is_end(a, e))
				lt_count_one(counted_within(a, inc, i) ? &a->ended : &a->left_alone, key_of(a, inc, e));
		}
	}
}

static double count(const struct rt_map *map, struct rt_key key)
{
	const uint64_t *n = rt_map_get(map, key);

	return n ? (double)*n : 0;
}

/* what happened to the object behind event number i is none of the run that it enters; a later run may have had it */
static bool is_last_word(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	for (uint32_t k = i + 1; k < inc->nr; k++) {
		if (lt_event_takes(&inc->ledger[k]) || is_end(a, &inc->ledger[k]))
			return false;
	}
	return true;
}

struct lt_ender lt_ender_of(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_inc *inc = ref->inc;

	for (uint32_t i = inc->nr; i-- > ref->ev + 1u;) {
		const struct lt_event *e = &inc->ledger[i];
		const struct lt_site *site;
		double ended, alone;

		if (!is_end(a, e) || counted_within(a, inc, i))
			continue;
		ended = count(&a->ended, key_of(a, inc, e));
		alone = count(&a->left_alone, key_of(a, inc, e));
		if (alone > ended || (!ended && !is_last_word(a, inc, i)))
			continue;
		site = lt_site(a->lt, a->lt->uses.data[e->use].site);
		return (struct lt_ender){
			lt_src_named(a->lt, point_of(a, e)->name, &lt_src(a->lt, site->src[0])->frame), ended > 0
		};
	}
	return (struct lt_ender){ 0 };
}
