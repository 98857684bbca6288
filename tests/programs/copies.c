/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loops that compilers write twice (what is the same in all rounds is asked once, before them), and with them the get
 * and the put that are inlined there. It counts for itself what it does, without a call that would keep them in one
 * piece.
 */
#include "truth.h"

struct obj {
	int refs;
	int touched;
};

static unsigned long taken, given;
volatile int sink;

static inline void obj_get(struct obj *o)
{
	o->refs++;
}

static inline void obj_put(struct obj *o)
{
	o->refs--;
}

NOINLINE static void keep(struct obj **list, int n, int loud)
{
	for (int i = 0; i < n; i++) {
		if (loud)
			sink = i;
		obj_get(list[i]);
		taken++;
		if (loud)
			sink = -i;
	}
}

NOINLINE static void give(struct obj **list, int n, int loud)
{
	for (int i = 0; i < n; i++) {
		if (loud)
			sink = i;
		obj_put(list[i]);
		given++;
		if (loud)
			sink = -i;
	}
}

int main(int argc, char **argv)
{
	struct obj *list[8];

	for (int i = 0; i < 8; i++) {
		list[i] = malloc(sizeof(**list));
		list[i]->refs = 1;
		list[i]->touched = argc;
	}
	for (int round = 0; round < 6; round++) {
		keep(list, 8, round % 2);
		give(list, 8, round % 3);
	}
	printf("spec type=obj get=obj_get put=obj_put\n");
	printf("count keep get %lu\ncount give put %lu\nguilty none\n", taken, given);
	return 0;
}
