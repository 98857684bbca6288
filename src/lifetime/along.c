/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What was taken along. A run of a function that takes several references mostly takes them for one holder, and what
 * ends the holder gives all of them back. Where each reference that a function has lost was taken along with others,
 * and one run of another function gave back at least two of these, that function has forgotten it. It has no event of
 * its own on the object that leaks, and without debug information nothing else speaks of it.
 *
 * What is given back in the very run that took it was for no holder, and says nothing.
 */
#include "lifetime/answer.h"

enum {
	SITES_MAX = 16, /* places of one run that are told apart */
	PUTS_MAX = 64,  /* of one object that are looked at */
	RUNS_MAX = 64,  /* that gave back what one run took */
	ASKED_MAX = 64, /* references of a place that are asked */
	LEAST = 2       /* references that accuse */
};

static const double SHARE = 0.9;

/* One reference that a run took. */
struct taken {
	const struct lt_inc *inc;
	uint16_t ev;
	uint32_t next; /* index + 1 */
};

/* What runs took that have lost something. */
struct around {
	struct rt_map first; /* run -> index + 1 in taken, 0 = nothing yet */
	RT_VEC(struct taken) taken;
};

/* A run that gives back what was taken along. */
struct giver {
	uint32_t act;
	uint32_t sites; /* of what it gave back, a bit each */
	const struct lt_event *put;
	uint32_t src; /* source id of its function, 0: just one site until now */
};

struct givers {
	struct giver of[RUNS_MAX];
	unsigned nr;
};

void lt_along_ask(struct lt_answer *a, const struct lt_ref *ref)
{
	struct rt_key key = rt_key_make(ref->site, ref->inc->type);

	if (ref->ev == LT_NO_EVENT || !ref->inc->nobody || !ref->inc->ledger[ref->ev].act ||
	    lt_counted(&a->along_asked, key) >= ASKED_MAX)
		return;
	lt_count_one(&a->along_asked, key);
	a->nomem |= !rt_vec_push(&a->along_refs, *ref);
}

static bool note_taken(struct around *around, const struct lt_inc *inc)
{
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];
		uint64_t *first =
			e->act && lt_event_takes(e) ? rt_map_get(&around->first, rt_key_make(e->act, 0)) : NULL;
		struct taken taken = { inc, (uint16_t)i, first ? (uint32_t)*first : 0 };

		if (!first)
			continue;
		if (!rt_vec_push(&around->taken, taken))
			return false;
		*first = around->taken.len;
	}
	return true;
}

static bool look_around(struct lt_answer *a, struct around *around)
{
	const struct lt_row *const rows[] = { &a->lt->live, &a->lt->graves };
	bool ok = true;

	for (size_t i = 0; ok && i < a->along_refs.len; i++) {
		const struct lt_ref *ref = &a->along_refs.data[i];

		ok = rt_map_put(&around->first, rt_key_make(ref->inc->ledger[ref->ev].act, 0), NULL) != NULL;
	}
	for (unsigned r = 0; r < 2; r++) {
		const struct lt_inc *inc;
		uint32_t at = 0;

		while (ok && (inc = lt_row_newer(rows[r], &at)))
			ok = note_taken(around, inc);
	}
	return ok;
}

/* the run gave back what was taken at this site; two of them are a sign of the function that ran */
static void note_giver(const struct lt_answer *a, struct givers *g, uint32_t act, const struct lt_event *put,
		       unsigned site)
{
	unsigned i = 0, level, other;

	while (i < g->nr && g->of[i].act != act)
		i++;
	if (!act || i == RUNS_MAX)
		return;
	if (i == g->nr)
		g->of[g->nr++] = (struct giver){ .act = act, .put = put };
	if (!g->of[i].src && (g->of[i].sites & ~(1u << site)) &&
	    lt_come_together(a->lt, g->of[i].put, put, &level, &other))
		g->of[i].src = lt_src_around(a->lt, put, other);
	g->of[i].sites |= 1u << site;
}

static bool gives_back(const struct lt_event *e)
{
	return e->delta < 0 || (e->flags & LT_EV_CLOSES);
}

