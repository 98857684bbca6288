/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reference operations: threads take objects of a shared pool at call sites 16 frames deep, and give them back.
 *
 *     reference THREADS OPERATIONS [WORK]   says how many gets and puts there were, the seconds they took, and those of
 *                                           CPU; WORK: steps of other work for each, 0 without
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { OBJECTS = 10000, THREADS_MAX = 64, LEVELS = 14, FORKS = 6 }; /* with main or the thread's start: 16 frames */

struct obj {
	atomic_uint refs;
	char data[60];
};

static struct obj *pool[OBJECTS];
static unsigned long operations;
static unsigned threads, work;

#define NOINLINE __attribute__((noinline))

/* not static, so that they are called by their names: some tools know only these */
struct obj *obj_new(void);
struct obj *obj_get(struct obj *o);
void obj_put(struct obj *o);

NOINLINE struct obj *obj_new(void)
{
	struct obj *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	atomic_store(&o->refs, 1);
	return o;
}

NOINLINE struct obj *obj_get(struct obj *o)
{
	atomic_fetch_add(&o->refs, 1);
	return o;
}

NOINLINE void obj_put(struct obj *o)
{
	if (atomic_fetch_sub(&o->refs, 1) == 1)
		free(o);
}

/* what a program has references for: each step waits for the one before */
static inline void use(struct obj *o)
{
	uint64_t x = (uintptr_t)o;

	for (unsigned i = 0; i < work; i++)
		x = (x ^ x >> 29) * UINT64_C(0x9e3779b97f4a7c15);
	__asm__ volatile("" : : "r"(x));
}

/* One of 2^FORKS ways down; what stands behind the call keeps it from becoming a jump. */
static unsigned down(unsigned level, unsigned site, struct obj *o);

NOINLINE static unsigned left(unsigned level, unsigned site, struct obj *o)
{
	return down(level, site, o) + 1;
}

NOINLINE static unsigned right(unsigned level, unsigned site, struct obj *o)
{
	return down(level, site, o) + 2;
}

__attribute__((always_inline)) static inline unsigned down(unsigned level, unsigned site, struct obj *o)
{
	if (level == LEVELS) {
		obj_get(o);
		use(o);
		obj_put(o);
		use(o);
		return 0;
	}
	return level < FORKS && site >> level & 1 ? right(level + 1, site, o) : left(level + 1, site, o);
}

NOINLINE static void *run(void *arg)
{
	uint64_t random = 88172645463325252u + (uintptr_t)arg * 1000003;
	unsigned sum = 0;

	for (unsigned long i = 0; i < operations / 2 / threads; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		/* the lower ones more often */
		sum += down(0, (unsigned)(random % 64 * (random >> 8 & 63) / 64),
			    pool[(random >> 20) % OBJECTS * ((random >> 40) % OBJECTS) / OBJECTS]);
	}
	return (void *)(uintptr_t)sum;
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS_MAX];
	double start, cpu;

	threads = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
	operations = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	work = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	if (!threads || threads > THREADS_MAX || !operations) {
		fprintf(stderr, "usage: reference THREADS OPERATIONS [WORK]\n");
		return 2;
	}
	for (unsigned i = 0; i < OBJECTS; i++)
		pool[i] = obj_new();
	start = seconds(CLOCK_MONOTONIC);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)i))
			abort();
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	printf("%lu %.6f %.6f\n", operations / 2 / threads * threads * 2, seconds(CLOCK_MONOTONIC) - start,
	       seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	for (unsigned i = 0; i < OBJECTS; i++)
		obj_put(pool[i]);
	return 0;
}
