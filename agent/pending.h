/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Calls whose return is waited for: the return address on the stack is a thunk's, which knows where to go on.
 *
 * Who unwinds the stack (an exception, the end of a thread, backtrace()) knows nothing of thunks, and would take them
 * for the end of the stack: where an unwinder begins, the addresses are put right ("lifted"). Where it is over, the
 * thunks of the frames that live on come back; where that is not seen, these return unseen, and are told as missed.
 */
#pragma once

#include "walk.h"

#define STACK_BYTES (64ull << 20) /* what lies farther away from the stack pointer is on another stack */

/* The thunk that goes on at ra; RT_AGENT_RETURNS: there are no more. */
static uint32_t thunk_for(struct rt_agent_shared *pool, uint64_t ra)
{
	for (uint32_t n = 0; n < RT_AGENT_RETURNS; n++) {
		uint32_t i = (uint32_t)((ra * MIX >> 40) + n) & (RT_AGENT_RETURNS - 1);
		uint64_t free = 0;

		if (load(pool->return_address[i]) == ra)
			return i;
		if (!load(pool->return_address[i]) &&
		    (__atomic_compare_exchange_n(&pool->return_address[i], &free, ra, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED) ||
		     free == ra))
			return i;
	}
	return RT_AGENT_RETURNS;
}

static inline uint32_t pending_index(uint64_t slot, uint32_t n)
{
	return (uint32_t)((slot * MIX >> 40) + n) & (RT_AGENT_PENDING - 1);
}

static inline struct rt_agent_pending *pending_place(struct rt_agent_process *p, uint64_t slot, uint32_t n)
{
	return &p->pending[pending_index(slot, n)];
}

/* Who looks through all that wait looks into the place's part, too. */
static inline void use_part(struct rt_agent_process *p, uint32_t place)
{
	uint32_t part = place / RT_AGENT_PENDING_PART;
	uint64_t bit = 1ull << part % 64;

	if (!(load(p->pending_parts[part / 64]) & bit))
		(void)__atomic_fetch_or(&p->pending_parts[part / 64], bit, __ATOMIC_RELEASE);
}

/* It has returned, or never will. */
static inline void waits_no_more(struct hit *h, struct rt_agent_pending *at)
{
	if (at->thread == h->thread->number && h->thread->waiting)
		h->thread->waiting--;
	else
		store(h->process->astray, 1u);
	store(at->slot, 0);
}

/* An entry that no return is missing of; counters are sums over all threads. */
static inline void forget_entry(struct hit *h, const struct rt_agent_pending *at)
{
	if (!at->inherited)
		h->thread->count[at->point].entries--;
}

/*
 * Forgets what waits for a return from this slot: left behind by longjmp() or an exception. Returns how many levels
 * wait that are to stay, where the slot is hooked and this is a tail call.
 */
static uint16_t pending_levels(struct hit *h, uint64_t slot, bool hooked)
{
	struct rt_agent_process *p = h->process;
	uint16_t levels = 0;

	for (uint32_t n = 0; n < RT_AGENT_PENDING_WAYS; n++) {
		struct rt_agent_pending *at = pending_place(p, slot, n);

		if (load(at->slot) != slot)
			continue;
		if (!hooked) {
			/*
			 * The call does not wait for its return any more. One that was lifted may have had it, unseen;
			 * not if that was for the end of its thread.
			 */
			if (!at->lifted || (at->lifted == RT_AGENT_SIGHT_FORCED && at->thread != h->thread->number))
				forget_entry(h, at);
			waits_no_more(h, at);
		} else if (at->level >= levels) {
			levels = (uint16_t)(at->level + 1);
		}
	}
	return levels;
}

static struct rt_agent_pending *pending_take(struct rt_agent_process *p, uint64_t slot)
{
	for (uint32_t n = 0; n < RT_AGENT_PENDING_WAYS; n++) {
		struct rt_agent_pending *at = pending_place(p, slot, n);
		uint64_t free = 0;

		if (load(at->slot))
			continue;
		use_part(p, pending_index(slot, n));
		if (__atomic_compare_exchange_n(&at->slot, &free, slot, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return at;
	}
	return NULL;
}

/* ---- for who unwinds ---- */

/* Gives a slot that returns to a thunk its own return address. false: it is none, as behind longjmp(). */
static inline bool lift(uint64_t slot, const struct rt_agent_shared *pool, uint64_t *ret)
{
	uint64_t ra;
	uint32_t thunk;

	if (!load_u64(slot, &ra) || !is_thunk(ra, &thunk))
		return false;
	*ret = pool->return_address[thunk];
	store_u64(slot, *ret);
	return true;
}

/* Nobody hears of it any more, or the table is that of the process which this one was forked from. */
static __attribute__((noinline)) void lift_all(void)
{
	const struct rt_agent_process *p = (void *)rt_agent_head.process;
	uint64_t ra;

	RT_AGENT_EACH_PENDING (i, p)
		if (load(p->pending[i].slot))
			(void)lift(load(p->pending[i].slot), (void *)rt_agent_head.pool, &ra);
}

/* Whether the call may be of this thread's stacks; a coroutine's may be those of any thread. */
static inline bool is_ours(const struct hit *h, const struct rt_agent_pending *at)
{
	return at->thread == h->thread->number || at->inherited || load(h->process->astray);
}

/* sight: who is to unwind. */
static __attribute__((noinline)) void lift_returns(struct hit *h, uint32_t sight)
{
	uint32_t waiting = 0;

	if (!h->thread->waiting && !load(h->process->astray))
		return;
	RT_AGENT_EACH_PENDING (i, h->process) {
		struct rt_agent_pending *at = &h->process->pending[i];
		uint64_t slot = load(at->slot);

		if (!slot || !is_ours(h, at))
			continue;
		waiting += at->thread == h->thread->number;
		/* of tail calls, which share it, one does for all; a forced end goes on from cleanup to cleanup */
		if (lift(slot, h->pool, &at->ra))
			at->lifted = sight;
	}
	h->thread->waiting = waiting; /* what jumps have left behind is counted once more */
}

/* Whether the frame of `slot` lives on: it waits for its return again, if a thunk can be had. */
static bool put_back(struct hit *h, struct rt_agent_pending *at, uint64_t slot)
{
	uint64_t ra;
	uint32_t thunk;

	if (!load_u64(slot, &ra) || ra != at->ra)
		return false;
	thunk = thunk_for(h->pool, ra);
	if (thunk < RT_AGENT_RETURNS) {
		at->lifted = 0;
		store_u64(slot, (uint64_t)(uintptr_t)rt_agent_thunks + thunk * THUNK_BYTES);
	}
	return true;
}

static __attribute__((noinline)) void put_returns_back(struct hit *h)
{
	uint64_t sp = h->regs->reg[RSP];

	if (!h->thread->waiting && !load(h->process->astray))
		return;
	RT_AGENT_EACH_PENDING (i, h->process) {
		struct rt_agent_pending *at = &h->process->pending[i];
		uint64_t slot = load(at->slot);

		if (!slot || !at->lifted || !is_ours(h, at))
			continue;
		/* at sp another call's return address is now */
		if (slot - sp >= STACK_BYTES && sp - slot >= STACK_BYTES)
			continue;
		if (slot <= sp || !put_back(h, at, slot)) {
			forget_entry(h, at);
			waits_no_more(h, at);
		}
	}
}
