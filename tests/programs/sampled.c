/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sampled MODE LIVES [ROUNDS]: every object has just as many gets as any other, some of them by its constructor before
 * it returns; addresses are used again and again, by several threads; one object lives from the first moment to the
 * last.
 *
 *     ok      nothing is wrong
 *     leak    `leak` keeps a reference of one of 8 objects
 *     late    `late` puts one of 8 objects that are dead
 *     fork    children give back what they have inherited, and make objects at the same addresses
 */
#include "truth.h"

#include <pthread.h>
#include <sys/wait.h>

enum { THREADS = 3, KEPT = 16, CHECKS = 4, EVERY = 8 };

struct obj {
	atomic_int refs;
	int number;
	struct obj *next;
	char data[40];
};

static int lives, rounds;
static bool leaks, late_puts;
static _Thread_local struct obj *pool;
static struct obj *first;

NOINLINE static void obj_free(struct obj *o)
{
	/* never the allocator's again: what is done to a dead one harms nobody */
	o->next = pool;
	pool = o;
}

NOINLINE static struct obj *obj_get(struct obj *o)
{
	atomic_fetch_add(&o->refs, 1);
	return o;
}

NOINLINE static void obj_put(struct obj *o)
{
	if (atomic_fetch_sub(&o->refs, 1) == 1)
		obj_free(o);
}

NOINLINE static void check(struct obj *o)
{
	obj_get(o);
	__asm__ volatile("");
	obj_put(o);
	__asm__ volatile("");
}

NOINLINE static struct obj *obj_new(int number)
{
	struct obj *o = pool;

	if (o)
		pool = o->next;
	else
		o = malloc(sizeof(*o));
	if (!o)
		abort();
	atomic_init(&o->refs, 1);
	o->number = number;
	check(o);
	return o;
}

NOINLINE static void leak(struct obj *o)
{
	obj_get(o);
	LOST();
}

NOINLINE static void late(struct obj *o)
{
	obj_put(o);
	LOST();
}

NOINLINE static void use(struct obj *o)
{
	volatile unsigned spin = 0;

	for (int i = 0; i < CHECKS; i++)
		check(o);
	/* a program has something else to do, too */
	for (int i = 0; i < rounds; i++)
		spin += (unsigned)i;
}

NOINLINE static void drop(struct obj *o)
{
	obj_put(o);
	if (late_puts && o->number % EVERY == 0)
		late(o);
}

static void *serve(void *arg)
{
	struct obj *kept[KEPT] = { 0 };

	for (int i = 0; i < lives; i++) {
		struct obj *o = obj_new(i), *old = kept[i % KEPT];

		use(o);
		if (leaks && i % EVERY == 0)
			leak(o);
		kept[i % KEPT] = o;
		if (old)
			drop(old);
	}
	for (int i = 0; i < KEPT; i++)
		if (kept[i])
			drop(kept[i]);
	return arg;
}

static void children(void)
{
	struct obj *inherited[KEPT];

	serve(NULL);
	for (int i = 0; i < KEPT; i++)
		inherited[i] = obj_new(i);
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid < 0)
			exit(1);
		if (!pid) {
			for (int k = 0; k < KEPT; k++)
				drop(inherited[k]);
			serve(NULL);
			_exit(0);
		}
		if (waitpid(pid, NULL, 0) < 0)
			exit(1);
	}
	for (int i = 0; i < KEPT; i++)
		drop(inherited[i]);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc < 3)
		return 2;
	lives = atoi(argv[2]);
	rounds = argc > 3 ? atoi(argv[3]) : 0;
	leaks = !strcmp(argv[1], "leak");
	late_puts = !strcmp(argv[1], "late");
	first = obj_new(0);
	if (!strcmp(argv[1], "fork"))
		children();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, serve, NULL))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	obj_put(first);
	truth_print("type=obj new=obj_new:ret get=obj_get:1 put=obj_put:1 free=obj_free:1 counter=obj.refs start=1",
		    leaks       ? "leak"
		    : late_puts ? "late"
				: NULL,
		    leaks ? "leak" : "extra-put");
	return 0;
}
