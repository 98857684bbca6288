/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * References that are closed beyond doubt: by the same slot, or by the very
 * activation of the function that took them, last taken first. "The same
 * function somewhere up the stack" is no evidence: everything shares the
 * event loop.
 */
#include <string.h>

#include "lifetime/answer.h"
#include "lifetime/lanes.h"
#include "lifetime/slot.h"
#include "lifetime/state.h"

enum { BASE_MAX = 32, HANDED_BEFORE = 64 /* events */, GIVEN_BEFORE = 4 };

static void marry(struct lt_units *u, unsigned a, unsigned b)
{
	u->u[a].mate = (int16_t)b;
	u->u[b].mate = (int16_t)a;
}

static const struct lt_event *event_of(const struct lt_inc *inc, const struct lt_unit *u)
{
	return u->ev == LT_NO_EVENT ? NULL : &inc->ledger[u->ev];
}

/* how surely closer ec, by this function, ends the reference that opener o began: 0 = not for sure */
static int certain(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_unit *o,
		   const struct lt_event *ec, uint32_t function)
{
	const struct lt_event *eo = event_of(inc, o);

	if (!eo)
		return 0;
	if (ec->flags & LT_EV_TRANSFER) {
		if (ec->op == RT_OP_SINK)
			return eo->op == RT_OP_NEW ? 3 : 0;
		return eo->act && eo->act == ec->act ? 3 : 1;
	}
	if (ec->slot && eo->slot)
		return ec->slot == eo->slot ? 3 : 0;
	if (!ec->act || (ec->act != eo->act && ec->act != eo->up))
		return 0;
	return function && lt_site_passes(lt, o->site, function) ? 2 : 0;
}

/* Numbers that were seen: who asks for one that was not is spared the search, mostly. */
struct filter {
	uint64_t bits[8];
};

static void filter_add(struct filter *f, uint32_t number)
{
	f->bits[number / 64 % 8] |= UINT64_C(1) << number % 64;
}

static bool filter_has(const struct filter *f, uint32_t number)
{
	return f->bits[number / 64 % 8] >> number % 64 & 1;
}

/*
 * A life as units, and what of it is certain. Whether the next event opens or closes a reference nobody can predict:
 * all are put down first, without a branch on that, then each closer looks for its opener.
 */
struct pairing {
	const struct rt_lifetime *lt;
	const struct lt_inc *inc;
	struct lt_units *units;
	/* of units->opener[]: what its event says, which lies far apart; 0 once it is closed */
	uint32_t act[LT_UNITS_MAX + LT_LANES], up[LT_UNITS_MAX + LT_LANES];
	uint32_t function[LT_UNITS_MAX]; /* of the site, 0 = unknown */
	/* units that close, their functions, and how many openers come before them */
	uint16_t closer[LT_UNITS_MAX], before[LT_UNITS_MAX];
	uint32_t closes[LT_UNITS_MAX];
	unsigned closers;
};

/* How many there are by now: apart from the tables, so that they need no memory. */
struct tally {
	unsigned units, openers, closers;
};

/* the next unit: event number ev of the ledger opens or closes a reference */
static inline void add(struct pairing *p, struct tally *t, unsigned ev, const struct lt_event *e,
		       const struct lt_use *use, bool opens)
{
	struct lt_units *units = p->units;
	unsigned n = t->units, o = t->openers, c = t->closers;

	if (n == LT_UNITS_MAX) {
		units->cut = true;
		return;
	}
	units->u[n] =
		(struct lt_unit){ .site = use->site ?: LT_NOWHERE, .mate = -1, .ev = (uint16_t)ev, .opens = opens };
	units->opener[o] = p->closer[c] = (uint16_t)n;
	p->act[o] = e->act;
	p->up[o] = e->up;
	p->function[o] = p->closes[c] = use->function;
	p->before[c] = (uint16_t)o;
	t->units = n + 1;
	t->openers = o + opens;
	t->closers = c + !opens;
}

