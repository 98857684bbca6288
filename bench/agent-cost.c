/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gets and puts 16 frames deep, in short loops with pauses in which a reader can follow: what one costs the thread.
 *
 *     agent-cost THREADS     says nanoseconds of CPU time for an operation: the least and the median of all loops
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS_MAX = 64, LEVELS = 13, LOOPS = 200, PAIRS = 1000 }; /* with the thread's start: 16 frames */

struct obj {
	atomic_uint refs;
};

static pthread_barrier_t start;
static double cost[THREADS_MAX][LOOPS];

#define NOINLINE __attribute__((noinline))

NOINLINE static struct obj *obj_new(void)
{
	struct obj *o = malloc(sizeof(*o));

	if (!o)
		abort();
	atomic_init(&o->refs, 1);
	return o;
}

NOINLINE static struct obj *obj_get(struct obj *o)
{
	atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
	return o;
}

NOINLINE static void obj_put(struct obj *o)
{
	if (atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1)
		free(o);
}

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

NOINLINE static double loop(struct obj *o)
{
	double begin = cpu_ns();

	for (int i = 0; i < PAIRS; i++) {
		obj_get(o);
		obj_put(o);
	}
	return (cpu_ns() - begin) / (2 * PAIRS);
}

/* What stands behind the call keeps it from becoming a jump. */
NOINLINE static double down(unsigned level, struct obj *o)
{
	double ns = level ? down(level - 1, o) : loop(o);

	atomic_signal_fence(memory_order_seq_cst);
	return ns;
}

static void *run(void *arg)
{
	struct timespec pause = { 0, 10 * 1000 * 1000 };
	struct obj *o = obj_new();

	for (int i = 0; i < LOOPS; i++) {
		nanosleep(&pause, NULL);
		pthread_barrier_wait(&start);
		((double *)arg)[i] = down(LEVELS, o);
	}
	obj_put(o);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	pthread_t thread[THREADS_MAX];

	if (!threads || threads > THREADS_MAX) {
		fprintf(stderr, "usage: agent-cost THREADS\n");
		return 2;
	}
	pthread_barrier_init(&start, NULL, threads);
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, run, cost[i]))
			abort();
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	qsort(cost, (size_t)threads * LOOPS, sizeof(double), compare);
	printf("%.2f %.2f\n", cost[0][0], cost[0][threads * LOOPS / 2]);
	return 0;
}
