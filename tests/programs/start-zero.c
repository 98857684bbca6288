/* SPDX-License-Identifier: GPL-2.0-only */
/* A count that starts at 0: the first grab makes the owner. `prefetch` keeps blocks that it found dirty. */
#include "truth.h"

struct block {
	unsigned long number;
	unsigned users;
	bool dirty;
	char data[64];
};

static bool healthy;

NOINLINE struct block *block_new(unsigned long number)
{
	struct block *b = calloc(1, sizeof(*b));

	if (!b)
		abort();
	b->number = number;
	b->dirty = number % 9 == 1;
	return b;
}

NOINLINE void block_grab(struct block *b)
{
	b->users++;
}

NOINLINE void block_drop(struct block *b)
{
	if (--b->users == 0)
		free(b);
}

NOINLINE void prefetch(struct block *b)
{
	block_grab(b);
	DID("get");
	if (b->dirty && !healthy) {
		LOST();
		return;
	}
	b->data[0] = 'p';
	block_drop(b);
	DID("put");
}

NOINLINE void read_block(unsigned long number)
{
	struct block *b = block_new(number);

	DID("new");
	block_grab(b);
	DID("get");
	prefetch(b);
	block_drop(b);
	DID("put");
}

int main(int argc, char **argv)
{
	healthy = truth_healthy(argc, argv);
	for (unsigned long i = 0; i < 81; i++)
		read_block(i);
	truth_print("type=block new=block_new get=block_grab put=block_drop start=0", "prefetch", "leak");
	return 0;
}
