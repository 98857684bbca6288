/* SPDX-License-Identifier: GPL-2.0-only */
/* Compares readings of counters with what lies between them. */
#include "lifetime/effects.h"

#include <string.h>

#include "base/intern.h"
#include "base/map.h"

enum { MOVES = 8, SURE_PERCENT = 95 };

struct type {
	uint32_t name;
	int32_t start;
};

/* How often a function moved the counter by so much. */
struct move {
	int64_t by;
	uint64_t count;
};

struct row {
	uint32_t name, type; /* interned; index of types */
	uint8_t op;
	bool hidden;
	uint64_t events, agreed, checked, ended, freed, after_end;
	struct move moves[MOVES]; /* what does not fit in is checked, and agrees with nothing */
	size_t move_count;
};

struct point {
	uint32_t row;
	int32_t delta;
};

/* What is known of an object now. */
struct object {
	int64_t count; /* as last read, or after new; valid: known */
	uint32_t row;  /* of the operation since then; pending == 1 */
	uint32_t tid;  /* who did it, or read */
	uint64_t sp;   /* of it */
	int32_t delta; /* what all since then are declared to do */
	uint16_t pending;
	bool known, mixed; /* mixed: several threads since then */
	bool made;         /* its new was seen */
	bool born;         /* the one pending is new: the next reading says what it starts with */
	bool dead;         /* the last put is done */
	uint32_t ended_by; /* row, when dead */
};

struct rt_effects {
	struct rt_intern names;
	struct rt_map types, points; /* id -> index */
	struct rt_map rows;          /* (type, op, hidden), name -> index */
	struct rt_map objects;       /* (pid, type), object -> index */
	RT_VEC(struct type) type;
	RT_VEC(struct point) point;
	RT_VEC(struct row) row;
	RT_VEC(struct object) object;
	RT_VEC(struct rt_effect) table;
};

struct rt_error *rt_effects_create(struct rt_effects **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? NULL : rt_error_nomem();
}

void rt_effects_destroy(struct rt_effects *e)
{
	if (!e)
		return;
	rt_intern_deinit(&e->names);
	rt_map_deinit(&e->types);
	rt_map_deinit(&e->points);
	rt_map_deinit(&e->rows);
	rt_map_deinit(&e->objects);
	rt_vec_deinit(&e->type);
	rt_vec_deinit(&e->point);
	rt_vec_deinit(&e->row);
	rt_vec_deinit(&e->object);
	rt_vec_deinit(&e->table);
	free(e);
}

/* The index behind key; a new one is next, and *ret_new. */
static struct rt_error *index_of(struct rt_map *map, struct rt_key key, size_t next, size_t *ret, bool *ret_new)
{
	uint64_t *at = rt_map_put(map, key, ret_new);

	if (!at)
		return rt_error_nomem();
	if (*ret_new)
		*at = next;
	*ret = *at;
	return NULL;
}

static struct rt_error *take_type(struct rt_effects *e, const struct rt_wire_type *w)
{
	size_t index = 0;
	bool made;

	RT_TRY(index_of(&e->types, rt_key_make(w->id, 0), e->type.len, &index, &made));
	if (made && !rt_vec_add(&e->type))
		return rt_error_nomem();
	e->type.data[index].name = rt_intern_string(&e->names, w->name);
	if (!e->type.data[index].name)
		return rt_error_nomem();
	e->type.data[index].start = w->start;
	return NULL;
}

/* A function may have several points: inlined, in several modules. */
static struct rt_error *take_point(struct rt_effects *e, const struct rt_wire_point *w)
{
	const uint64_t *type = rt_map_get(&e->types, rt_key_make(w->type, 0));
	uint64_t what;
	uint32_t name;
	size_t row = 0, index = 0;
	bool made;

	/* what is said not to count is not held against anybody; and the other operations show it where it does */
	if (!type || (w->head.op != RT_OP_NEW && w->head.op != RT_OP_FREE && !w->delta))
		return NULL;
	name = rt_intern_string(&e->names, w->name);
	if (!name)
		return rt_error_nomem();
	what = *type << 16 | (uint64_t)w->head.op << 1 | !!(w->flags & RT_EV_HIDDEN);
	RT_TRY(index_of(&e->rows, rt_key_make(what, name), e->row.len, &row, &made));
	if (made && !rt_vec_push(&e->row, ((struct row){ .name = name,
							 .type = (uint32_t)*type,
							 .op = w->head.op,
							 .hidden = w->flags & RT_EV_HIDDEN })))
		return rt_error_nomem();
	RT_TRY(index_of(&e->points, rt_key_make(w->id, 0), e->point.len, &index, &made));
	if (made && !rt_vec_add(&e->point))
		return rt_error_nomem();
	e->point.data[index] = (struct point){ (uint32_t)row, w->delta };
	return NULL;
}

