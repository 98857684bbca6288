/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A place that may count something else belongs to the first type that has its counter there, as far as code tells.
 * Others may have theirs at the same place: whose references are counted, the object says that lives at the address.
 * Each such type has a point of its own for what is counted of its objects.
 */
#include <stdio.h>

#include "lifetime/life.h"

bool lt_maybe_lives(const struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t type)
{
	const struct lt_inc *inc = e->object ? lt_inc_find(lt, e->head.pid, type, e->object) : NULL;

	return inc && inc->life == LT_LIVE;
}

static bool counts_alike(const struct lt_type *a, const struct lt_type *b)
{
	return a->counter && b->counter && a->counter_offset == b->counter_offset && a->counter_size == b->counter_size;
}

static const char *structure_of(const struct lt_type *t)
{
	return t->structure ? t->structure : t->name;
}

/* The name of the point, as one of the type: where it is named after the structure, by the other one. 0: no memory */
static uint32_t name_as(struct rt_lifetime *lt, const struct lt_point *p, uint32_t type)
{
	const char *name = rt_intern_text(&lt->names, p->name);
	char was[256], now[256];

	snprintf(was, sizeof(was), "%s.count", structure_of(&lt->types.data[p->type]));
	if (strcmp(name, was) != 0)
		return p->name;
	snprintf(now, sizeof(now), "%s.count", structure_of(&lt->types.data[type]));
	return rt_intern_string(&lt->names, now);
}

/* the point (index), as one of the type; UINT32_MAX: out of memory */
static uint32_t as_of_type(struct rt_lifetime *lt, uint32_t point, uint32_t type)
{
	struct lt_point other = lt->points.data[point];
	uint64_t *api;

	for (uint32_t i = other.made; i; i = lt->points.data[i - 1].made) {
		if (lt->points.data[i - 1].type == type)
			return i - 1;
	}
	other = (struct lt_point){ .id = other.id,
				   .type = type,
				   .name = name_as(lt, &other, type),
				   .module = other.module,
				   .function = other.function,
				   .hits = UINT64_MAX,
				   .op = other.op,
				   .aux = other.aux,
				   .flags = other.flags,
				   .of = point + 1,
				   .made = other.made };
	api = other.name ? rt_map_put(&lt->types.data[type].api, rt_key_make(other.name, 0), NULL) : NULL;
	if (!api || !rt_vec_push(&lt->points, other))
		return UINT32_MAX;
	*api |= LT_API;
	lt->points.data[point].made = (uint32_t)lt->points.len;
	return (uint32_t)lt->points.len - 1;
}

bool lt_maybe_as(struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t type, struct lt_known *known)
{
	uint32_t point;

	if (known->type == type)
		return true;
	if (!counts_alike(&lt->types.data[type], &lt->types.data[known->type]))
		return false;
	point = as_of_type(lt, lt->uses.data[known->use].point, type);
	if (point == UINT32_MAX || !lt_known_make(lt, e, point, known)) {
		lt->nomem = true;
		return false;
	}
	return true;
}

bool lt_maybe(struct rt_lifetime *lt, const struct rt_wire_event *e, struct lt_known *known)
{
	const struct lt_type *mine = &lt->types.data[known->type];
	uint32_t type = 0;

	if (lt_maybe_lives(lt, e, known->type))
		return true;
	while (type < lt->types.len && !(counts_alike(&lt->types.data[type], mine) && lt_maybe_lives(lt, e, type)))
		type++;
	return type < lt->types.len && lt_maybe_as(lt, e, type, known);
}
