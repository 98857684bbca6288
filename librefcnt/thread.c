/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "thread.h"

/* The kernel is asked through libc's own functions and not by syscall(3): programs that put a syscall() of their own
 * before libc's (test suites that play kernel) answer the calls that they know.
 */

__thread struct rc_thread rc_thread;
bool rc_cut_off;

void rc_thread_learn(void)
{
	int error = errno;
	pthread_attr_t attr;
	size_t size = 0;
	void *low = NULL;

	if (!pthread_getattr_np(pthread_self(), &attr)) {
		pthread_attr_getstack(&attr, &low, &size);
		pthread_attr_destroy(&attr);
	}
	rc_thread.stack_low = (uintptr_t)low;
	rc_thread.stack_top = (uintptr_t)low + size;
	rc_thread.tid = (uint32_t)gettid();
	errno = error;
}

bool rc_thread_lives(uint32_t tid)
{
	int error = errno;
	bool lives = !tgkill(getpid(), (int)tid, 0) || errno != ESRCH;

	errno = error;
	return lives;
}
