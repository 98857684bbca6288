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

static void add(struct lt_units *u, unsigned ev, uint32_t site, bool opens, int times)
{
	for (int i = 0; i < times; i++) {
		if (u->nr == LT_UNITS_MAX) {
			u->cut = true;
			return;
		}
		u->u[u->nr++] = (struct lt_unit){ .site = site, .mate = -1, .ev = (uint16_t)ev, .opens = opens };
	}
}

static void expand(const struct rt_lifetime *lt, const struct lt_inc *inc, struct lt_units *ret)
{
	const struct lt_type *type = lt_inc_type(lt, inc);
	int base = inc->base > BASE_MAX ? BASE_MAX : inc->base;

	ret->nr = 0;
	ret->cut = inc->folded || base < inc->base;
	add(ret, LT_NO_EVENT, LT_NOWHERE, true, base);
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];
		uint32_t used = lt->uses.data[e->use].site, site = used ? used : LT_NOWHERE;

		if (e->op == RT_OP_NEW)
			add(ret, i, site, true, type->flags & RT_TYPE_HEAP_ONLY ? 1 : inc->start);
		if (e->flags & (LT_EV_TRANSFER | LT_EV_CLOSES))
			add(ret, i, site, false, 1);
		if (e->flags & LT_EV_TRANSFER)
			add(ret, i, site, true, 1);
		if (e->delta)
			add(ret, i, site, e->delta > 0, e->delta > 0 ? e->delta : -e->delta);
	}
}

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

/* The open references, newest first, linked through their units: mostly the newest is the one that ends. */
struct openers {
	uint16_t newest; /* NONE: there is none */
	uint16_t older[LT_UNITS_MAX];
	uint32_t act[LT_UNITS_MAX], up[LT_UNITS_MAX]; /* of their events, which lie far apart */
};

static void openers_add(struct openers *o, const struct lt_inc *inc, const struct lt_units *u, unsigned unit)
{
	const struct lt_event *e = event_of(inc, &u->u[unit]);

	o->older[unit] = o->newest;
	o->act[unit] = e ? e->act : 0;
	o->up[unit] = e ? e->up : 0;
	o->newest = (uint16_t)unit;
}

/* the link that leads to the opener that closer c ends for sure, NULL: none */
static uint16_t *certain_opener(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_units *u,
				struct openers *openers, const struct lt_unit *c)
{
	const struct lt_event *ec = event_of(inc, c);
	uint32_t function = lt_site_function(lt, c->site);
	uint16_t *best = NULL, *link = &openers->newest;
	int best_sure = 0, most;

	/* by its activation alone no closer is surer than 2 */
	most = !ec ? 0 : ec->slot || (ec->flags & LT_EV_TRANSFER) ? 3 : ec->act && function ? 2 : 0;
	for (; *link != NONE && best_sure < most; link = &openers->older[*link]) {
		int sure;

		if (most == 2 && openers->act[*link] != ec->act && openers->up[*link] != ec->act)
			continue;
		sure = certain(lt, inc, &u->u[*link], ec, function);
		if (sure > best_sure) {
			best_sure = sure;
			best = link;
		}
	}
	return best;
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

/* marries what is likely at least so much; returns how many units */
static unsigned pair_as_likely(const struct rt_lifetime *lt, const struct lt_inc *inc, struct lt_units *u, int least)
{
	uint16_t open[LT_UNITS_MAX];
	uint32_t tid[LT_UNITS_MAX];
	unsigned nr = 0, married = 0;

	for (unsigned c = 0; c < u->nr; c++) {
		const struct lt_event *e = event_of(inc, &u->u[c]);
		uint32_t function;

		if (u->u[c].mate >= 0 || !e)
			continue;
		if (u->u[c].opens) {
			open[nr] = (uint16_t)c;
			tid[nr++] = e->tid;
			continue;
		}
		function = lt_site_function(lt, u->u[c].site);
		for (unsigned i = nr; function && i-- > 0;) {
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
	struct openers openers;
	unsigned left;

	openers.newest = NONE;
	expand(lt, inc, ret);
	left = ret->nr;
	for (unsigned c = 0; c < ret->nr; c++) {
		uint16_t *link;

		if (ret->u[c].opens) {
			openers_add(&openers, inc, ret, c);
			continue;
		}
		link = certain_opener(lt, inc, ret, &openers, &ret->u[c]);
		if (!link)
			continue;
		marry(ret, *link, c);
		*link = openers.older[*link];
		left -= 2;
	}
	/* a deep recursion leaves more than can be matched: what is likely is taken as certain */
	for (int least = 2; least && left > LT_UNITS; least--)
		left -= pair_as_likely(lt, inc, ret, least);
}

static uint8_t number_of(uint32_t *seen, unsigned *nr, uint32_t what)
{
	for (unsigned i = 0; i < *nr; i++) {
		if (seen[i] == what)
			return (uint8_t)(i + 1);
	}
	seen[(*nr)++] = what;
	return (uint8_t)*nr;
}

unsigned lt_marks(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_units *units,
		  struct lt_mark ret[LT_UNITS], uint16_t unit_of[LT_UNITS])
{
	uint32_t threads[LT_UNITS], acts[LT_UNITS];
	unsigned n = 0, nr_threads = 0, nr_acts = 0;

	for (unsigned i = 0; i < units->nr; i++) {
		const struct lt_unit *u = &units->u[i];
		const struct lt_event *e = event_of(inc, u);

		if (u->mate >= 0)
			continue;
		if (n == LT_UNITS)
			return LT_UNITS + 1;
		ret[n] = (struct lt_mark){ .site = u->site, .opens = u->opens };
		ret[n].is_new = e && e->op == RT_OP_NEW;
		ret[n].thread = e ? number_of(threads, &nr_threads, e->tid) : 0;
		ret[n].act = e && e->act ? number_of(acts, &nr_acts, e->act) : 0;
		if (unit_of)
			unit_of[n] = (uint16_t)i;
		n++;
	}
	return n;
}