/* the object was given back, once at least, while the run that took it was not over */
static bool given_back_inside(const struct rt_lifetime *lt, const struct taken *t)
{
	const struct lt_event *taken = &t->inc->ledger[t->ev];
	unsigned level, other;

	for (uint32_t i = t->ev + 1u; i < t->inc->nr; i++) {
		const struct lt_event *e = &t->inc->ledger[i];

		if (gives_back(e) && (e->act == taken->act || e->up == taken->act ||
				      (lt_come_together(lt, taken, e, &level, &other) && !level)))
			return true;
	}
	return false;
}

static void note_givers(const struct lt_answer *a, const struct taken *t, unsigned site, struct givers *g)
{
	unsigned nr = 0;

	for (uint32_t i = t->ev + 1u; i < t->inc->nr && nr < PUTS_MAX; i++) {
		const struct lt_event *e = &t->inc->ledger[i];

		if (!gives_back(e))
			continue;
		note_giver(a, g, e->act, e, site);
		note_giver(a, g, e->up, e, site);
		nr++;
	}
}

/* who gave back what was taken along with the reference */
static void find_givers(const struct lt_answer *a, const struct around *around, const struct lt_ref *ref,
			struct givers *ret)
{
	const struct lt_event *mine = &ref->inc->ledger[ref->ev];
	const uint64_t *first = rt_map_get(&around->first, rt_key_make(mine->act, 0));
	uint32_t sites[SITES_MAX];
	unsigned nr = 0;

	ret->nr = 0;
	for (uint32_t at = first ? (uint32_t)*first : 0; at; at = around->taken.data[at - 1].next) {
		const struct taken *t = &around->taken.data[at - 1];
		uint32_t site = a->lt->uses.data[t->inc->ledger[t->ev].use].site;
		unsigned i = 0;

		while (i < nr && sites[i] != site)
			i++;
		if (t->inc == ref->inc || site == ref->site || i < nr || nr == SITES_MAX || given_back_inside(a->lt, t))
			continue;
		sites[nr] = site;
		note_givers(a, t, nr++, ret);
	}
}

/* one more reference speaks against the function */
static void accuse(struct lt_answer *a, const struct lt_ref *ref, uint32_t src)
{
	uint32_t function = lt_src(a->lt, src)->function;

	for (size_t i = 0; i < a->along.len; i++) {
		struct lt_along *o = &a->along.data[i];

		if (o->site == ref->site && o->type == ref->inc->type && lt_src(a->lt, o->src)->function == function) {
			o->refs += o->last != ref;
			o->last = ref;
			return;
		}
	}
	a->nomem |= !rt_vec_push(&a->along, ((struct lt_along){ ref->site, ref->inc->type, src, 1, ref }));
}

/*
 * It gave that back while such an object was put, or taken: what ends these gives back what they hold, and was never
 * run for the one that is left.
 */
static bool ends_such(const struct lt_answer *a, const struct giver *g, const struct lt_ref *ref)
{
	const uint32_t stack = a->lt->uses.data[g->put->use].stack;

	return stack && lt_in_stack(a->lt, stack, 0, lt_inc_type(a->lt, ref->inc));
}

void lt_along_settle(struct lt_answer *a)
{
	struct around around = { 0 };
	struct givers givers;

	if (a->along_refs.len) {
		a->nomem |= !look_around(a, &around);
		for (size_t i = 0; i < a->along_refs.len && !a->nomem; i++) {
			find_givers(a, &around, &a->along_refs.data[i], &givers);
			for (unsigned k = 0; k < givers.nr; k++) {
				if (givers.of[k].src && !ends_such(a, &givers.of[k], &a->along_refs.data[i]))
					accuse(a, &a->along_refs.data[i], givers.of[k].src);
			}
		}
	}
	rt_map_deinit(&around.first);
	rt_vec_deinit(&around.taken);
	a->along_refs.len = 0;
}

uint32_t lt_along_forgot(const struct lt_answer *a, const struct lt_ref *ref)
{
	double asked = lt_counted(&a->along_asked, rt_key_make(ref->site, ref->inc->type));
	uint32_t taker = lt_site_function(a->lt, ref->site), best = 0;
	double most = LEAST;

	for (size_t i = 0; i < a->along.len; i++) {
		const struct lt_along *o = &a->along.data[i];

		if (o->site != ref->site || o->type != ref->inc->type || o->refs < most || o->refs < SHARE * asked ||
		    lt_src(a->lt, o->src)->function == taker)
			continue;
		best = o->src;
		most = o->refs + 1;
	}
	return best;
}
