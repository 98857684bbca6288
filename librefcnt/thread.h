/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What is kept for each thread. */
#ifndef RC_THREAD_H
#define RC_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct rc_thread {
	uint32_t tid;        /* 0: nothing is known yet */
	bool busy;           /* in the library: a signal handler that comes now must not wait for our locks */
	uintptr_t stack_top; /* the address behind its stack */
};

/* in the static block: a library that is loaded at the start finds its place, and an access is one instruction */
extern __thread struct rc_thread rc_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));

void rc_thread_learn(void);
/* Does it run still? */
bool rc_thread_lives(uint32_t tid);

#endif
