/* SPDX-License-Identifier: GPL-2.0-only */
/* Between event.c, which understands a record, and incarnation.c, which knows what it does to a life. */
#pragma once

#include "lifetime/lanes.h"
#include "lifetime/state.h"

/* An event with all that was looked up for it. Pointers are valid until tables grow. */
struct lt_seen {
	const struct rt_wire_event *e;
	const struct lt_process *process;
	uint32_t type; /* index */
	struct lt_event ev;
	bool sized;  /* aux of e is how many bytes the object has */
	int32_t raw; /* the count as read, also where it is not believed (then ev.count is INT32_MIN) */
};

void lt_life_operation(struct rt_lifetime *lt, struct lt_seen *seen);
/* hand.c: a function handed the object out, or a store overwrites a pointer to it */
void lt_life_pointer(struct rt_lifetime *lt, const struct lt_seen *seen);
/* final.c: the object is given to a function that by its name ends it */
void lt_final_enter(struct rt_lifetime *lt, const struct lt_seen *seen);
/*
 * freed tells that a slot with a pointer to inc goes with its block: its use becomes that of who took the block's
 * object apart before, where that is another one than who frees. false: out of memory.
 */
bool lt_final_of(struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t pid, struct lt_event *freed);
/* floating.c: seen is a sink; the counter, read behind the last operation, tells what that did if it was a sink */
void lt_floating_sink(struct lt_inc *inc, struct lt_seen *seen);
void lt_floating_settle(const struct rt_lifetime *lt, struct lt_inc *inc, int32_t count);
/* range.c: the same for what the kernel hands out */
void lt_range_operation(struct rt_lifetime *lt, struct lt_seen *seen);
/* the block that begins where an object does is freed: what is found to have one owner ends with it */
void lt_life_freed(struct rt_lifetime *lt, const struct lt_seen *seen);
struct lt_inc *lt_life_begin(struct rt_lifetime *lt, const struct lt_seen *seen, bool has_new);
void lt_life_end(struct rt_lifetime *lt, struct lt_inc *inc, enum lt_life how, uint64_t time_ns);
static inline void lt_type_death(struct lt_type *type, uint64_t time_ns)
{
	type->died++;
	if (!type->first_death_ns)
		type->first_death_ns = time_ns;
}
/* the last reference of inc was put at this time */
void lt_life_put_down(struct rt_lifetime *lt, struct lt_inc *inc, uint64_t time_ns);
void lt_life_incomplete(struct rt_lifetime *lt, struct lt_inc *inc);
/* forgets a life, with what came before it at its address, as if it had never been told */
void lt_life_drop(struct rt_lifetime *lt, struct lt_inc *inc);
/* sample.c: e is of a life that is not traced any more; may have begun while lives like it were not; nothing but the
 * birth of its life is told, which was taken */
bool lt_sample_passes(const struct rt_lifetime *lt, const struct rt_wire_event *e);
bool lt_sample_began(const struct rt_lifetime *lt, const struct rt_wire_event *e);
void lt_sample_outside(struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t type);
/* audit.c: what the counter says now, against what we counted; true: the balance is right now */
bool lt_life_audit(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen);
/*
 * The constructor of inc, which is told now, did something to it before, and the counter was known by that: told with
 * what objects begin, either it began with that, or it was left with that. Else it is incomplete.
 */
void lt_life_audit_start(struct rt_lifetime *lt, struct lt_inc *inc);
/* nothing is told of inc any more, which is believed to live: what its counter said last, against what we counted */
void lt_life_audit_end(struct rt_lifetime *lt, struct lt_inc *inc);
/*
 * A put that is not what inc has, of a thread that has yet to tell what it did to the object before it at the address:
 * whose last reference was read to be put before all puts were told. true: that was it
 */
bool lt_life_late(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen);
/* counter.c: the count at birth; an operation, before inc takes it; the end of a life; an event after it */
void lt_counter_birth(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen);
void lt_counter_step(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen);
void lt_counter_end(struct rt_lifetime *lt, const struct lt_inc *inc);
void lt_counter_after(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen);
/* kept.c: from its outermost frame on, nobody but the C library has to do with the event */
bool lt_library_alone(const struct rt_lifetime *lt, const struct lt_use *use);
/* counts a dead object in the model of its type, once */
void lt_shape_count(struct rt_lifetime *lt, struct lt_inc *inc);
/* another object was made where this one was believed to live: it has ended, by what was not seen */
void lt_shape_replaced(struct rt_lifetime *lt, struct lt_inc *inc);

/* The inner parts of the way of an event, for those of one object that are as nearly all are (plain.c), and all others.
 */

/*
 * The counter agreed with the operations, or did not; FITS: steps by which a life is judged. Where nothing moved since
 * it was read, it says nothing. Who is first in a race nobody can predict: no branches on that. When a life is judged,
 * and so needs no look at it, is easily predicted. true: another thread was at the object just before.
 */
