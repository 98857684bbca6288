/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Into the rings. A thread has its own for events, whose producers are the thread and its signal handlers; stacks go
 * through one of the process, and a stack is there before the first event that names it. Nothing is locked, and no
 * system call is made: the program may have forbidden itself any.
 */
#pragma once

#include "memo.h"
#include "objects.h"

/* Slots ahead of the one that is filled whose cache line is called back from the reader's processor. */
#define CALLED_BACK 8

/* How long a full ring is waited for, in cycles of the time stamp counter; some seconds. */
#define PATIENCE (1ull << 34)

/* Space that the reader has not given back yet is waited for, in moderation. false: it did not come. */
static bool await_reader(struct hit *h, const uint64_t *read, uint64_t until)
{
	uint64_t start = now(), seen = load(*read);

	while ((int64_t)(until - load(*read)) > 0) {
		if (is_silent())
			return false;
		if (load(*read) != seen) {
			seen = load(*read);
			h->thread->impatient = 0;
			start = now();
		} else if (h->thread->impatient || now() - start > PATIENCE) {
			h->thread->impatient = 1;
			return false;
		}
		relax();
	}
	h->thread->impatient = 0;
	return true;
}

/* The ring is full, as far as the thread knew. false: it is. */
static __attribute__((noinline)) bool find_room(struct hit *h)
{
	struct rt_agent_thread *t = h->thread;

	if (t->taken - load(t->read) >= RT_AGENT_RING - 64) {
		if (!await_reader(h, &t->read, t->taken - (RT_AGENT_RING - 64) + 1)) {
			count(&h->count->ring);
			t->seq++; /* a gap there tells when */
			return false;
		}
		if (h->began)
			h->began = now();
	}
	t->read_seen = load(t->read);
	return true;
}

/* There is room for an event, as far as the thread knows. */
static inline bool sees_room(const struct rt_agent_thread *t)
{
	return __builtin_expect(t->taken - t->read_seen < RT_AGENT_RING - 64, 1);
}

/*
 * Is there room for an event? To be asked before the event has a time, since it may take some. Some places stay free
 * for handlers that come between this look and the event.
 */
static inline bool has_room(struct hit *h)
{
	return sees_room(h->thread) || find_room(h);
}

/* The reader had this line last: whoever writes to it waits for that, and all of his later stores with it. */
static inline void call_back(const struct rt_wire_event *slot)
{
	asm volatile("prefetchw %0" : : "m"(*slot));
}

typedef uint32_t __attribute__((may_alias)) any32;

/* Writes an event, there is room. head and tail: its first and last four bytes. */
static inline void put_event(struct rt_agent_thread *t, uint32_t head, uint32_t tail, const struct rt_wire_event *event)
{
	uint64_t place = take(&t->taken, 1);
	uint32_t seq = t->number << RT_SEQ_BITS | ((t->seq + (uint32_t)place) & RT_SEQ_MASK);
	struct rt_wire_event *e = &t->ring[place & (RT_AGENT_RING - 1)];

	call_back(&t->ring[(place + CALLED_BACK) & (RT_AGENT_RING - 1)]);
	e->head.time_ns = event->head.time_ns ?: now();
	e->object = event->object;
	e->aux = event->aux;
	e->sp = event->sp;
	e->count = event->count;
	e->point = event->point;
	e->stack = event->stack;
	*(any32 *)(void *)&e->delta = tail;
	store(*(uint64_t *)(void *)e, (uint64_t)seq << 32 | head);
}

/* A pointer to an object is stored there: the block that it lies in may be freed with it. */
static inline void mark(struct rt_agent_process *p, uint32_t at)
{
	const uint64_t bit = 1ull << at % 64;

	if (!(load(p->slots[at / 64]) & bit))
		__atomic_fetch_or(&p->slots[at / 64], bit, __ATOMIC_RELAXED);
}

