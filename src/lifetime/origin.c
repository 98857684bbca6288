/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All the stacks that a finding stands for: its story is that of one object, but a rule about stacks must not judge
 * the others by it.
 */
#include "lifetime/answer.h"

/* more than these are only counted: their stacks are nobody's to read */
enum { ORIGINS_MAX = 64 };

/* the operation that began the fault: the one that took the reference, or the one that was not owed; NULL: unseen */
static const struct lt_event *origin_event(const struct lt_group *g, const struct lt_ref *ref)
{
	uint16_t at = g->kind == RT_LEAK ? ref->ev : ref->bad;

	return at == LT_NO_EVENT ? NULL : &ref->inc->ledger[at];
}

static struct rt_origin *origin_of(const struct lt_answer *a, const struct lt_event *e, struct rt_map *uses,
				   struct rt_finding *f)
{
	/* use 0 is one, too */
	uint64_t key = e ? (uint64_t)e->use + 1 : 0;
	uint64_t *at = rt_map_get(uses, rt_key_make(key, 0));
	struct rt_origin *origin;

	if (at)
		return &f->origins[*at];
	if (f->origin_count == ORIGINS_MAX)
		return NULL;
	at = rt_map_put(uses, rt_key_make(key, 0), NULL);
	if (!at)
		return NULL;
	*at = f->origin_count;
	origin = &f->origins[f->origin_count++];
	*origin = (struct rt_origin){ .stack = { .label = "taken" } };
	if (!e)
		return origin;
	origin->api = rt_intern_text(&a->lt->names, a->lt->points.data[a->lt->uses.data[e->use].point].name);
	if (!lt_use_stack(a, &a->lt->uses.data[e->use], &origin->stack))
		origin->stack.count = 0;
	return origin;
}

bool lt_origins(const struct lt_answer *a, const struct lt_group *g, struct rt_finding *f)
{
	size_t most = g->members.len < ORIGINS_MAX ? g->members.len : ORIGINS_MAX;
	struct rt_map uses = { 0 };

	f->origins = rt_arena_alloc(a->arena, most * sizeof(*f->origins) + 1);
	for (size_t i = 0; f->origins && i < g->members.len; i++) {
		struct rt_origin *origin = origin_of(a, origin_event(g, &g->members.data[i].ref), &uses, f);

		if (origin)
			origin->references++;
		else
			f->origins_left_out++;
	}
	rt_map_deinit(&uses);
	return f->origins != NULL;
}
