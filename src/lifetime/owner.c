/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whose business a reference is. Programs take references through helpers, and give them back through others (a page's
 * btreeGetPage() and releasePage()): innermost functions that all share, and that say nothing about who forgot. Where
 * dead objects of the type show that what a function takes is nearly always given back by a run of one of its callers,
 * what it leaves open is a caller's fault: of the first one outward that is not such a helper itself.
 *
 * That a get and a put lie in one run of a function is seen from their stacks: what they share from the outermost frame
 * on stands at the same places. A turn of an event loop looks like the one before it, which makes owners of functions
 * that are none, never helpers of owners.
 */
#include <string.h>

#include "lifetime/answer.h"

enum {
	OPEN_MAX = 64, /* references of a life that are open at a time */
	SURE = 3       /* references that make a helper */
};

/* The functions around an event, innermost first, from its site on. */
struct levels {
	unsigned nr;
	uint32_t src[LT_LEVELS];
	uint16_t place[LT_LEVELS]; /* LT_PLACE* */
};

static const struct lt_stack *stack_of(const struct rt_lifetime *lt, const struct lt_event *e)
{
	const struct lt_use *use = &lt->uses.data[e->use];

	return use->stack ? &lt->stacks.data[use->stack - 1] : NULL;
}

static void read_levels(const struct rt_lifetime *lt, const struct lt_event *e, struct levels *ret)
{
	ret->nr = lt_use_levels(lt, &lt->uses.data[e->use], ret->src, ret->place, LT_LEVELS);
}

/*
 * The innermost machine frames of a and b that are the same run of a function, as far as what lies outside of them
 * looks the same: they stand at one place, and so do all further out, called from one place each. Either stack may be
 * cut off at its outer end. false: there is none
 */
static bool shared(const struct rt_lifetime *lt, const struct lt_event *a, const struct lt_event *b, uint32_t *ret_a,
		   uint32_t *ret_b)
{
	const struct lt_stack *sa = stack_of(lt, a), *sb = stack_of(lt, b);
	const struct lt_machine *ma, *mb;
	bool found = false;

	if (!sa || !sb || !sa->nr || !sb->nr || a->tid != b->tid || !a->sp || !b->sp)
		return false;
	ma = &lt->machines.data[sa->first];
	mb = &lt->machines.data[sb->first];
	for (uint32_t i = sa->nr, k = sb->nr; i > 0 && k > 0 && ma[i - 1].cfa && mb[k - 1].cfa;) {
		uint64_t pa = a->sp + ma[i - 1].cfa, pb = b->sp + mb[k - 1].cfa;

		if (pa != pb) {
			if (found)
				break;
			i -= pa > pb;
			k -= pb > pa;
			continue;
		}
		if (ma[i - 1].function != mb[k - 1].function || (found && ma[i].pc != mb[k].pc))
			break;
		found = true;
		*ret_a = --i;
		*ret_b = --k;
	}
	return found;
}

/* the frame of a that both share is in the middle of the same call, by which b jumped away */
static bool jumped(const struct rt_lifetime *lt, const struct lt_event *a, uint32_t ma, const struct lt_event *b,
		   uint32_t mb, uint16_t place)
{
	const struct lt_machine *fa = &lt->machines.data[stack_of(lt, a)->first + ma];
	const struct lt_machine *fb = &lt->machines.data[stack_of(lt, b)->first + mb];

	return place == LT_PLACE_CALLED(mb) && fa->pc == fb->pc;
}

/* the level of a where a and b come together, a->nr: nowhere */
static unsigned meet(const struct rt_lifetime *lt, const struct lt_event *get, const struct levels *a,
		     const struct lt_event *put, const struct levels *b, unsigned *ret_other)
{
	unsigned i = a->nr, k = b->nr, last = a->nr;
	uint32_t ma, mb;

	*ret_other = b->nr;
	if (!shared(lt, get, put, &ma, &mb))
		return a->nr;
	/* of the innermost frame that both share, the functions inlined in it that both lie in, from outside in */
	while (i > 0 && a->place[i - 1] > LT_PLACE(ma))
		i--;
	while (k > 0 && b->place[k - 1] > LT_PLACE(mb))
		k--;
	while (i > 0 && k > 0 && a->place[i - 1] == LT_PLACE(ma) && b->place[k - 1] == LT_PLACE(mb) &&
	       lt_src(lt, a->src[i - 1])->function == lt_src(lt, b->src[k - 1])->function) {
		last = --i;
		*ret_other = --k;
	}
	/* whoever took it there jumped to the put, or the other way round: no frame is left of the run in which both
	 * were */
	if (i > 0 && k > 0 && lt_src(lt, a->src[i - 1])->function == lt_src(lt, b->src[k - 1])->function &&
	    (jumped(lt, get, ma, put, mb, b->place[k - 1]) || jumped(lt, put, mb, get, ma, a->place[i - 1]))) {
		last = --i;
		*ret_other = --k;
	}
	/* the site itself lies outside of that frame: it is the site's run */
	if (last == a->nr && i < a->nr) {
		last = i;
		*ret_other = k;
	}
	return last;
}

