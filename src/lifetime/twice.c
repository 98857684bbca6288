/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An operation that one run of a function does twice: at two places of its code. What is done again and again at one
 * place is a loop (over a table that holds one object several times), and an inlined function has no run of its own:
 * called twice it does the same at two places, which are told apart by who called it.
 */
#include <stdlib.h>

#include "lifetime/state.h"

/* the function of the site and all it is inlined into, from the site on; *ret_nr: how many there are */
static const uint32_t *inlined_chain(const struct rt_lifetime *lt, const struct lt_use *use, uint32_t *ret_nr)
{
	const struct lt_stack *s = use->stack ? &lt->stacks.data[use->stack - 1] : NULL;
	const struct lt_machine *m;
	uint32_t site = use->site ? lt_site(lt, use->site)->src[0] : 0;

	*ret_nr = 0;
	if (!s || !site || use->machine >= LT_JUMPED || use->machine >= s->nr)
		return NULL;
	m = &lt->machines.data[s->first + use->machine];
	for (uint32_t i = 0; i < m->srcs; i++) {
		if (lt->stack_srcs.data[m->src + i] == site) {
			*ret_nr = m->srcs - i;
			return &lt->stack_srcs.data[m->src + i];
		}
	}
	return NULL;
}

/*
 * Not more than this many lines apart; where nobody knows lines, so near that nothing lies between them but what a call
 * needs.
 */
static bool near_by(const struct rt_frame *x, const struct rt_frame *y, int lines)
{
	enum { CALL_BYTES = 16 };
	const uint64_t bytes = x->address > y->address ? x->address - y->address : y->address - x->address;

	if (!x->line && !y->line)
		return bytes <= CALL_BYTES;
	return abs((int)x->line - (int)y->line) <= lines;
}

/* both lie in one instance of one function: not more than this many lines apart */
static bool one_instance(const struct rt_lifetime *lt, const struct lt_use *x, const struct lt_use *y, int lines)
{
	uint32_t nx, ny;
	const uint32_t *cx = inlined_chain(lt, x, &nx), *cy = inlined_chain(lt, y, &ny);
	const struct lt_src *sx, *sy;

	if (!cx || !cy || nx != ny)
		return false;
	sx = lt_src(lt, cx[0]);
	sy = lt_src(lt, cy[0]);
	if (sx->function != sy->function || !near_by(&sx->frame, &sy->frame, lines))
		return false;
	for (uint32_t i = 1; i < nx; i++) {
		if (cx[i] != cy[i])
			return false;
	}
	return true;
}

/*
 * The function of both sites stands at one place: what it called there did both, and has no name (stripped code), or
 * jumped to what did it once more, and is told for itself. That is nothing that the function does twice.
 */
static bool one_place(const struct rt_lifetime *lt, const struct lt_use *x, const struct lt_use *y)
{
	const struct lt_stack *sx = x->stack ? &lt->stacks.data[x->stack - 1] : NULL;
	const struct lt_stack *sy = y->stack ? &lt->stacks.data[y->stack - 1] : NULL;

	const bool twice_told = lt->points.data[x->point].op == lt->points.data[y->point].op;

	return sx && sy && x->machine < sx->nr && y->machine < sy->nr && ((x->machine && y->machine) || twice_told) &&
	       lt->machines.data[sx->first + x->machine].pc == lt->machines.data[sy->first + y->machine].pc;
}

bool lt_twice_in_run(const struct rt_lifetime *lt, const struct lt_event *x, const struct lt_event *y)
{
	enum { ANY_LINE = 1 << 30 };

	/* a find that calls another one tells of one reference twice */
	if ((x->flags | y->flags) & (LT_EV_HIDDEN | LT_EV_RETURN))
		return false;
	return x->use != y->use && x->act && x->act == y->act &&
	       !one_place(lt, &lt->uses.data[x->use], &lt->uses.data[y->use]) &&
	       one_instance(lt, &lt->uses.data[x->use], &lt->uses.data[y->use], ANY_LINE);
}

