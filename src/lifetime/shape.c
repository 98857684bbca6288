/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Dead objects, reduced to what can be learnt from them: pairs that are
 * certain are counted by their sites, the rest becomes a shape; equal shapes
 * are one with a count. Memory grows with distinct shapes, and these are bounded.
 */
#include "lifetime/life.h"

/* what is known of a site by now, made when new; index + 1 in type.stats, 0: out of memory */
static __attribute__((noinline)) uint32_t find_stat(struct lt_type *type, uint32_t site)
{
	bool made;
	uint64_t *index = rt_map_put(&type->stat_of, rt_key_make(site, 0), &made);
	struct lt_stat *s;

	if (!index)
		return 0;
	if (made) {
		s = rt_vec_add(&type->stats);
		if (!s) {
			rt_map_remove(&type->stat_of, rt_key_make(site, 0), NULL);
			return 0;
		}
		*index = type->stats.len - 1;
		s->site = site;
	}
	type->stats_known[site % LT_STATS_KNOWN] = (struct lt_stat_known){ site, (uint32_t)*index + 1 };
	return (uint32_t)*index + 1;
}

static inline uint32_t stat_of(struct lt_type *type, uint32_t site)
{
	const struct lt_stat_known *known = &type->stats_known[site % LT_STATS_KNOWN];

	return known->site == site && known->stat ? known->stat : find_stat(type, site);
}

/* where references of s are counted that this site closes; false: out of memory */
static __attribute__((noinline)) bool find_pair(struct lt_type *type, struct lt_stat *s, uint32_t mate)
{
	bool made;
	uint64_t *index = rt_map_put(&type->exact, rt_key_make(s->site, mate), &made);

	if (!index)
		return false;
	if (made) {
		*index = type->pairs.len;
		if (!rt_vec_push(&type->pairs, 0)) {
			rt_map_remove(&type->exact, rt_key_make(s->site, mate), NULL);
			return false;
		}
	}
	s->mate = mate;
	s->pair = (uint32_t)*index + 1;
	return true;
}

/* the reference that u took was closed: mostly at the site that closed the last one of its site, too */
static inline void count_pair(struct lt_type *type, struct lt_stat *s, uint32_t mate)
{
	if ((s->pair && s->mate == mate) || find_pair(type, s, mate))
		type->pairs.data[s->pair - 1]++;
}

/* all that the site of u did in this life; index + 1 of what is known of it, 0: nothing is counted */
static inline uint32_t count_unit(struct lt_type *type, const struct lt_inc *inc, const struct lt_unit *u)
{
	uint32_t stat = stat_of(type, u->site);
	struct lt_stat *s;
	uint64_t time;

	if (!stat || u->ev == LT_NO_EVENT)
		return 0;
	s = &type->stats.data[stat - 1];
	/* once in a life, one or the other: nobody can predict that */
	s->objects += s->last_inc != inc->serial;
	s->last_inc = inc->serial;
	s->closed += !u->opens;
	s->opened += u->opens;
	time = inc->ledger[u->ev].time_ns & (0ull - u->opens);
	s->newest_ns = time > s->newest_ns ? time : s->newest_ns;
	return stat;
}

static void count_units(struct lt_type *type, const struct lt_inc *inc, const struct lt_units *units)
{
	uint32_t stats[LT_UNITS_MAX];

	for (unsigned i = 0; i < units->nr; i++)
		stats[i] = count_unit(type, inc, &units->u[i]);
	for (unsigned i = 0; i < units->openers; i++) {
		const struct lt_unit *u = &units->u[units->opener[i]];

		if (u->mate >= 0 && stats[units->opener[i]])
			count_pair(type, &type->stats.data[stats[units->opener[i]] - 1], units->u[u->mate].site);
	}
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
	return !inc->has_new && !inc->attached && type->op[RT_OP_NEW] * 10 >= lt_type_objects(type) * 9;
}

enum { OWNERS_ALL = 512, OWNERS_EVERY = 32 };

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
	lt_slots_settle(lt, inc);
	lt_pair(lt, inc, &units);
	/* the first ones, and now and then one, say what there is to learn */
	if (type->healthy < OWNERS_ALL || type->healthy % OWNERS_EVERY == 0)
		lt_owners_learn(lt, inc);
	type->healthy++;
	count_units(type, inc, &units);
	n = lt_marks(lt, inc, &units, marks, NULL);
	if (n && n <= LT_UNITS)
		intern(type, marks, n);
}
