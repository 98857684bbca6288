/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * counted MODE: for who counts operations and does not tell of them. What is lost is a reference of some objects in
 * `forget`; a put too many is `twice`'s.
 *
 *     threads  several threads work on one object at once, and hand objects of their own to the next one, which ends
 * them family   that in the process, in a forked child, and in what another child becomes by exec killed   that, and
 * then SIGKILL results  gets count where they succeed, and a put too many comes before the next birth at the address
 *     places   one object from more places than are told apart
 */
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

enum { THREADS = 6, ROUNDS = 3000, OBJECTS = 40, EVERY = 8, RESULTS = 600 };

struct obj {
	atomic_int refs;
	int number;
	char data[40];
};

static struct obj *shared;
static struct obj *_Atomic handed[THREADS][OBJECTS];

NOINLINE struct obj *obj_new(int number)
{
	struct obj *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	atomic_init(&o->refs, 1);
	o->number = number;
	return o;
}

NOINLINE struct obj *obj_get(struct obj *o)
{
	atomic_fetch_add(&o->refs, 1);
	return o;
}

/* A number that is odd cannot be had. */
NOINLINE struct obj *obj_find(struct obj *o)
{
	if (o->number % 2)
		return NULL;
	atomic_fetch_add(&o->refs, 1);
	return o;
}

/* Memory of an object stays its own: the puts too many harm nobody. */
NOINLINE void obj_put(struct obj *o)
{
	if (atomic_fetch_sub(&o->refs, 1) == 1 && o->number >= 0)
		free(o);
}

NOINLINE static void share(void)
{
	obj_get(shared);
	DID("get");
	obj_put(shared);
	DID("put");
}

NOINLINE static void forget(struct obj *o)
{
	obj_get(o);
	DID("get");
	LOST();
}

NOINLINE static void finish(struct obj *o)
{
	obj_put(o);
	DID("put");
}

NOINLINE static void *serve(void *arg)
{
	size_t me = (size_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		share();
		if (i % (ROUNDS / OBJECTS) == 0) {
			struct obj *o = obj_new(i);

			DID("new");
			if (i / (ROUNDS / OBJECTS) % EVERY == 0)
				forget(o);
			handed[me][i / (ROUNDS / OBJECTS)] = o;
		}
	}
	for (int i = 0; i < OBJECTS; i++) {
		struct obj *o;

		while (!(o = handed[(me + 1) % THREADS][i]))
			;
		finish(o);
	}
	return NULL;
}

NOINLINE static void work(void)
{
	pthread_t threads[THREADS];

	memset(handed, 0, sizeof(handed));
	shared = obj_new(0);
	DID("new");
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, serve, (void *)i))
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	forget(shared);
	finish(shared);
}

static void await(pid_t pid)
{
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		abort();
}

NOINLINE static void family(char *self)
{
	pid_t pid;

	work();
	pid = fork();
	if (!pid) {
		work();
		_exit(0);
	}
	await(pid);
	pid = fork();
	if (!pid) {
		work();
		execl(self, self, "member", NULL);
		abort();
	}
	await(pid);
}

NOINLINE static void twice(struct obj *o)
{
	obj_put(o);
	DID("put");
	LOST();
}

/* All at one address: what was done to the dead one is no part of the next life. */
NOINLINE static struct obj *obj_make(int number)
{
	static struct obj one;

	atomic_store(&one.refs, 1);
	one.number = -number;
	return &one;
}

NOINLINE static void results(void)
{
	for (int i = 1; i <= RESULTS; i++) {
		struct obj *o = obj_make(i), *found;

		DID("new");
		found = obj_find(o);
		if (found) {
			DID("get");
			finish(found);
		}
		finish(o);
		if (i % EVERY == 0)
			twice(o);
	}
}

#define PLACE(n) \
	NOINLINE static void at_##n(struct obj *o) \
	{ \
		obj_get(o); \
		DID("get"); \
	}
#define TEN(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9)
#define EACH(X) TEN(X, 1) TEN(X, 2) TEN(X, 3)
EACH(PLACE)
#define CALL(n) at_##n(o);

NOINLINE static void places(void)
{
	struct obj *o = obj_new(1);

	DID("new");
	EACH(CALL)
	EACH(CALL)
	LOST();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "family"))
		family(argv[0]);
	else if (!strcmp(mode, "results"))
		results();
	else if (!strcmp(mode, "places"))
		places();
	else
		work();
	/* who came first tells of all */
	if (!strcmp(mode, "member"))
		return 0;
	truth_print("type=obj new=obj_new:ret new=obj_make:ret get=obj_get:1 get=obj_find:1?ret!=0 put=obj_put:1 "
		    "counter=obj.refs",
		    "forget", "leak");
	fflush(stdout);
	if (!strcmp(mode, "killed"))
		raise(SIGKILL);
	return 0;
}