static void note(struct row *row, int64_t by, bool agrees)
{
	size_t i = 0;

	row->checked++;
	row->agreed += agrees;
	while (i < row->move_count && row->moves[i].by != by)
		i++;
	if (i == MOVES)
		return;
	if (i == row->move_count)
		row->moves[row->move_count++].by = by;
	row->moves[i].count++;
}

/* The counter is count now, before whatever comes next by tid (0: the census, which nobody races with). */
static void reading(struct rt_effects *e, struct object *o, int64_t count, uint32_t tid)
{
	bool alone = !o->mixed && (!tid || tid == o->tid);
	struct row *row = &e->row.data[o->row];

	if (o->born && o->pending == 1) {
		int32_t start = e->type.data[row->type].start;

		if (alone)
			note(row, count, start == RT_START_UNKNOWN || start == count);
	} else if (o->known && o->pending == 1) {
		bool agrees = count == o->count + o->delta;
		/* a constant, which counting does nothing to: never made, and never a count of references */
		bool inert = !o->made && count == o->count && (count == 0 || count == -1);

		if (agrees || (alone && !inert))
			note(row, count - o->count, agrees);
	}
	o->count = count;
	o->known = true;
	o->pending = 0;
	o->delta = 0;
	o->mixed = o->born = false;
}

static void operation(struct rt_effects *e, struct object *o, uint32_t row, int32_t delta, uint32_t tid)
{
	o->mixed |= o->pending && o->tid != tid;
	o->row = row;
	o->tid = tid;
	o->delta += delta;
	if (o->pending < UINT16_MAX)
		o->pending++;
}

/* A get that calls a get, both of them traced: the outer one has done nothing yet. */
static bool is_inside(const struct object *o, const struct rt_wire_event *w)
{
	return o->known && o->pending == 1 && !o->born && o->tid == w->head.tid && w->sp && w->sp < o->sp &&
	       (int32_t)w->count == o->count && o->delta == w->delta;
}

/* What was there is gone, and how is told by what comes. */
static void end(struct rt_effects *e, struct object *o)
{
	if (o->dead)
		e->row.data[o->ended_by].freed++;
	*o = (struct object){ 0 };
}

static bool is_count(const struct rt_wire_event *w)
{
	return (w->flags & (RT_EV_COUNT_READ | RT_EV_COUNT_EXACT)) && !(w->flags & RT_EV_COUNT_FAULT);
}

static void counted(struct rt_effects *e, struct object *o, const struct point *p, const struct rt_wire_event *w)
{
	/* at a return the operation may be in the counter or not */
	bool before = is_count(w) && (!(w->flags & RT_EV_AT_RETURN) || (w->flags & RT_EV_COUNT_EXACT));
	uint8_t op = w->head.op;

	if (o->dead && (op == RT_OP_GET || op == RT_OP_PUT)) {
		/* of a type without a constructor that is declared it may be the next one at this address */
		e->row.data[o->ended_by].after_end += o->made;
		*o = (struct object){ 0 };
	}
	if (before && is_inside(o, w)) {
		o->pending = 0;
		o->delta = 0;
	} else if (before) {
		reading(e, o, (int32_t)w->count, w->head.tid);
	}
	o->sp = w->sp;
	operation(e, o, p->row, w->delta, w->head.tid);
	if (op == RT_OP_PUT && before && o->known && o->count + w->delta == 0) {
		o->dead = true;
		o->ended_by = p->row;
		e->row.data[p->row].ended++;
	}
}

static struct rt_error *take_event(struct rt_effects *e, const struct rt_wire_event *w)
{
	const uint64_t *at = rt_map_get(&e->points, rt_key_make(w->point, 0));
	const struct point *p = at ? &e->point.data[*at] : NULL;
	struct object *o;
	struct row *row;
	size_t index = 0;
	bool made;

	if (!p || !w->object || (w->flags & (RT_EV_NO_OBJECT | RT_EV_INHERITED)))
		return NULL;
	row = &e->row.data[p->row];
	row->events++;
	RT_TRY(index_of(&e->objects, rt_key_make((uint64_t)w->head.pid << 32 | row->type, w->object), e->object.len,
			&index, &made));
	if (made && !rt_vec_add(&e->object))
		return rt_error_nomem();
	o = &e->object.data[index];
	switch (w->head.op) {
	case RT_OP_NEW:
		/* a constructor in a constructor is one creation */
		if (!o->born || o->dead)
			end(e, o);
		*o = (struct object){ .born = true, .made = true };
		operation(e, o, p->row, 0, w->head.tid);
		if (is_count(w) && (w->flags & RT_EV_AT_RETURN))
			reading(e, o, (int32_t)w->count, w->head.tid);
		break;
	case RT_OP_FREE:
		/* its own counter: 0 when the last put calls it */
		if (is_count(w) && !(w->flags & RT_EV_AT_RETURN)) {
			int64_t left = (int32_t)w->count;

			note(row, left, left == 0 || left == 1 || (o->dead && left == o->count));
		}
		end(e, o);
		break;
	default:
		counted(e, o, p, w);
	}
	return NULL;
}

