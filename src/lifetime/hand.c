/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who was handed the reference. A move that is seen when its function returns tells that the object left the function
 * by its result, or through a T ** of its caller. It is put down behind the get or new that it hands up, where that was
 * done inside the function; what a function hands out without having taken a reference to it is nobody's business.
 *
 * So a function whose returns are seen and that did not tell of the object kept the reference, whatever its type says:
 * it gave back NULL, or an error. The same holds for a constructor that calls another one.
 */
#include <string.h>

#include "lifetime/answer.h"
#include "lifetime/life.h"
#include "lifetime/slot.h"

enum { LOOK_BACK = 32 /* events */ };

/* a get or new of the last events was done inside the function that hands the object out */
static bool took_inside(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *out)
{
	for (uint32_t i = inc->nr; i-- > 0 && i + LOOK_BACK >= inc->nr;) {
		if (lt_event_takes(&inc->ledger[i]) && lt_inside(lt, &inc->ledger[i], out))
			return true;
	}
	return false;
}

/*
 * The object of the event; where the code does not say of which type it is, of any: the one that lives at the address,
 * where dead ones of other types were before.
 */
static struct lt_inc *object_of(const struct rt_lifetime *lt, const struct lt_seen *seen)
{
	const struct rt_wire_event *e = seen->e;
	struct lt_inc *inc = e->object ? lt_inc_find(lt, e->head.pid, seen->type, e->object) : NULL, *other;

	for (uint32_t t = 0; e->object && (e->flags & RT_EV_MAYBE) && t < lt->types.len; t++) {
		if (inc && inc->life == LT_LIVE)
			break;
		other = lt_inc_find(lt, e->head.pid, t, e->object);
		inc = other && (!inc || other->life == LT_LIVE) ? other : inc;
	}
	return inc;
}

/* the object, dead or NULL, ended just before by what stores over the pointer, what that called or who called it */
static bool put_for(const struct lt_inc *inc, const struct lt_event *ev)
{
	const struct lt_event *end = inc && inc->nr ? &inc->ledger[inc->nr - 1] : NULL;

	return end && end->tid == ev->tid &&
	       ((ev->act && (ev->act == end->act || ev->act == end->up)) ||
		(ev->up && (ev->up == end->act || ev->up == end->up)));
}

/* how many functions out from the one that stores over the pointer the run stands that had put the object just before
 */
enum { PUT_BY_ITSELF = 0, PUT_BY_CALLER = 1, PUT_BY_OTHERS = 2 };

/*
 * The run that did event number i, or what it had called, had taken a reference to the object before, and not for this
 * slot: what it puts is that one.
 */
static bool had_its_own(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i, uint64_t slot)
{
	const struct lt_event *put = &inc->ledger[i];
	unsigned taker, own;

	while (i-- > 0) {
		const struct lt_event *e = &inc->ledger[i];

		if (lt_event_takes(e) && !((e->flags & LT_EV_KEPT) && e->slot == slot) &&
		    lt_come_together(lt, e, put, &taker, &own) && !own)
			return true;
	}
	return false;
}

static unsigned put_by(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *ev)
{
	for (uint32_t i = inc ? inc->nr : 0; i-- > 0 && i + LOOK_BACK >= inc->nr;) {
		const struct lt_event *put = &inc->ledger[i];
		unsigned own, out;

		if (put->tid != ev->tid || put->delta > 0)
			break;
		if (!put->delta)
			continue;
		if (!lt_come_together(lt, put, ev, &own, &out) || own || out > PUT_BY_CALLER ||
		    (out == PUT_BY_CALLER && had_its_own(lt, inc, i, ev->slot)))
			return PUT_BY_OTHERS;
		return out;
	}
	return PUT_BY_OTHERS;
}

