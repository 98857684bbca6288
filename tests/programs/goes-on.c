/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * goes-on ok|bad: items that are put by who still uses them. ok: others have references to these; bad: in one of twenty
 * that was the last reference. And blocks, which their pool is told of first, and which it keeps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAR __attribute__((noinline, noclone))

struct item {
	int refs;
	long pad[4];
	int number;
};

struct pool {
	int used;
};

struct block {
	int refs;
};

static int sum;

FAR struct item *item_new(int number)
{
	struct item *item = calloc(1, sizeof(*item));

	item->refs = 1;
	item->number = number;
	return item;
}

FAR struct item *item_ref(struct item *item)
{
	item->refs++;
	return item;
}

FAR void item_unref(struct item *item)
{
	if (!--item->refs)
		free(item);
}

FAR void item_show(const struct item *item)
{
	sum += item->number != 0;
}

FAR struct block *block_new(struct pool *pool)
{
	struct block *block = calloc(1, sizeof(*block));

	block->refs = 1;
	pool->used++;
	return block;
}

FAR void block_drop(struct pool *pool, struct block *block)
{
	pool->used--;
	if (!--block->refs)
		free(block);
}

FAR void pool_show(const struct pool *pool)
{
	sum += pool->used;
}

/* takes over a reference */
FAR void handle(struct item *item)
{
	sum++;
	item_unref(item);
	item_show(item);
	sum++;
}

FAR void drop(struct pool *pool, struct block *block)
{
	block_drop(pool, block);
	pool_show(pool);
	sum++;
}

int main(int argc, char **argv)
{
	struct pool pool = { 0 };

	for (int i = 1; i <= 20; i++) {
		struct item *item = item_new(i);

		if (i == 7 && argc > 1 && !strcmp(argv[1], "bad")) {
			handle(item);
			continue;
		}
		handle(item_ref(item));
		item_unref(item);
		if (i % 10 == 0)
			drop(&pool, block_new(&pool));
	}
	return sum == 0;
}
