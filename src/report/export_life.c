/* SPDX-License-Identifier: GPL-2.0-only */
/* Lives as the analysis tells them: counts by call path, open references, steps for what shows them one by one. */
#include <string.h>

#include "report/export_parts.h"

enum {
	STEPS_MAX = 4096, /* kept of one life */
	OPEN_MAX = 65536, /* open references of one life that are told apart */
	LOOK = 512,       /* of them are looked through for a put, newest first */
};

static struct rt_export *of(struct rt_life_observer *observer)
{
	return (struct rt_export *)(void *)observer;
}

static struct rt_ex_life *life_find(const struct rt_export *e, uint32_t class, uint64_t serial)
{
	uint64_t *slot = rt_map_get(&e->life_by_serial, rt_key_make(serial, class));

	return slot && *slot ? e->lives.data[*slot - 1] : NULL;
}

static void life_free(struct rt_ex_life *life)
{
	if (!life)
		return;
	rt_vec_deinit(&life->steps);
	rt_vec_deinit(&life->closed);
	rt_vec_deinit(&life->open);
	free(life);
}

static void life_drop(struct rt_export *e, uint64_t index)
{
	struct rt_ex_life *last = e->lives.data[e->lives.len - 1], *life = e->lives.data[index];
	uint64_t *slot = rt_map_get(&e->life_by_serial, rt_key_make(last->serial, last->class));

	if (slot)
		*slot = index + 1;
	e->lives.data[index] = last;
	e->lives.len--;
	rt_map_remove(&e->life_by_serial, rt_key_make(life->serial, life->class), NULL);
	life_free(life);
}

static struct rt_ex_life *life_make(struct rt_export *e, uint32_t class, const struct rt_life_step *s)
{
	struct rt_ex_life *life = life_find(e, class, s->serial);
	uint64_t *slot;

	if (life)
		return life;
	slot = rt_map_put(&e->life_by_serial, rt_key_make(s->serial, class), NULL);
	life = calloc(1, sizeof(*life));
	if (!slot || !life || !rt_vec_push(&e->lives, life)) {
		free(life);
		e->nomem = true;
		return NULL;
	}
	*slot = e->lives.len;
	e->result.lives_seen++;
	life->object = s->object;
	life->serial = s->serial;
	life->birth_ns = s->time_ns;
	life->pid = s->pid;
	life->class = class;
	return life;
}

/* index of the type's class, by the point that told; false: not asked for */
static bool class_of(const struct rt_export *e, uint32_t type, uint32_t *ret)
{
	const uint64_t *slot = rt_map_get(&e->class_of_type, rt_key_make(type, 0));

	if (!slot || !*slot)
		return false;
	*ret = (uint32_t)*slot - 1;
	return true;
}

static void count(struct rt_export *e, uint32_t class, uint32_t node, int what, int64_t by)
{
	struct rt_ex_count *c = by ? rt_ex_count(e, class, 0, node) : NULL;

	if (c)
		c->value[what] += by;
	else if (by)
		e->nomem = true;
}

/* Which open reference a step gives back: index, or the number of them when there is none. */
static size_t pick(const struct rt_export *e, const struct rt_ex_life *life, const struct rt_life_step *s,
		   uint32_t node)
{
	size_t best = life->open.len;
	uint64_t best_cost = UINT64_MAX;

	for (size_t i = life->open.len, tries = 0; i-- > 0 && tries < LOOK; tries++) {
		const struct rt_ex_reference *r = &life->open.data[i];
		uint64_t cost;

		if (r->slot && s->slot)
			cost = r->slot == s->slot ? 0 : UINT64_MAX - 1;
		else if (r->act && r->act == s->act)
			cost = 1;
		else
			cost = 2 + ((uint64_t)(r->tid != s->tid) << 33) +
			       ((uint64_t)!rt_ex_same_site(e, r->node, node) << 32) + rt_ex_distance(e, r->node, node);
		if (cost < best_cost) {
			best = i;
			best_cost = cost;
		}
		if (best_cost <= 1)
			break;
	}
	return best;
}