static bool one_site(const struct rt_lifetime *lt, const struct lt_use *x, const struct lt_use *y)
{
	const struct lt_site *sx = lt_site(lt, x->site), *sy = lt_site(lt, y->site);

	return sx->nr == sy->nr && lt_src(lt, sx->src[0])->name == lt_src(lt, sy->src[0])->name;
}

/*
 * What was called at the frame further out than x's is the function that is said to have jumped to y, and it had jumped
 * to x's before: so that one jumped in its turn.
 */
static bool came_by_jump(const struct rt_lifetime *lt, const struct lt_use *x, const struct lt_use *y,
			 const struct lt_machine *outside)
{
	uint32_t called = lt_src(lt, outside->callee)->name;

	return outside->callee && called && lt_src(lt, y->jumped)->name == called &&
	       lt_src(lt, lt_site(lt, x->site)->src[0])->name != called;
}

/*
 * y is what the function of x did last: it jumped to the API, which took its frame off the stack. It was called from
 * the same place of the same run of its caller. Which function jumped there is not known where the caller calls by a
 * pointer: then y looks like the caller's own. What was inlined has no frame to take off: what it is inlined into
 * jumped, and that is another function.
 */
static bool left_by_jump(const struct rt_lifetime *lt, const struct lt_event *x, const struct lt_event *y)
{
	const struct lt_use *ux = &lt->uses.data[x->use], *uy = &lt->uses.data[y->use];
	const struct lt_stack *sx = ux->stack ? &lt->stacks.data[ux->stack - 1] : NULL;
	const struct lt_stack *sy = uy->stack ? &lt->stacks.data[uy->stack - 1] : NULL;
	const struct lt_machine *mx, *my;
	uint32_t inlined;

	(void)inlined_chain(lt, ux, &inlined);
	if (inlined > 1 || !sx || !sy || (uy->machine != LT_JUMPED && uy->machine) || ux->machine + 1u >= sx->nr ||
	    !sy->nr || x->tid != y->tid || !x->sp || !y->sp || !ux->function)
		return false;
	mx = &lt->machines.data[sx->first + ux->machine + 1];
	my = &lt->machines.data[sy->first];
	if (uy->machine == LT_JUMPED && !one_site(lt, ux, uy) && !came_by_jump(lt, ux, uy, mx))
		return false;
	return mx->pc == my->pc && mx->cfa && my->cfa && x->sp + mx->cfa == y->sp + my->cfa;
}

/*
 * y was done in the line of x, or so many lines apart, by the same run of the function, or as the last thing that it
 * did
 */
static bool in_lines(const struct rt_lifetime *lt, const struct lt_event *x, const struct lt_event *y, int lines)
{
	return left_by_jump(lt, x, y) ||
	       (lt_twice_in_run(lt, x, y) && one_instance(lt, &lt->uses.data[x->use], &lt->uses.data[y->use], lines));
}

static bool alike(const struct lt_event *x, const struct lt_event *y)
{
	return x->op == y->op && x->delta == y->delta && x->tid == y->tid;
}

static bool again(const struct rt_lifetime *lt, const struct lt_event *x, const struct lt_event *y, int lines)
{
	return alike(x, y) && (in_lines(lt, x, y, lines) || left_by_jump(lt, y, x));
}

/* the operation right before event number ev, or right behind it; NULL: there is none, or none that was kept */
static const struct lt_event *operation_before(const struct lt_inc *inc, uint32_t ev)
{
	while (ev > 0 && !(inc->ledger[ev].flags & LT_EV_GAP) && !inc->ledger[ev - 1].delta &&
	       inc->ledger[ev - 1].op != RT_OP_NEW)
		ev--;
	return ev > 0 && !(inc->ledger[ev].flags & LT_EV_GAP) ? &inc->ledger[ev - 1] : NULL;
}

static const struct lt_event *operation_behind(const struct lt_inc *inc, uint32_t ev)
{
	while (++ev < inc->nr && !(inc->ledger[ev].flags & LT_EV_GAP)) {
		if (inc->ledger[ev].delta)
			return &inc->ledger[ev];
	}
	return NULL;
}

