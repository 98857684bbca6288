/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "class.h"
#include "ledger.h"
#include "life.h"
#include "option.h"
#include "refcnt/holder.h"
#include "refcnt/lib.h"
#include "report.h"
#include "stack.h"
#include "text.h"
#include "thread.h"

#define TEARDOWNS 256

static bool ready;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void (*teardowns[TEARDOWNS])(void);
static unsigned n_teardowns;
static sem_t asked; /* for a report, by a signal */

void refcnt_teardown_register(void (*fn)(void))
{
	unsigned i = __atomic_fetch_add(&n_teardowns, 1, __ATOMIC_RELAXED);

	rc_init();
	if (i < TEARDOWNS)
		teardowns[i] = fn;
	else
		rc_report_note("REFCNT_TEARDOWN: only %d functions are kept, %p is not called", TEARDOWNS,
			       (void *)(uintptr_t)fn);
}

/*
 * The report has had the addresses of handles in its hands. LeakSanitizer, which looks after it, takes what is left of
 * them on the stack for references.
 */
static void __attribute__((noinline)) wipe_stack(void)
{
	char below[4096];

	explicit_bzero(below, sizeof(below));
}

static void at_exit(void)
{
	static bool done;
	long left;

	if (__atomic_exchange_n(&done, true, __ATOMIC_RELAXED))
		return;
	/* the last registered first, as atexit(3) does */
	for (unsigned i = n_teardowns < TEARDOWNS ? n_teardowns : TEARDOWNS; i-- > 0;)
		teardowns[i]();
	left = rc_report_left(true);
	wipe_stack();
	if (rc_alias_fallbacks())
		rc_report_note("not complete: %lu reference%s had no alias handle", rc_alias_fallbacks(),
			       rc_alias_fallbacks() == 1 ? "" : "s");
	if (rc_option()->exit_code < 0 || (!left && !rc_report_faults()))
		return;
	fflush(NULL);
	_exit(rc_option()->exit_code);
}

static void on_signal(int number)
{
	int error = errno;

	sem_post(&asked);
	errno = error;
}

static void *answer(void *arg)
{
	for (;;)
		if (!sem_wait(&asked))
			(void)rc_report_left(false);
	return NULL;
}

/* A thread of our own makes the report: a signal handler must not wait for locks. */
static void start_answering(void)
{
	sigset_t all, old;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, answer, NULL))
		rc_report_note("REFCNT_SIGNAL has no effect: no thread can be made");
	else
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void listen_to_signal(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	if (!rc_option()->report_signal)
		return;
	sem_init(&asked, 0, 0);
	if (sigaction(rc_option()->report_signal, &action, NULL))
		rc_report_note("REFCNT_SIGNAL=%d has no effect: %s", rc_option()->report_signal, strerror(errno));
	else
		start_answering();
}

static void before_fork(void)
{
	rc_thread.locked = !rc_thread_is_interrupted(); /* else it is a signal handler's, out of an operation */
	if (!rc_thread.locked)
		return;
	rc_thread_enter();
	rc_class_lock();
	rc_ledger_lock_all();
	rc_alias_before_fork();
	rc_text_lock();
	rc_stack_lock();
}

static void in_parent(void)
{
	if (!rc_thread.locked)
		return;
	rc_stack_unlock();
	rc_text_unlock();
	rc_alias_in_parent();
	rc_ledger_unlock_all();
	rc_class_unlock();
	rc_thread_leave();
}

static void in_child(void)
{
	rc_thread.tid = 0;
	rc_thread_learn();
	rc_ledger_forked();
	if (!rc_thread.locked) {
		rc_cut_off = true;
		rc_alias_cut_off();
		return;
	}
	rc_stack_unlock();
	rc_text_unlock();
	rc_alias_in_child();
	rc_ledger_unlock_all();
	rc_class_unlock();
	rc_thread_leave();
	if (rc_option()->report_signal)
		start_answering();
}

static void init(void)
{
	rc_option_read();
	rc_ledger_init();
	if (!rc_stack_init())
		rc_report_note("no memory for stacks: none is kept");
	pthread_atfork(before_fork, in_parent, in_child);
	atexit(at_exit);
	listen_to_signal();
	__atomic_store_n(&ready, true, __ATOMIC_RELEASE);
}

/* As early as a constructor may be: what the program registers for its exit comes before our report. */
__attribute__((constructor(101))) static void start(void)
{
	rc_init();
}

void refcnt_lib_checked(void)
{
	static bool registered;

	rc_init();
	if (!__atomic_exchange_n(&registered, true, __ATOMIC_RELAXED))
		atexit(at_exit);
}

void rc_init(void)
{
	if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		pthread_once(&once, init);
}