static void count_found(struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_seen *seen)
{
	struct lt_point *point = &lt->points.data[lt->uses.data[seen->ev.use].point];
	unsigned by;

	if (!lt_point_overwrites(point) || (seen->e->flags & RT_EV_MAYBE) || !seen->e->object)
		return;
	point->found += inc && inc->life == LT_LIVE;
	by = put_by(lt, inc, &seen->ev);
	point->stale += inc && inc->life == LT_DEAD && by == PUT_BY_OTHERS && !put_for(inc, &seen->ev);
	point->strange += !inc;
	point->cleared += (by == PUT_BY_CALLER) - (by == PUT_BY_ITSELF);
}

/* a function is given the object */
static bool is_entry(const struct lt_point *p)
{
	return lt_point_given(p) || lt_point_ends(p);
}

/* all that the thread did to the object since event number i it did inside of the function that this is the entry of */
static bool goes_on(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i, const struct lt_event *now)
{
	for (uint32_t k = i + 1; k < inc->nr; k++) {
		if (inc->ledger[k].tid == now->tid && !lt_inside(lt, &inc->ledger[k], &inc->ledger[i]))
			return false;
	}
	return lt_inside(lt, now, &inc->ledger[i]);
}

/* Objects of the type have just the reference that they are made with: it goes along with the object. */
static bool goes_along(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	const struct lt_type *type = lt_inc_type(lt, inc);

	return !type->op[RT_OP_GET] && !(type->flags & (RT_TYPE_HEAP_ONLY | RT_TYPE_DESCRIPTOR | RT_TYPE_KERNEL));
}

/* a function that was given the object stores it, as the last events tell */
static bool was_given(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *store)
{
	if (!inc || inc->life != LT_LIVE)
		return false;
	for (uint32_t i = inc->nr; i-- > 0 && i + LOOK_BACK >= inc->nr;) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->op == RT_OP_MOVE && lt_point_given(lt_event_point(lt, e)) && goes_on(lt, inc, i, store))
			return true;
	}
	return false;
}

void lt_life_pointer(struct rt_lifetime *lt, const struct lt_seen *seen)
{
	struct lt_event ev = seen->ev;
	struct lt_point *point = &lt->points.data[lt->uses.data[ev.use].point];
	struct lt_inc *inc;

	if (lt_point_looks(point) && ev.slot && ev.slot == seen->e->object) {
		lt_life_freed(lt, seen);
		return;
	}
	ev.delta = 0;
	ev.count = INT32_MIN;
	if (lt_point_ends(point))
		lt_final_enter(lt, seen);
	inc = object_of(lt, seen);
	count_found(lt, inc, seen);
	if (lt_point_stores(point) && !(point->flags & RT_EV_MAYBE) && !point->strays)
		point->strays = !was_given(lt, inc, &ev);
	if (!inc || inc->life != LT_LIVE) {
		if (inc && lt_point_hands(point))
			inc->handed_dead = true;
		if (ev.slot && lt_point_stores(point))
			lt_slot_early(lt, seen->e->head.pid, seen->e->object, &ev);
		return;
	}
	if (lt_point_hands(point) && !goes_along(lt, inc) && !took_inside(lt, inc, &ev))
		return;
	if ((is_entry(point) || lt_point_hands(point)) && inc->nr && inc->ledger[inc->nr - 1].use == ev.use &&
	    inc->ledger[inc->nr - 1].sp == ev.sp)
		return; /* once more, with nothing between */
	if (lt_point_looks(point) && ev.slot && !lt_final_of(lt, inc, seen->e->head.pid, &ev)) {
		lt->nomem = true;
		return;
	}
	if (ev.slot && !lt_slot_note(lt, inc, &ev))
		return;
	inc->slotted |= ev.slot != 0;
	lt_ledger_add_silent(lt, inc, &ev);
}

