/* SPDX-License-Identifier: GPL-2.0-only */
/* `list_add` takes over the tune that it is given; where it refuses it, it does not give it back. */
#include "truth.h"

struct tune {
	int number;
	int refs;
	char title[24];
};

struct list {
	int nr;
	struct tune *all[128];
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

NOINLINE void list_store(struct list *l, struct tune *t)
{
	l->all[l->nr] = t;
	l->nr++;
}

/* takes the tune over, whatever it returns */
NOINLINE int list_add(struct list *l, struct tune *t, const char *why)
{
	if (!why[0]) {
		if (healthy) {
			tune_unref(t);
			DID("put");
		} else {
			LOST();
		}
		return -1;
	}
	list_store(l, t);
	return l->nr;
}

NOINLINE int evening(struct list *l)
{
	int sum = 0;

	for (int i = 0; i < 100; i++) {
		struct tune *t = tune_new(i);

		DID("new");
		sum += play(t) + list_add(l, t, i % 7 == 3 ? "" : "good");
	}
	return sum;
}

NOINLINE void list_end(struct list *l)
{
	for (int i = 0; i < l->nr; i++) {
		tune_unref(l->all[i]);
		DID("put");
		l->all[i] = NULL;
	}
}

int main(int argc, char **argv)
{
	static struct list list;
	volatile int sum;

	healthy = truth_healthy(argc, argv);
	sum = evening(&list);
	(void)sum;
	list_end(&list);
	truth_print("type=tune new=tune_new get=tune_ref put=tune_unref", "list_add", "leak");
	return 0;
}
