/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * THREADS threads take and give back one object for as long as no SIGTERM comes; one more sleeps, one waits with
 * poll(2). A target to attach to. Prints "ready PID", at the end "balance N" and how the sleeper and the waiter ended:
 * "slept N", "polled N" (0 both). `crowd SECONDS`: at most so long, and the sleeper as well.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

enum { THREADS = 8 };

struct obj {
	atomic_int refs;
};

static struct obj shared;
static atomic_int stop;
static atomic_ulong rounds;
static int seconds, slept, polled;

NOINLINE void obj_get(struct obj *o)
{
	atomic_fetch_add(&o->refs, 1);
}

NOINLINE void obj_put(struct obj *o)
{
	atomic_fetch_sub(&o->refs, 1);
}

static void on_signal(int signal)
{
	(void)signal;
	stop = 1;
}

NOINLINE static void work(unsigned n)
{
	for (volatile unsigned i = 0; i < n; i++)
		;
}

static void *use(void *arg)
{
	while (!stop) {
		obj_get(&shared);
		work(300);
		obj_put(&shared);
		work(300);
		atomic_fetch_add(&rounds, 1);
	}
	return arg;
}

static void *sleeps(void *arg)
{
	slept = nanosleep(&(struct timespec){ .tv_sec = seconds }, NULL);
	return arg;
}

static void *polls(void *arg)
{
	polled = poll(NULL, 0, seconds * 1000);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS + 2];
	sigset_t term;

	seconds = argc > 1 ? atoi(argv[1]) : 1;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = on_signal }, NULL);
	pthread_sigmask(SIG_BLOCK, &term, NULL); /* main's alone */
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, use, NULL);
	pthread_create(&thread[THREADS], NULL, sleeps, NULL);
	pthread_create(&thread[THREADS + 1], NULL, polls, NULL);
	while (rounds < 1000)
		usleep(1000);
	pthread_sigmask(SIG_UNBLOCK, &term, NULL);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (int i = 0; i < THREADS + 2; i++)
		pthread_join(thread[i], NULL);
	printf("balance %d\nslept %d\npolled %d\n", shared.refs, slept, polled);
	return 0;
}