/*
 * What y was done by stands behind what x was done by, in one function. Where it stands before that, a loop came by
 * again, and is at something else.
 */
static bool stands_behind(const struct rt_lifetime *lt, const struct lt_event *x, const struct lt_event *y)
{
	const struct rt_frame *fx = &lt_src(lt, lt_event_src(lt, x))->frame,
			      *fy = &lt_src(lt, lt_event_src(lt, y))->frame;

	return fx->line && fy->line ? fy->line >= fx->line : fy->address > fx->address;
}

bool lt_back_at_once(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev)
{
	const struct lt_event *put = &inc->ledger[ev], *get = operation_before(inc, ev);

	if (!get || put->op != RT_OP_PUT || put->delta >= 0 || get->op != RT_OP_GET || get->delta != -put->delta ||
	    get->tid != put->tid)
		return false;
	/* the last thing that it did */
	if (lt_event_function(lt, get) == lt_event_function(lt, put) && lt_put_by_jump(lt, get, put))
		return true;
	return lt_twice_in_run(lt, get, put) &&
	       one_instance(lt, &lt->uses.data[get->use], &lt->uses.data[put->use], 1) && stands_behind(lt, get, put);
}

bool lt_jumped_again(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev)
{
	const struct lt_event *mine = &inc->ledger[ev];
	const struct lt_event *before = operation_before(inc, ev), *behind = operation_behind(inc, ev);

	return (before && alike(before, mine) && left_by_jump(lt, before, mine)) ||
	       (behind && alike(mine, behind) && left_by_jump(lt, mine, behind));
}

static const struct lt_machine *machine_of(const struct rt_lifetime *lt, const struct lt_stack *s, uint32_t i)
{
	return i < s->nr ? &lt->machines.data[s->first + i] : NULL;
}

/* the stacks, from these frames outwards, are the same frames of the same runs */
static bool same_outwards(const struct rt_lifetime *lt, const struct lt_event *x, const struct lt_stack *sx, uint32_t i,
			  const struct lt_event *y, const struct lt_stack *sy, uint32_t k)
{
	const struct lt_machine *mx = machine_of(lt, sx, i), *my = machine_of(lt, sy, k);

	if (!mx || !my || !mx->cfa || !my->cfa || x->sp + mx->cfa != y->sp + my->cfa || sx->nr - i != sy->nr - k)
		return false;
	for (; i < sx->nr; i++, k++)
		if (lt->machines.data[sx->first + i].pc != lt->machines.data[sy->first + k].pc)
			return false;
	return true;
}

/* both frames stand in one line of one function */
static bool one_line(const struct rt_lifetime *lt, const struct lt_machine *x, const struct lt_machine *y)
{
	const struct lt_src *sx, *sy;

	if (!x->srcs || x->srcs != y->srcs)
		return false;
	sx = lt_src(lt, lt->stack_srcs.data[x->src]);
	sy = lt_src(lt, lt->stack_srcs.data[y->src]);
	if (sx->function != sy->function || !sx->frame.line || sx->frame.line != sy->frame.line)
		return false;
	for (uint32_t i = 1; i < x->srcs; i++)
		if (lt->stack_srcs.data[x->src + i] != lt->stack_srcs.data[y->src + i])
			return false;
	return true;
}

/*
 * The frame at which the stacks of two operations part, the later one last, that one helper did: its function called
 * the helper, or what called that, twice in one line of one run; or the second time as the last thing that it did, so
 * that its frame was gone by then. Further in both stand at the same places, and so they do further out. NULL: not so.
 */
