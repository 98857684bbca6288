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
	bool found;        /* nothing was done since a find handed it out */
	bool alone;        /* all since then was done by the thread tid */
	uint64_t outer_sp; /* and that is the outermost place that it was done from; new included */
	bool born;         /* the one pending is new: the next reading says what it starts with */
	bool dead;         /* the last put is done */
	bool inside;       /* and something inside of it since */
	uint64_t end_sp;   /* of the last put */
	uint32_t end_stack;
	uint32_t ended_by; /* row, when dead */
	uint32_t stack;    /* of the operation since then */
	uint32_t jumped;   /* row + 1: of what jumped to the one since then; 0 = nothing did */
	uint32_t only;     /* row + 1: the find that handed out its only reference, at first sight; 0 = none */
	uint32_t doubted;  /* row + 1: it put the last reference of the one before, and this was done since; 0 = none */
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

	/* moves count nothing and read no counter */
	if (!type || w->head.op == RT_OP_MOVE)
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

/*
 * The counter is count now, before whatever comes next by tid. 0: the census, which may find the memory freed by
 * somebody who was not seen: it can agree, and never contradicts.
 */
static void reading(struct rt_effects *e, struct object *o, int64_t count, uint32_t tid)
{
	bool alone = !o->mixed && tid == o->tid;
	struct row *row = &e->row.data[o->row];

	if (o->born && o->pending == 1) {
		int32_t start = e->type.data[row->type].start;

		if (alone)
			note(row, count, start == RT_START_UNKNOWN || start == count);
	} else if (o->known && o->pending == 1) {
		bool agrees = count == o->count + o->delta;
		/* a constant, which counting does nothing to: never made, and never a count of references */
		bool inert = !o->made && count == o->count && (count == 0 || count == -1);

		if (agrees || (alone && !inert)) {
			note(row, count - o->count, agrees);
			if (o->jumped)
				note(&e->row.data[o->jumped - 1], count - o->count, agrees);
		}
	}
	o->jumped = 0;
	o->count = count;
	o->known = true;
	o->pending = 0;
	o->delta = 0;
	o->mixed = o->born = false;
}

static void operation(struct object *o, uint32_t row, int32_t delta, const struct rt_wire_event *w)
{
	o->mixed |= o->pending && o->tid != w->head.tid;
	o->found = false;
	o->alone &= o->tid == w->head.tid;
	o->row = row;
	o->tid = w->head.tid;
	o->sp = w->sp;
	o->stack = w->stack;
	if (o->outer_sp < w->sp)
		o->outer_sp = w->sp;
	o->delta += delta;
	if (o->pending < UINT16_MAX)
		o->pending++;
}

/* Its frame is the other one's, and who called is the same: what was there is a jump. */
static bool is_jumped_to(const struct rt_wire_event *w, uint64_t sp, uint32_t stack)
{
	return w->sp == sp && w->stack && w->stack == stack;
}

/* A get that calls a get or jumps to it, both of them traced: the outer one has done nothing yet. */
static bool is_inside(const struct object *o, uint32_t row, const struct rt_wire_event *w)
{
	return o->known && o->pending == 1 && !o->born && o->tid == w->head.tid && w->sp &&
	       (w->sp < o->sp || (is_jumped_to(w, o->sp, o->stack) && row != o->row)) &&
	       (int32_t)w->count == o->count && o->delta == w->delta;
}

/* What was done since its last put was done to the dead object. */
static void counted_on(struct rt_effects *e, struct object *o)
{
	if (o->doubted)
		e->row.data[o->doubted - 1].after_end++;
	o->doubted = 0;
}

/* What was done since the last put, and did not end it, was done to the next one, by its constructor before that
 * returned. */
static void made_anew(struct rt_effects *e, struct object *o, const struct rt_wire_event *w)
{
	if (!o->doubted || o->dead || !o->alone || o->tid != w->head.tid || o->outer_sp > w->sp)
		return;
	e->row.data[o->doubted - 1].freed++;
	o->doubted = 0;
}

/* What was there is gone, and how is told by what comes. */
static void end(struct rt_effects *e, struct object *o)
{
	if (o->dead)
		e->row.data[o->ended_by].freed++;
	counted_on(e, o);
	*o = (struct object){ 0 };
}

static bool is_count(const struct rt_wire_event *w)
{
	return (w->flags & (RT_EV_COUNT_READ | RT_EV_COUNT_EXACT)) && !(w->flags & RT_EV_COUNT_FAULT);
}

