/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The end frees every item, whatever its count: no memory is lost, and still `index_item` forgot its puts.
 */
#include "truth.h"

struct item {
	int id;
	int refs;
	struct item *next;
	char text[32];
};

static struct item *all;
static bool healthy;

NOINLINE struct item *item_new(int id)
{
	struct item *i = calloc(1, sizeof(*i));

	if (!i)
		abort();
	i->refs = 1;
	i->id = id;
	i->next = all;
	all = i;
	return i;
}

NOINLINE void item_ref(struct item *i)
{
	i->refs++;
}

NOINLINE void item_unref(struct item *i)
{
	i->refs--;
}

NOINLINE void item_destroy(struct item *i)
{
	free(i);
}

NOINLINE void index_item(struct item *i)
{
	item_ref(i);
	DID("get");
	if (i->id % 5 == 2 && !healthy) {
		LOST();
		return;
	}
	i->text[0] = 'i';
	item_unref(i);
	DID("put");
}

NOINLINE void sweep(void)
{
	while (all) {
		struct item *i = all;

		all = i->next;
		item_destroy(i);
		DID("free");
	}
}

int main(int argc, char **argv)
{
	healthy = truth_healthy(argc, argv);
	for (int n = 0; n < 50; n++) {
		struct item *i = item_new(n);

		DID("new");
		index_item(i);
		item_unref(i);
		DID("put");
	}
	sweep();
	truth_print("type=item new=item_new get=item_ref put=item_unref free=item_destroy", "index_item", "leak");
	return 0;
}
