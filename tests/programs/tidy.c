/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `work` forgets a put for each fourth item; at the end a handler of atexit sweeps the pool that all items lie in,
 * so that nothing is left when the process has ended. `tidy VARIANT WAIT`: with WAIT it says `ready` and sleeps before
 * main returns; it ends at end of file on its standard input.
 */
#include "truth.h"

struct item {
	int refs, number;
	char name[24];
};

static struct item pool[128];
static bool healthy;

NOINLINE static struct item *item_new(int n)
{
	for (size_t i = 0; i < sizeof(pool) / sizeof(*pool); i++) {
		if (!pool[i].refs) {
			pool[i].refs = 1;
			pool[i].number = n;
			return &pool[i];
		}
	}
	abort();
}

NOINLINE static void item_free(struct item *i)
{
	memset(i, 0, sizeof(*i));
}

NOINLINE static void item_get(struct item *i)
{
	i->refs++;
}

NOINLINE static void item_put(struct item *i)
{
	if (--i->refs == 0)
		item_free(i);
}

static void sweep(void)
{
	for (size_t i = 0; i < sizeof(pool) / sizeof(*pool); i++) {
		while (pool[i].refs)
			item_put(&pool[i]);
	}
}

NOINLINE static int work(struct item *i)
{
	item_get(i);
	DID("get");
	if (i->number % 4 == 3 && !healthy) {
		LOST();
		return -1;
	}
	item_put(i);
	DID("put");
	return 0;
}

int main(int argc, char **argv)
{
	char c;

	healthy = truth_healthy(argc, argv);
	atexit(sweep);
	for (int n = 0; n < 100; n++) {
		struct item *i = item_new(n);

		DID("new");
		work(i);
		item_put(i);
		DID("put");
	}
	truth_print("type=item new=item_new get=item_get put=item_put free=item_free", "work", "leak");
	if (argc > 2) {
		puts("ready");
		fflush(stdout);
		while (read(0, &c, 1) > 0)
			;
	}
	return 0;
}
