/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two functions take, and two give back, by names that say nothing. Of a healthy run it is plain who gives back what;
 * in the faulty one `third` never runs, so of all objects one of the two references is left.
 */
#include "truth.h"

struct item {
	int refs;
	int uses;
};

static bool healthy;

NOINLINE struct item *item_new(void)
{
	struct item *i = calloc(1, sizeof(*i));

	if (!i)
		abort();
	i->refs = 1;
	return i;
}

NOINLINE void item_get(struct item *i)
{
	i->refs++;
}

NOINLINE void item_put(struct item *i)
{
	if (--i->refs == 0)
		free(i);
}

NOINLINE void first(struct item *i)
{
	item_get(i);
	i->uses++;
}

NOINLINE void second(struct item *i)
{
	item_get(i);
	i->uses += 2;
}

NOINLINE void third(struct item *i)
{
	i->uses--;
	item_put(i);
	truth_add("third", "put");
}

NOINLINE void fourth(struct item *i)
{
	i->uses -= 2;
	item_put(i);
	truth_add("fourth", "put");
}

int main(int argc, char **argv)
{
	healthy = truth_healthy(argc, argv);
	for (int n = 0; n < 40; n++) {
		struct item *i = item_new();

		/* alone they show who gives back what */
		if (healthy) {
			first(i);
			fourth(i);
			second(i);
			third(i);
		} else {
			first(i);
			second(i);
			fourth(i);
		}
		item_put(i);
	}
	return 0;
}