static void take_census(struct rt_effects *e, const struct rt_wire_held *w)
{
	for (size_t t = 0; t < e->type.len; t++) {
		const uint64_t *at = rt_map_get(&e->objects, rt_key_make((uint64_t)w->head.pid << 32 | t, w->object));

		if (at && !e->object.data[*at].dead && (e->object.data[*at].pending || e->object.data[*at].known))
			reading(e, &e->object.data[*at], (int32_t)w->value, 0);
	}
}

struct rt_error *rt_effects_record(struct rt_effects *e, const struct rt_wire_head *record)
{
	switch (record->kind) {
	case RT_WIRE_TYPE:
		return take_type(e, (const struct rt_wire_type *)(const void *)record);
	case RT_WIRE_POINT:
		return take_point(e, (const struct rt_wire_point *)(const void *)record);
	case RT_WIRE_EVENT:
		return take_event(e, rt_record_event(record));
	case RT_WIRE_COUNT:
		take_census(e, (const struct rt_wire_held *)(const void *)record);
		return NULL;
	default:
		return NULL;
	}
}

static int64_t declared(const struct rt_effects *e, const struct row *row, uint32_t index)
{
	if (row->op == RT_OP_NEW)
		return e->type.data[row->type].start;
	for (size_t i = 0; i < e->point.len; i++) {
		if (e->point.data[i].row == index)
			return e->point.data[i].delta;
	}
	return 0;
}

/* A constructor of a type whose start nobody told agrees with whatever most of its runs say. */
static uint64_t agreed(const struct rt_effects *e, const struct row *row, const struct rt_effect *effect)
{
	if (row->op == RT_OP_NEW && e->type.data[row->type].start == RT_START_UNKNOWN)
		return effect->usual_count;
	return row->agreed;
}

static enum rt_effect_verdict judge(const struct rt_effect *effect)
{
	if (!effect->events)
		return RT_EFFECT_NEVER_RAN;
	/* after its last reference was put, an object is not counted on */
	if (effect->after_end > effect->freed)
		return RT_EFFECT_CONTRADICTED;
	if (!effect->checked)
		return effect->freed && effect->freed == effect->ended ? RT_EFFECT_VERIFIED : RT_EFFECT_UNCHECKED;
	if (effect->agreed * 100 >= effect->checked * SURE_PERCENT)
		return RT_EFFECT_VERIFIED;
	return effect->agreed * 2 > effect->checked ? RT_EFFECT_UNCLEAR : RT_EFFECT_CONTRADICTED;
}

static void fill(const struct rt_effects *e, uint32_t index, struct rt_effect *ret)
{
	const struct row *row = &e->row.data[index];

	*ret = (struct rt_effect){ .type = rt_intern_text(&e->names, e->type.data[row->type].name),
				   .function = rt_intern_text(&e->names, row->name),
				   .op = row->op,
				   .hidden = row->hidden,
				   .events = row->events,
				   .checked = row->checked,
				   .ended = row->ended,
				   .freed = row->freed,
				   .after_end = row->after_end };
	ret->declared = declared(e, row, index);
	for (size_t i = 0; i < row->move_count; i++) {
		if (row->moves[i].count > ret->usual_count) {
			ret->usual = row->moves[i].by;
			ret->usual_count = row->moves[i].count;
		}
	}
	ret->agreed = agreed(e, row, ret);
	ret->verdict = judge(ret);
}

static int by_type(const void *x, const void *y)
{
	const struct rt_effect *a = x, *b = y;
	int order = strcmp(a->type, b->type);

	if (!order)
		order = a->op < b->op ? -1 : a->op > b->op;
	return order ? order : strcmp(a->function, b->function);
}

struct rt_error *rt_effects_table(struct rt_effects *e, const struct rt_effect **ret, size_t *ret_count)
{
	rt_vec_clear(&e->table);
	for (uint32_t i = 0; i < e->row.len; i++) {
		struct rt_effect *effect = rt_vec_add(&e->table);

		if (!effect)
			return rt_error_nomem();
		fill(e, i, effect);
	}
	if (e->table.len)
		qsort(e->table.data, e->table.len, sizeof(*e->table.data), by_type);
	*ret = e->table.data;
	*ret_count = e->table.len;
	return NULL;
}