static void close_opener(struct pairing *p, unsigned o, unsigned closer)
{
	marry(p->units, p->units->opener[o], closer);
	p->act[o] = p->up[o] = 0;
	p->units->left -= 2;
}

/* where that frame of the stack of the event stands, 0 = unknown */
static uint64_t frame_at(const struct rt_lifetime *lt, const struct lt_event *e, uint32_t machine)
{
	const struct lt_use *use = &lt->uses.data[e->use];
	const struct lt_stack *s = use->stack ? &lt->stacks.data[use->stack - 1] : NULL;
	uint32_t cfa = s && machine < s->nr ? lt->machines.data[s->first + machine].cfa : 0;

	return cfa && e->sp ? e->sp + cfa : 0;
}

/* the same of the site's function */
static uint64_t frame_of(const struct rt_lifetime *lt, const struct lt_event *e)
{
	return frame_at(lt, e, lt->uses.data[e->use].machine);
}

/*
 * The put runs where the frame of the function is that took the reference, and was called from the same place: that
 * function jumped to it, at its end. What it calls lies below its frame, and what its caller calls next comes from
 * another place.
 */
static bool jumped_from(const struct rt_lifetime *lt, const struct lt_event *eo, uint32_t machine,
			const struct lt_event *ec)
{
	const struct lt_use *uo = &lt->uses.data[eo->use], *uc = &lt->uses.data[ec->use];
	const struct lt_stack *so, *sc;

	if (eo->tid != ec->tid || !uo->stack || !uc->stack)
		return false;
	so = &lt->stacks.data[uo->stack - 1];
	sc = &lt->stacks.data[uc->stack - 1];
	return sc->nr && machine + 1u < so->nr &&
	       lt->machines.data[so->first + machine + 1].pc == lt->machines.data[sc->first].pc;
}

bool lt_frame_left(const struct rt_lifetime *lt, const struct lt_event *e, uint32_t machine,
		   const struct lt_event *last)
{
	return last->sp && frame_at(lt, e, machine) == last->sp && jumped_from(lt, e, machine, last);
}

bool lt_put_by_jump(const struct rt_lifetime *lt, const struct lt_event *taken, const struct lt_event *put)
{
	return put->delta < 0 && put->act != taken->act &&
	       lt_frame_left(lt, taken, lt->uses.data[taken->use].machine, put);
}

/*
 * Closer c seems to close opener o, by its activation. Who took a later reference that is open, and was called from
 * just there, jumped to the put at its end, though: the opener of that one.
 */
static unsigned jumped_over(const struct pairing *p, unsigned o, unsigned c, const struct lt_event *ec)
{
	for (unsigned k = p->before[c]; k-- > o + 1;) {
		const struct lt_unit *u = &p->units->u[p->units->opener[k]];
		const struct lt_event *eo = u->mate < 0 ? event_of(p->inc, u) : NULL;

		/* what it keeps in a slot it has not given back */
		if (eo && !eo->slot && lt_put_by_jump(p->lt, eo, ec))
			return k;
	}
	return o;
}

/* closes by its activation alone: the newest opener of that activation, which this function passed */
static void close_by_act(struct pairing *p, unsigned c, const struct lt_event *ec)
{
	const lt_lanes act = lt_lanes_all(ec->act);

	for (unsigned end = p->before[c]; end;) {
		unsigned from = (end - 1) / LT_LANES * LT_LANES;
		uint32_t own =
			lt_lanes_mask((lt_lanes_load(p->act + from) == act) | (lt_lanes_load(p->up + from) == act));

		/* those of the last lanes that come later */
		own &= (2u << (end - 1 - from)) - 1;
		while (own) {
			unsigned o = from + 31 - (unsigned)__builtin_clz(own);

			if (p->function[o] == p->closes[c] ||
			    lt_site_passes(p->lt, p->units->u[p->units->opener[o]].site, p->closes[c])) {
				close_opener(p, jumped_over(p, o, c, ec), p->closer[c]);
				return;
			}
			own &= ~(1u << (o - from));
		}
		end = from;
	}
}

