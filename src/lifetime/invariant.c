/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all objects of a type say at once. Where a function takes references to work with the object, and never gives
 * one back, the matching sees no pair of it to go by: puts that belong to others look like its own. But then the
 * references that each lost object has left are as many as that function took, whatever number that is, and in those
 * that ended well it took none. Where the lost ones differ in their numbers, hardly two functions fit.
 */
#include "lifetime/answer.h"

enum { CLAIMS = 16, FEW = 3 };

struct claims {
	uint32_t function[CLAIMS]; /* those for which it holds so far */
	bool gives_back[CLAIMS];
	unsigned nr;
	bool begun;
	unsigned objects;
	int64_t least, most; /* references that lost objects have left */
};

/* it has so many references left, and what became of all that it had is known */
static bool tells(const struct rt_lifetime *lt, const struct lt_inc *inc, int64_t *ret_left)
{
	bool lost = inc->life == LT_LIVE && inc->nobody, ended = inc->life == LT_DEAD && !inc->forced && !inc->post;

	*ret_left = lost ? inc->balance : 0;
	return (lost || ended) && inc->has_new && inc->known && !inc->folded && !inc->inherited && !inc->inert &&
	       !lt_life_vague(lt, inc);
}

/*
 * What the function took in the life of inc less what it gave back. What gives references back the matching can go by,
 * which then may as well tell of what others do: it claims nothing, but stands against who does.
 */
static int64_t net(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t function, bool *ret_gives_back)
{
	int64_t n = 0;

	*ret_gives_back = false;
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (lt_event_function(lt, e) != function)
			continue;
		n += e->op == RT_OP_NEW ? inc->start : e->delta;
		*ret_gives_back |= e->delta < 0;
	}
	return n;
}

/* some run took two in a row, which says more than numbers do */
static bool taken_twice(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	for (uint32_t i = 0; i < inc->nr; i++) {
		if (inc->ledger[i].op == RT_OP_GET && lt_twice_in_line(lt, inc, (uint16_t)i))
			return true;
	}
	return false;
}

static void claim(const struct rt_lifetime *lt, const struct lt_inc *inc, int64_t left, struct claims *c)
{
	for (uint32_t i = 0; i < inc->nr && c->nr < CLAIMS; i++) {
		uint32_t function = lt_event_function(lt, &inc->ledger[i]);
		bool known = !function || !lt_event_takes(&inc->ledger[i]);

		for (unsigned k = 0; k < c->nr && !known; k++)
			known = c->function[k] == function;
		if (!known && net(lt, inc, function, &c->gives_back[c->nr]) == left)
			c->function[c->nr++] = function;
	}
}

/* those for which it holds in this life as well */
static void keep(const struct rt_lifetime *lt, const struct lt_inc *inc, int64_t left, struct claims *c)
{
	unsigned kept = 0;

	for (unsigned k = 0; k < c->nr; k++) {
		bool gives_back;

		if (net(lt, inc, c->function[k], &gives_back) != left)
			continue;
		c->gives_back[kept] = c->gives_back[k] || gives_back;
		c->function[kept++] = c->function[k];
	}
	c->nr = kept;
}

static void see(const struct rt_lifetime *lt, const struct lt_inc *inc, struct claims *c)
{
	int64_t left;

	if (!tells(lt, inc, &left))
		return;
	if (!c->begun) {
		c->begun = true;
		claim(lt, inc, left, c);
		c->least = c->most = left;
	}
	keep(lt, inc, left, c);
	if (left && taken_twice(lt, inc))
		c->nr = 0;
	c->objects++;
	c->least = left && left < c->least ? left : c->least;
	c->most = left > c->most ? left : c->most;
}

uint32_t lt_invariant(const struct rt_lifetime *lt, uint32_t type, uint32_t klass)
{
	/* the lost ones come first: they say who claims anything */
	const struct lt_row *rows[] = { &lt->live, &lt->graves };
	struct claims c = { .nr = 0 };

	if (lt->types.data[type].flags & (RT_TYPE_HEAP_ONLY | RT_TYPE_DESCRIPTOR))
		return 0;
	for (size_t i = 0; i < 2 && (!i || c.nr); i++) {
		const struct lt_inc *inc;
		uint32_t at = UINT32_MAX;

		while ((inc = lt_row_older(rows[i], &at)) && (!c.begun || c.nr)) {
			if (inc->type == type && inc->klass == klass)
				see(lt, inc, &c);
		}
	}
	return c.nr == 1 && !c.gives_back[0] && c.objects >= FEW && c.least != c.most ? c.function[0] : 0;
}

unsigned lt_invariant_refs(const struct rt_lifetime *lt, struct lt_inc *inc, uint32_t function,
			   struct lt_ref ret[LT_UNITS])
{
	bool gives_back;
	unsigned n = 0;
	int64_t left;

	if (!function || !tells(lt, inc, &left) || left <= 0 || left > LT_UNITS ||
	    net(lt, inc, function, &gives_back) != left)
		return 0;
	for (uint32_t i = inc->nr; i-- > 0 && n < left;) {
		const struct lt_event *e = &inc->ledger[i];

		if (lt_event_takes(e) && lt_event_function(lt, e) == function)
			ret[n++] = (struct lt_ref){ .inc = inc,
						    .site = lt->uses.data[e->use].site,
						    .ev = (uint16_t)i,
						    .bad = LT_NO_EVENT,
						    .invariant = true };
	}
	return n;
}