static void close_reference(struct rt_export *e, struct rt_ex_life *life, size_t index, uint32_t step)
{
	struct rt_ex_reference r = life->open.data[index];

	memmove(&life->open.data[index], &life->open.data[index + 1],
		(life->open.len - index - 1) * sizeof(*life->open.data));
	life->open.len--;
	count(e, life->class, r.node, RT_EX_OPEN, -1);
	if (step != UINT32_MAX && !rt_vec_push(&life->closed, ((struct rt_ex_closed){ r.number, step })))
		e->nomem = true;
}

static void open_reference(struct rt_export *e, struct rt_ex_life *life, const struct rt_life_step *s, uint32_t node)
{
	struct rt_ex_reference r = { ++e->next_reference, s->slot, node, s->tid, s->act };

	count(e, life->class, node, RT_EX_GETS, 1);
	if (life->open.len >= OPEN_MAX)
		return;
	count(e, life->class, node, RT_EX_OPEN, 1);
	if (!rt_vec_push(&life->open, r))
		e->nomem = true;
}

/* Keeps the step itself; UINT32_MAX: it is not kept. */
static uint32_t keep(struct rt_export *e, struct rt_ex_life *life, const struct rt_life_step *s, uint32_t node)
{
	const uint64_t *point = rt_map_get(&e->point_by_id, rt_key_make(s->point, 0));
	struct rt_ex_step *step;

	if (!e->by_life)
		return UINT32_MAX;
	if (life->steps.len >= STEPS_MAX) {
		life->left_out++;
		return UINT32_MAX;
	}
	step = rt_vec_add(&life->steps);
	if (!step) {
		e->nomem = true;
		return UINT32_MAX;
	}
	*step = (struct rt_ex_step){ .time_ns = s->time_ns,
				     .first = e->next_reference + 1,
				     .tid = s->tid,
				     .node = node,
				     .point = point ? (uint32_t)*point : 0,
				     .opens = (uint16_t)s->opens,
				     .closes = (uint16_t)s->closes,
				     .op = s->op,
				     .after_end = s->after_end };
	return (uint32_t)life->steps.len - 1;
}

static void take_step(struct rt_life_observer *observer, const struct rt_life_step *s)
{
	struct rt_export *e = of(observer);
	struct rt_ex_life *life;
	uint32_t class, node, index;
	bool ok = true;

	if (!class_of(e, s->type, &class))
		return;
	e->first_ns = !e->first_ns || s->time_ns < e->first_ns ? s->time_ns : e->first_ns;
	e->last_ns = s->time_ns > e->last_ns ? s->time_ns : e->last_ns;
	node = rt_ex_place(e, s->place, &ok);
	life = s->after_end ? life_find(e, class, s->serial) : life_make(e, class, s);
	e->nomem |= !ok;
	count(e, class, node, RT_EX_PUTS, s->closes);
	if (!life)
		return;
	if (!s->after_end && life->ended) {
		life->ended = false; /* the count had said that it was dead, and it was not */
		e->ended_lives--;
	}
	index = keep(e, life, s, node);
	for (uint32_t i = 0; i < s->closes && life->open.len; i++)
		close_reference(e, life, pick(e, life, s, node), index);
	for (uint32_t i = 0; i < s->opens; i++)
		open_reference(e, life, s, node);
}

