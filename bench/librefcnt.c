/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nanoseconds for a get and its put, below DEPTH frames, in the quickest of 200 parts: `librefcnt PAIRS DEPTH`. COUNTER
 * says of what: librefcnt in the mode of the build, a bare atomic, or GLib. bench/librefcnt.py builds one program of
 * each and runs them in turn.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PARTS 200

#define OURS 1
#define ATOMIC 2
#define GLIB 3

#if COUNTER == OURS
#include <refcnt/refcnt.h>

#define THING_FIELDS(field, array) field(thing, int, value)
REFCNT_STRUCT(thing, THING_FIELDS);
static void thing_release(struct thing *t)
{
	thing_dealloc(t);
}
REFCNT_STRUCT_DEFINE(thing, thing_release);
#elif COUNTER == ATOMIC
struct thing {
	atomic_uint refs;
};

static struct thing *thing_alloc(void)
{
	struct thing *t = calloc(1, sizeof(*t));

	if (t)
		atomic_init(&t->refs, 1);
	return t;
}

static inline struct thing *thing_get(struct thing *t)
{
	atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
	return t;
}

static inline void thing_put(struct thing *t)
{
	if (atomic_fetch_sub_explicit(&t->refs, 1, memory_order_release) == 1) {
		atomic_thread_fence(memory_order_acquire);
		free(t);
	}
}
#else
#include <glib.h>

struct thing {
	int value;
};
#define thing_alloc() g_atomic_rc_box_new0(struct thing)
#define thing_get(t) g_atomic_rc_box_acquire(t)
#define thing_put(t) g_atomic_rc_box_release(t)
#endif

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

__attribute__((noinline)) static double work(struct thing *t, long pairs, int depth)
{
	double began, ns, least = 0;

	if (depth > 0) {
		ns = work(t, pairs, depth - 1);
		__asm__ volatile("" ::: "memory"); /* no tail call */
		return ns;
	}
	/* in parts, so that one of them is without the machine's other business */
	for (int part = 0; part < PARTS; part++) {
		began = now_ns();
		for (long i = 0; i < pairs / PARTS; i++) {
			struct thing *mine = thing_get(t);

			__asm__ volatile("" ::"r"(mine) : "memory");
			thing_put(mine);
		}
		ns = now_ns() - began;
		least = part && least < ns ? least : ns;
	}
	return least;
}

int main(int argc, char **argv)
{
	long pairs = argc > 2 ? atol(argv[1]) : PARTS;
	struct thing *t = thing_alloc();

	if (!t || pairs < PARTS)
		return 1;
	printf("%.2f\n", work(t, pairs, argc > 2 ? atoi(argv[2]) : 0) / (double)(pairs / PARTS));
	thing_put(t);
	return 0;
}