/* closes by its slot, or as its flags say: the surest opener, of these the newest */
static void close_surest(struct pairing *p, unsigned c, const struct lt_event *ec)
{
	int best_sure = 0;
	unsigned best = 0;

	for (unsigned o = p->before[c]; o-- > 0 && best_sure < 3;) {
		const struct lt_unit *u = &p->units->u[p->units->opener[o]];
		int sure = u->mate >= 0 ? 0 : certain(p->lt, p->inc, u, ec, p->closes[c]);

		if (sure > best_sure) {
			best_sure = sure;
			best = o;
		}
	}
	if (best_sure)
		close_opener(p, best, p->closer[c]);
}

static void close_certain(struct pairing *p)
{
	for (unsigned c = 0; c < p->closers; c++) {
		const struct lt_event *ec = &p->inc->ledger[p->units->u[p->closer[c]].ev];

		if (ec->slot || (ec->flags & LT_EV_TRANSFER))
			close_surest(p, c, ec);
		else if (ec->act && p->closes[c])
			close_by_act(p, c, ec);
	}
}

/* closers whose activation is not known because it is over already */
static void close_jumped(struct pairing *p)
{
	uint64_t frame[LT_UNITS_MAX]; /* of each opener that is left: who jumped from it has its sp there */

	for (unsigned o = 0; o < p->units->openers; o++) {
		const struct lt_unit *opener = &p->units->u[p->units->opener[o]];
		const struct lt_event *eo = event_of(p->inc, opener);

		frame[o] = opener->mate < 0 && eo ? frame_of(p->lt, eo) : 0;
	}
	for (unsigned c = 0; c < p->closers && p->units->left; c++) {
		const struct lt_unit *u = &p->units->u[p->closer[c]];
		const struct lt_event *ec = &p->inc->ledger[u->ev];

		if (u->mate >= 0 || !ec->sp || ec->slot || (ec->flags & LT_EV_TRANSFER))
			continue;
		for (unsigned o = p->before[c]; o-- > 0;) {
			if (frame[o] != ec->sp)
				continue;
			const struct lt_event *eo = event_of(p->inc, &p->units->u[p->units->opener[o]]);

			if (jumped_from(p->lt, eo, p->lt->uses.data[eo->use].machine, ec)) {
				close_opener(p, o, p->closer[c]);
				frame[o] = 0;
				break;
			}
		}
	}
}

/* the last reference that the thread of closer c took before and that is open still; before[c]: there is none */
static unsigned last_open(const struct pairing *p, unsigned c)
{
	uint32_t tid = p->inc->ledger[p->units->u[p->closer[c]].ev].tid;

	for (unsigned o = p->before[c]; o-- > 0;) {
		const struct lt_unit *u = &p->units->u[p->units->opener[o]];
		const struct lt_event *e = event_of(p->inc, u);

		if (u->mate < 0 && e && e->tid == tid)
			return o;
	}
	return p->before[c];
}

/* The run that gave the object to the function which did the put, or to what called that; 0: not known. */
static uint32_t giver_of(const struct pairing *p, uint16_t put)
{
	for (uint32_t i = put; i-- > 0 && i + GIVEN_BEFORE >= put;) {
		const struct lt_event *e = &p->inc->ledger[i];
		const struct lt_point *point = lt_event_point(p->lt, e);

		if (e->op == RT_OP_MOVE && (lt_point_given(point) || lt_point_ends(point)) &&
		    lt_inside(p->lt, &p->inc->ledger[put], e))
			return e->act;
	}
	return 0;
}