static const struct lt_machine *parted(const struct rt_lifetime *lt, const struct lt_event *x, const struct lt_event *y)
{
	const struct lt_use *ux = &lt->uses.data[x->use], *uy = &lt->uses.data[y->use];
	const struct lt_stack *sx = ux->stack ? &lt->stacks.data[ux->stack - 1] : NULL;
	const struct lt_stack *sy = uy->stack ? &lt->stacks.data[uy->stack - 1] : NULL;
	const struct lt_machine *mx, *my;
	uint32_t i = 0;

	if (!sx || !sy || ux->machine != uy->machine || ux->machine == LT_GONE || ux->point != uy->point ||
	    !ux->function || ux->function != uy->function || x->tid != y->tid || !x->sp || !y->sp)
		return NULL;
	while (i < sx->nr && i < sy->nr && lt->machines.data[sx->first + i].pc == lt->machines.data[sy->first + i].pc)
		i++;
	mx = machine_of(lt, sx, i);
	my = machine_of(lt, sy, i);
	if (!mx || !my || !mx->srcs || i < (ux->machine == LT_JUMPED ? 0 : ux->machine + 1u))
		return NULL;
	if (same_outwards(lt, x, sx, i + 1, y, sy, i))
		return mx;
	return x->sp + mx->cfa == y->sp + my->cfa && one_line(lt, mx, my) &&
			       same_outwards(lt, x, sx, i + 1, y, sy, i + 1)
		       ? mx
		       : NULL;
}

/* the run that did event number ev gave the object to somebody after that: the reference may have gone with it */
static bool gave_on(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t ev)
{
	const uint32_t act = inc->ledger[ev].act;

	for (uint32_t i = ev + 1; i < inc->nr; i++)
		if (inc->ledger[i].op == RT_OP_MOVE && inc->ledger[i].up == act && act &&
		    lt_point_given(lt_event_point(lt, &inc->ledger[i])))
			return true;
	return false;
}

uint32_t lt_twice_by_helper(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev)
{
	const struct lt_event *mine = &inc->ledger[ev], *before, *behind;
	const struct lt_machine *at = NULL;

	if (!mine->delta || (mine->op == RT_OP_GET && gave_on(lt, inc, ev)))
		return 0;
	before = operation_before(inc, ev);
	behind = operation_behind(inc, ev);
	/* it was the last thing that the function did, which looks like its caller's own where that calls by a pointer
	 */
	if (before && alike(before, mine) && left_by_jump(lt, before, mine))
		return lt_event_src(lt, before);
	if (before && alike(before, mine))
		at = parted(lt, before, mine);
	if (!at && behind && alike(mine, behind))
		at = parted(lt, mine, behind);
	return at ? lt->stack_srcs.data[at->src] : 0;
}

uint16_t lt_first_by_helper(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev)
{
	const struct lt_event *mine = &inc->ledger[ev], *before = operation_before(inc, ev);

	return before && alike(before, mine) && parted(lt, before, mine) ? (uint16_t)(before - inc->ledger)
									 : LT_NO_EVENT;
}

static bool in_row(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev, int lines)
{
	const struct lt_event *mine = &inc->ledger[ev];
	const struct lt_event *before = operation_before(inc, ev), *behind = operation_behind(inc, ev);

	return lt_event_several(mine) || (before && again(lt, mine, before, lines)) ||
	       (behind && again(lt, mine, behind, lines));
}

bool lt_twice_in_row(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev)
{
	return in_row(lt, inc, ev, 1);
}

bool lt_twice_in_line(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev)
{
	return in_row(lt, inc, ev, 0);
}

uint16_t lt_first_of_two(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev)
{
	const struct lt_event *mine = &inc->ledger[ev], *before = operation_before(inc, ev);

	return before && again(lt, before, mine, 0) ? (uint16_t)(before - inc->ledger) : ev;
}

/* the last operation of a dead object; NULL: it had none */
static const struct lt_event *last_operation(const struct lt_inc *inc)
{
	uint32_t i = inc->nr;

	while (i > 0 && !inc->ledger[i - 1].delta)
		i--;
	return i > 0 ? &inc->ledger[i - 1] : NULL;
}

bool lt_put_again(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *ev)
{
	const struct lt_event *last = last_operation(inc);

	return last && again(lt, last, ev, 1);
}

bool lt_put_unwritten(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *ev)
{
	const struct lt_event *last = last_operation(inc);

	return last && inc->has_new && ev->op == RT_OP_PUT && last->op == RT_OP_PUT && ev->count != INT32_MIN &&
	       ev->count == last->count && again(lt, last, ev, 0);
}