bool lt_come_together(const struct rt_lifetime *lt, const struct lt_event *a, const struct lt_event *b, unsigned *ret_a,
		      unsigned *ret_b)
{
	struct levels la, lb;

	read_levels(lt, a, &la);
	read_levels(lt, b, &lb);
	*ret_a = meet(lt, a, &la, b, &lb, ret_b);
	return *ret_a < la.nr;
}

bool lt_left_by(const struct rt_lifetime *lt, const struct lt_event *e, unsigned level, const struct lt_event *last)
{
	struct levels l;
	uint32_t machine;

	read_levels(lt, e, &l);
	if (level >= l.nr)
		return false;
	machine = l.place[level] / 2;
	/* what is inlined into the frame does not leave it */
	if (l.place[level] != LT_PLACE(machine) || (level + 1 < l.nr && l.place[level + 1] == l.place[level]))
		return false;
	return lt_frame_left(lt, e, machine, last);
}

bool lt_in_one_call(const struct rt_lifetime *lt, const struct lt_event *a, const struct lt_event *b)
{
	uint32_t ma = 0, mb = 0;

	return shared(lt, a, b, &ma, &mb) && ma && mb &&
	       lt->machines.data[stack_of(lt, a)->first + ma].pc == lt->machines.data[stack_of(lt, b)->first + mb].pc;
}

uint32_t lt_src_around(const struct rt_lifetime *lt, const struct lt_event *e, unsigned level)
{
	struct levels l;

	read_levels(lt, e, &l);
	return level < l.nr ? l.src[level] : 0;
}

/*
 * What is known of what the function does with references that `from` takes, 0: with all of them; made when new. NULL:
 * it has no name, or out of memory.
 */
static struct lt_owner *owner(struct rt_lifetime *lt, struct lt_type *type, uint32_t function, uint32_t from)
{
	bool made = false;
	uint64_t *at = function ? rt_map_put(&type->owner_of, rt_key_make(function, from), &made) : NULL;

	if (at && made) {
		*at = type->owners.len;
		if (!rt_vec_add(&type->owners)) {
			rt_map_remove(&type->owner_of, rt_key_make(function, from), NULL);
			at = NULL;
		}
	}
	lt->nomem |= function && !at;
	return at ? &type->owners.data[*at] : NULL;
}

static void count_level(const struct rt_lifetime *lt, struct lt_owned *c, const struct levels *l, unsigned i,
			unsigned met)
{
	if (met == l->nr) { /* they never come together: a helper of nobody in particular */
		c->far++;
		return;
	}
	c->own += i == met;
	c->up += i < met;
	c->next += i + 1 == met;
	if (i < met) {
		uint32_t caller = lt_src(lt, l->src[i + 1])->function;

		c->callers |= c->caller && c->caller != caller;
		c->caller = caller;
	}
}

static void count(struct rt_lifetime *lt, struct lt_type *type, const struct levels *l, unsigned met, bool put)
{
	const uint32_t from[] = { 0, lt_src(lt, l->nr ? l->src[0] : 0)->function };

	for (unsigned i = 0; i < l->nr && i <= met; i++) {
		for (unsigned k = 0; k < 2; k++) {
			struct lt_owner *o = owner(lt, type, lt_src(lt, l->src[i])->function, from[k]);

			if (!o)
				return;
			count_level(lt, put ? &o->puts : &o->gets, l, i, met);
		}
		if (met == l->nr)
			return;
	}
}

/* A reference that was taken, and by whom. */
struct open {
	uint16_t ev;
	struct levels levels;
};

