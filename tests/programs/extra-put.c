/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `on_error` gives back a reference that it never took. The owner's own put in `shutdown_all` then hits a dead object:
 * the crash is there, the fault is not. Dead objects stay readable here, as in a slab.
 */
#include "truth.h"

struct obj {
	int refs;
	int number;
	bool dead;
	char payload[40];
};

enum { OBJECTS = 40 };
static struct obj *table[OBJECTS];
static bool healthy;

NOINLINE struct obj *obj_new(int number)
{
	struct obj *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	o->refs = 1;
	o->number = number;
	return o;
}

NOINLINE void obj_get(struct obj *o)
{
	o->refs++;
}

NOINLINE void obj_put(struct obj *o)
{
	if (--o->refs == 0)
		o->dead = true;
}

NOINLINE void on_error(struct obj *o)
{
	o->payload[0] = 'e';
	if (healthy)
		return;
	obj_put(o);
	DID("put");
	LOST();
}

NOINLINE void work(struct obj *o)
{
	obj_get(o);
	DID("get");
	o->payload[1]++;
	obj_put(o);
	DID("put");
	if (o->number % 8 == 5)
		on_error(o);
}

NOINLINE void shutdown_all(void)
{
	for (int i = 0; i < OBJECTS; i++) {
		obj_put(table[i]);
		DID("put");
	}
}

int main(int argc, char **argv)
{
	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < OBJECTS; i++) {
		table[i] = obj_new(i);
		DID("new");
	}
	for (int i = 0; i < OBJECTS; i++)
		work(table[i]);
	shutdown_all();
	truth_print("type=obj new=obj_new get=obj_get put=obj_put", "on_error", "extra-put");
	return 0;
}
