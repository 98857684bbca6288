/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects that were put or used after their death.
 *
 * The put that failed is mostly the victim's, on the shutdown path: its
 * reference was gone. So the whole life is matched again, with one put more
 * than there are references, and the put that stays alone at the least cost
 * is the extra one: cheap are sites that never put in health, and two puts by
 * one activation; dear are puts by functions that took a reference.
 *
 * A use after death with as many puts as references: a function that put
 * before, in the same activation, uses what it gave away. Otherwise the put
 * that does not fit its reference by the model is the extra one; else the user is.
 */
#include <math.h>
#include <string.h>

#include "lifetime/answer.h"
#include "lifetime/extra.h"
#include "lifetime/slot.h"

static const double IN_ROW = 0.95;

struct life {
	struct lt_units units;
	struct lt_mark marks[LT_UNITS];
	uint16_t unit_of[LT_UNITS];
	uint8_t hints[LT_UNITS]; /* LT_HINT_* */
	unsigned n, opens, closes;
	uint16_t bad; /* first event after death */
	bool usual;   /* some were paired because such mostly belong together */
};

/* LT_HINT_* of event ev */
static uint8_t hints_of(const struct lt_answer *a, const struct lt_inc *inc, uint16_t ev)
{
	const struct lt_event *mine = &inc->ledger[ev];
	uint32_t function = lt_event_function(a->lt, mine);
	bool twice = false;
	int gets = 0, puts = 0;

	for (uint32_t i = 0; mine->act && i <= ev; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->act != mine->act || lt_event_function(a->lt, e) != function)
			continue;
		gets += lt_event_takes(e);
		puts += e->delta < 0;
		twice |= e->delta < 0 && lt_twice_in_run(a->lt, mine, e);
	}
	if (lt_twice_in_row(a->lt, inc, ev))
		return LT_HINT_TWICE | LT_HINT_IN_ROW;
	return (uint8_t)((mine->flags & LT_EV_POST ? LT_HINT_POST : 0) | (twice && puts > gets ? LT_HINT_TWICE : 0));
}

/* false: too much of it to be matched */
static bool read_life(const struct lt_answer *a, const struct lt_model *m, const struct lt_inc *inc, struct life *ret)
{
	ret->bad = LT_NO_EVENT;
	ret->opens = ret->closes = 0;
	for (uint32_t i = inc->nr; i-- > 0;) {
		if (inc->ledger[i].flags & LT_EV_POST)
			ret->bad = (uint16_t)i;
	}
	lt_pair(a->lt, inc, &ret->units);
	lt_pair_doubt_rows(a->lt, inc, &ret->units);
	ret->usual = lt_pair_usual(m, &ret->units);
	/* that were too many doubts */
	if (ret->units.left > LT_UNITS) {
		lt_pair(a->lt, inc, &ret->units);
		ret->usual = lt_pair_usual(m, &ret->units);
	}
	ret->n = lt_marks(a->lt, inc, &ret->units, ret->marks, ret->unit_of);
	if (ret->units.cut || ret->n > LT_UNITS)
		return false;
	for (unsigned i = 0; i < ret->n; i++) {
		const struct lt_unit *u = &ret->units.u[ret->unit_of[i]];

		ret->hints[i] = u->ev == LT_NO_EVENT ? 0 : hints_of(a, inc, u->ev);
		ret->opens += ret->marks[i].opens;
		ret->closes += !ret->marks[i].opens;
	}
	return true;
}

static double by_margin(double margin)
{
	/* what came true in the mass test was more than this */
	return margin < 0.2 ? 0.75 : margin < 0.8 ? 0.85 : margin < 2 ? 0.92 : 0.95;
}

/* the put that stays alone, with the runner-up */
static bool alone(const struct lt_answer *a, const struct lt_model *m, const struct lt_inc *inc, struct life *l,
		  struct lt_ref *ref, struct lt_blame *b)
{
	struct lt_match match, other;
	int best = -1;

