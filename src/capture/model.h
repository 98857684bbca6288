/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What writer and reader both know while they go through the events of a chunk, and the guesses that follow from it:
 * only what differs from a guess is stored. Both call the same functions in the same order, so that they cannot
 * disagree. Everything starts anew with each chunk. docs/spool.md tells the same in words.
 *
 * Numbers of lanes, threads, sites and objects start at 1 and are given by order of appearance; number 0 is an entry
 * of zeroes that nothing was said about.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "capture/layout.h"
#include "wire/event.h"

enum {
	RT_SPOOL_LANES_MAX = 1 << (32 - RT_SEQ_BITS), /* producers that a seq can name */
	RT_SPOOL_INTERVAL_SHIFT = 3, /* an interval is held in 1/8 ns and moves by 1/8 of what it was wrong */
};

/* A producer: its events are in order of time. */
struct rt_spool_lane {
	uint64_t time_ns; /* of its last event */
	uint32_t seq;     /* of its last event */
	uint32_t thread;  /* number of the thread that runs there */
};

struct rt_spool_thread {
	uint32_t pid, tid;
	uint64_t base;                    /* its events' sp, less the depth of their site */
	uint16_t site;                    /* of its last event */
	uint8_t events;                   /* seen, modulo 256 */
	bool strayed;                     /* the sp of its last event was not as guessed */
	uint16_t recent[RT_SPOOL_RECENT]; /* objects of its last events; the newest at (events - 1) % 8 */
};

/* What all events of one call site and operation have in common, and what the last of them had. */
struct rt_spool_site {
	uint32_t point, stack;
	int16_t delta;
	uint16_t flags;
	uint8_t op;
	uint8_t code;           /* how the object of the last event was found */
	uint16_t next;          /* site that followed last in the same thread */
	int32_t interval;       /* from the event before on the same lane, 1/8 ns */
	uint32_t count;         /* of the last object that was new */
	uint32_t counted;       /* all ones where events carry the counter, else 0 */
	uint32_t before, after; /* what the operation adds to the object's counter before the event says it, and then */
	uint64_t depth;         /* of its sp, from the base of its thread */
	uint64_t aux;
};

struct rt_spool_object {
	uint64_t address;
	uint32_t count; /* after its last event */
};

/* All zeroes is a model without room. */
struct rt_spool_model {
	uint64_t time_ns;                        /* of the last event of any lane */
	uint64_t address;                        /* of the last new object */
	uint32_t lanes, threads, sites, objects; /* numbers given so far */
	uint32_t room;                           /* events that fit: each can name one new of each kind */
	struct rt_spool_lane *lane;              /* tables of room + 1, but not more lanes than there are */
	struct rt_spool_thread *thread;
	struct rt_spool_site *site;
	struct rt_spool_object *object;
};

/*
 * Makes tables for a chunk of that many events (at most RT_SPOOL_RECORDS_MAX); forgets everything where that takes new
 * ones. A small recording is opened often, and tables for the largest chunk are 4 MB. false: out of memory.
 */
RT_CHECK bool rt_spool_model_make_room(struct rt_spool_model *m, uint32_t events);

void rt_spool_model_deinit(struct rt_spool_model *m);

/* Forgets everything. There is room. */
static inline void rt_spool_model_reset(struct rt_spool_model *m)
{
	m->time_ns = m->address = 0;
	m->lanes = m->threads = m->sites = m->objects = 0;
	m->thread[0] = (struct rt_spool_thread){ 0 };
	m->site[0] = (struct rt_spool_site){ 0 };
	m->object[0] = (struct rt_spool_object){ 0 };
}

/* The next number of each; false: there are no more. */
static inline struct rt_spool_lane *rt_spool_add_lane(struct rt_spool_model *m, uint32_t producer)
{
	if (m->lanes == RT_SPOOL_LANES_MAX || m->lanes == m->room)
		return NULL;
	m->lane[++m->lanes] = (struct rt_spool_lane){ .time_ns = m->time_ns, .seq = producer << RT_SEQ_BITS };
	return &m->lane[m->lanes];
}