/* the reference of opener o, the last one that is open, was handed to this run, before the put of closer c */
static bool handed_to_run(const struct pairing *p, unsigned o, unsigned c, uint32_t act)
{
	uint16_t taken = p->units->u[p->units->opener[o]].ev, put = p->units->u[p->closer[c]].ev;

	for (uint32_t i = put; act && i-- > taken && i + HANDED_BEFORE >= put;) {
		const struct lt_event *e = &p->inc->ledger[i];

		if (e->act == act && lt_point_hands(lt_event_point(p->lt, e)))
			return lt_handed_by(p->lt, p->inc, i) == taken;
	}
	return false;
}

/* what one run was handed, and puts, or gives to what puts it: functions further in took it */
static void close_handed(struct pairing *p)
{
	for (unsigned c = 0; c < p->closers && p->units->left; c++) {
		const struct lt_unit *u = &p->units->u[p->closer[c]];
		const struct lt_event *ec = &p->inc->ledger[u->ev];
		unsigned o;

		if (u->mate >= 0 || !ec->act || ec->slot || (ec->flags & LT_EV_TRANSFER))
			continue;
		o = last_open(p, c);
		if (o < p->before[c] && (handed_to_run(p, o, c, ec->act) || handed_to_run(p, o, c, giver_of(p, u->ev))))
			close_opener(p, o, p->closer[c]);
	}
}

static inline void add_times(struct pairing *p, struct tally *t, unsigned ev, const struct lt_event *e,
			     const struct lt_use *use, bool opens, int times)
{
	for (int i = 0; i < times; i++)
		add(p, t, ev, e, use, opens);
}

/* an event that is not just one get or put of one reference */
static inline void add_odd(struct pairing *p, struct tally *t, unsigned ev, const struct lt_event *e,
			   const struct lt_use *use)
{
	const struct lt_inc *inc = p->inc;
	bool heap = lt_inc_type(p->lt, inc)->flags & RT_TYPE_HEAP_ONLY;

	if (e->op == RT_OP_NEW)
		add_times(p, t, ev, e, use, true, heap ? 1 : inc->start);
	if (e->flags & (LT_EV_TRANSFER | LT_EV_CLOSES))
		add(p, t, ev, e, use, false);
	if (e->flags & LT_EV_TRANSFER)
		add(p, t, ev, e, use, true);
	add_times(p, t, ev, e, use, e->delta > 0, e->delta > 0 ? e->delta : -e->delta);
}

static void pair_certain(struct pairing *p)
{
	static const struct lt_event unseen;
	static const struct lt_use nowhere;
	const struct lt_inc *inc = p->inc;
	int base = inc->base > BASE_MAX ? BASE_MAX : inc->base;
	struct tally t = { 0 };

	p->units->cut = inc->folded || base < inc->base;
	add_times(p, &t, LT_NO_EVENT, &unseen, &nowhere, true, base);
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];
		const struct lt_use *use = &p->lt->uses.data[e->use];

		if (e->op != RT_OP_NEW && !(e->flags & (LT_EV_TRANSFER | LT_EV_CLOSES)) &&
		    (e->delta == 1 || e->delta == -1))
			add(p, &t, i, e, use, e->delta > 0);
		else
			add_odd(p, &t, i, e, use);
	}
	p->units->nr = p->units->left = t.units;
	p->units->openers = t.openers;
	p->closers = t.closers;
	close_certain(p);
	if (p->units->left)
		close_jumped(p);
	if (p->units->left)
		close_handed(p);
}

/*
 * How likely closer c, by this function, ends the reference of opener o of the same thread, where nothing is certain:
 * one function, in one place of the stack.
 */
static int likely(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_unit *o,
		  const struct lt_unit *c, uint32_t function)
{
	const struct lt_event *eo = event_of(inc, o), *ec = event_of(inc, c);
	uint64_t frame;

	if (!lt_site_passes(lt, o->site, function))
		return 0;
	frame = frame_of(lt, ec);
	return frame && frame == frame_of(lt, eo) ? 2 : 1;
}