static void take_moved(struct rt_life_observer *observer, const struct rt_life_step *from,
		       const struct rt_life_step *to)
{
	struct rt_export *e = of(observer);
	struct rt_ex_life *life;
	uint32_t class, old, new;
	bool ok = true;

	if (!class_of(e, from->type, &class))
		return;
	old = rt_ex_place(e, from->place, &ok);
	new = rt_ex_place(e, to->place, &ok);
	e->nomem |= !ok;
	life = life_find(e, class, from->serial);
	count(e, class, old, RT_EX_GETS, -(int64_t)from->opens);
	count(e, class, new, RT_EX_GETS, from->opens);
	count(e, class, old, RT_EX_PUTS, -(int64_t)from->closes);
	count(e, class, new, RT_EX_PUTS, from->closes);
	if (!life)
		return;
	for (size_t i = life->open.len, n = from->opens; i-- > 0 && n;) {
		struct rt_ex_reference *r = &life->open.data[i];

		if (r->node != old || r->tid != from->tid)
			continue;
		r->node = new;
		r->act = to->act;
		count(e, class, old, RT_EX_OPEN, -1);
		count(e, class, new, RT_EX_OPEN, 1);
		n--;
	}
	for (size_t i = life->steps.len; i-- > 0;) {
		struct rt_ex_step *step = &life->steps.data[i];
		const uint64_t *point;

		if (step->time_ns != from->time_ns || step->op != from->op || step->node != old)
			continue;
		point = rt_map_get(&e->point_by_id, rt_key_make(to->point, 0));
		step->node = new;
		step->point = point ? (uint32_t)*point : step->point;
		break;
	}
}

static void take_end(struct rt_life_observer *observer, uint32_t type, uint64_t serial, uint64_t time_ns, bool died)
{
	struct rt_export *e = of(observer);
	struct rt_ex_life *life;
	uint32_t class;

	life = class_of(e, type, &class) ? life_find(e, class, serial) : NULL;
	if (!life)
		return;
	while (life->open.len)
		close_reference(e, life, life->open.len - 1, UINT32_MAX);
	life->ended = true;
	life->died = died;
	life->end_ns = time_ns;
	e->ended_lives++;
	if (!e->by_life || e->ended_lives > e->options.limit) {
		e->ended_lives--;
		e->result.lives_left_out += e->by_life;
		life_drop(e, *rt_map_get(&e->life_by_serial, rt_key_make(serial, class)) - 1);
	}
}

void rt_ex_observe(struct rt_export *e)
{
	e->observer = (struct rt_life_observer){ take_step, take_moved, take_end };
	rt_lifetime_observe(e->lifetime, &e->observer);
}

/* Lives that did not end first, those with open references before all; then by birth. */
static int by_worth(const void *a, const void *b)
{
	const struct rt_ex_life *x = *(const struct rt_ex_life *const *)a, *y = *(const struct rt_ex_life *const *)b;

	if (!x->open.len != !y->open.len)
		return !x->open.len - !y->open.len;
	if (x->ended != y->ended)
		return x->ended - y->ended;
	if (x->birth_ns != y->birth_ns)
		return x->birth_ns < y->birth_ns ? -1 : 1;
	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static int by_birth(const void *a, const void *b)
{
	const struct rt_ex_life *x = *(const struct rt_ex_life *const *)a, *y = *(const struct rt_ex_life *const *)b;

	if (x->birth_ns != y->birth_ns)
		return x->birth_ns < y->birth_ns ? -1 : 1;
	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

struct rt_error *rt_ex_lives_end(struct rt_export *e)
{
	if (e->nomem)
		return rt_error_nomem();
	for (size_t i = 0; i < e->lives.len; i++)
		e->result.references += e->lives.data[i]->open.len;
	if (!e->by_life || !e->lives.len)
		return NULL;
	rt_map_deinit(&e->life_by_serial);
	qsort(e->lives.data, e->lives.len, sizeof(*e->lives.data), by_worth);
	while (e->lives.len > e->options.limit) {
		life_free(e->lives.data[--e->lives.len]);
		e->result.lives_left_out++;
	}
	qsort(e->lives.data, e->lives.len, sizeof(*e->lives.data), by_birth);
	e->result.lives = e->lives.len;
	for (size_t i = 0; i < e->lives.len; i++)
		e->result.steps_left_out += e->lives.data[i]->left_out;
	return NULL;
}

void rt_ex_lives_free(struct rt_export *e)
{
	for (size_t i = 0; i < e->lives.len; i++)
		life_free(e->lives.data[i]);
	rt_vec_deinit(&e->lives);
	rt_map_deinit(&e->life_by_serial);
}
