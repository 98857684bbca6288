/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * References that are closed beyond doubt: by the same slot, or by the very
 * activation of the function that took them, last taken first. "The same
 * function somewhere up the stack" is no evidence: everything shares the
 * event loop.
 */
#include <string.h>

#include "lifetime/state.h"

enum { BASE_MAX = 32 };

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

enum { NONE = LT_UNITS_MAX };

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

/* A reference that is open: what its event says, which lies far apart, and who took it. */
struct opener {
	uint32_t act, up;
	uint32_t function; /* of the site, 0 = unknown */
	uint16_t older;    /* index of the unit; NONE: there is none */
};

/* The open references, newest first, linked: mostly the newest is the one that ends. By the index of their units. */
struct openers {
	uint16_t newest;
	struct filter acts;
	struct opener of[LT_UNITS_MAX];
};

/* the link that leads to the opener that closer c, by this function, ends for sure; NULL: none */
static uint16_t *certain_opener(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_units *u,
				struct openers *openers, const struct lt_unit *c, uint32_t function)
{
	const struct lt_event *ec = event_of(inc, c);
	uint16_t *best = NULL, *link = &openers->newest;
	int best_sure = 0, most;

	/* by its activation alone no closer is surer than 2 */
	most = !ec ? 0 : ec->slot || (ec->flags & LT_EV_TRANSFER) ? 3 : ec->act && function ? 2 : 0;
	if (most == 2 && !filter_has(&openers->acts, ec->act))
		return NULL;
	for (; *link != NONE && best_sure < most; link = &openers->of[*link].older) {
		const struct opener *o = &openers->of[*link];
		int sure;

		if (most == 2 && o->act != ec->act && o->up != ec->act)
			continue;
		sure = most == 2 && o->function == function ? 2 : certain(lt, inc, &u->u[*link], ec, function);
		if (sure > best_sure) {
			best_sure = sure;
			best = link;
		}
	}
	return best;
}

/* a life as units, and what of it is certain */
struct pairing {
	const struct rt_lifetime *lt;
	const struct lt_inc *inc;
	struct lt_units *units;
	struct openers openers;
};

/* the next unit: event number ev of the ledger opens or closes a reference */
static void add(struct pairing *p, unsigned ev, const struct lt_use *use, bool opens)
{
	struct lt_units *units = p->units;
	unsigned n = units->nr;
	struct lt_unit *u = &units->u[n];
	const struct lt_event *e;
	uint16_t *link;

	if (n == LT_UNITS_MAX) {
		units->cut = true;
		return;
	}
	*u = (struct lt_unit){
		.site = use && use->site ? use->site : LT_NOWHERE, .mate = -1, .ev = (uint16_t)ev, .opens = opens
	};
	units->nr = n + 1;
	units->left++;
	if (opens) {
		e = event_of(p->inc, u);
		p->openers.of[n] =
			(struct opener){ e ? e->act : 0, e ? e->up : 0, use ? use->function : 0, p->openers.newest };
		p->openers.newest = (uint16_t)n;
		filter_add(&p->openers.acts, p->openers.of[n].act);
		filter_add(&p->openers.acts, p->openers.of[n].up);
		return;
	}
	link = certain_opener(p->lt, p->inc, units, &p->openers, u, use ? use->function : 0);
	if (!link)
		return;
	marry(units, *link, n);
	*link = p->openers.of[*link].older;
	units->left -= 2;
}

static void add_times(struct pairing *p, unsigned ev, const struct lt_use *use, bool opens, int times)
{
	for (int i = 0; i < times; i++)
		add(p, ev, use, opens);
}

static void pair_certain(struct pairing *p)
{
	const struct lt_inc *inc = p->inc;
	int base = inc->base > BASE_MAX ? BASE_MAX : inc->base;
	bool heap = lt_inc_type(p->lt, inc)->flags & RT_TYPE_HEAP_ONLY;

	p->openers.newest = NONE;
	p->openers.acts = (struct filter){ 0 };
	p->units->nr = p->units->left = 0;
	p->units->cut = inc->folded || base < inc->base;
	add_times(p, LT_NO_EVENT, NULL, true, base);
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];
		const struct lt_use *use = &p->lt->uses.data[e->use];

		if (e->op == RT_OP_NEW)
			add_times(p, i, use, true, heap ? 1 : inc->start);
		if (e->flags & (LT_EV_TRANSFER | LT_EV_CLOSES))
			add(p, i, use, false);
		if (e->flags & LT_EV_TRANSFER)
			add(p, i, use, true);
		add_times(p, i, use, e->delta > 0, e->delta > 0 ? e->delta : -e->delta);
	}
}

/* where the frame of the site's function stands, 0 = unknown */
static uint64_t frame_of(const struct rt_lifetime *lt, const struct lt_event *e)
{
	const struct lt_use *use = &lt->uses.data[e->use];
	const struct lt_stack *s = use->stack ? &lt->stacks.data[use->stack - 1] : NULL;
	uint32_t cfa = s && use->machine < s->nr ? lt->machines.data[s->first + use->machine].cfa : 0;

	return cfa && e->sp ? e->sp + cfa : 0;
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

void lt_pair(const struct rt_lifetime *lt, const struct lt_inc *inc, struct lt_units *ret)
{
	struct pairing p;

	p.lt = lt;
	p.inc = inc;
	p.units = ret;
	pair_certain(&p);
	/* a deep recursion leaves more than can be matched: what is likely is taken as certain */
	for (int least = 2; least && ret->left > LT_UNITS; least--)
		ret->left -= pair_as_likely(lt, inc, ret, least);
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

unsigned lt_marks(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_units *units,
		  struct lt_mark ret[LT_UNITS], uint16_t unit_of[LT_UNITS])
{
	struct sights threads, acts;
	unsigned n = 0;

	if (units->left > LT_UNITS)
		return LT_UNITS + 1;
	threads.filter = acts.filter = (struct filter){ 0 };
	threads.nr = acts.nr = 0;
	for (unsigned i = 0; i < units->nr; i++) {
		const struct lt_unit *u = &units->u[i];
		const struct lt_event *e = event_of(inc, u);

		if (u->mate >= 0)
			continue;
		ret[n] = (struct lt_mark){ .site = u->site, .opens = u->opens };
		ret[n].is_new = e && e->op == RT_OP_NEW;
		ret[n].thread = e ? number_of(&threads, e->tid) : 0;
		ret[n].act = e && e->act ? number_of(&acts, e->act) : 0;
		if (unit_of)
			unit_of[n] = (uint16_t)i;
		n++;
	}
	return n;
}
