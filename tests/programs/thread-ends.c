/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads end in every way there is, and each uses its note to the last moment; nobody leaks.
 *
 *     again N      N threads, one after the other, with one number where the kernel lets us choose it
 *     exec N       the same, in a program that a thread starts while N others sleep
 *     first N      the first thread leaves, the others go on
 *     group N      N threads are at work when the process ends
 *     abort N      the same, and it dies of a signal
 *     serve N      as again, for N seconds
 *     born N       N children, one after the other, each of which ends while its threads start others
 */
#include "truth.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

struct note {
	atomic_int refs;
	char text[60];
};

enum { TURNS = 5 };
static char *self;
static atomic_int left, done;
static int last_tid, same;

NOINLINE struct note *note_new(void)
{
	struct note *n = calloc(1, sizeof(*n));

	if (!n)
		abort();
	atomic_init(&n->refs, 1);
	return n;
}

NOINLINE struct note *note_get(struct note *n)
{
	atomic_fetch_add(&n->refs, 1);
	return n;
}

NOINLINE void note_put(struct note *n)
{
	if (atomic_fetch_sub(&n->refs, 1) == 1)
		free(n);
}

NOINLINE static void turn(void)
{
	struct note *n = note_new();

	DID("new");
	note_get(n);
	DID("get");
	note_put(n);
	DID("put");
	note_put(n);
	DID("put");
}

static int finish(void)
{
	truth_print("type=note new=note_new get=note_get put=note_put", NULL, NULL);
	return 0;
}

static void *brief(void *arg)
{
	int tid = (int)syscall(SYS_gettid);

	(void)arg;
	for (int i = 0; i < TURNS; i++)
		turn();
	same += tid == last_tid;
	last_tid = tid;
	turn();
	return NULL;
}

/* The kernel keeps the number of a thread until its tracer has heard of the end. */
static void ask_for(int tid)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	while (!syscall(SYS_tgkill, getpid(), tid, 0))
		sched_yield();
	if (fd < 0)
		return;
	dprintf(fd, "%d", tid - 1);
	close(fd);
}

static int again(int count, time_t until)
{
	for (int i = 0; i < count || time(NULL) < until; i++) {
		pthread_t t;

		if (i)
			ask_for(last_tid);
		if (pthread_create(&t, NULL, brief, NULL))
			return 1;
		pthread_join(t, NULL);
		if (!i) {
			printf("ready %d\n", (int)getpid());
			fflush(stdout);
		}
	}
	printf("same %d\n", same);
	return finish();
}

/* works to the end of the process */
static void *busy(void *arg)
{
	for (;; done++)
		turn();
	return arg;
}

static void *sleeper(void *arg)
{
	turn();
	done++;
	for (;;)
		pause();
	return arg;
}

static void *start_again(void *arg)
{
	turn();
	execl(self, self, "again", arg, (char *)0);
	return NULL;
}

/* what the kernel keeps of the first thread stays until the last one ends */
static bool first_has_left(void)
{
	char path[64], text[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)getpid());
	f = fopen(path, "r");
	if (!f || !fgets(text, sizeof(text), f))
		abort();
	fclose(f);
	return strstr(text, ") Z") != NULL;
}

static void *outlive(void *arg)
{
	while (!first_has_left())
		sched_yield();
	for (int i = 0; i < TURNS; i++)
		turn();
	if (--left)
		return arg;
	exit(finish());
}

static bool start(void *(*run)(void *), void *arg, int count)
{
	pthread_t t;

	for (int i = 0; i < count; i++) {
		if (pthread_create(&t, NULL, run, arg))
			return false;
	}
	return true;
}

static void *at_once(void *arg)
{
	done++;
	return arg;
}

static void *start_others(void *arg)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (;;)
		pthread_create(&t, &attr, at_once, NULL);
	return arg;
}

/* until the threads have done so many turns */
static void wait_for(int turns)
{
	while (done < turns)
		sched_yield();
}

static bool born(int number)
{
	enum { BEGUN = 20 };
	pid_t child = fork();

	if (!child) {
		turn();
		if (start(start_others, NULL, 2))
			wait_for(BEGUN + number);
		_exit(0);
	}
	return child > 0 && waitpid(child, NULL, 0) == child;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "again";
	int n = argc > 2 ? atoi(argv[2]) : 1;

	self = argv[0];
	left = n;
	if (!strcmp(how, "again"))
		return again(n, 0);
	if (!strcmp(how, "serve"))
		return again(1, time(NULL) + n);
	turn();
	if (!strcmp(how, "first") && start(outlive, NULL, n))
		pthread_exit(NULL);
	if (!strcmp(how, "group") && start(busy, NULL, n)) {
		wait_for(n * TURNS);
		return finish();
	}
	if (!strcmp(how, "abort") && start(busy, NULL, n)) {
		wait_for(n * TURNS);
		abort();
	}
	if (!strcmp(how, "born")) {
		while (n && born(n))
			n--;
		return n ? 1 : finish();
	}
	if (!strcmp(how, "exec") && start(sleeper, NULL, n)) {
		wait_for(n);
		if (start(start_again, argv[2], 1))
			sleeper(NULL);
	}
	return 1;
}
