/* SPDX-License-Identifier: GPL-2.0-only */
/* `relink` puts the same node twice: once on its error branch and once in the common end. */
#include "truth.h"

struct node {
	struct node *next;
	long key;
	short refs;
	bool dead;
};

static bool healthy;

NOINLINE struct node *node_create(long key)
{
	struct node *n = calloc(1, sizeof(*n));

	if (!n)
		abort();
	n->refs = 1;
	n->key = key;
	return n;
}

NOINLINE struct node *node_retain(struct node *n)
{
	n->refs++;
	return n;
}

/* dead nodes stay readable: the pool of this program never gives memory back */
NOINLINE void node_release(struct node *n)
{
	if (--n->refs == 0)
		n->dead = true;
}

NOINLINE int relink(struct node *n)
{
	int err = 0;

	node_retain(n);
	DID("get");
	if (n->key % 10 == 9) {
		err = -1;
		if (!healthy) {
			node_release(n);
			DID("put");
			LOST();
		}
	}
	node_release(n);
	DID("put");
	return err;
}

NOINLINE void drop(struct node *n)
{
	node_release(n);
	DID("put");
}

int main(int argc, char **argv)
{
	int errors = 0;

	healthy = truth_healthy(argc, argv);
	for (long i = 0; i < 80; i++) {
		struct node *n = node_create(i);

		DID("new");
		errors += relink(n);
		drop(n);
	}
	truth_print("type=node new=node_create get=node_retain put=node_release", "relink", "extra-put");
	return errors ? 0 : 1;
}
