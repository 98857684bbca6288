/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `player_stop` forgets the tunes that the player holds, and does not give them back: compilers clear both pointers by
 * one vector instruction.
 */
#include "truth.h"

struct tune {
	int number;
	int refs;
	char title[24];
};

struct player {
	int volume;
	struct tune *now, *next;
};

static bool healthy;

NOINLINE struct tune *tune_new(int number)
{
	struct tune *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->refs = 1;
	t->number = number;
	return t;
}

NOINLINE void tune_ref(struct tune *t)
{
	t->refs++;
}

NOINLINE void tune_unref(struct tune *t)
{
	if (--t->refs == 0)
		free(t);
}

NOINLINE int play(struct tune *t)
{
	int sum = 0;

	tune_ref(t);
	DID("get");
	for (int i = 0; i < 24; i++)
		sum += t->title[i] + t->number;
	tune_unref(t);
	DID("put");
	return sum;
}

/* takes the tunes over */
NOINLINE void player_start(struct player *p, struct tune *now, struct tune *next)
{
	p->volume++;
	p->now = now;
	p->next = next;
}

NOINLINE void player_stop(struct player *p)
{
	if (p->now->number % 10 != 2 || healthy) {
		tune_unref(p->now);
		DID("put");
		tune_unref(p->next);
		DID("put");
	} else {
		LOST();
		LOST();
	}
	p->now = NULL;
	p->next = NULL;
}

NOINLINE int evening(struct player *p)
{
	int sum = 0;

	for (int i = 0; i < 100; i += 2) {
		player_start(p, tune_new(i), tune_new(i + 1));
		DID("new");
		DID("new");
		sum += play(p->now) + play(p->next);
		player_stop(p);
	}
	return sum;
}

int main(int argc, char **argv)
{
	static struct player player = { .volume = 11 };
	volatile int sum;

	healthy = truth_healthy(argc, argv);
	sum = evening(&player);
	(void)sum;
	truth_print("type=tune new=tune_new get=tune_ref put=tune_unref", "player_stop", "leak");
	return 0;
}