	for (unsigned i = 0; i < l->n; i++)
		l->hints[i] |= LT_HINT_TOO_MANY;
	lt_model_match(m, l->marks, l->n, -1, l->hints, &match);
	for (unsigned i = 0; i < l->n; i++) {
		if (!l->marks[i].opens && match.mate[i] < 0)
			best = (int)i;
	}
	if (best < 0)
		return false;
	ref->bad = l->units.u[l->unit_of[best]].ev;
	b->guilty = lt_extra_doer(a, inc, ref->bad);
	lt_model_match(m, l->marks, l->n, best, l->hints, &other);
	b->confidence = by_margin(other.cost - match.cost);
	/* of two puts in a row either may stay alone, and both name the same function */
	if (l->hints[best] & LT_HINT_IN_ROW)
		b->confidence = IN_ROW;
	for (unsigned i = 0; i < l->n; i++) {
		if (!l->marks[i].opens && other.mate[i] < 0 && match.mate[i] >= 0) {
			b->alternative = lt_event_src(a->lt, &inc->ledger[l->units.u[l->unit_of[i]].ev]);
			b->alternative_confidence = 1 - b->confidence;
		}
	}
	return b->guilty != 0;
}

uint32_t lt_extra_doer(const struct lt_answer *a, const struct lt_inc *inc, uint16_t ev)
{
	uint32_t by = lt_twice_by_helper(a->lt, inc, ev);

	return by ? by : lt_event_src(a->lt, &inc->ledger[ev]);
}

void lt_extra_taken(const struct lt_answer *a, const struct lt_inc *inc, struct lt_ref *ref)
{
	uint32_t function = ref->bad == LT_NO_EVENT ? 0 : lt_event_function(a->lt, &inc->ledger[ref->bad]);

	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];
		uint32_t site = a->lt->uses.data[e->use].site;

		if (e->op != RT_OP_NEW && e->delta <= 0)
			continue;
		if (ref->ev == LT_NO_EVENT || lt_site_function(a->lt, site) == function) {
			ref->ev = (uint16_t)i;
			ref->site = site;
		}
	}
}

/* the function of put site p closes references of g in health, at whichever line */
static bool closes_well(const struct lt_model *m, uint32_t g, uint32_t p)
{
	uint32_t function = lt_site_function(m->lt, p);
	const struct lt_cell *c;
	uint32_t pos = 0;

	if (lt_model_pair(m, g, p) >= 1)
		return true;
	while (function && (c = lt_model_next(m, g, &pos))) {
		if (lt_site_function(m->lt, c->site) == function && m->n.data[c->n] >= 1)
			return true;
	}
	return false;
}

/* a put that closes, in the best matching, a reference that it never closes in health */
static uint16_t misfit(const struct lt_model *m, const struct life *l, uint32_t user)
{
	struct lt_match match;
	uint16_t best = LT_NO_EVENT;

	lt_model_match(m, l->marks, l->n, -1, l->hints, &match);
	for (unsigned i = 0; i < l->n; i++) {
		uint32_t g = l->marks[i].site, p;

		if (!l->marks[i].opens || match.mate[i] < 0)
			continue;
		p = l->marks[match.mate[i]].site;
		if (lt_site_passes(m->lt, g, lt_site_function(m->lt, p)) || lt_site_function(m->lt, p) == user)
			continue;
		if (lt_model_closed(m, g) >= 3 ? !closes_well(m, g, p)
					       : lt_site_passes(m->lt, g, user) && lt_model_closes(m, p) < 1)
			best = l->units.u[l->unit_of[match.mate[i]]].ev;
	}
	return best;
}

/* event number ev of inc is it instead, and who was thought to be it is the other one that it may be */
static void instead(const struct lt_answer *a, const struct lt_inc *inc, uint16_t ev, struct lt_ref *ref,
		    struct lt_blame *b)
{
	b->alternative = b->guilty;
	b->alternative_confidence = 0.2;
	b->guilty = lt_extra_doer(a, inc, ev);
	ref->bad = ev;
}

/* the run that did event number ev had taken, or was handed, as many references as it put */
static bool had_all(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev)
{
	const uint32_t act = inc->ledger[ev].act;
	int left = 0;

	for (uint32_t i = 0; act && i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->act == act && !(e->flags & LT_EV_POST))
			left += e->op == RT_OP_NEW || lt_point_hands(lt_event_point(lt, e)) ? 1 : e->delta;
	}
	return act && left >= 0;
}

static bool is_put(const struct lt_event *e)
{
	return e->op == RT_OP_PUT && e->delta < 0 && !(e->flags & LT_EV_POST);
}

/*
 * Who had event number ev done twice in one line by what it called; 0: nobody. Not where the object had outlived that
 * before: each put is for another holder, then.
 */
