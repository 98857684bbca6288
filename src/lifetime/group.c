/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Accusations that name the same function for the same fault of the same type
 * are one finding; below half confidence they are suspects of their own.
 */
#include "lifetime/answer.h"

static struct lt_group *group_of(struct lt_answer *a, const struct lt_ref *ref, const struct lt_blame *b)
{
	bool suspect = b->confidence < 0.5, made;
	uint32_t function = lt_src(a->lt, b->guilty)->function;
	uint64_t kind = (uint64_t)ref->inc->type << 32 | (uint64_t)b->kind << 1 | suspect;
	uint64_t *index = rt_map_put(&a->group_of, rt_key_make(kind, function), &made);
	struct lt_group *g;

	if (!index)
		return NULL;
	if (!made)
		return &a->groups.data[*index];
	*index = a->groups.len;
	g = rt_vec_add(&a->groups);
	if (!g) {
		rt_map_remove(&a->group_of, rt_key_make(kind, function), NULL);
		return NULL;
	}
	g->kind = b->kind;
	g->role = b->role;
	g->type = ref->inc->type;
	g->guilty = b->guilty;
	g->suspect = suspect;
	return g;
}

void lt_accuse(struct lt_answer *a, const struct lt_ref *ref, const struct lt_blame *b)
{
	struct lt_group *g = group_of(a, ref, b);
	struct lt_member *member = g ? rt_vec_add(&g->members) : NULL;

	if (!member) {
		a->nomem = true;
		return;
	}
	member->ref = *ref;
	member->confidence = b->confidence;
	g->confidence += b->confidence;
	g->lost += b->lost;
	if (b->why)
		g->why = b->why;
	if (!b->alternative || lt_src(a->lt, b->alternative)->function == lt_src(a->lt, g->guilty)->function)
		return;
	for (size_t i = 0; i < g->choices.len; i++) {
		if (g->choices.data[i].src == b->alternative) {
			g->choices.data[i].weight += b->alternative_confidence;
			return;
		}
	}
	if (g->choices.len < 8) {
		struct lt_choice choice = { b->alternative, b->alternative_confidence };

		a->nomem |= !rt_vec_push(&g->choices, choice);
	}
}

void lt_count_alive(struct lt_answer *a, uint32_t type, const char *reason)
{
	struct lt_alive *row;

	for (size_t i = 0; i < a->alive.len; i++) {
		if (a->alive.data[i].type == type && a->alive.data[i].reason == reason) {
			a->alive.data[i].objects++;
			return;
		}
	}
	row = rt_vec_add(&a->alive);
	if (!row) {
		a->nomem = true;
		return;
	}
	*row = (struct lt_alive){ type, reason, 1 };
}