static void send_event(struct hit *h)
{
	const struct rt_probe *p = h->probe;
	const struct rt_wire_event e = {
		.head.time_ns = h->time,
		.object = h->object,
		.aux = h->aux,
		.sp = h->sp,
		.count = h->counter,
		.point = h->point,
		.stack = h->stack,
	};

	if (h->flags & (RT_EV_NO_OBJECT | RT_EV_COUNT_FAULT))
		count(&h->count->faults);
	if (p->marks && h->process->looks) {
		if (p->marks & RT_MARKS_SLOT && h->aux - h->sp >= STACK_BYTES)
			mark(h->process, rt_agent_slot(h->aux));
		if (p->marks & RT_MARKS_OBJECT)
			note_object(h->process, h->object);
	}
	put_event(h->thread, RT_AGENT_EVENT_HEAD(p->op), RT_AGENT_EVENT_TAIL(p->delta, p->flags | h->flags), &e);
}

/* `pieces` pieces in a row of the ring of stacks; NULL: the reader does not come. */
static uint64_t *take_pieces(struct hit *h, uint32_t pieces)
{
	struct rt_agent_process *p = h->process;

	for (;;) {
		uint64_t at = load(p->stacks_taken), room = RT_AGENT_STACKS - (at & (RT_AGENT_STACKS - 1));
		uint64_t n = room < pieces ? room : pieces;

		if (at + n + 64 - load(p->stacks_read) > RT_AGENT_STACKS &&
		    !await_reader(h, &p->stacks_read, at + n + 64 - RT_AGENT_STACKS))
			return NULL;
		if (!__atomic_compare_exchange_n(&p->stacks_taken, &at, at + n, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		if (n == pieces)
			return p->stacks[at & (RT_AGENT_STACKS - 1)];
		/* it would not lie in one piece: these are passed over */
		store(p->stacks[at & (RT_AGENT_STACKS - 1)][0], 8 * 8 * n);
	}
}

/* Sends the stack of w. 0: the ring is full. */
static uint32_t send_stack(struct hit *h, const struct walk *w)
{
	uint32_t size = sizeof(struct rt_wire_stack) + w->nr * sizeof(struct rt_wire_frame);
	uint32_t id = __atomic_fetch_add(&h->process->next_stack, 1, __ATOMIC_RELAXED);
	uint64_t *piece = take_pieces(h, (size + 63) / 64);
	struct rt_wire_stack *s = (void *)piece;

	if (!piece)
		return 0;
	s->head.time_ns = now();
	s->head.pid = h->process->wire_pid;
	s->head.tid = h->thread->tid;
	s->id = id;
	s->nr = (uint16_t)w->nr;
	s->end = (uint16_t)w->end;
	for (uint32_t i = 0; i < w->nr; i++)
		s->frame[i] = w->frame[i];
	store(piece[0], (uint64_t)(uint32_t)RT_WIRE_STACK << 16 | size);
	return id;
}

/* Where a stack may be known, in this order. */
static inline uint32_t known_at(uint64_t hash, uint32_t n)
{
	if (n < RT_AGENT_KNOWN_WAYS)
		return (uint32_t)(hash + n) & (RT_AGENT_KNOWN_FEW - 1);
	return (uint32_t)((hash >> 16) + n) & (RT_AGENT_KNOWN - 1);
}

/* The number of the stack of w, which is sent if it is new. 0: the ring is full. */
static uint32_t stack_id(struct hit *h, const struct walk *w)
{
	uint64_t hash = spread(w->hash, w->nr) | 1;
	struct rt_agent_known *k = NULL;
	uint32_t id;

	for (uint32_t n = 0; n < 2 * RT_AGENT_KNOWN_WAYS; n++) {
		uint64_t free = 0;

		k = &h->process->known[known_at(hash, n)];
		if (load(k->hash) == hash) {
			id = (uint32_t)load(k->id);
			if (id)
				return id;
			k = NULL; /* somebody else is at it */
			break;
		}
		if (!load(k->hash) &&
		    __atomic_compare_exchange_n(&k->hash, &free, hash, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			break;
		k = NULL;
	}
	id = send_stack(h, w);
	if (k && id)
		store(k->id, (uint64_t)id);
	else if (k)
		store(k->hash, 0);
	else
		count(&h->count->resent);
	return id;
}
