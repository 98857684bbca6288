/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Dead objects, reduced to what can be learnt from them: pairs that are
 * certain are counted by their sites, the rest becomes a shape; equal shapes
 * are one with a count. Memory grows with distinct shapes, and these are bounded.
 */
#include "lifetime/life.h"
#include "lifetime/slot.h"

/* what is known of a site by now, made when new; index + 1 in learnt.stats, 0: out of memory */
static __attribute__((noinline)) uint32_t find_stat(struct lt_learnt *learnt, uint32_t site)
{
	bool made;
	uint64_t *index = rt_map_put(&learnt->stat_of, rt_key_make(site, 0), &made);
	struct lt_stat *s;

	if (!index)
		return 0;
	if (made) {
		s = rt_vec_add(&learnt->stats);
		if (!s) {
			rt_map_remove(&learnt->stat_of, rt_key_make(site, 0), NULL);
			return 0;
		}
		*index = learnt->stats.len - 1;
		s->site = site;
	}
	learnt->stats_known[site % LT_STATS_KNOWN] = (struct lt_stat_known){ site, (uint32_t)*index + 1 };
	return (uint32_t)*index + 1;
}

static inline uint32_t stat_of(struct lt_learnt *learnt, uint32_t site)
{
	const struct lt_stat_known *known = &learnt->stats_known[site % LT_STATS_KNOWN];

	return known->site == site && known->stat ? known->stat : find_stat(learnt, site);
}

const struct lt_stat *lt_learnt_stat(const struct lt_learnt *learnt, uint32_t site)
{
	const uint64_t *index = rt_map_get(&learnt->stat_of, rt_key_make(site, 0));

	return index ? &learnt->stats.data[*index] : NULL;
}

/* where references of s are counted that this site closes; false: out of memory */
static __attribute__((noinline)) bool find_pair(struct lt_learnt *learnt, struct lt_stat *s, uint32_t mate)
{
	bool made;
	uint64_t *index = rt_map_put(&learnt->exact, rt_key_make(s->site, mate), &made);

	if (!index)
		return false;
	if (made) {
		*index = learnt->pairs.len;
		if (!rt_vec_push(&learnt->pairs, 0)) {
			rt_map_remove(&learnt->exact, rt_key_make(s->site, mate), NULL);
			return false;
		}
	}
	s->mate = mate;
	s->pair = (uint32_t)*index + 1;
	return true;
}

/* the reference that u took was closed: mostly at the site that closed the last one of its site, too */
static inline void count_pair(struct lt_learnt *learnt, struct lt_stat *s, uint32_t mate)
{
	if ((s->pair && s->mate == mate) || find_pair(learnt, s, mate))
		learnt->pairs.data[s->pair - 1]++;
}

bool lt_learnt_site(struct lt_learnt *learnt, uint32_t site, uint64_t opened, uint64_t closed, uint64_t objects)
{
	uint32_t stat = stat_of(learnt, site);
	struct lt_stat *s = stat ? &learnt->stats.data[stat - 1] : NULL;

	if (!s)
		return false;
	s->opened += opened;
	s->closed += closed;
	s->objects += objects;
	return true;
}

bool lt_learnt_pair(struct lt_learnt *learnt, uint32_t opens, uint32_t closes, uint64_t times)
{
	uint32_t stat = stat_of(learnt, opens);

	if (!stat || !find_pair(learnt, &learnt->stats.data[stat - 1], closes))
		return false;
	learnt->pairs.data[learnt->stats.data[stat - 1].pair - 1] += times;
	return true;
}

/* all that the site of u did in this life; index + 1 of what is known of it, 0: nothing is counted */
static inline uint32_t count_unit(struct lt_learnt *learnt, const struct lt_inc *inc, const struct lt_unit *u)
{
	uint32_t stat = stat_of(learnt, u->site);
	struct lt_stat *s;
	uint64_t time;

	if (!stat || u->ev == LT_NO_EVENT)
		return 0;
	s = &learnt->stats.data[stat - 1];
	/* once in a life, one or the other: nobody can predict that */
	s->objects += s->last_inc != inc->serial;
	s->last_inc = inc->serial;
	s->closed += !u->opens;
	s->opened += u->opens;
	time = inc->ledger[u->ev].time_ns & (0ull - u->opens);
	s->newest_ns = time > s->newest_ns ? time : s->newest_ns;
	return stat;
}

static void count_units(struct lt_learnt *learnt, const struct lt_inc *inc, const struct lt_units *units)
{
	uint32_t stats[LT_UNITS_MAX];

	for (unsigned i = 0; i < units->nr; i++)
		stats[i] = count_unit(learnt, inc, &units->u[i]);
	for (unsigned i = 0; i < units->openers; i++) {
		const struct lt_unit *u = &units->u[units->opener[i]];

		if (u->mate >= 0 && stats[units->opener[i]])
			count_pair(learnt, &learnt->stats.data[stats[units->opener[i]] - 1], units->u[u->mate].site);
	}
}

