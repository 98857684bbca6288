/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counting mode: no order, so nobody is accused. Objects to which the same places did the same are one group, and
 * beside what each place did to them stands what it did in all.
 */
#include <stdlib.h>
#include <string.h>

#include "lifetime/answer.h"

enum { GROUPS_MAX = 4096 };
#define LT_NO_POINT UINT32_MAX

/* The innermost source function that is no API of the type: as for an event. false: out of memory. */
static bool place_of(struct rt_lifetime *lt, const struct rt_wire_head *head, const struct rt_wire_counted *c,
		     struct lt_tally_part *ret)
{
	const struct lt_point *known = lt_point(lt, c->point);
	uint32_t point, stack, use;

	*ret = (struct lt_tally_part){ .events = c->n, .point = LT_NO_POINT };
	if (!known)
		return true;
	ret->point = point = (uint32_t)(known - lt->points.data);
	stack = lt_stack_find(lt, head->pid, c->stack);
	use = lt_use_find(lt, stack, point, head->pid, head->time_ns);
	if (use == UINT32_MAX)
		return false;
	ret->src = lt_site(lt, lt->uses.data[use].site)->src[0];
	return true;
}

static int by_place(const void *x, const void *y)
{
	const struct lt_tally_part *a = x, *b = y;

	if (a->point != b->point)
		return a->point < b->point ? -1 : 1;
	return a->src < b->src ? -1 : a->src > b->src;
}

/* Sorted, each place once. */
static unsigned merge(struct lt_tally_part *parts, unsigned nr)
{
	unsigned to = 0;

	qsort(parts, nr, sizeof(*parts), by_place);
	for (unsigned i = 0; i < nr; i++) {
		if (to && !by_place(&parts[to - 1], &parts[i]))
			parts[to - 1].events += parts[i].events;
		else
			parts[to++] = parts[i];
	}
	return to;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	return (h ^ v) * UINT64_C(0x9e3779b97f4a7c15) + (h >> 29);
}

/* The group with these parts, made if new; NULL: out of memory, or there are too many. */
static struct lt_tally_group *group_of(struct rt_lifetime *lt, const struct rt_wire_tally *r, uint32_t type,
				       const struct lt_tally_part *parts, unsigned nr)
{
	struct lt_tallies *t = &lt->tallies;
	uint64_t h = mix(mix(type, (uint64_t)r->balance), nr), *slot;
	struct lt_tally_group *g;
	bool made;

	for (unsigned i = 0; i < nr; i++)
		h = mix(mix(h, (uint64_t)parts[i].src << 32 | parts[i].point), parts[i].events);
	h = mix(h, (uint64_t)(r->news != 0) << 1 | (r->news > 1));
	slot = t->groups.len < GROUPS_MAX ? rt_map_put(&t->by_hash, rt_key_make(h, type), &made)
					  : rt_map_get(&t->by_hash, rt_key_make(h, type));
	if (!slot) {
		lt->nomem |= t->groups.len < GROUPS_MAX;
		t->ungrouped++;
		return NULL;
	}
	if (t->groups.len < GROUPS_MAX && made) {
		g = rt_vec_add(&t->groups);
		if (!g) {
			lt->nomem = true;
			return NULL;
		}
		*slot = t->groups.len;
		*g = (struct lt_tally_group){ .type = type,
					      .balance = r->balance,
					      .made = r->news != 0,
					      .several = r->news > 1,
					      .first_address = r->object,
					      .first_ns = r->first_ns };
		for (unsigned i = 0; i < nr; i++)
			lt->nomem |= !rt_vec_push(&g->parts, parts[i]);
	}
	return &t->groups.data[*slot - 1];
}

bool lt_tally_record(struct rt_lifetime *lt, const struct rt_wire_tally *r)
{
	const uint64_t *type = rt_map_get(&lt->type_by_id, rt_key_make(r->type, 0));
	struct lt_tally_part parts[64];
	struct lt_tally_group *g;
	unsigned nr = 0;

	if (!type || r->nr > sizeof(parts) / sizeof(parts[0])) {
		lt->inconsistent++;
		return true;
	}
	lt->tallies.any = true;
	for (unsigned i = 0; i < r->nr; i++)
		if (!place_of(lt, &r->head, &r->site[i], &parts[nr++]))
			return false;
	g = group_of(lt, r, (uint32_t)*type, parts, merge(parts, nr));
	if (!g)
		return !lt->nomem;
	g->objects++;
	g->others += r->others;
	if (r->first_ns < g->first_ns) {
		g->first_ns = r->first_ns;
		g->first_address = r->object;
	}
	g->last_ns = r->last_ns > g->last_ns ? r->last_ns : g->last_ns;
	return true;
}