/* are all returns of the function seen that hand out objects of the type? */
static bool returns_seen(const struct rt_lifetime *lt, uint32_t type, const struct lt_src *src)
{
	bool seen = false;

	for (size_t i = 0; i < lt->points.len; i++) {
		const struct lt_point *p = &lt->points.data[i];

		if (p->type != type || !lt_point_is(p, src) || !lt_point_hands(p))
			continue;
		if (p->unarmed || (src->frame.entry && p->function && p->function != src->frame.entry))
			return false;
		seen = true;
	}
	return seen;
}

/* the reference was taken for a slot, another one than that through which the object was handed out */
static bool stays_behind(const struct lt_event *taken, const struct lt_event *out)
{
	return (taken->flags & LT_EV_KEPT) && taken->slot && taken->slot != out->slot;
}

uint32_t lt_handed_by(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t out)
{
	int given_back = 0;

	for (uint32_t i = out; i-- > 0;) {
		const struct lt_event *e = &inc->ledger[i];

		if ((!lt_event_takes(e) && e->delta >= 0) || !lt_inside(lt, e, &inc->ledger[out]))
			continue;
		if (e->delta < 0)
			given_back -= e->delta;
		else if (given_back)
			given_back--;
		else if (!stays_behind(e, &inc->ledger[out]))
			return i;
	}
	return LT_NO_EVENT;
}

/* One function of the path, as it stands in the stack that took the reference. */
struct level {
	bool inlined; /* it has no frame of its own: it returns nothing that could be seen */
	uint64_t cfa; /* of its frame; 0: not known */
};

/*
 * A function runs more than once at one place of the stack: what another run of it handed out, by another run of what
 * took it, was another reference. One that calls itself runs at several places of one stack: what an inner run handed
 * out, the outer one was handed. surely: just this reference is known to have been.
 */
static bool was_handed(const struct lt_answer *a, const struct lt_ref *ref, const struct lt_src *src,
		       const struct level *level, bool surely)
{
	const struct lt_inc *inc = ref->inc;
	const struct lt_event *mine = &inc->ledger[ref->ev];

	for (uint32_t i = ref->ev + 1u; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];
		uint32_t other;

		const struct lt_point *p = &a->lt->points.data[a->lt->uses.data[e->use].point];

		if (!lt_point_hands(p) || !lt_point_is(p, src) || !lt_inside(a->lt, mine, e))
			continue;
		if (level->cfa && e->sp && e->sp < level->cfa)
			continue;
		other = lt_handed_by(a->lt, inc, i);
		if (other == ref->ev)
			return true;
		if (surely)
			continue;
		if (other == LT_NO_EVENT || !mine->act || !inc->ledger[other].act ||
		    mine->act == inc->ledger[other].act)
			return true;
	}
	return false;
}

static void find_levels(const struct rt_lifetime *lt, const struct lt_event *e, const struct lt_site *site,
			struct level ret[LT_PATH])
{
	const struct lt_use *use = &lt->uses.data[e->use];
	const struct lt_stack *s = use->stack ? &lt->stacks.data[use->stack - 1] : NULL;
	unsigned level = 0;

	memset(ret, 0, LT_PATH * sizeof(*ret));
	for (uint32_t i = 0; s && i < s->nr; i++) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];

		for (uint32_t j = 0; j < m->srcs && level < site->nr; j++) {
			uint32_t src = lt->stack_srcs.data[m->src + j];

			/* one that jumped on is on the path, but in no frame */
			while (level && level < site->nr && site->src[level] != src)
				level++;
			if (level == site->nr || site->src[level] != src)
				continue;
			ret[level].inlined = j + 1 < m->srcs;
			ret[level++].cfa = e->sp && m->cfa ? e->sp + m->cfa : 0;
		}
	}
}

bool lt_was_handed_up(const struct lt_answer *a, const struct lt_ref *ref, bool surely)
{
	const struct lt_site *s = lt_site(a->lt, ref->site);
	struct level levels[LT_PATH];
	unsigned level = 0;

	find_levels(a->lt, &ref->inc->ledger[ref->ev], s, levels);
	/* for what is inlined into it the function around it returns */
	while (level + 1 < s->nr && levels[level].inlined)
		level++;
	return was_handed(a, ref, lt_src(a->lt, s->src[level]), &levels[level], surely);
}

