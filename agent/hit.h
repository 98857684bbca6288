/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* One hit, while it is looked at; and the small things that all of the agent needs. */
#pragma once

#include "load.h"

/* As entry.S pushes them: by DWARF number; rip is not among them. */
struct hit_regs {
	uint64_t reg[16];
};
enum { RAX = 0, RBP = 6, RSP = 7, RIP = 16 };

/*
 * What a plain site's stub pushes, and what it calls, up to the rsp of the program. What is called so keeps all
 * registers but flags, and saves only those that it uses.
 */
struct plain_hit {
	uint64_t rbp, back, number, object, kept[2];
	uint64_t red_zone[16];
};
#define FROM_PLAIN_STUB __attribute__((no_caller_saved_registers, visibility("hidden")))
/* What these call, which keeps all registers as well: where nothing is odd, few have to be saved. */
#define SELDOM __attribute__((noinline, cold, no_caller_saved_registers))
#define PLAIN_HIT ((const struct plain_hit *)__builtin_frame_address(0))

#define PAGE 4096
#define MIX 0x9e3779b97f4a7c15ull

extern struct rt_agent_head rt_agent_head __attribute__((visibility("hidden")));
extern const char rt_agent_thunks[] __attribute__((visibility("hidden")));
enum { THUNK_BYTES = 10, THUNK_NUMBER = 0x1000000 };

struct hit {
	struct rt_agent_shared *pool;
	struct rt_agent_process *process;
	struct rt_agent_thread *thread;
	const struct hit_regs *regs;
	const struct rt_probe *probe;
	struct rt_probe_count *count;
	uint64_t time;  /* of the event; 0: when it is sent */
	uint64_t began; /* when the hook did, where that is of interest; later where it had to wait; else 0 */
	uint64_t ip;    /* of the armed instruction */
	uint64_t object, aux, sp;
	uint32_t counter, stack, point;
	uint32_t spot; /* which point of which site: what is the same of all its hits */
	uint16_t flags;
	bool passed; /* its object is not in the sample */
	bool nested; /* of a signal's handler that came into another hook */
};

static inline bool is_alone(void)
{
	const uint32_t *owner = (void *)rt_agent_head.owner;

	return __atomic_load_n(owner, __ATOMIC_ACQUIRE) & RT_AGENT_OWNER_DIED;
}

/* Nothing is told any more: the tool has said so, or it is dead. */
static inline bool is_off(void)
{
	const uint32_t *owner = (void *)rt_agent_head.owner;

	return __builtin_expect(__atomic_load_n(&rt_agent_head.off, __ATOMIC_ACQUIRE) |
					(__atomic_load_n(owner, __ATOMIC_ACQUIRE) & RT_AGENT_OWNER_DIED),
				0);
}

/* And who is in the middle of telling is not heard any more. */
static inline bool is_silent(void)
{
	return __atomic_load_n(&rt_agent_head.off, __ATOMIC_ACQUIRE) == RT_AGENT_SILENT || is_alone();
}

static inline uint64_t now(void)
{
	uint32_t lo, hi;

	asm volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

/* Nobody else writes what is stored and loaded so; the reader is in another process. */
#define store(place, value) __atomic_store_n(&(place), value, __ATOMIC_RELEASE)
#define load(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
/* What it is worked out from need not be kept, or asked for, again. */
#define HOLD(pointer) asm("" : "+r"(pointer))
#define relax() asm volatile("pause")

/*
 * Adds to a word of this thread alone, in one instruction: a signal handler that comes between is another producer of
 * the same thread.
 */
static inline uint64_t take(uint64_t *counter, uint64_t n)
{
	uint64_t old = n;

	asm volatile("xaddq %0, %1" : "+r"(old), "+m"(*counter) : : "memory");
	return old;
}

static inline void count(uint64_t *counter)
{
	asm volatile("incq %0" : "+m"(*counter));
}