static uint32_t put_by_callee(const struct lt_answer *a, const struct lt_inc *inc, uint32_t ev)
{
	const uint32_t by = is_put(&inc->ledger[ev]) ? lt_twice_by_helper(a->lt, inc, (uint16_t)ev) : 0;
	unsigned n = 0;

	for (uint32_t i = 0; by && i < inc->nr; i++) {
		uint32_t other = is_put(&inc->ledger[i]) ? lt_twice_by_helper(a->lt, inc, (uint16_t)i) : 0;

		n += other && lt_src(a->lt, other)->function == lt_src(a->lt, by)->function;
	}
	return n > 2 ? 0 : by;
}

/*
 * The last put of a dead object that some run did twice in a row; LT_NO_EVENT: none was. Two lines may be for two
 * references that the run had.
 */
static uint16_t put_in_row(const struct lt_answer *a, const struct lt_inc *inc)
{
	for (uint32_t i = inc->nr; i-- > 0;) {
		if (!is_put(&inc->ledger[i]))
			continue;
		if ((lt_twice_in_row(a->lt, inc, (uint16_t)i) &&
		     (lt_twice_in_line(a->lt, inc, (uint16_t)i) || !had_all(a->lt, inc, (uint16_t)i))) ||
		    put_by_callee(a, inc, i))
			return (uint16_t)i;
	}
	return LT_NO_EVENT;
}

/* true: who used it had put it himself, and nobody else comes into question */
static bool use_after(const struct lt_answer *a, const struct lt_model *m, const struct lt_inc *inc, struct life *l,
		      struct lt_ref *ref, struct lt_blame *b)
{
	const struct lt_event *use = &inc->ledger[l->bad];
	uint32_t own = lt_own_use(a, inc, l->bad);
	uint16_t put;

	b->kind = RT_USE_AFTER_PUT;
	b->role = RT_ROLE_USE;
	b->guilty = own ? own : lt_event_src(a->lt, use);
	ref->bad = l->bad;
	put = put_in_row(a, inc);
	if (own && (put == LT_NO_EVENT || inc->ledger[put].act != use->act)) {
		b->confidence = 0.95;
		b->why = "it put its reference before";
		return true;
	}
	b->confidence = 0.7;
	/* the reference that the user had is the one that was put once too often */
	if (put == LT_NO_EVENT)
		put = misfit(m, l, lt_event_function(a->lt, use));
	if (put == LT_NO_EVENT || !lt_event_src(a->lt, &inc->ledger[put]))
		return false;
	instead(a, inc, put, ref, b);
	b->kind = RT_EXTRA_PUT;
	b->role = RT_ROLE_EXTRA_PUT;
	b->confidence = own ? 0.9 : 0.75;
	return false;
}

/*
 * Objects that ended well, and that somebody gave back to at once, at this site, what had been taken; at most `most`,
 * of the last that ended.
 */
static unsigned ended_well_with(const struct lt_answer *a, const struct lt_inc *inc, uint32_t site, unsigned most)
{
	enum { LOOKS = 1 << 14 };
	const struct lt_inc *other;
	uint32_t at = UINT32_MAX;
	unsigned n = 0;

	for (unsigned i = 0; i < LOOKS && n < most && (other = lt_row_older(&a->lt->graves, &at)); i++) {
		bool has = false;

		for (uint32_t k = 0; !has && other->type == inc->type && !other->post && k < other->nr; k++)
			has = other->ledger[k].delta < 0 && a->lt->uses.data[other->ledger[k].use].site == site &&
			      lt_back_at_once(a->lt, other, (uint16_t)k);
		n += has;
	}
	return n;
}

/*
 * Event number i gives back at once what was taken for it, and so it goes in healthy objects: it is for something.
 * Where the program died, one object that does it again and again may just not have come to its bad end yet.
 */
static bool is_usual(const struct lt_answer *a, const struct lt_model *m, const struct lt_inc *inc, uint32_t i)
{
	enum { HEALTHY = 3 };
	const uint32_t site = a->lt->uses.data[inc->ledger[i].use].site;
	uint32_t get = i;

	while (get-- > 0 && !inc->ledger[get].delta)
		;
	return get < i && lt_model_certain(m, a->lt->uses.data[inc->ledger[get].use].site, site) >= HEALTHY &&
	       (!lt_crashed(a->lt, inc->pid, false) || ended_well_with(a, inc, site, HEALTHY) >= HEALTHY);
}

