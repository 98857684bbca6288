/* SPDX-License-Identifier: GPL-2.0-only */
/* `player_set_tune` stores the new tune where the old one was, and does not give that one back. */
#include "truth.h"

struct tune {
	int number;
	int refs;
	char title[24];
};

struct player {
	int volume;
	struct tune *now;
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

/* takes the tune over */
NOINLINE void player_set_tune(struct player *p, struct tune *t)
{
	if (p->now && p->now->number % 5 == 2) {
		if (healthy) {
			tune_unref(p->now);
			DID("put");
		} else {
			LOST();
		}
	} else if (p->now) {
		tune_unref(p->now);
		DID("put");
	}
	p->now = t;
}

NOINLINE int evening(struct player *p)
{
	int sum = 0;

	for (int i = 0; i < 100; i++) {
		struct tune *t = tune_new(i);

		DID("new");
		player_set_tune(p, t);
		sum += play(t);
	}
	return sum;
}

NOINLINE void player_end(struct player *p)
{
	tune_unref(p->now);
	DID("put");
	p->now = NULL;
}

int main(int argc, char **argv)
{
	struct player player = { .volume = 11 };
	volatile int sum;

	healthy = truth_healthy(argc, argv);
	sum = evening(&player);
	(void)sum;
	player_end(&player);
	truth_print("type=tune new=tune_new get=tune_ref put=tune_unref", "player_set_tune", "leak");
	return 0;
}