/* which of the open gets the put closes: the one with which it shares the innermost run, of these the newest */
static void close_one(struct rt_lifetime *lt, const struct lt_inc *inc, struct open *open, unsigned *nr, uint16_t put)
{
	const struct lt_event *p = &inc->ledger[put];
	unsigned best = *nr, best_met = LT_LEVELS + 1, best_other = 0;
	struct lt_type *type = lt_inc_type(lt, inc);
	struct levels lp;

	read_levels(lt, p, &lp);
	for (unsigned i = *nr; i-- > 0;) {
		const struct levels *lg = &open[i].levels;
		unsigned other, met = meet(lt, &inc->ledger[open[i].ev], lg, p, &lp, &other);

		met = met == lg->nr ? LT_LEVELS : met;
		if (met >= best_met)
			continue;
		best = i;
		best_met = met;
		best_other = other;
	}
	if (best == *nr)
		return;
	count(lt, type, &open[best].levels, best_met == LT_LEVELS ? open[best].levels.nr : best_met, false);
	count(lt, type, &lp, best_met == LT_LEVELS ? lp.nr : best_other, true);
	memmove(&open[best], &open[best + 1], (*nr - best - 1) * sizeof(open[0]));
	(*nr)--;
}

void lt_owners_learn(struct rt_lifetime *lt, const struct lt_inc *inc)
{
	struct open open[OPEN_MAX];
	unsigned nr = 0;

	for (uint16_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if ((e->op == RT_OP_NEW && inc->start > 0) || e->delta > 0) {
			if (nr == OPEN_MAX)
				return;
			open[nr].ev = i;
			read_levels(lt, e, &open[nr++].levels);
		} else if (e->delta < 0 || (e->flags & LT_EV_CLOSES)) {
			close_one(lt, inc, open, &nr, i);
		}
	}
}

static uint64_t all(const struct lt_owned *o)
{
	return o->own + o->up + o->far;
}

/*
 * What the function at this level does with references that `from` takes, 0: with all of them; NULL: too little is
 * known.
 */
static const struct lt_owned *known_from(const struct rt_lifetime *lt, const struct lt_type *type,
					 const struct levels *l, unsigned level, bool put, uint32_t from)
{
	const uint64_t *at = rt_map_get(&type->owner_of, rt_key_make(lt_src(lt, l->src[level])->function, from));
	const struct lt_owner *o = at ? &type->owners.data[*at] : NULL;
	const struct lt_owned *c = !o ? NULL : put ? &o->puts : &o->gets;

	return c && all(c) >= SURE ? c : NULL;
}

/* ... with such references as this one, as far as that is known, else with all */
static const struct lt_owned *known(const struct rt_lifetime *lt, const struct lt_type *type, const struct levels *l,
				    unsigned level, bool put)
{
	return known_from(lt, type, l, level, put, lt_src(lt, l->src[0])->function)
		       ?: known_from(lt, type, l, level, put, 0);
}

/*
 * It is known to give such references back itself. Of others that is no word where code says that it returns this one
 * on all its ways: what it makes on the side is another object.
 */
static bool gives_back(const struct rt_lifetime *lt, const struct lt_type *type, const struct levels *l, unsigned level,
		       bool returns)
{
	const struct lt_owned *c = returns ? known_from(lt, type, l, level, false, lt_src(lt, l->src[0])->function)
					   : known(lt, type, l, level, false);

	return c && c->own * 4 > all(c);
}

/*
 * Outward as long as functions pass on what they take; it ends above one that several functions ask, as who has one
 * caller only is as good a name as that.
 */
static unsigned climb(const struct rt_lifetime *lt, const struct lt_type *type, const struct levels *l, bool put,
		      bool *ret_sure)
{
	unsigned best = 0;

	*ret_sure = false;
	for (unsigned level = 0; level + 1 < l->nr; level++) {
		const struct lt_owned *c = known(lt, type, l, level, put);

		if (!c || c->own * 4 > all(c) || c->far * 4 > all(c))
			break;
		if (!c->callers && c->caller == lt_src(lt, l->src[level + 1])->function)
			continue;
		*ret_sure = c->next * 2 >= all(c);
		best = level + 1;
	}
	return best;
}

/*
 * The function at the next level gets what that at this one returns: it takes the result, or gave the object itself,
 * and returns it in turn. What is just left in a register nobody gets.
 */
static bool gets(const struct rt_lifetime *lt, const struct lt_event *e, const struct levels *l, unsigned level,
		 bool given)
{
	uint16_t place = l->place[level + 1];
	uint8_t hands;

	/* one that jumped to what it called returns to its own caller, which is asked in its turn */
	if (place == LT_PLACE_CALLED(place / 2))
		return true;
	hands = lt_hands(lt, e, place / 2);
	return (hands & RT_HANDS_TAKEN) || (given && (hands & RT_HANDS_ARGUMENT));
}

/*
 * Outward from this level as long as the code of functions says that they return what they took: the object, where that
 * is seen when the get returns, else what the get was given; or, from level `declared` on, their declaration. What they
 * are known to give back themselves they do not hand up.
 */
