/* SPDX-License-Identifier: GPL-2.0-only */
/* Each level of `walk` takes its own reference; the deepest one of some trees leaves without giving it back. */
#include "truth.h"

struct tree {
	int depth;
	int refs;
	long sum;
};

static bool healthy;

NOINLINE struct tree *tree_new(int depth)
{
	struct tree *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->refs = 1;
	t->depth = depth;
	return t;
}

NOINLINE void tree_get(struct tree *t)
{
	t->refs++;
}

NOINLINE void tree_put(struct tree *t)
{
	if (--t->refs == 0)
		free(t);
}

NOINLINE long walk(struct tree *t, int level)
{
	long sum;

	tree_get(t);
	DID("get");
	if (level == 0) {
		if (t->depth % 4 == 3 && !healthy) {
			LOST();
			return 1;
		}
		tree_put(t);
		DID("put");
		return 1;
	}
	sum = level + walk(t, level - 1);
	t->sum += sum;
	tree_put(t);
	DID("put");
	return sum;
}

int main(int argc, char **argv)
{
	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < 40; i++) {
		struct tree *t = tree_new(i % 12);

		DID("new");
		walk(t, t->depth);
		tree_put(t);
		DID("put");
	}
	truth_print("type=tree new=tree_new get=tree_get put=tree_put", "walk", "leak");
	return 0;
}