static void add_path(const struct rt_lifetime *lt, struct filter *functions, uint32_t site)
{
	const struct lt_site *s = lt_site(lt, site);

	for (uint32_t i = 0; i < s->nr; i++)
		filter_add(functions, lt_src(lt, s->src[i])->function);
}

/* marries what is likely at least so much; returns how many units */
static unsigned pair_as_likely(const struct rt_lifetime *lt, const struct lt_inc *inc, struct lt_units *u, int least)
{
	uint16_t open[LT_UNITS_MAX];
	uint32_t tid[LT_UNITS_MAX];
	unsigned nr = 0, married = 0;
	struct filter functions = { 0 }; /* that open references went through */

	for (unsigned c = 0; c < u->nr; c++) {
		const struct lt_event *e = event_of(inc, &u->u[c]);
		uint32_t function;

		if (u->u[c].mate >= 0 || !e)
			continue;
		if (u->u[c].opens) {
			open[nr] = (uint16_t)c;
			tid[nr++] = e->tid;
			add_path(lt, &functions, u->u[c].site);
			continue;
		}
		function = lt_site_function(lt, u->u[c].site);
		if (!function || !filter_has(&functions, function))
			continue;
		for (unsigned i = nr; i-- > 0;) {
			if (tid[i] != e->tid || likely(lt, inc, &u->u[open[i]], &u->u[c], function) < least)
				continue;
			marry(u, open[i], c);
			married += 2;
			nr--;
			memmove(&open[i], &open[i + 1], (nr - i) * sizeof(open[0]));
			memmove(&tid[i], &tid[i + 1], (nr - i) * sizeof(tid[0]));
			break;
		}
	}
	return married;
}

/* The slot of just this reference was emptied without a put. What is in a block that is freed may be a mere copy. */
static bool is_lost(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t ev)
{
	uint32_t by = lt_slot_lost(lt, inc, ev);

	return by != LT_NO_EVENT && !lt_point_looks(lt_event_point(lt, &inc->ledger[by]));
}

/* One after the other among what is left: taken and given back with nothing in between. */
struct couples {
	uint16_t opener[LT_UNITS_MAX / 2], closer[LT_UNITS_MAX / 2]; /* units */
	uint64_t sites[LT_UNITS_MAX / 2];                            /* of both */
	unsigned nr;
	unsigned most; /* the first of those whose sites come most often */
};

/* the couples among what is left, oldest first; without: as if what is lost had not been taken */
static void find_couples(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_units *u, bool without,
			 struct couples *ret)
{
	unsigned n = 0, most = 0;
	uint16_t last = LT_NO_EVENT;

	for (unsigned i = 0; i < u->nr; i++) {
		const struct lt_event *a = last == LT_NO_EVENT ? NULL : event_of(inc, &u->u[last]);
		const struct lt_event *b = event_of(inc, &u->u[i]);

		if (u->u[i].mate >= 0 || (without && b && u->u[i].opens && is_lost(lt, inc, u->u[i].ev)))
			continue;
		if (a && b && u->u[last].opens && !u->u[i].opens && a->tid == b->tid) {
			ret->opener[n] = last;
			ret->closer[n] = (uint16_t)i;
			ret->sites[n++] = (uint64_t)u->u[last].site << 32 | u->u[i].site;
		}
		last = (uint16_t)i;
	}
	ret->nr = n;
	ret->most = 0;
	for (unsigned i = 0; i < n; i++) {
		unsigned times = 0;

		/* one that comes before i was counted with it */
		for (unsigned j = i; j < n; j++)
			times += ret->sites[j] == ret->sites[i];
		if (times > most) {
			most = times;
			ret->most = i;
		}
	}
}

/* What a program does again and again, taken for certain from the oldest on, until the rest can be matched. */
static void pair_couples(const struct rt_lifetime *lt, const struct lt_inc *inc, struct lt_units *u)
{
	struct couples all;

	while (u->left > LT_UNITS) {
		find_couples(lt, inc, u, true, &all);
		if (!all.nr)
			find_couples(lt, inc, u, false, &all);
		if (!all.nr)
			return;
		for (unsigned i = all.most; i < all.nr && u->left > LT_UNITS; i++) {
			if (all.sites[i] != all.sites[all.most])
				continue;
			marry(u, all.opener[i], all.closer[i]);
			u->left -= 2;
		}
	}
}