uint16_t lt_extra_for_nothing(const struct lt_answer *a, const struct lt_model *m, const struct lt_inc *inc)
{
	uint16_t put = put_in_row(a, inc);

	for (uint32_t i = inc->nr; put == LT_NO_EVENT && i-- > 0;) {
		if (!(inc->ledger[i].flags & LT_EV_POST) && lt_back_at_once(a->lt, inc, (uint16_t)i) &&
		    !(m && is_usual(a, m, inc, i)))
			put = (uint16_t)i;
	}
	return put;
}

static bool past_put(const struct lt_answer *a, const struct lt_inc *past, uint16_t ev, struct lt_ref *ref,
		     struct lt_blame *b)
{
	instead(a, past, ev, ref, b);
	b->confidence = 0.75;
	b->why = b->role == RT_ROLE_USE ? "the address was used again, and who still had the old object met the new one"
					: "the address was used again, and the owner's own put hit the new object";
	b->kind = RT_EXTRA_PUT;
	b->role = RT_ROLE_EXTRA_PUT;
	return b->guilty != 0;
}

/*
 * The address had another object before. Its last reference was closed by q,
 * though put site p closes such references in health, and p is what hit the
 * new object: q is the extra put, of the object before. So is what some run put
 * there for nothing, whatever is known of health.
 */
static bool past_culprit(const struct lt_answer *a, const struct lt_model *m, const struct lt_inc *past,
			 uint32_t victim, struct lt_ref *ref, struct lt_blame *b)
{
	struct lt_match match;
	struct life l;
	uint16_t put;

	if (!past || past->incomplete || !read_life(a, m, past, &l))
		return false;
	put = lt_extra_for_nothing(a, m, past);
	if (put != LT_NO_EVENT && lt_event_function(a->lt, &past->ledger[put]) != victim)
		return past_put(a, past, put, ref, b);
	lt_model_match(m, l.marks, l.n, -1, NULL, &match);
	for (unsigned i = 0; i < l.n; i++) {
		double share;
		uint32_t usual = lt_model_usual(m, l.marks[i].site, &share), q;

		if (!l.marks[i].opens || match.mate[i] < 0 || share < 0.6 || lt_site_function(a->lt, usual) != victim)
			continue;
		q = l.marks[match.mate[i]].site;
		if (lt_site_function(a->lt, q) == victim ||
		    lt_site_passes(a->lt, l.marks[i].site, lt_site_function(a->lt, q)))
			continue;
		return past_put(a, past, l.units.u[l.unit_of[match.mate[i]]].ev, ref, b);
	}
	return false;
}

/* Nothing in the life says why it was used after its end: it may have been the object before that was meant. */
static bool used_the_past(const struct lt_answer *a, const struct lt_model *m, const struct lt_inc *past,
			  struct lt_ref *ref, struct lt_blame *b)
{
	uint16_t put =
		past && !past->incomplete && past->life == LT_DEAD ? lt_extra_for_nothing(a, m, past) : LT_NO_EVENT;

	if (put == LT_NO_EVENT || lt_event_src(a->lt, &past->ledger[put]) == b->guilty)
		return false;
	return past_put(a, past, put, ref, b);
}

/*
 * The put that stays alone is what ends objects of another type, and gives back what their constructor took for them.
 * A constructor that gave it back itself, in the run that took it, did what was not its business.
 */
static bool held_for_other(const struct lt_answer *a, const struct lt_inc *inc, struct lt_ref *ref, struct lt_blame *b)
{
	const struct lt_src *ends = lt_src(a->lt, b->guilty);

	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *put = &inc->ledger[i];
		const struct lt_site *site = lt_site(a->lt, a->lt->uses.data[put->use].site);
		const struct lt_type *made = put->delta < 0 && put->act && site->nr
						     ? lt_made_by(a->lt, lt_src(a->lt, site->src[0])->name, inc->type)
						     : NULL;

		if (!made || !(lt_is_api(a->lt, made, ends) & LT_API))
			continue;
		for (uint32_t k = 0; k < i; k++) {
			if (inc->ledger[k].delta <= 0 || inc->ledger[k].act != put->act)
				continue;
			instead(a, inc, (uint16_t)i, ref, b);
			b->confidence = fmin(b->confidence, 0.8);
			b->why = "it is a constructor, and gave back what the end of its object gives back";
			return true;
		}
	}
	return false;
}

