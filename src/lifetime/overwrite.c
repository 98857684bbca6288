/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last pointer. A function that stores another pointer where one to the object was, and does not put the object,
 * has lost the reference that the slot stood for: it has no get or put on the object at all, and is guilty all the
 * same.
 *
 * Not each slot stands for a reference. One that a function overwrites in healthy objects, too, and nobody puts for
 * that, was borrowed: nearly all objects that it overwrote a pointer to, without a put, must have been left.
 */
#include "lifetime/answer.h"

static const double SHARE = 0.8;

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

/* event number i overwrites a pointer, and the run of the function that did it puts nothing for it */
static bool drops(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *w = &inc->ledger[i];
	uint32_t function;

	if (w->op != RT_OP_MOVE || on_stack(w) ||
	    !lt_point_overwrites(&a->lt->points.data[a->lt->uses.data[w->use].point]))
		return false;
	function = function_of(a, w);
	for (uint32_t k = 0; function && k < inc->nr; k++) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->delta < 0 && e->tid == w->tid && function_of(a, e) == function &&
		    (!e->act || !w->act || e->act == w->act))
			return false;
	}
	return function != 0;
}

static void count(struct lt_answer *a, const struct lt_inc *inc, struct rt_map *into)
{
	for (uint32_t i = 0; i < inc->nr; i++) {
		uint64_t *n = drops(a, inc, i)
				      ? rt_map_put(into, rt_key_make(function_of(a, &inc->ledger[i]), inc->type), NULL)
				      : NULL;

		if (n)
			(*n)++;
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

uint32_t lt_overwriter(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_inc *inc = ref->inc;

	for (uint32_t i = inc->nr; i-- > ref->ev + 1u;) {
		uint32_t function;
		double left, healthy;

		if (!drops(a, inc, i))
			continue;
		function = function_of(a, &inc->ledger[i]);
		left = value(&a->dropped_left, function, inc->type);
		healthy = value(&a->dropped_healthy, function, inc->type);
		if (left < SHARE * (left + healthy))
			continue;
		return lt_site(a->lt, a->lt->uses.data[inc->ledger[i].use].site)->src[0];
	}
	return 0;
}
