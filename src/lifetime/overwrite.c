/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last pointer. A function that stores another pointer, or NULL, where one to the object was, or frees the block
 * that this lies in, and does not put the object, has lost the reference that the slot stood for: it has no get or put
 * on the object at all, and is guilty all the same.
 *
 * Not each slot stands for a reference. One that a function overwrites in healthy objects, too, and nobody puts for
 * that, was borrowed: nearly all objects that it overwrote a pointer to, without a put, must have been left. And one in
 * which it mostly finds what is no object, or one that others have put long ago, held nothing: the memory is new to it.
 */
#include "lifetime/answer.h"

static const double SHARE = 0.8, FEW = 2;

static uint32_t function_of(const struct lt_answer *a, const struct lt_event *e)
{
	return lt_site_function(a->lt, a->lt->uses.data[e->use].site);
}

/* A variable of a function that runs, an output of the one that stores mostly: what it had held is of no interest. */
static bool on_stack(const struct lt_event *w)
{
	enum { BELOW = 1 << 16, ABOVE = 8 << 20 }; /* bytes */

	return w->slot && w->sp > BELOW && w->slot >= w->sp - BELOW && w->slot < w->sp + ABOVE;
}

/*
 * e gives back what the store w has lost: it was done by the run of the function that w lies in, or in it; or by its
 * caller, or the caller's, for itself: helpers take things out and apart that their callers put. A caller that has
 * taken a reference of its own put that one.
 */
static bool pays_for(const struct lt_answer *a, const struct lt_inc *inc, const struct lt_event *e,
		     const struct lt_event *w)
{
	enum { CALLERS = 2 };
	unsigned out, in;

	if (e->delta >= 0 || e->tid != w->tid)
		return false;
	if (function_of(a, e) == function_of(a, w) && (!e->act || !w->act || e->act == w->act))
		return true;
	if (!lt_come_together(a->lt, w, e, &out, &in) || (out && (in || out > CALLERS)))
		return false;
	for (uint32_t i = 0; out && i < inc->nr; i++) {
		const struct lt_event *own = &inc->ledger[i];

		if ((own->delta > 0 || own->op == RT_OP_NEW) && own->act && own->act == e->act)
			return false;
	}
	return true;
}

/* event number i overwrites a pointer, and nobody puts anything for it */
static bool drops(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *w = &inc->ledger[i];
	const struct lt_point *point = &a->lt->points.data[a->lt->uses.data[w->use].point];

	if (w->op != RT_OP_MOVE || on_stack(w) || !lt_point_overwrites(point) || lt_point_stale(point) ||
	    !function_of(a, w))
		return false;
	for (uint32_t k = 0; k < inc->nr; k++) {
		if (pays_for(a, inc, &inc->ledger[k], w))
			return false;
	}
	return true;
}

static void count(struct lt_answer *a, const struct lt_inc *inc, struct rt_map *into)
{
	for (uint32_t i = 0; i < inc->nr; i++) {
		if (drops(a, inc, i))
			lt_count_one(into, rt_key_make(function_of(a, &inc->ledger[i]), inc->type));
	}
}

void lt_overwrites_left(struct lt_answer *a, const struct lt_inc *inc)
{
	count(a, inc, &a->dropped_left);
}

void lt_overwrites_healthy(struct lt_answer *a, uint32_t type)
{
	uint32_t at = 0;
	struct lt_inc *inc;

	while ((inc = lt_row_newer(&a->lt->graves, &at))) {
		if (inc->type == type && !inc->forced)
			count(a, inc, &a->dropped_healthy);
	}
}

static double value(const struct rt_map *map, uint32_t function, uint32_t type)
{
	const uint64_t *n = rt_map_get(map, rt_key_make(function, type));

	return n ? (double)*n : 0;
}

/* it takes references of the type itself: what it stores stands for one */
static bool takes(const struct lt_answer *a, uint32_t function, uint32_t type)
{
	for (size_t i = 0; i < a->lt->uses.len; i++) {
		const struct lt_use *use = &a->lt->uses.data[i];
		const struct lt_point *p = &a->lt->points.data[use->point];

		if (use->events && p->type == type && lt_site_passes(a->lt, use->site, function) &&
		    (p->op == RT_OP_GET || p->op == RT_OP_NEW))
			return true;
	}
	return false;
}

bool lt_overwritten_all(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_inc *inc = ref->inc;
	int64_t n = 0;

	for (uint32_t i = 0; i < inc->nr; i++)
		n += drops(a, inc, i) && takes(a, function_of(a, &inc->ledger[i]), inc->type);
	return inc->known && n >= inc->balance;
}

/*
 * The pointers to the object that the function lost, and nobody put, do not stand for what is left: there are more of
 * them, or, where blocks went with them, fewer. Those were borrowed.
 */
static bool borrowed(const struct lt_answer *a, const struct lt_inc *inc, uint32_t function, bool freed)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < inc->nr; i++)
		n += drops(a, inc, i) && function_of(a, &inc->ledger[i]) == function;
	return inc->known && (n > inc->balance || (freed && n < inc->balance));
}

/*
 * A run that took the reference and passed the object to nobody who may keep it has it itself, whatever the functions
 * that it calls do to w.
 */
static bool still_held(const struct lt_answer *a, const struct lt_ref *ref, const struct lt_event *w)
{
	const struct lt_inc *inc = ref->inc;
	const struct lt_event *taken = &inc->ledger[ref->ev];
	unsigned out, in;

	if (!lt_come_together(a->lt, taken, w, &out, &in) || out || !in)
		return false;
	for (uint32_t i = ref->ev + 1u; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->op == RT_OP_MOVE && e->act == taken->act &&
		    lt_point_given(&a->lt->points.data[a->lt->uses.data[e->use].point]))
			return false;
	}
	return taken->op == RT_OP_GET;
}

struct lt_loser lt_overwriter(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_inc *inc = ref->inc;

	for (uint32_t i = inc->nr; i-- > ref->ev + 1u;) {
		bool freed = a->lt->points.data[a->lt->uses.data[inc->ledger[i].use].point].aux == RT_AUX_BLOCK;
		uint32_t function;
		double left, healthy;

		if (!drops(a, inc, i))
			continue;
		function = function_of(a, &inc->ledger[i]);
		left = value(&a->dropped_left, function, inc->type);
		healthy = value(&a->dropped_healthy, function, inc->type);
		if (left < SHARE * (left + healthy) || borrowed(a, inc, function, freed) ||
		    (freed && still_held(a, ref, &inc->ledger[i])))
			continue;
		return (struct lt_loser){ lt_site(a->lt, a->lt->uses.data[inc->ledger[i].use].site)->src[0], freed,
					  left < FEW };
	}
	return (struct lt_loser){ 0 };
}
