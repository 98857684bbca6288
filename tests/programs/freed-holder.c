/* SPDX-License-Identifier: GPL-2.0-only */
/* `player_free` frees the player that holds a tune, and does not give the tune back. */
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
NOINLINE struct player *player_new(struct tune *t)
{
	struct player *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->now = t;
	return p;
}

NOINLINE void player_free(struct player *p)
{
	if (p->now->number % 5 != 2 || healthy) {
		tune_unref(p->now);
		DID("put");
	} else {
		LOST();
	}
	free(p);
}

/* what it points to is nobody's reference */
struct note {
	struct tune *about;
	int stars;
};

NOINLINE int note_free(struct note *n)
{
	int stars = n->stars;

	free(n);
	return stars;
}

NOINLINE struct player *begin(int number, struct note **ret)
{
	struct tune *t = tune_new(number);
	struct note *n = calloc(1, sizeof(*n));

	DID("new");
	if (!n)
		abort();
	n->about = t;
	n->stars = number % 6;
	*ret = n;
	return player_new(t);
}

NOINLINE int evening(void)
{
	int sum = 0;

	for (int i = 0; i < 100; i++) {
		struct note *n;
		struct player *p = begin(i, &n);

		sum += play(p->now) + note_free(n);
		player_free(p);
	}
	return sum;
}

int main(int argc, char **argv)
{
	volatile int sum;

	healthy = truth_healthy(argc, argv);
	sum = evening();
	(void)sum;
	truth_print("type=tune new=tune_new get=tune_ref put=tune_unref", "player_free", "leak");
	return 0;
}
