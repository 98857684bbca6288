/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One operation, told twice: a put that calls another probed put, a
 * constructor that calls another, a find that calls the get. The proof is in
 * the stacks: sp of an event is the CFA of the probed function, so an event
 * whose stack has a frame of that function with just that CFA, called from the
 * same place, was made inside it. Without CFAs the name of the outer function
 * in the inner stack has to do. The outer frame is the site: what a wrapper
 * does inside is not the caller's business.
 */
#include "lifetime/life.h"
#include "lifetime/watch.h"

/* the frame runs the function that point stands for, as far as that can be told */
static bool runs(const struct rt_lifetime *lt, const struct lt_machine *m, const struct lt_point *point, bool unnamed)
{
	bool named = false;

	for (uint32_t i = 0; i < m->srcs; i++) {
		const struct lt_src *src = lt_src(lt, lt->stack_srcs.data[m->src + i]);

		named |= src->name != 0;
		if (src->name == point->name || (src->frame.entry && src->frame.entry == point->function))
			return true;
	}
	return !named && unnamed;
}

bool lt_nested(const struct rt_lifetime *lt, const struct lt_event *inner, const struct lt_event *outer)
{
	const struct lt_use *u = &lt->uses.data[inner->use], *ou = &lt->uses.data[outer->use];
	const struct lt_point *point = &lt->points.data[ou->point];
	const struct lt_stack *s, *os = ou->stack ? &lt->stacks.data[ou->stack - 1] : NULL;
	bool inlined = point->flags & RT_EV_INLINE;
	uint32_t first = 0;

	if (inner->tid != outer->tid || !u->stack || (!inlined && outer->sp && inner->sp >= outer->sp))
		return false;
	s = &lt->stacks.data[u->stack - 1];
	/* no function is inlined into itself: where both are instances of one, frame 0 is the inner one alone */
	if (inlined && (lt->points.data[u->point].flags & RT_EV_INLINE) &&
	    lt->points.data[u->point].name == point->name)
		first = 1;
	for (uint32_t i = first; i < s->nr; i++) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];

		if (inlined || !outer->sp || !m->cfa) {
			if (runs(lt, m, point, false))
				return true;
			continue;
		}
		if (inner->sp + m->cfa != outer->sp || !runs(lt, m, point, i + 1 < s->nr))
			continue;
		/* siblings have equal CFAs: the caller has to stand at the very same call, if it is in the stack */
		if (i + 1 == s->nr || !os || !os->nr || m[1].pc == lt->machines.data[os->first].pc)
			return true;
	}
	return false;
}

bool lt_tail_called(const struct rt_lifetime *lt, const struct lt_event *a, const struct lt_event *b)
{
	const struct lt_use *ua = &lt->uses.data[a->use], *ub = &lt->uses.data[b->use];

	return a->tid == b->tid && a->sp && a->sp == b->sp && ua->stack && ua->stack == ub->stack &&
	       ua->point != ub->point;
}

/*
 * The function of `out` has jumped to the one that e was done in: that one stood in its place, and
 * returned for it, to the very same call.
 */
bool lt_jumped_to(const struct rt_lifetime *lt, const struct lt_event *e, const struct lt_event *out)
{
	const struct lt_use *u = &lt->uses.data[e->use], *ou = &lt->uses.data[out->use];
	const struct lt_stack *s = u->stack ? &lt->stacks.data[u->stack - 1] : NULL;
	const struct lt_stack *os = ou->stack ? &lt->stacks.data[ou->stack - 1] : NULL;

	for (uint32_t i = 0; s && os && os->nr && out->sp && i + 1 < s->nr; i++) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];

		if (m->cfa && e->sp + m->cfa == out->sp)
			return m[1].pc == lt->machines.data[os->first].pc;
	}
	return false;
}

bool lt_inside(const struct rt_lifetime *lt, const struct lt_event *inner, const struct lt_event *outer)
{
	return inner->tid == outer->tid &&
	       (lt_nested(lt, inner, outer) || lt_tail_called(lt, inner, outer) || lt_jumped_to(lt, inner, outer));
}