/*
 * Where one life in twenty lacks operations that its counter knows of (a find that hands out references is not probed),
 * a put too many may as well be the put of a get that was not seen.
 */
static bool unsteady(const struct lt_type *type)
{
	return type->incomplete && type->incomplete * 20 >= type->objects;
}

/*
 * Objects of the type are made by what is not known, too: what was put after its end may be the next object there. A
 * put twice in a row is none the less.
 */
static bool may_be_another(const struct lt_answer *a, const struct lt_inc *inc, const struct lt_ref *ref,
			   bool born_unseen)
{
	return born_unseen && !(ref->bad != LT_NO_EVENT && lt_twice_in_row(a->lt, inc, ref->bad));
}

/* when the first object of the type was seen that nobody was seen to make; UINT64_MAX: there is none */
static uint64_t unborn_since(const struct lt_answer *a, uint32_t type)
{
	const struct lt_row *const rows[] = { &a->lt->live, &a->lt->graves };
	uint64_t since = UINT64_MAX;

	for (size_t i = 0; i < 2; i++) {
		const struct lt_inc *inc;
		uint32_t at = UINT32_MAX;

		while ((inc = lt_row_older(rows[i], &at))) {
			if (inc->type == type && !inc->has_new && !inc->inert && !inc->attached && !inc->inherited &&
			    !lt_born_bare(a->lt, inc) && (!inc->nr || inc->ledger[0].time_ns < since))
				since = inc->nr ? inc->ledger[0].time_ns : 0;
		}
	}
	return since;
}

bool lt_extra_at_once(const struct lt_answer *a, const struct lt_model *m, const struct lt_inc *inc, struct lt_ref *ref,
		      struct lt_blame *b)
{
	uint32_t i = 0;

	if (ref->bad != LT_NO_EVENT && lt_twice_in_line(a->lt, inc, ref->bad))
		return false;
	while (i < inc->nr && ((inc->ledger[i].flags & LT_EV_POST) || !lt_back_at_once(a->lt, inc, (uint16_t)i) ||
			       is_usual(a, m, inc, i)))
		i++;
	if (i == inc->nr || !lt_event_src(a->lt, &inc->ledger[i]))
		return false;
	b->kind = RT_EXTRA_PUT;
	b->role = RT_ROLE_EXTRA_PUT;
	instead(a, inc, (uint16_t)i, ref, b);
	b->confidence = fmin(b->confidence, 0.8);
	b->why = "it gave back at once what it had taken, and a reference is missing later";
	return true;
}

/*
 * Nobody was seen to make it, and whoever puts or takes a reference reads the same count: a constant, in which
 * something else lies where objects have their counter. Where nothing is known of how counts begin, its 0 says nothing.
 */
static bool reads_a_constant(const struct lt_inc *inc)
{
	enum { SURE = 3 /* what frees it twice may read 0 twice */ };
	int32_t count = INT32_MIN;
	unsigned n = 0;

	for (uint16_t i = 0; !inc->has_new && i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (!e->delta)
			continue;
		if (e->count == INT32_MIN || (n && e->count != count))
			return false;
		count = e->count;
		n++;
	}
	return n >= SURE;
}

/*
 * Something is known that leaves no room for more than a suspicion. What one run does twice in a row to an object whose
 * whole life was seen is beyond what other objects of the type are like.
 */
static bool is_doubtful(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref, bool born_unseen)
{
	const struct lt_inc *inc = ref->inc;
	/* others may make such objects than is known, and allocators do not bear what is freed twice: the process dies
	 */
	const bool owned =
		(m->type->flags & RT_TYPE_OWNED) && (ref->bad == LT_NO_EVENT || !lt_died_in(a, inc, ref->bad));
	const bool begun = inc->has_new || lt_born_bare(a->lt, inc);

	if (lt_life_vague(a->lt, inc) || inc->inherited || lt_damaged(a->lt, m->type) || reads_a_constant(inc))
		return true;
	/* two that were made unseen, one behind the other at one address, look like one that ends twice in a row */
	if (owned && born_unseen)
		return true;
	/* the counter tells as much of a life whose beginning was not seen */
	if ((begun || (inc->counted && !inc->assumed)) && !inc->incomplete && ref->bad != LT_NO_EVENT &&
	    (lt_twice_in_row(a->lt, inc, ref->bad) || lt_twice_by_helper(a->lt, inc, ref->bad)))
		return false;
	if (owned)
		return true;
	for (uint32_t i = 0; begun && i < inc->nr; i++) {
		if ((inc->ledger[i].flags & LT_EV_POST) && lt_died_in(a, inc, (uint16_t)i))
			return false;
	}
	return unsteady(m->type) || may_be_another(a, inc, ref, born_unseen) ||
	       (m->type->unarmed && (!inc->counted || !begun));
}

