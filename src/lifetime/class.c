/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finer kinds of objects: what an object tells of itself (a pointer to its class, a vtable) comes with its events, and
 * what that means with a record before them. The last birth that told it is believed; without one, the first event.
 */
#include "lifetime/state.h"

static struct rt_key word_key(uint64_t word, uint32_t pid, uint32_t type)
{
	return rt_key_make(word, (uint64_t)pid << 32 | type);
}

bool lt_class_record(struct rt_lifetime *lt, const struct rt_wire_class *r)
{
	const uint64_t *type = rt_map_get(&lt->type_by_id, rt_key_make(r->type, 0));
	uint32_t name = rt_intern_string(&lt->names, r->name);
	uint64_t *index, *of_word;
	struct lt_class *c;
	bool made;

	/* a life has room for so many; beyond them, objects are of none */
	if (!type || lt->classes.len >= UINT16_MAX)
		return true;
	if (!name)
		return false;
	index = rt_map_put(&lt->class_by_name, rt_key_make(name, *type), &made);
	of_word = rt_map_put(&lt->class_by_word, word_key(r->word, r->head.pid, (uint32_t)*type), NULL);
	if (!index || !of_word)
		return false;
	if (made) {
		c = rt_vec_add(&lt->classes);
		if (!c)
			return false;
		*index = lt->classes.len - 1;
		c->type = (uint32_t)*type;
		c->name = rt_intern_text(&lt->names, name);
	}
	*of_word = *index;
	return true;
}

uint64_t lt_type_healthy(const struct rt_lifetime *lt, uint32_t type)
{
	uint64_t n = lt->types.data[type].learnt.healthy;

	for (size_t i = 0; i < lt->classes.len; i++)
		n += lt->classes.data[i].type == type ? lt->classes.data[i].learnt.healthy : 0;
	return n;
}

void lt_class_seen(struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t type)
{
	struct lt_inc *inc = lt_inc_find(lt, e->head.pid, type, e->object);
	const uint64_t *index;

	if (!inc || inc->life == LT_LOST || (inc->klass && e->head.op != RT_OP_NEW))
		return;
	index = rt_map_get(&lt->class_by_word, word_key(e->aux, e->head.pid, type));
	if (!index || inc->klass == *index + 1)
		return;
	if (inc->klass)
		lt->classes.data[inc->klass - 1].objects--;
	inc->klass = (uint16_t)(*index + 1);
	lt->classes.data[*index].objects++;
}