static inline struct rt_spool_thread *rt_spool_add_thread(struct rt_spool_model *m, uint32_t pid, uint32_t tid)
{
	if (m->threads == m->room)
		return NULL;
	m->thread[++m->threads] = (struct rt_spool_thread){ .pid = pid, .tid = tid };
	return &m->thread[m->threads];
}

static inline struct rt_spool_site *rt_spool_add_site(struct rt_spool_model *m, struct rt_spool_site what)
{
	if (m->sites == m->room)
		return NULL;
	if (what.flags & (RT_EV_COUNT_READ | RT_EV_COUNT_EXACT))
		what.counted = UINT32_MAX;
	if (what.flags & RT_EV_AT_RETURN)
		what.before = (uint32_t)(int32_t)what.delta;
	else
		what.after = (uint32_t)(int32_t)what.delta;
	m->site[++m->sites] = what;
	return &m->site[m->sites];
}

static inline struct rt_spool_object *rt_spool_add_object(struct rt_spool_model *m, uint64_t address)
{
	if (m->objects == m->room)
		return NULL;
	m->object[++m->objects] = (struct rt_spool_object){ .address = address };
	m->address = address;
	return &m->object[m->objects];
}

static inline uint32_t rt_spool_guess_seq(const struct rt_spool_lane *lane)
{
	return (lane->seq & ~RT_SEQ_MASK) | ((lane->seq + 1) & RT_SEQ_MASK);
}

static inline uint64_t rt_spool_guess_time(const struct rt_spool_lane *lane, const struct rt_spool_site *site)
{
	return lane->time_ns + (uint64_t)(int64_t)(site->interval >> RT_SPOOL_INTERVAL_SHIFT);
}

/* wrong: how much later than the guess, where that fits into TIME_LO and TIME_HI */
static inline void rt_spool_learn_time(struct rt_spool_site *site, int32_t wrong)
{
	site->interval += site->interval ? wrong : wrong * (1 << RT_SPOOL_INTERVAL_SHIFT);
}

static inline uint64_t rt_spool_guess_sp(const struct rt_spool_thread *thread, const struct rt_spool_site *site)
{
	return thread->base + site->depth;
}

/* After a wrong guess. A thread whose sp strays twice in a row, or that is new, has another base; else the site moved.
 */
static inline void rt_spool_learn_sp(struct rt_spool_thread *thread, struct rt_spool_site *site, uint64_t sp)
{
	if (thread->strayed || !thread->base)
		thread->base = sp - site->depth;
	else
		site->depth = sp - thread->base;
}

/* condition ? a : b, as arithmetic where nobody could predict a branch */
static inline uint32_t rt_spool_choose(bool condition, uint32_t a, uint32_t b)
{
	return b ^ ((a ^ b) & (0u - condition));
}

/* fresh: the object is new to the chunk or is made by this event. */
static inline uint32_t rt_spool_guess_count(const struct rt_spool_site *site, const struct rt_spool_object *object,
					    bool fresh)
{
	return rt_spool_choose(fresh, site->count, object->count + site->before) & site->counted;
}

static inline void rt_spool_learn_count(struct rt_spool_site *site, struct rt_spool_object *object, bool fresh,
					uint32_t count)
{
	site->count = rt_spool_choose(fresh, count, site->count);
	object->count = count + site->after;
}

static inline uint16_t rt_spool_recent(const struct rt_spool_thread *thread, unsigned code)
{
	return thread->recent[(thread->events - 1u - code) % RT_SPOOL_RECENT];
}

static inline void rt_spool_remember(struct rt_spool_thread *thread, uint16_t object)
{
	thread->recent[thread->events++ % RT_SPOOL_RECENT] = object;
}

/* Signed differences with the sign in the lowest bit: small ones are small numbers. */
static inline uint64_t rt_spool_fold(uint64_t difference)
{
	return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static inline uint64_t rt_spool_unfold(uint64_t folded)
{
	return folded >> 1 ^ (0 - (folded & 1));
}