static unsigned returned_to(const struct rt_lifetime *lt, const struct lt_type *type, const struct lt_event *e,
			    const struct levels *l, unsigned from, unsigned declared)
{
	unsigned level = from;
	bool given = !level && e->op == RT_OP_GET && !(lt_event_point(lt, e)->flags & RT_EV_AT_RETURN);

	for (; level + 1 < l->nr && !e->slot; level++) {
		uint32_t machine = l->place[level] / 2;
		const bool jumped = l->place[level] == LT_PLACE_CALLED(machine);
		uint8_t hands = jumped ? 0 : lt_hands(lt, e, machine);

		if (gives_back(lt, type, l, level, hands & RT_HANDS_RESULT))
			break;
		if (jumped) {
			/* it jumped to the get: what that returns it returns as well, whatever a declaration says of it
			 */
			if (lt_src(lt, l->src[level])->frame.file)
				break;
			given = false;
		} else {
			if (!(hands & RT_HANDS_RESULT) && !(given && (hands & RT_HANDS_ARGUMENT)) &&
			    !(level >= declared && lt_returns_object(type, &lt_src(lt, l->src[level])->frame)))
				break;
			given &= (hands & RT_HANDS_OWN) != 0;
		}
		if (!gets(lt, e, l, level, given))
			break;
	}
	return level;
}

/*
 * The level of the caller in whose frame the run that took the reference stored the pointer right then: an output of
 * its own (open(&x)), which the caller has now. Further out lie structs that outlive it. 0: it stored it in none.
 */
static unsigned put_out(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev, const struct levels *l)
{
	const struct lt_event *e = &inc->ledger[ev], *w = e + 1, *end = inc->ledger + inc->nr;
	const struct lt_stack *s = stack_of(lt, e);
	const uint32_t own = l->place[0] / 2;
	const struct lt_machine *m;
	unsigned level = 0;

	while (w < end && w->op == RT_OP_MOVE && !lt_point_stores(lt_event_point(lt, w)))
		w++;
	if (!s || own + 1 >= s->nr || !e->act || w >= end || w->op != RT_OP_MOVE || w->act != e->act ||
	    lt_event_function(lt, w) != lt_event_function(lt, e))
		return 0;
	m = &lt->machines.data[s->first + own];
	if (!m->cfa || w->slot < e->sp + m->cfa || w->slot >= e->sp + m[1].cfa)
		return 0;
	while (level < l->nr && l->place[level] / 2 <= own)
		level++;
	return level < l->nr ? level : 0;
}

uint32_t lt_owner_of(const struct lt_answer *a, const struct lt_inc *inc, uint16_t ev, bool *ret_sure)
{
	const struct lt_event *e = &inc->ledger[ev];
	struct levels l;
	unsigned level;

	*ret_sure = false;
	read_levels(a->lt, e, &l);
	if (!l.nr)
		return 0;
	level = climb(a->lt, lt_inc_type(a->lt, inc), &l, e->delta < 0, ret_sure);
	return level ? l.src[level] : 0;
}

uint32_t lt_owner_beyond(const struct lt_answer *a, const struct lt_ref *ref, unsigned level, bool *ret_learnt)
{
	const struct lt_event *e = &ref->inc->ledger[ref->ev];
	const struct lt_site *site = lt_site(a->lt, ref->site);
	struct levels l;
	unsigned at = 0, path = 0, returned;
	bool sure;

	*ret_learnt = false;
	read_levels(a->lt, e, &l);
	if (!l.nr || level >= site->nr)
		return 0;
	while (path < l.nr && l.src[path] != site->src[level])
		path++;
	at = climb(a->lt, lt_inc_type(a->lt, ref->inc), &l, false, &sure);
	at = sure ? at : 0;
	*ret_learnt = at > path;
	returned = returned_to(a->lt, lt_inc_type(a->lt, ref->inc), e, &l, 0, 1);
	/* by its declaration it returns anything: what that is its code says */
	if (path < l.nr && path > returned && rt_returns_anything(lt_src(a->lt, l.src[path])->frame.returns))
		returned = returned_to(a->lt, lt_inc_type(a->lt, ref->inc), e, &l, path, path + 1);
	if (at && returned < at)
		returned = returned_to(a->lt, lt_inc_type(a->lt, ref->inc), e, &l, at, at);
	at = returned > at ? returned : at;
	if (at <= path)
		at = put_out(a->lt, ref->inc, ref->ev, &l);
	return path < l.nr && at > path ? l.src[at] : 0;
}
