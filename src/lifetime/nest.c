/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One operation, told twice: a put that calls another probed put, a
 * constructor that calls another, a find that calls the get. The proof is in
 * the stacks: sp of an event is the CFA of the probed function, so an event
 * whose stack has a frame with just that CFA was made inside it. Without CFAs
 * the name of the outer function in the inner stack has to do. The outer
 * frame is the site: what a wrapper does inside is not the caller's business.
 */
#include "lifetime/state.h"

enum { BACK = 8 }; /* events of a life that are looked back through */

bool lt_nested(const struct rt_lifetime *lt, const struct lt_event *inner, const struct lt_event *outer)
{
	const struct lt_use *u = &lt->uses.data[inner->use], *ou = &lt->uses.data[outer->use];
	const struct lt_stack *s;
	uint32_t name = lt->points.data[ou->point].name;
	bool cfas = false;

	if (inner->tid != outer->tid || !u->stack || (outer->sp && inner->sp >= outer->sp))
		return false;
	s = &lt->stacks.data[u->stack - 1];
	for (uint32_t i = 0; i < s->nr; i++) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];

		cfas |= m->cfa != 0;
		if (m->cfa && outer->sp && inner->sp + m->cfa == outer->sp)
			return true;
	}
	for (uint32_t i = 0; (!cfas || !outer->sp) && i < s->nr; i++) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];

		for (uint32_t j = 0; j < m->srcs; j++) {
			if (lt_src(lt, lt->stack_srcs.data[m->src + j])->name == name)
				return true;
		}
	}
	return false;
}

static void replace_site(struct lt_event *old, const struct lt_event *outer)
{
	old->use = outer->use;
	old->act = outer->act;
	old->up = outer->up;
	old->sp = outer->sp;
}

static bool same_kind(const struct lt_event *a, const struct lt_event *b)
{
	return a->op == b->op && !(a->flags & LT_EV_HIDDEN) && !(b->flags & LT_EV_HIDDEN);
}

bool lt_nest_merge(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev)
{
	uint32_t looked = 0;

	for (uint32_t i = inc->nr; i-- > 0 && looked < BACK; looked++) {
		struct lt_event *old = &inc->ledger[i];

		if (old->tid != ev->tid)
			continue;
		if (!same_kind(old, ev))
			return false;
		/* the wrapper came first: the count must not have moved between the two */
		if (lt_nested(lt, ev, old) && !(old->flags & LT_EV_RETURN))
			return old->count == ev->count || old->count == INT32_MIN || ev->count == INT32_MIN;
		/* the wrapper is seen when it returns */
		if ((ev->flags & LT_EV_RETURN) && lt_nested(lt, old, ev)) {
			replace_site(old, ev);
			return true;
		}
		return false;
	}
	return false;
}

struct lt_event *lt_nest_hidden(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev)
{
	uint32_t looked = 0;

	for (uint32_t i = inc->nr; i-- > 0 && looked < BACK; looked++) {
		struct lt_event *old = &inc->ledger[i];

		if (old->tid == ev->tid && (old->op == RT_OP_GET || old->op == RT_OP_NEW) && lt_nested(lt, old, ev)) {
			replace_site(old, ev);
			return old;
		}
	}
	return NULL;
}