static inline bool lt_counter_count(struct lt_counting *c, struct lt_inc *inc, uint32_t tid, uint64_t time_ns,
				    bool agrees)
{
	enum { FITS = 8 };
	bool moved = inc->moved != 0, judged = inc->fits <= -FITS || inc->fits >= FITS, race;

	c->agree += agrees & moved;
	if (agrees && judged)
		return false;
	race = (inc->last_tid != tid) & ((int64_t)(time_ns - inc->last_ns) <= LT_RACE_NS);
	c->differ += !agrees & !race;
	c->raced += !agrees & race;
	inc->fits = (int16_t)(inc->fits + (!race & moved & !judged) * (agrees ? 1 : -1));
	return race;
}

/* what an operation that was read as count leaves for the next one */
static inline void lt_counter_due(struct lt_inc *inc, int32_t count, int16_t delta)
{
	inc->counts = true;
	inc->moved = delta;
	inc->due = (int64_t)count + delta;
}

/* an operation whose counter was not read: what the next one should be */
static inline void lt_counter_unread(struct lt_inc *inc, int16_t delta)
{
	inc->moved = (int16_t)(inc->moved + delta);
	inc->due += delta;
}

/* ev is in the ledger of inc: what else is known of it now */
static inline void lt_life_moved(struct lt_type *type, struct lt_inc *inc, const struct lt_event *ev)
{
	/* a branch: once it is shared, it stays so */
	if (!inc->shared && inc->last_tid && inc->last_tid != ev->tid)
		type->shared = inc->shared = true;
	inc->last_tid = ev->tid;
	inc->last_ns = ev->time_ns;
	inc->balance += ev->delta;
}

/* the counter said what we counted */
static inline void lt_life_agrees(struct lt_type *type, struct lt_inc *inc, int64_t count)
{
	inc->counted = true;
	inc->doubted = false;
	type->max_count = count > type->max_count ? count : type->max_count;
}

/* inc is the last life of this key */
static inline bool lt_inc_is(const struct lt_inc *inc, uint32_t pid, uint32_t type, uint64_t object)
{
	return inc->current && inc->object == object && inc->pid == pid && inc->type == type;
}

/* the balance is used up by delta; in the sign, as a get or a put nobody can predict */
static inline bool lt_life_ends(const struct lt_inc *inc, int64_t balance, int16_t delta)
{
	return ((balance - 1) & delta) < 0 && inc->known;
}

/* what a census said is history now */
static inline void lt_life_forget_census(struct lt_inc *inc)
{
	inc->census = inc->nobody = inc->final_known = false;
}

/* the next place of a ledger that has room */
static inline struct lt_event *lt_ledger_next(struct lt_inc *inc, uint32_t tid, uint8_t op)
{
	inc->recent.tid[inc->nr % LT_RECENT] = tid;
	inc->recent.op[inc->nr % LT_RECENT] = op;
	return &inc->ledger[inc->nr++];
}

/*
 * How many events ago this thread did its last one, of those that are looked back through; more than LT_RECENT: none of
 * them is its own. All are compared: where a loop would end nobody can predict.
 */
static inline uint32_t lt_nest_ago(const struct lt_inc *inc, uint32_t tid)
{
	const lt_lanes own = lt_lanes_all(tid), bit = { 1, 2, 4, 8 };
	uint32_t oldest = inc->nr % LT_RECENT, by_place, by_age;

	_Static_assert(LT_RECENT == 2 * LT_LANES, "all are compared");
	by_place = lt_lanes_or(((lt_lanes_load(inc->recent.tid) == own) & bit) |
			       ((lt_lanes_load(inc->recent.tid + LT_LANES) == own) & bit << LT_LANES));
	/* the newest is the highest bit; below them all stands one that is always set */
	by_age = (by_place | by_place << LT_RECENT) >> oldest & ((1u << LT_RECENT) - 1);
	return (uint32_t)__builtin_clz(by_age << 1 | 1) - (30 - LT_RECENT);
}

/*
 * Can ev of this thread tell of the operation that it told of so many events ago? Whose the last events are nobody can
 * predict; that one of them is of the same kind, is rare.
 */
static inline bool lt_nest_may_be(const struct lt_inc *inc, uint32_t ago, uint8_t op)
{
	uint8_t old = inc->recent.op[(inc->nr - ago) % LT_RECENT];

	return (ago <= LT_RECENT) & (ago <= inc->nr) & ((old == op) | (old == RT_OP_SINK));
}

/*
 * plain.c: e is the next operation of the life that it was expected to be of, all of it as usual: it was told. false:
 * nothing was done, event.c knows the rest.
 */
bool lt_plain_event(struct rt_lifetime *lt, const struct rt_wire_event *e);

/*
 * stray.c: what may count something, and was done where none of the objects lived that are known. The event counts, as
 * far as it tells; it is kept; and the object of seen was begun by what is kept of its address: that happens now,
 * before it.
 */
bool lt_stray_counts(const struct rt_wire_event *e);
void lt_stray_keep(struct rt_lifetime *lt, const struct lt_seen *seen);
void lt_stray_join(struct rt_lifetime *lt, const struct lt_seen *seen);
/* maybe.c: an object of this type (index) lives at the address of the event */
bool lt_maybe_lives(const struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t type);
/* maybe.c: the event, as one of this type, which counts in the same place; false: it does not, or out of memory */
bool lt_maybe_as(struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t type, struct lt_known *known);