bool lt_shown_by_counter(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_inc *inc = ref->inc;

	return ref->bad != LT_NO_EVENT && inc->counted && !inc->assumed && !inc->attached && !inc->inherited &&
	       !lt_counter_vague(a->lt, inc) && !reads_a_constant(inc) && is_put(&inc->ledger[ref->bad]) &&
	       (lt_twice_in_line(a->lt, inc, ref->bad) || lt_back_at_once(a->lt, inc, ref->bad));
}

/*
 * Its life has too much to be matched: that it was put once more than it had references is known all the same, and what
 * some run put twice in a row.
 */
static bool too_long(const struct lt_answer *a, const struct lt_inc *inc, uint16_t bad, struct lt_ref *ref,
		     struct lt_blame *b)
{
	uint16_t put = put_in_row(a, inc);

	if (bad == LT_NO_EVENT || inc->ledger[bad].delta >= 0)
		return false;
	ref->bad = put == LT_NO_EVENT ? bad : put;
	b->guilty = lt_extra_doer(a, inc, ref->bad);
	b->confidence = put == LT_NO_EVENT ? 0.45 : IN_ROW;
	b->why = put == LT_NO_EVENT
			 ? "it put a dead object; whose put before was one too many is not known: it had too many"
			 : "it put the object twice in a row";
	return b->guilty != 0;
}

/* a put that a helper did twice in a row: who called it twice in one line did so, and the second one is too many */
static bool put_by_helper(struct lt_answer *a, const struct lt_inc *inc, struct lt_ref *ref, struct lt_blame *b)
{
	uint32_t by = 0;
	uint16_t i = (uint16_t)inc->nr;

	while (!by && i-- > 0)
		by = put_by_callee(a, inc, i);
	if (!by)
		return false;
	ref->bad = i;
	b->kind = RT_EXTRA_PUT;
	b->role = RT_ROLE_EXTRA_PUT;
	b->alternative = lt_event_src(a->lt, &inc->ledger[i]);
	b->alternative_confidence = 0.1;
	b->guilty = by;
	b->confidence = 0.9;
	b->why = "it called what puts twice in one line";
	return true;
}

/* They lie in the graveyard (lt_silent_fault()), and are not what lives there later has before it. */
static void find_pasts(struct lt_answer *a, uint32_t type, struct lt_pasts *ret)
{
	struct lt_inc *inc;
	uint32_t at = 0;

	ret->found = true;
	while ((inc = lt_row_newer(&a->lt->graves, &at))) {
		uint64_t *last;

		if (inc->type != type || inc->post || lt_extra_for_nothing(a, NULL, inc) == LT_NO_EVENT)
			continue;
		last = rt_map_put(&ret->by_object, rt_key_make(inc->object, inc->pid), NULL);
		if (!last)
			a->nomem = true;
		else if (!*last || ((struct lt_inc *)(uintptr_t)*last)->last_ns < inc->last_ns)
			*last = (uintptr_t)inc;
	}
}

struct lt_inc *lt_past_of(struct lt_answer *a, const struct lt_inc *inc, struct lt_pasts *pasts)
{
	const uint64_t *at;
	struct lt_inc *past;

	if (inc->before)
		return inc->before;
	if (!pasts->found)
		find_pasts(a, inc->type, pasts);
	at = rt_map_get(&pasts->by_object, rt_key_make(inc->object, inc->pid));
	past = at ? (struct lt_inc *)(uintptr_t)*at : NULL;
	return past && past != inc && past->last_ns <= inc->birth_ns ? past : NULL;
}

/* event number k came after the end, of a run that had nothing to do with the object before */
static bool by_a_stranger(const struct lt_inc *inc, uint16_t k)
{
	const struct lt_event *bad = k == LT_NO_EVENT ? NULL : &inc->ledger[k];

	if (!bad || !(bad->flags & LT_EV_POST))
		return false;
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (e != bad && (!bad->act || e->act == bad->act || e->up == bad->act))
			return false;
	}
	return true;
}

