/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Dead objects, reduced to what can be learnt from them: pairs that are
 * certain are counted by their sites, the rest becomes a shape; equal shapes
 * are one with a count. Memory grows with distinct shapes, and these are bounded.
 */
#include "lifetime/life.h"

static struct lt_stat *stat_of(struct lt_type *type, uint32_t site)
{
	struct lt_stat_known *known = &type->stats_known[site % LT_STATS_KNOWN];
	bool made;
	uint64_t *index;
	struct lt_stat *s;

	if (known->site == site && known->stat)
		return &type->stats.data[known->stat - 1];
	index = rt_map_put(&type->stat_of, rt_key_make(site, 0), &made);
	if (!index)
		return NULL;
	if (!made) {
		*known = (struct lt_stat_known){ site, (uint32_t)*index + 1 };
		return &type->stats.data[*index];
	}
	s = rt_vec_add(&type->stats);
	if (!s) {
		rt_map_remove(&type->stat_of, rt_key_make(site, 0), NULL);
		return NULL;
	}
	*index = type->stats.len - 1;
	s->site = site;
	return s;
}

/* the reference that u took was closed: mostly at the site that closed the last one of its site, too */
static void count_pair(struct lt_type *type, const struct lt_units *units, const struct lt_unit *u)
{
	struct lt_stat *s = u->mate >= 0 && u->ev != LT_NO_EVENT ? stat_of(type, u->site) : NULL;
	uint32_t mate;
	uint64_t *index;
	bool made;

	if (!s)
		return;
	mate = units->u[u->mate].site;
	if (!s->pair || s->mate != mate) {
		index = rt_map_put(&type->exact, rt_key_make(s->site, mate), &made);
		if (!index)
			return;
		if (made) {
			*index = type->pairs.len;
			if (!rt_vec_push(&type->pairs, 0)) {
				rt_map_remove(&type->exact, rt_key_make(s->site, mate), NULL);
				return;
			}
		}
		s->mate = mate;
		s->pair = (uint32_t)*index + 1;
	}
	type->pairs.data[s->pair - 1]++;
}

static void count_unit(struct lt_type *type, const struct lt_inc *inc, const struct lt_units *units, unsigned i)
{
	const struct lt_unit *u = &units->u[i];
	struct lt_stat *s = stat_of(type, u->site);
	uint64_t time;

	if (!s || u->ev == LT_NO_EVENT)
		return;
	if (s->last_inc != inc->serial) {
		s->last_inc = inc->serial;
		s->objects++;
	}
	/* one or the other nobody can predict */
	s->closed += !u->opens;
	s->opened += u->opens;
	time = inc->ledger[u->ev].time_ns & (0ull - u->opens);
	s->newest_ns = time > s->newest_ns ? time : s->newest_ns;
}

static void intern(struct lt_type *type, const struct lt_mark *marks, unsigned n)
{
	size_t known = type->shape_ids.items.len;
	uint32_t id;

	if (known >= LT_SHAPES) {
		type->other_shapes++;
		return;
	}
	id = rt_intern_bytes(&type->shape_ids, marks, n * sizeof(*marks));
	if (!id)
		return;
	if (id > known && !rt_vec_add(&type->shapes))
		return;
	type->shapes.data[id - 1].id = id;
	type->shapes.data[id - 1].count++;
}

/* where nearly all births are seen, a life without one is made of events that were told at a wrong time */
static bool odd_one(const struct lt_type *type, const struct lt_inc *inc)
{
	return !inc->has_new && !inc->attached && type->op[RT_OP_NEW] * 10 >= type->objects * 9;
}

void lt_shape_count(struct rt_lifetime *lt, struct lt_inc *inc)
{
	struct lt_type *type = lt_inc_type(lt, inc);
	struct lt_units units;
	struct lt_mark marks[LT_UNITS];
	unsigned n;

	if (inc->shaped || inc->life != LT_DEAD || inc->incomplete || inc->forced || inc->folded || inc->post ||
	    inc->inherited || odd_one(type, inc))
		return;
	inc->shaped = true;
	lt_pair(lt, inc, &units);
	type->healthy++;
	for (unsigned i = 0; i < units.nr; i++)
		count_unit(type, inc, &units, i);
	for (unsigned i = 0; i < units.openers; i++)
		count_pair(type, &units, &units.u[units.opener[i]]);
	n = lt_marks(lt, inc, &units, marks, NULL);
	if (n && n <= LT_UNITS)
		intern(type, marks, n);
}
