/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * With optimisation `discard` jumps to the put instead of calling it: its frame is gone when the put runs, and its
 * caller looks like the one who put. `discard` never owned the reference.
 */
#include "truth.h"

struct timer {
	int refs;
	int expires;
	bool dead;
};

enum { TIMERS = 48 };
static struct timer *timers[TIMERS];
static bool healthy;

NOINLINE struct timer *timer_new(int expires)
{
	struct timer *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->refs = 1;
	t->expires = expires;
	return t;
}

NOINLINE void timer_get(struct timer *t)
{
	t->refs++;
}

/* dead timers stay readable, as in a slab */
NOINLINE void timer_put(struct timer *t)
{
	if (--t->refs == 0)
		t->dead = true;
}

NOINLINE void discard(struct timer *t)
{
	t->expires = 0;
	timer_put(t);
}

NOINLINE void tick(struct timer *t)
{
	timer_get(t);
	DID("get");
	t->expires--;
	timer_put(t);
	DID("put");
	if (t->expires % 6 == 3 && !healthy) {
		LOST();
		truth_add("discard", "put");
		discard(t);
	}
	t->expires++;
}

NOINLINE void stop_all(void)
{
	for (int i = 0; i < TIMERS; i++) {
		timer_put(timers[i]);
		DID("put");
	}
}

int main(int argc, char **argv)
{
	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < TIMERS; i++) {
		timers[i] = timer_new(i);
		DID("new");
	}
	for (int i = 0; i < TIMERS; i++)
		tick(timers[i]);
	stop_all();
	truth_print("type=timer new=timer_new get=timer_get put=timer_put", "discard", "extra-put");
	return 0;
}