/*
 * A stranger was the first to do something after the end, and what lies at the address was handed out by then; the
 * object had been stored nowhere that this could come from. So it is another one, that was made there unseen.
 */
static bool is_another(const struct lt_answer *a, const struct lt_inc *inc)
{
	uint16_t post = 0;

	while (post < inc->nr && !(inc->ledger[post].flags & LT_EV_POST)) {
		if (lt_slot_fills(a->lt, &inc->ledger[post]))
			return false;
		post++;
	}
	return post < inc->nr && inc->handed_dead && by_a_stranger(inc, post);
}

static void judge(struct lt_answer *a, const struct lt_model *m, struct lt_inc *inc, bool born_unseen,
		  struct lt_pasts *pasts)
{
	struct lt_ref ref = { .inc = inc, .ev = LT_NO_EVENT, .bad = LT_NO_EVENT };
	struct lt_blame b = { .kind = RT_EXTRA_PUT, .role = RT_ROLE_EXTRA_PUT };
	bool own = false, whole;
	struct lt_inc *past;
	struct life l;

	whole = read_life(a, m, inc, &l);
	if (l.bad == LT_NO_EVENT)
		return;
	past = lt_past_of(a, inc, pasts);
	if (put_by_helper(a, inc, &ref, &b))
		own = true;
	else if (!whole && too_long(a, inc, l.bad, &ref, &b))
		own = lt_twice_in_row(a->lt, inc, ref.bad);
	else if (!whole)
		return;
	else if (l.closes <= l.opens || !alone(a, m, inc, &l, &ref, &b))
		own = use_after(a, m, inc, &l, &ref, &b);
	else if (!held_for_other(a, inc, &ref, &b) && !lt_twice_in_line(a->lt, inc, ref.bad) &&
		 past_culprit(a, m, past, lt_src(a->lt, b.guilty)->function, &ref, &b))
		ref.inc = inc = past;
	if (!own && b.role == RT_ROLE_USE && used_the_past(a, m, past, &ref, &b))
		ref.inc = inc = past;
	if (!own && lt_extra_at_once(a, m, inc, &ref, &b) && !whole)
		b.confidence = 0.65;
	if (!b.guilty)
		return;
	if (l.usual && (ref.bad == LT_NO_EVENT || !lt_twice_in_row(a->lt, inc, ref.bad)))
		b.confidence = fmin(b.confidence, 0.75);
	/* the pointer may be one to the past, which somebody put before it was time */
	if (past && by_a_stranger(inc, ref.bad)) {
		b.confidence = fmin(b.confidence, 0.65);
		b.why = b.why ?: "the address had other objects before: it may have meant one of these";
	}
	lt_extra_taken(a, inc, &ref);
	ref.shown = lt_shown_by_counter(a, &ref);
	if (is_doubtful(a, m, &ref, born_unseen) || is_another(a, inc))
		b.confidence = fmin(b.confidence, ref.shown ? 0.65 : 0.45);
	if (inc->rose && lt_counter_rests(lt_inc_type(a->lt, inc))) {
		b.confidence = fmin(b.confidence, 0.45);
		b.why = "many objects of the type are taken up again when their count was 0: that may be no end";
	}
	lt_accuse(a, &ref, &b);
}

/* What comes behind a put too many that the process died of may be its doing, and is no reason to doubt it. */
static uint64_t spoilt_since(const struct lt_answer *a, const struct lt_inc *inc)
{
	return lt_crashed(a->lt, inc->pid, false) ? inc->end_ns : UINT64_MAX;
}

void lt_extras(struct lt_answer *a, uint32_t type, struct lt_model *m)
{
	uint64_t unborn = m->type->op[RT_OP_NEW] ? unborn_since(a, type) : UINT64_MAX;
	struct lt_pasts pasts = { .found = false };
	struct lt_inc *inc;
	uint32_t at = 0;

	while ((inc = lt_row_newer(&a->lt->graves, &at))) {
		if (inc->type == type && inc->klass == m->klass && inc->post)
			judge(a, m, inc, unborn < spoilt_since(a, inc), &pasts);
	}
	if (!lt_died(a, type, m, &pasts))
		lt_silent(a, type, m);
	rt_map_deinit(&pasts.by_object);
}
