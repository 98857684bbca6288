/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Counting mode: what bpf/tally.h does, in a table of the process (wire/agent.h). Each object has one word that
 * decides: its balance, how many births it had, and which life of the entry this is. It is changed by one locked
 * instruction, so that no order of threads, and no signal's handler, comes between; nobody waits. Everything else is
 * added by instructions that are not locked, to words that one thread alone writes. Places are counted before the
 * balance changes: the reference that this operation gives back, or that allows it, keeps the entry alive till then.
 *
 * Where threads meet an object at once that nobody knows yet, it may get two entries: whoever reads the table adds them
 * up.
 */
#pragma once

#include "send.h"

#define exchange(place, was, next) \
	__atomic_compare_exchange_n(&(place), was, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

/* Who does what to which object. */
struct tallying {
	struct rt_agent_tallies *table;
	struct rt_agent_sums *sums;
	uint64_t object, hash, now_ns;
	uint64_t part; /* RT_AGENT_PART_MAKE() */
	uint32_t type;
	uint32_t used; /* which part of the object's it was; 0: that is not known */
};

static inline struct rt_agent_tallies *tallies_of(const struct rt_agent_process *p)
{
	return (void *)p->tallies;
}

static inline void tallying_init(struct tallying *y, const struct rt_agent_process *p, struct rt_agent_thread *t,
				 uint64_t object, uint32_t type)
{
	const struct rt_agent_shared *pool = (void *)rt_agent_head.pool;

	y->table = tallies_of(p);
	y->sums = &t->sums;
	y->object = object;
	y->type = type;
	y->hash = RT_AGENT_TALLY_HASH(object, RT_AGENT_TALLY_MARK(type));
	y->used = 0;
	y->now_ns = __atomic_load_n(&pool->clock_ns, __ATOMIC_RELAXED);
}

/* In place of a number: there are no more. */
#define NO_PLACE RT_AGENT_PLACES

static inline uint64_t part_of(uint32_t place, const struct rt_agent_thread *t)
{
	return place == NO_PLACE ? 0 : t->part | place;
}

/* ---- places ---- */

/* The number of a stack with a point, or NO_PLACE. */
static uint32_t place_of(struct rt_agent_tallies *table, uint32_t stack, uint32_t point)
{
	const uint64_t key = (uint64_t)stack << 32 | point;
	const uint64_t hash = key * MIX >> 32;
	uint32_t mine = 0;

	for (uint32_t n = 0; n < RT_AGENT_PLACE_WAYS;) {
		uint32_t *at = &table->number[(hash + n) & (2 * RT_AGENT_PLACES - 1)], known = load(*at);

		if (known && load(table->place[known & (RT_AGENT_PLACES - 1)]) == key)
			return known & (RT_AGENT_PLACES - 1);
		if (known) {
			n++;
			continue;
		}
		if (!mine) {
			if (load(table->places) >= RT_AGENT_PLACES - 1)
				return NO_PLACE;
			mine = __atomic_add_fetch(&table->places, 1, __ATOMIC_RELAXED);
			if (mine >= RT_AGENT_PLACES)
				return NO_PLACE;
			store(table->place[mine], key);
		}
		/* where somebody else was faster, what he has put there is looked at */
		if (exchange(*at, &known, mine))
			return mine;
	}
	return NO_PLACE;
}

/* ---- entries ---- */

static inline uint64_t home_of(const struct tallying *y)
{
	return y->hash >> 32 & y->table->mask;
}

static inline uint64_t way_of(uint64_t home, uint32_t n)
{
	return (home & ~(uint64_t)(RT_AGENT_TALLY_WAYS - 1)) | ((home + n) & (RT_AGENT_TALLY_WAYS - 1));
}

/* What is in the places that are no entry's of this hash can be passed over. */
static inline uint32_t tag_of_tally(const struct tallying *y)
{
	return (uint32_t)(y->hash >> 8) | 1;
}

static inline bool is_of(const struct rt_agent_tally *e, const struct tallying *y, uint64_t *ret_state)
{
	*ret_state = load(e->state);
	return RT_AGENT_TALLY_KIND(*ret_state) == RT_AGENT_TALLY_LIVE && e->object == y->object && e->type == y->type;
}

static __attribute__((noinline)) struct rt_agent_tally *look_for_tally(const struct tallying *y, uint64_t *ret_state)
{
	const uint32_t *tags = rt_agent_tally_tags(y->table, y->table->mask), tag = tag_of_tally(y);
	struct rt_agent_tally *entries = rt_agent_tally_entries(y->table);
	const uint64_t home = home_of(y);

	for (uint32_t n = 0; n < RT_AGENT_TALLY_WAYS; n++) {
		uint64_t i = way_of(home, n);

		if (load(tags[i]) == tag && is_of(&entries[i], y, ret_state))
			return &entries[i];
	}
	return NULL;
}

static inline struct rt_agent_tally *find_tally(const struct tallying *y, uint64_t *ret_state)
{
	struct rt_agent_tally *e = &rt_agent_tally_entries(y->table)[home_of(y)];

	return __builtin_expect(is_of(e, y, ret_state), 1) ? e : look_for_tally(y, ret_state);
}

/* A free entry, which is ours as long as it is busy; NULL: there is none. */
static struct rt_agent_tally *begin_tally(const struct tallying *y)
{
	struct rt_agent_tally *entries = rt_agent_tally_entries(y->table);
	uint32_t *tags = rt_agent_tally_tags(y->table, y->table->mask);
	const uint64_t home = home_of(y);

	for (uint32_t n = 0; n < RT_AGENT_TALLY_WAYS; n++) {
		uint64_t i = way_of(home, n), was = load(entries[i].state);
		struct rt_agent_tally *e = &entries[i];

		if (RT_AGENT_TALLY_KIND(was) != RT_AGENT_TALLY_FREE ||
		    !exchange(e->state, &was, was | RT_AGENT_TALLY_BUSY))
			continue;
		e->object = y->object;
		e->type = y->type;
		e->first_ns = e->last_ns = y->now_ns;
		store(tags[i], tag_of_tally(y));
		return e;
	}
	return NULL;
}

/* Makes a busy entry a free one. */
static void clear_tally(const struct tallying *y, struct rt_agent_tally *e)
{
	uint32_t life = (uint32_t)e->state & (uint32_t)RT_AGENT_TALLY_LIFE & ~3u;

	for (uint32_t i = 0; i < RT_TALLY_SITES && e->part[i].place; i++)
		e->part[i] = (struct rt_agent_tally_part){ 0 };
	e->gets = e->puts = 0;
	store(rt_agent_tally_tags(y->table, y->table->mask)[e - rt_agent_tally_entries(y->table)], 0);
	store(e->state, (uint64_t)(life + RT_AGENT_TALLY_NEXT));
}

static inline uint64_t busy(uint64_t state)
{
	return (state & ~3ull) | RT_AGENT_TALLY_BUSY;
}

/* Whatever its references are. false: it has another life by now. */
static bool end_tally(const struct tallying *y, struct rt_agent_tally *e, uint64_t was)
{
	const uint64_t life = was & RT_AGENT_TALLY_LIFE;

	do {
		if (exchange(e->state, &was, busy(was))) {
			clear_tally(y, e);
			return true;
		}
	} while ((was & RT_AGENT_TALLY_LIFE) == life);
	return false;
}

/* So many births and references more; without any, it ends. false: it has another life by now. */
static inline bool change_tally(const struct tallying *y, struct rt_agent_tally *e, uint64_t was, uint64_t births,
				int32_t delta)
{
	const uint64_t life = was & RT_AGENT_TALLY_LIFE;

	do {
		uint64_t next = was + RT_AGENT_TALLY_CHANGE(delta) + births;
		bool over = delta < 0 && !RT_AGENT_TALLY_BALANCE(next);

		if (__builtin_expect(exchange(e->state, &was, over ? busy(next) : next), 1)) {
			if (over)
				clear_tally(y, e);
			return true;
		}
	} while ((was & RT_AGENT_TALLY_LIFE) == life);
	return false;
}

/* ---- what one place did ---- */

static inline void add_own(struct rt_agent_tally_part *part)
{
	asm volatile("incl %0" : "+m"(part->own));
}

/* Where there is no part left for a place, it is counted with others. */
static void add_part(struct tallying *y, struct rt_agent_tally *e, bool put)
{
	for (uint32_t i = 0; i < RT_TALLY_SITES && (uint32_t)y->part; i++) {
		struct rt_agent_tally_part *part = &e->part[i];
		uint64_t was = load(part->place);

		if ((!was && exchange(part->place, &was, y->part)) || was == y->part)
			add_own(part);
		else if ((uint32_t)was == (uint32_t)y->part)
			(void)__atomic_fetch_add(&part->others, 1, __ATOMIC_RELAXED);
		else
			continue;
		y->used = i;
		return;
	}
	(void)__atomic_fetch_add(put ? &e->puts : &e->gets, 1, __ATOMIC_RELAXED);
}

/* ---- operations ---- */

/* Of an object that has no entry. false: there is no room. */
static bool first_of(struct tallying *y, const struct rt_probe *p)
{
	struct rt_agent_tally *e = begin_tally(y);
	bool new = p->op == RT_OP_NEW;
	uint64_t state;

	if (!e)
		return false;
	add_part(y, e, !new && p->delta < 0);
	state = RT_AGENT_TALLY_CHANGE(new ? p->start : p->delta) | (e->state & RT_AGENT_TALLY_LIFE & ~3ull) |
		RT_AGENT_TALLY_LIVE;
	store(e->state, state + (new ? RT_AGENT_TALLY_ONE_NEW : 0));
	return true;
}

enum tallied { TALLY_DONE, TALLY_PASSED, TALLY_FULL, TALLY_AGAIN };

/* A constructor inside of a constructor makes one object: its second new counts nothing. */
static enum tallied new_of(struct tallying *y, const struct rt_probe *p, struct rt_agent_tally *e, uint64_t was)
{
	uint32_t news = RT_AGENT_TALLY_NEWS(was), first = (uint32_t)e->part[0].place;

	if (!news && RT_AGENT_TALLY_BALANCE(was) < 0) {
		/* what was done to the dead one here is no part of this life */
		if (end_tally(y, e, was))
			count(&y->sums->stray[first & (RT_AGENT_PLACES - 1)]);
		return TALLY_AGAIN;
	}
	e->last_ns = y->now_ns;
	add_part(y, e, false);
	return change_tally(y, e, was, news < 255 ? RT_AGENT_TALLY_ONE_NEW : 0, news ? 0 : p->start) ? TALLY_DONE
												     : TALLY_AGAIN;
}

static enum tallied tally_once(struct tallying *y, const struct rt_probe *p)
{
	uint64_t was;
	struct rt_agent_tally *e = find_tally(y, &was);

	if (!e && (p->flags & RT_EV_MAYBE))
		return TALLY_PASSED;
	if (p->op == RT_OP_FREE)
		return !e || end_tally(y, e, was) ? TALLY_DONE : TALLY_AGAIN;
	if (!e)
		return first_of(y, p) ? TALLY_DONE : TALLY_FULL;
	if (p->op == RT_OP_NEW)
		return new_of(y, p, e, was);
	e->last_ns = y->now_ns;
	add_part(y, e, p->delta < 0);
	return change_tally(y, e, was, 0, p->delta) ? TALLY_DONE : TALLY_AGAIN;
}

/*
 * What the operation of a point changes. What is counted by its place is no hit of the point beside that: who reads
 * adds it there.
 */
static void tally(struct tallying *y, const struct rt_probe *p, struct rt_probe_count *at_point)
{
	enum { TRIES = 8 }; /* an object whose life ends whenever one looks at it is nobody's */
	enum tallied done = TALLY_AGAIN;

	for (int i = 0; i < TRIES && done == TALLY_AGAIN; i++)
		done = tally_once(y, p);
	if (done == TALLY_PASSED) {
		count(&at_point->hits);
		count(&at_point->passed);
		return;
	}
	if ((uint32_t)y->part) {
		count(&y->sums->all[(uint32_t)y->part]);
	} else {
		count(&at_point->hits);
		count(&at_point->passed);
		count(&at_point->resent);
	}
	if (done != TALLY_DONE) {
		count(&at_point->ring);
		at_point->passed--;
	}
}
