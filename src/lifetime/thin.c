/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One object with more open references and puts than can be matched (a root that each operation leaks once more): what
 * belongs together in healthy objects goes, and of each place every so many-th stands for all that is left, so that
 * what is open in the end is still what the place has too many.
 */
#include "lifetime/thin.h"
#include "lifetime/spill.h"

enum {
	MANY = 8,       /* open at the end: where few are, rounding would look like them */
	PLACES_MAX = 64 /* that are looked at */
};

/* What one place has open, or put without a partner. */
struct pile {
	uint32_t site;
	uint16_t ev; /* one of them that the ledger still has; LT_NO_EVENT: none */
	bool opens;
	bool spilled; /* the ledger has lost some of them */
	uint64_t n;
	unsigned kept, done; /* how many stand for them; of these, so many were met */
};

struct piles {
	struct pile of[PLACES_MAX];
	unsigned nr;
	bool cut; /* there are more */
};

static struct pile *pile_of(struct piles *p, uint32_t site, bool opens)
{
	for (unsigned i = 0; i < p->nr; i++) {
		if (p->of[i].site == site && p->of[i].opens == opens)
			return &p->of[i];
	}
	if (p->nr == PLACES_MAX) {
		p->cut = true;
		return NULL;
	}
	p->of[p->nr] = (struct pile){ .site = site, .ev = LT_NO_EVENT, .opens = opens };
	return &p->of[p->nr++];
}

/* what the ledger has, and what it has lost */
static void collect(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_units *units,
		    struct piles *ret)
{
	const struct lt_spilled *s = NULL;

	ret->nr = 0;
	ret->cut = false;
	for (unsigned i = 0; i < units->nr; i++) {
		const struct lt_unit *u = &units->u[i];
		struct pile *p = u->mate < 0 ? pile_of(ret, u->site, u->opens) : NULL;

		if (p) {
			p->ev = u->ev;
			p->n++;
		}
	}
	while ((s = lt_spill_next(lt, inc, s))) {
		struct pile *p = pile_of(ret, lt->uses.data[s->use].site, s->opens);

		if (p) {
			p->n += s->n;
			p->spilled = true;
		}
	}
	/* where all that is left of a place was lost, what it did and was paired has been at the same place */
	for (unsigned i = 0; i < units->nr; i++) {
		const struct lt_unit *u = &units->u[i];

		for (unsigned k = 0; u->mate >= 0 && k < ret->nr; k++) {
			if (ret->of[k].ev == LT_NO_EVENT && ret->of[k].site == u->site && ret->of[k].opens == u->opens)
				ret->of[k].ev = u->ev;
		}
	}
	/* nobody could be told by these */
	for (unsigned k = 0; k < ret->nr; k++)
		ret->cut |= ret->of[k].opens && ret->of[k].spilled && ret->of[k].ev == LT_NO_EVENT;
}

/*
 * What a place takes is given back by others as it is in healthy objects: of those that mostly do so, the surest first.
 * What is left then is exact, however much there was.
 */
static void cancel(const struct lt_model *m, struct piles *p)
{
	static const double MOSTLY = 0.5;

	for (;;) {
		struct pile *get = NULL, *put = NULL;
		double best = MOSTLY;
		uint64_t n;

		for (unsigned i = 0; i < p->nr; i++) {
			double closed = p->of[i].opens && p->of[i].n ? lt_model_closed(m, p->of[i].site) : 0;

			for (unsigned k = 0; closed >= 1 && k < p->nr; k++) {
				double share = p->of[k].opens || !p->of[k].n
						       ? 0
						       : lt_model_pair(m, p->of[i].site, p->of[k].site) / closed;

				if (share <= best)
					continue;
				best = share;
				get = &p->of[i];
				put = &p->of[k];
			}
		}
		if (!get)
			return;
		n = get->n < put->n ? get->n : put->n;
		get->n -= n;
		put->n -= n;
	}
}

/* One of `every` of each stands for all, rounded up, or where small piles do not matter, off. Returns how many these
 * are. */
static unsigned divide(struct piles *p, uint64_t every, bool up)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < p->nr; i++) {
		p->of[i].kept = (unsigned)((p->of[i].n + (up ? every - 1 : every / 2)) / every);
		kept += p->of[i].kept;
	}
	return kept;
}

/*
 * How many of each stand for all: as many as can be matched. false: there are too many places for that, or too few are
 * open to be divided.
 */
static bool choose(struct piles *p, bool few)
{
	uint64_t all = 0, every;
	unsigned places = 0;

	for (unsigned i = 0; i < p->nr; i++) {
		all += p->of[i].n;
		places += p->of[i].n != 0;
	}
	if (p->cut || (few && all > LT_UNITS))
		return false;
	every = all / LT_UNITS;
	while (divide(p, ++every, places <= LT_UNITS / 2) > LT_UNITS && every < all)
		;
	return every < all || all <= LT_UNITS;
}

/* the next one of the pile that stands for others: so many */
static uint32_t weight_of(struct pile *p)
{
	uint64_t before = p->n * p->done / p->kept;

	return (uint32_t)(p->n * ++p->done / p->kept - before);
}

void lt_thin(const struct lt_model *m, const struct lt_inc *inc, struct lt_units *units, uint32_t weight[LT_UNITS])
{
	unsigned nr = units->nr, n = 0;
	struct piles piles;

	for (unsigned i = 0; i < LT_UNITS; i++)
		weight[i] = 1;
	if (units->cut || (units->left <= LT_UNITS && !inc->folded))
		return;
	collect(m->lt, inc, units, &piles);
	cancel(m, &piles);
	if (!inc->known || !choose(&piles, inc->balance < MANY)) {
		units->cut = inc->folded;
		return;
	}
	for (unsigned i = 0; i < nr; i++) {
		struct lt_unit *u = &units->u[i];
		struct pile *p = u->mate < 0 ? pile_of(&piles, u->site, u->opens) : NULL;

		if (p && p->done < p->kept) {
			weight[n++] = weight_of(p);
		} else if (p) {
			u->mate = (int16_t)i;
			units->left--;
		}
	}
	for (unsigned i = 0; i < piles.nr; i++) {
		struct pile *p = &piles.of[i];

		while (p->done < p->kept && units->nr < LT_UNITS_MAX) {
			units->u[units->nr++] = (struct lt_unit){ p->site, -1, p->ev, p->opens };
			units->left++;
			weight[n++] = weight_of(p);
		}
	}
}