/*
 * A find returns, and the counter says what it handed out. How it was when the find was called is known if nothing was
 * done since the last reading; or what was done since then, or since the object was made, was done inside of it: then
 * the one that shows what is declared is believed. An only reference of an object that was not seen before was handed
 * out if it is put.
 */
static void found(struct rt_effects *e, struct object *o, const struct point *p, const struct rt_wire_event *w)
{
	struct row *row = &e->row.data[p->row];
	int64_t count = (int32_t)w->count;
	/* what it called, or jumped to */
	bool inside = o->tid == w->head.tid && w->sp && o->sp && o->sp <= w->sp;
	bool more = o->known && count == o->count + w->delta;
	bool hands_on = o->known && !o->pending && o->found && count == o->count;
	bool makes = o->made && o->alone && o->outer_sp <= w->sp && count == w->delta;

	if (inside && (hands_on || makes || (more && o->pending == 1)))
		note(row, w->delta, true);
	else if (o->known && !o->pending && (more || o->tid == w->head.tid))
		note(row, count - o->count, more);
	else if (!o->known && !o->pending && count == w->delta)
		o->only = p->row + 1;
	/* what was done before the call is judged only if the find shows that it added nothing itself */
	if (o->pending && inside && count == o->count + o->delta)
		reading(e, o, count, w->head.tid);
	o->pending = 0;
	o->jumped = 0;
	o->delta = 0;
	o->mixed = o->born = false;
	o->count = count;
	o->known = o->found = true;
	o->tid = w->head.tid;
	o->sp = w->sp;
}

/*
 * On its way to the end the last put may take the object once more, and put it, before it counts down; or call the
 * function that does.
 */
static bool in_last_put(struct object *o, uint32_t row, const struct rt_wire_event *w)
{
	int64_t count = (int32_t)w->count;
	bool deeper = w->sp && (w->sp < o->end_sp || (is_jumped_to(w, o->end_sp, o->end_stack) && row != o->ended_by));

	if (!o->dead || (w->flags & RT_EV_HIDDEN) || o->tid != w->head.tid || !deeper || !is_count(w) ||
	    count != (o->inside ? o->count + o->delta : o->count))
		return false;
	if (!o->inside) {
		o->inside = true;
		o->pending = 0;
		o->jumped = 0;
		o->delta = 0;
	}
	return true;
}

static void counted(struct rt_effects *e, struct object *o, const struct point *p, const struct rt_wire_event *w)
{
	/* at a return the operation may be in the counter or not */
	bool before = is_count(w) && (!(w->flags & RT_EV_AT_RETURN) || (w->flags & RT_EV_COUNT_EXACT) || !w->delta);
	uint8_t op = w->head.op;

	if (!in_last_put(o, p->row, w) && o->dead && (op == RT_OP_GET || op == RT_OP_PUT)) {
		/* of a type without a constructor that is declared it is taken for the next one at this address */
		counted_on(e, o);
		*o = (struct object){ .doubted = o->made ? o->ended_by + 1 : 0, .alone = true, .tid = w->head.tid };
	}
	if (op == RT_OP_GET && (w->flags & RT_EV_HIDDEN) && (w->flags & RT_EV_AT_RETURN) && is_count(w)) {
		found(e, o, p, w);
		return;
	}
	if (before && is_inside(o, p->row, w)) {
		o->jumped = is_jumped_to(w, o->sp, o->stack) ? o->row + 1 : 0;
		o->pending = 0;
		o->delta = 0;
	} else if (before) {
		reading(e, o, (int32_t)w->count, w->head.tid);
	}
	operation(o, p->row, w->delta, w);
	if (op == RT_OP_PUT && before && o->known && o->count + w->delta == 0 && !o->dead) {
		o->dead = true;
		o->inside = false;
		o->end_sp = w->sp;
		o->end_stack = w->stack;
		o->ended_by = p->row;
		/* it was somebody's own */
		if (o->only)
			note(&e->row.data[o->only - 1], 1, true);
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
		made_anew(e, o, w);
		/* a constructor in a constructor is one creation */
		if (!o->born || o->dead)
			end(e, o);
		*o = (struct object){ .born = true, .made = true, .alone = true, .tid = w->head.tid };
		operation(o, p->row, 0, w);
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
	for (size_t i = 0; i < e->object.len; i++)
		counted_on(e, &e->object.data[i]);
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