/* What is inlined has no place that it was called from. */
bool lt_has_returned(const struct rt_lifetime *lt, const struct lt_event *outer, const struct lt_event *ev)
{
	const struct lt_use *u = &lt->uses.data[ev->use], *ou = &lt->uses.data[outer->use];
	const struct lt_stack *s = u->stack ? &lt->stacks.data[u->stack - 1] : NULL;
	const struct lt_stack *os = ou->stack ? &lt->stacks.data[ou->stack - 1] : NULL;

	if (lt_event_point(lt, outer)->flags & RT_EV_INLINE)
		return false;
	for (uint32_t i = 0; s && i < s->nr; i++) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];

		if (!m->cfa)
			return false;
		if (ev->sp + m->cfa > outer->sp)
			return true;
		/* what the same function calls next begins at the same place of the stack */
		if (ev->sp + m->cfa == outer->sp)
			return i + 1 < s->nr && os && os->nr && m[1].pc != lt->machines.data[os->first].pc;
	}
	return false;
}

static void replace_site(struct rt_lifetime *lt, struct lt_inc *inc, struct lt_event *old, const struct lt_event *outer)
{
	if (inc->watched)
		lt_watch_site(lt, inc, old, outer);
	old->use = outer->use;
	old->act = outer->act;
	old->up = outer->up;
	old->sp = outer->sp;
}

/* May ev be what the function of old does inside? A sink that finds nothing floating calls the get. */
static bool same_kind(const struct lt_event *old, const struct lt_event *ev)
{
	return (old->op == ev->op || (old->op == RT_OP_SINK && old->delta > 0 && ev->op == RT_OP_GET)) &&
	       !(old->flags & LT_EV_HIDDEN) && !(ev->flags & LT_EV_HIDDEN);
}

/* nothing was counted between the two, which both count the same */
static bool at_one_count(const struct lt_event *old, const struct lt_event *ev)
{
	return !((old->flags | ev->flags) & LT_EV_RETURN) && ev->count != INT32_MIN && ev->count == old->count &&
	       ev->delta && ev->delta == old->delta;
}

/* but for that one operation, which what is read when a function returns has in it */
static bool stands_still(const struct lt_event *old, const struct lt_event *ev)
{
	return old->count == ev->count || old->count == INT32_MIN || ev->count == INT32_MIN ||
	       ((ev->flags & LT_EV_RETURN) && ev->delta == old->delta && ev->count - ev->delta == old->count);
}

bool lt_nest_merge(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev)
{
	uint32_t ago = lt_nest_ago(inc, ev->tid);
	struct lt_event *old;

	if (!lt_nest_may_be(inc, ago, ev->op))
		return false;
	old = &inc->ledger[inc->nr - ago];
	if (!same_kind(old, ev))
		return false;
	/* the wrapper came first: the count must not have moved between the two */
	if ((lt_nested(lt, ev, old) || lt_tail_called(lt, ev, old) || lt_jumped_to(lt, ev, old)) &&
	    !(old->flags & LT_EV_RETURN))
		return stands_still(old, ev);
	/* inlined at the end of a function that jumps to what it calls: only the count tells that these are one */
	if ((lt_event_point(lt, old)->flags & RT_EV_INLINE) && at_one_count(old, ev) && lt_jumped_to(lt, old, ev))
		return true;
	/* the wrapper is seen when it returns; or both at one place, the wrapper second, as the count says */
	if (((ev->flags & LT_EV_RETURN) &&
	     (lt_nested(lt, old, ev) || lt_tail_called(lt, old, ev) || lt_jumped_to(lt, old, ev))) ||
	    (at_one_count(old, ev) && lt_nested(lt, old, ev))) {
		lt_observe_moved(lt, inc, old, ev);
		replace_site(lt, inc, old, ev);
		return true;
	}
	return false;
}

struct lt_event *lt_nest_hidden(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev)
{
	uint32_t looked = 0;

	for (uint32_t i = inc->nr; i-- > 0 && looked < LT_RECENT; looked++) {
		struct lt_event *old = &inc->ledger[i];

		if (old->tid == ev->tid && (old->op == RT_OP_GET || old->op == RT_OP_NEW) &&
		    (lt_nested(lt, old, ev) || lt_tail_called(lt, old, ev))) {
			lt_observe_moved(lt, inc, old, ev);
			replace_site(lt, inc, old, ev);
			return old;
		}
	}
	return NULL;
}