void lt_shape_replaced(struct rt_lifetime *lt, struct lt_inc *inc)
{
	struct lt_learnt *learnt = lt_learnt(lt, inc->type, inc->klass);
	struct lt_units units;

	lt_slots_settle(lt, inc, inc->nr);
	lt_pair(lt, inc, &units);
	for (unsigned i = 0; i < units.openers; i++) {
		const struct lt_unit *u = &units.u[units.opener[i]];
		uint32_t stat = u->mate < 0 ? stat_of(learnt, u->site) : 0;

		if (stat)
			learnt->stats.data[stat - 1].replaced++;
	}
}

void lt_learnt_shape(struct lt_learnt *learnt, const struct lt_mark *marks, unsigned n, uint64_t times)
{
	size_t known = learnt->shape_ids.items.len;
	uint32_t id;

	if (known >= LT_SHAPES) {
		learnt->other_shapes += times;
		return;
	}
	id = rt_intern_bytes(&learnt->shape_ids, marks, n * sizeof(*marks));
	if (!id)
		return;
	if (id > known && !rt_vec_add(&learnt->shapes))
		return;
	learnt->shapes.data[id - 1].id = id;
	learnt->shapes.data[id - 1].count += times;
}

/* where nearly all births are seen, a life without one is made of events that were told at a wrong time */
static bool odd_one(const struct lt_type *type, const struct lt_inc *inc)
{
	return !inc->has_new && !inc->attached && type->op[RT_OP_NEW] * 10 >= lt_type_objects(type) * 9;
}

enum { OWNERS_ALL = 512, OWNERS_EVERY = 32 };

void lt_shape_count(struct rt_lifetime *lt, struct lt_inc *inc)
{
	const struct lt_type *type = lt_inc_type(lt, inc);
	struct lt_learnt *learnt = lt_learnt(lt, inc->type, inc->klass);
	struct lt_units units;
	struct lt_mark marks[LT_UNITS];
	unsigned n;

	if (inc->shaped || inc->life != LT_DEAD || inc->incomplete || inc->forced || inc->folded || inc->post ||
	    inc->inherited || odd_one(type, inc))
		return;
	inc->shaped = true;
	lt_slots_settle(lt, inc, inc->nr);
	lt_pair(lt, inc, &units);
	/* the first ones, and now and then one, say what there is to learn */
	if (learnt->healthy < OWNERS_ALL || learnt->healthy % OWNERS_EVERY == 0)
		lt_owners_learn(lt, inc);
	learnt->healthy++;
	count_units(learnt, inc, &units);
	n = lt_marks(lt, inc, &units, marks, NULL);
	if (n && n <= LT_UNITS)
		lt_learnt_shape(learnt, marks, n, 1);
}

bool lt_learnt_add(struct lt_learnt *learnt, const struct lt_learnt *from)
{
	const struct rt_map_slot *s;
	size_t pos = 0;

	for (size_t i = 0; i < from->stats.len; i++) {
		const struct lt_stat *stat = &from->stats.data[i];
		uint32_t to = stat_of(learnt, stat->site);

		if (!to || !lt_learnt_site(learnt, stat->site, stat->opened, stat->closed, stat->objects))
			return false;
		learnt->stats.data[to - 1].replaced += stat->replaced;
		if (learnt->stats.data[to - 1].newest_ns < stat->newest_ns)
			learnt->stats.data[to - 1].newest_ns = stat->newest_ns;
	}
	while ((s = rt_map_next(&from->exact, &pos))) {
		if (!lt_learnt_pair(learnt, (uint32_t)s->key.a, (uint32_t)s->key.b, from->pairs.data[s->value]))
			return false;
	}
	for (size_t i = 0; i < from->shapes.len; i++) {
		struct rt_bytes bytes = rt_intern_get(&from->shape_ids, from->shapes.data[i].id);
		struct lt_mark marks[LT_UNITS];

		memcpy(marks, bytes.data, bytes.size);
		lt_learnt_shape(learnt, marks, (unsigned)(bytes.size / sizeof(marks[0])), from->shapes.data[i].count);
	}
	learnt->healthy += from->healthy;
	learnt->other_shapes += from->other_shapes;
	return true;
}

void lt_learnt_deinit(struct lt_learnt *learnt)
{
	rt_map_deinit(&learnt->exact);
	rt_vec_deinit(&learnt->pairs);
	rt_map_deinit(&learnt->stat_of);
	rt_vec_deinit(&learnt->stats);
	rt_intern_deinit(&learnt->shape_ids);
	rt_vec_deinit(&learnt->shapes);
}
