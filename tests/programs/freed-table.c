/* SPDX-License-Identifier: GPL-2.0-only */
/* `album_free` frees the table of an album that holds tunes, and does not give the tunes back. */
#include "truth.h"

struct tune {
	int number;
	int refs;
	char title[24];
};

struct album {
	unsigned nr;
	struct tune **tunes;
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

/* one of the songs by heart */
NOINLINE struct tune *write_tune(int number)
{
	struct tune *t = tune_new(number);

	DID("new");
	t->title[number % 24] = 'a';
	return t;
}

/* takes the tune over */
NOINLINE void album_add(struct album *a, struct tune *t)
{
	a->tunes = realloc(a->tunes, (a->nr + 1) * sizeof(a->tunes[0]));
	if (!a->tunes)
		abort();
	a->tunes[a->nr++] = t;
}

NOINLINE void album_free(struct album *a, bool forgets)
{
	for (unsigned i = 0; i < a->nr; i++) {
		if (forgets && !healthy) {
			LOST();
			continue;
		}
		tune_unref(a->tunes[i]);
		DID("put");
	}
	free(a->tunes);
	free(a);
}

NOINLINE int listen(int number)
{
	struct album *a = calloc(1, sizeof(*a));
	int sum = 0;

	if (!a)
		abort();
	for (int i = 0; i < 2; i++)
		album_add(a, write_tune(10 * number + i));
	for (unsigned i = 0; i < a->nr; i++)
		sum += play(a->tunes[i]);
	album_free(a, number % 5 == 2);
	return sum;
}

int main(int argc, char **argv)
{
	volatile int sum = 0;

	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < 50; i++)
		sum += listen(i);
	truth_print("type=tune new=tune_new get=tune_ref put=tune_unref", "album_free", "leak");
	return 0;
}
