/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * healthy ROUNDS: eight threads share what lies in a few slots, and all of it is right. Who finds an object in a slot
 * tries to get it, which fails where it has ended, and looks again whether it is still the one; now and then somebody
 * puts a new object into the slot. No memory is given back, so that a try on an object that has ended is allowed.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))

enum { THREADS = 8, SLOTS = 4, REPLACED_EVERY = 256 };

struct obj {
	atomic_int refs;
	int slot;
};

struct done {
	unsigned long made, get, failed, put;
};

static struct obj *_Atomic slots[SLOTS];
static long rounds;

NOINLINE struct obj *obj_new(int slot)
{
	struct obj *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	o->slot = slot;
	atomic_store(&o->refs, 1);
	return o;
}

NOINLINE void obj_get(struct obj *o)
{
	atomic_fetch_add(&o->refs, 1);
}

NOINLINE bool obj_try_get(struct obj *o)
{
	int refs = atomic_load(&o->refs);

	while (refs) {
		if (atomic_compare_exchange_weak(&o->refs, &refs, refs + 1))
			return true;
	}
	return false;
}

NOINLINE void obj_put(struct obj *o)
{
	atomic_fetch_sub(&o->refs, 1);
}

NOINLINE static void replace(int slot, struct done *done)
{
	obj_put(atomic_exchange(&slots[slot], obj_new(slot)));
	done->made++;
	done->put++;
}

NOINLINE static void use(int slot, struct done *done)
{
	struct obj *o = atomic_load(&slots[slot]);

	if (!obj_try_get(o)) {
		done->failed++;
		return;
	}
	if (atomic_load(&slots[slot]) == o) {
		obj_get(o);
		obj_put(o);
		done->get++;
		done->put++;
	}
	obj_put(o);
	done->get++;
	done->put++;
}

static void *run(void *arg)
{
	struct done *done = arg;

	for (long i = 0; i < rounds; i++) {
		if (i % REPLACED_EVERY)
			use((int)(i % SLOTS), done);
		else
			replace((int)(i / REPLACED_EVERY % SLOTS), done);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct done done[THREADS];
	struct done all = { .made = SLOTS, .put = SLOTS };
	pthread_t threads[THREADS];

	rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
	for (int i = 0; i < SLOTS; i++)
		atomic_store(&slots[i], obj_new(i));
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, run, &done[i]))
			return 1;
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		all.made += done[i].made;
		all.get += done[i].get;
		all.failed += done[i].failed;
		all.put += done[i].put;
	}
	for (int i = 0; i < SLOTS; i++)
		obj_put(atomic_load(&slots[i]));
	printf("new %lu get %lu put %lu failed %lu\n", all.made, all.get, all.put, all.failed);
	return 0;
}
