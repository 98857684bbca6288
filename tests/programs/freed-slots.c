/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Blocks that are freed with pointers to objects stored in them, and with what looks like that. Nothing leaks; prints
 * how many stored pointers went with their blocks.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noipa))

struct item {
	int refs;
	struct item *self;
};

struct shelf {
	char room[104];
	struct item *item;
};

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

NOINLINE void shelf_fill(struct shelf *s, struct item *i)
{
	s->item = i;
}

NOINLINE void item_mark(struct item *i)
{
	i->self = i;
}

/* as it is */
NOINLINE void *block_of(size_t bytes)
{
	return malloc(bytes);
}

static struct shelf *filled(size_t bytes, size_t at, struct item *i)
{
	char *block = calloc(1, bytes);

	if (!block)
		abort();
	shelf_fill((struct shelf *)(void *)(block + at), i);
	return (struct shelf *)(void *)block;
}

int main(void)
{
	static const size_t huge = 300 << 10; /* it has a mapping of its own */
	struct item *i = item_new();
	struct shelf *s;
	int told = 0, status;

	item_mark(i);
	item_get(i);
	free(filled(sizeof(*s), 0, i));
	told++;
	free(filled(huge, huge - sizeof(*s), i));
	told++;
	/* it moves, and somebody else gets the memory with what is still there */
	s = filled(sizeof(*s), 0, i);
	s = realloc(s, huge);
	if (!s)
		abort();
	free(block_of(sizeof(*s)));
	free(s);
	/* nothing is there any more */
	s = filled(sizeof(*s), 0, i);
	shelf_fill(s, NULL);
	free(s);
	free(NULL);
	/* a child has what its parent stored */
	s = filled(sizeof(*s), 0, i);
	told += 2;
	if (!fork()) {
		free(s);
		_exit(0);
	}
	wait(&status);
	free(s);
	item_put(i);
	/* the object goes itself, with a pointer in it */
	item_put(i);
	printf("told %d\n", told);
	return 0;
}