void lt_pair_certain(const struct rt_lifetime *lt, const struct lt_inc *inc, struct lt_units *ret)
{
	struct pairing p;

	p.lt = lt;
	p.inc = inc;
	p.units = ret;
	pair_certain(&p);
}

void lt_pair(const struct rt_lifetime *lt, const struct lt_inc *inc, struct lt_units *ret)
{
	lt_pair_certain(lt, inc, ret);
	/* a deep recursion leaves more than can be matched: what is likely is taken as certain */
	for (int least = 2; least && ret->left > LT_UNITS; least--)
		ret->left -= pair_as_likely(lt, inc, ret, least);
	if (ret->left > LT_UNITS)
		pair_couples(lt, inc, ret);
}

/* Numbers by first sight. */
struct sights {
	struct filter filter;
	uint32_t seen[LT_UNITS];
	uint8_t nr;
};

static uint8_t number_of(struct sights *s, uint32_t what)
{
	for (unsigned i = 0; filter_has(&s->filter, what) && i < s->nr; i++) {
		if (s->seen[i] == what)
			return (uint8_t)(i + 1);
	}
	filter_add(&s->filter, what);
	s->seen[s->nr++] = what;
	return s->nr;
}

static uint8_t how(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_unit *u)
{
	const struct lt_event *e = event_of(inc, u);
	uint8_t lost;

	if (!e || !u->opens)
		return 0;
	lost = is_lost(lt, inc, u->ev) ? LT_MARK_LOST : 0;
	if (e->op == RT_OP_NEW)
		return LT_MARK_NEW | lost;
	return (e->op == RT_OP_GET && ((inc->has_new && lt_twice_in_row(lt, inc, u->ev)) ||
				       ((inc->has_new || lt_born_bare(lt, inc)) && lt_twice_by_helper(lt, inc, u->ev)))
			? LT_MARK_TWICE
			: 0) |
	       lost;
}

void lt_pair_doubt_rows(const struct rt_lifetime *lt, const struct lt_inc *inc, struct lt_units *units)
{
	for (unsigned i = 0; i < units->nr; i++) {
		struct lt_unit *u = &units->u[i];

		if (u->opens || u->mate < 0 || u->ev == LT_NO_EVENT || !lt_twice_in_row(lt, inc, u->ev))
			continue;
		units->u[u->mate].mate = -1;
		u->mate = -1;
		units->left += 2;
	}
}

unsigned lt_marks(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_units *units,
		  struct lt_mark ret[LT_UNITS], uint16_t unit_of[LT_UNITS])
{
	struct sights threads, acts;
	uint16_t left[LT_UNITS + 1];
	unsigned nr = 0;

	if (units->left > LT_UNITS)
		return LT_UNITS + 1;
	/* which ones nobody can predict: first their indexes */
	for (unsigned i = 0; i < units->nr; i++) {
		left[nr] = (uint16_t)i;
		nr += units->u[i].mate < 0;
	}
	threads.filter = acts.filter = (struct filter){ 0 };
	threads.nr = acts.nr = 0;
	for (unsigned n = 0; n < nr; n++) {
		const struct lt_unit *u = &units->u[left[n]];
		const struct lt_event *e = event_of(inc, u);

		ret[n] = (struct lt_mark){ .site = u->site, .opens = u->opens };
		ret[n].how = how(lt, inc, u);
		ret[n].thread = e ? number_of(&threads, e->tid) : 0;
		ret[n].act = e && e->act ? number_of(&acts, e->act) : 0;
		if (unit_of)
			unit_of[n] = left[n];
	}
	return nr;
}
