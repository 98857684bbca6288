/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What is kept for each thread. */
#ifndef RC_THREAD_H
#define RC_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct rc_thread {
	uint32_t tid; /* 0: nothing is known yet */
	bool busy;    /* in the library: a signal handler that comes now must not wait for our locks */
	bool writing; /* has the lock of reports, or is about to */
	bool locked;  /* all locks, for a fork */
	uintptr_t stack_low, stack_top; /* its stack: from the lowest address to the one behind it */
};

/* in the static block: a library that is loaded at the start finds its place, and an access is one instruction */
extern __thread struct rc_thread rc_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Forked out of a signal handler that came into the library: other threads' locks are locked for ever in this process.
 */
extern bool rc_cut_off __attribute__((visibility("hidden")));

void rc_thread_learn(void);
/* Does it run still? */
bool rc_thread_lives(uint32_t tid);

/* Was the library entered out of itself, by a signal handler? Then no lock may be waited for. */
static inline bool rc_thread_is_interrupted(void)
{
	return rc_thread.busy || rc_cut_off;
}

/* Around all that takes a lock; not nested. */
static inline void rc_thread_enter(void)
{
	rc_thread.busy = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void rc_thread_leave(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	rc_thread.busy = false;
}

#endif