/* As many objects that were put once too often, each of them gone. */
static bool stray(struct rt_lifetime *lt, const struct rt_wire_site *r)
{
	const struct lt_point *point = lt_point(lt, r->all.point);
	struct rt_wire_tally each = { .head = r->head, .balance = -1 };
	struct rt_wire_head head = r->head;
	struct lt_tally_part part;
	struct lt_tally_group *g;

	if (!place_of(lt, &head, &(struct rt_wire_counted){ r->all.stack, r->all.point, 1 }, &part))
		return false;
	g = point ? group_of(lt, &each, point->type, &part, 1) : NULL;
	if (g)
		g->objects += r->all.n;
	return !lt->nomem;
}

bool lt_tally_site(struct rt_lifetime *lt, const struct rt_wire_site *r)
{
	struct lt_tally_part part;
	uint64_t *slot;

	lt->tallies.any = true;
	if (r->what == RT_SITE_STRAY)
		return stray(lt, r);
	if (!place_of(lt, &r->head, &r->all, &part))
		return false;
	slot = rt_map_put(&lt->tallies.in_all, rt_key_make(part.src, part.point), NULL);
	if (!slot)
		return false;
	*slot += part.events;
	if (part.point < lt->points.len)
		lt->types.data[lt->points.data[part.point].type].op[lt->points.data[part.point].op] += part.events;
	lt->events += part.events;
	return true;
}

static int larger(const void *x, const void *y)
{
	const struct rt_tally_group *a = x, *b = y;

	if (a->objects != b->objects)
		return a->objects > b->objects ? -1 : 1;
	return a->first_ns < b->first_ns ? -1 : a->first_ns > b->first_ns;
}

static bool fill_group(struct lt_answer *a, const struct lt_tally_group *from, struct rt_tally_group *to)
{
	struct rt_lifetime *lt = a->lt;

	*to = (struct rt_tally_group){ .type = lt->types.data[from->type].name,
				       .objects = from->objects,
				       .balance = from->balance,
				       .made = from->made,
				       .several = from->several,
				       .others = from->others,
				       .first_address = from->first_address,
				       .first_ns = from->first_ns,
				       .last_ns = from->last_ns,
				       .row_count = from->parts.len };
	to->rows = rt_arena_alloc(a->arena, from->parts.len * sizeof(*to->rows) + 1);
	if (!to->rows)
		return false;
	for (size_t i = 0; i < from->parts.len; i++) {
		const struct lt_tally_part *p = &from->parts.data[i];
		const uint64_t *all = rt_map_get(&lt->tallies.in_all, rt_key_make(p->src, p->point));
		static const struct lt_point unknown;
		const struct lt_point *point = p->point == LT_NO_POINT ? &unknown : &lt->points.data[p->point];

		to->rows[i] = (struct rt_tally_row){ .site = lt_src(lt, p->src)->frame,
						     .api = rt_intern_text(&lt->names, point->name),
						     .op = point->op,
						     .events = p->events * from->objects,
						     .in_all = all ? *all : 0 };
	}
	return true;
}

bool lt_tally_fill(struct lt_answer *a, struct rt_verdict *v)
{
	const struct lt_tallies *t = &a->lt->tallies;

	v->counted = t->any;
	v->tallies = rt_arena_alloc(a->arena, t->groups.len * sizeof(*v->tallies) + 1);
	if (!v->tallies)
		return false;
	for (size_t i = 0; i < t->groups.len; i++)
		if (!fill_group(a, &t->groups.data[i], &v->tallies[v->tally_count++]))
			return false;
	qsort(v->tallies, v->tally_count, sizeof(*v->tallies), larger);
	for (size_t i = 0; t->any && i < v->type_count; i++) {
		struct rt_type_count *c = &v->types[i];

		c->incarnations = c->news;
		for (size_t k = 0; k < v->tally_count; k++)
			c->live +=
				v->tallies[k].type == c->name && v->tallies[k].balance > 0 ? v->tallies[k].objects : 0;
	}
	return true;
}

void lt_tally_free(struct rt_lifetime *lt)
{
	for (size_t i = 0; i < lt->tallies.groups.len; i++)
		rt_vec_deinit(&lt->tallies.groups.data[i].parts);
	rt_vec_deinit(&lt->tallies.groups);
	rt_map_deinit(&lt->tallies.by_hash);
	rt_map_deinit(&lt->tallies.in_all);
}