/* a function further out handed it out: so did those between, whose returns are not seen */
static bool handed_further_out(const struct lt_answer *a, const struct lt_ref *ref, const struct level *levels,
			       unsigned level)
{
	const struct lt_site *s = lt_site(a->lt, ref->site);

	while (++level + 1 < s->nr) {
		if (!levels[level].inlined && was_handed(a, ref, lt_src(a->lt, s->src[level]), &levels[level], true))
			return true;
	}
	return false;
}

unsigned lt_handed_up(const struct lt_answer *a, const struct lt_ref *ref, bool *ret_kept)
{
	const struct lt_site *s = lt_site(a->lt, ref->site);
	struct level levels[LT_PATH];
	unsigned level = 0;

	*ret_kept = false;
	find_levels(a->lt, &ref->inc->ledger[ref->ev], s, levels);
	while (level + 1 < s->nr) {
		const struct lt_src *src = lt_src(a->lt, s->src[level]);

		if (!levels[level].inlined && !was_handed(a, ref, src, &levels[level], false) &&
		    !handed_further_out(a, ref, levels, level)) {
			/* what it returned may be what holds the reference */
			if (rt_returns_anything(src->frame.returns))
				break;
			*ret_kept = returns_seen(a->lt, ref->inc->type, src);
			if (*ret_kept)
				break;
		}
		level++;
	}
	/* the path may end with a function that hands such objects out, but not this one */
	if (level && level + 1 == s->nr && !levels[level].inlined && levels[level - 1].inlined)
		*ret_kept = !was_handed(a, ref, lt_src(a->lt, s->src[level]), &levels[level], false) &&
			    returns_seen(a->lt, ref->inc->type, lt_src(a->lt, s->src[level]));
	/*
	 * What is inlined into it returns nothing that could be seen, but most functions that hand an object up just
	 * pass it on: of those in one frame it is the one that took the reference that forgot it on its way out.
	 */
	while (*ret_kept && level && levels[level - 1].inlined)
		level--;
	return level;
}

/* the object shows when the constructor of this name returns it */
static bool makes_seen(const struct rt_lifetime *lt, uint32_t type, const struct lt_src *src)
{
	for (size_t i = 0; i < lt->points.len; i++) {
		const struct lt_point *p = &lt->points.data[i];

		if (p->type == type && p->op == RT_OP_NEW && (p->flags & RT_EV_AT_RETURN) && p->name == src->name &&
		    !p->unarmed && (!src->frame.entry || p->function == src->frame.entry))
			return true;
	}
	return false;
}

uint32_t lt_kept_by_maker(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_event *e = &ref->inc->ledger[ref->ev];
	const struct lt_use *use = &a->lt->uses.data[e->use];
	const struct lt_stack *s = use->stack && e->op == RT_OP_NEW ? &a->lt->stacks.data[use->stack - 1] : NULL;
	const struct lt_type *type = lt_inc_type(a->lt, ref->inc);
	uint32_t own = a->lt->points.data[use->point].name, site = lt_site(a->lt, use->site)->src[0];

	for (uint32_t i = 0; s && i < s->nr && i <= use->machine; i++) {
		const struct lt_machine *m = &a->lt->machines.data[s->first + i];

		for (uint32_t j = 0; j < m->srcs; j++) {
			uint32_t id = a->lt->stack_srcs.data[m->src + j];
			const struct lt_src *src = lt_src(a->lt, id);

			if (id == site)
				return 0;
			if (j + 1 == m->srcs && src->name != own && (lt_is_api(a->lt, type, src) & LT_API_NEW) &&
			    makes_seen(a->lt, ref->inc->type, src))
				return id;
		}
	}
	return 0;
}
