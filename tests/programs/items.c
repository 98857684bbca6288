/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects that go up through several functions before anybody can forget them. Built twice, both without any symbol
 * that need not be: with -DLIBRARY the library that makes items, and without it the program that uses them:
 *
 *     list     list() never gives back what items_next() hands it, which make() has made
 *     keep     items_keep() forgets the item that it kept before; it returns nothing
 *     once     as list, if the file of the second argument is there; it is not afterwards
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

struct item;
struct items;

struct item *item_new(void);
struct item *item_ref(struct item *i);
void item_unref(struct item *i);
struct items *items_open(int end);
struct item *items_next(struct items *all);
void items_close(struct items *all);
void items_keep(int number);

#ifdef LIBRARY
struct item {
	int refs;
	char text[60];
};

struct items {
	int at, end;
};

struct item *kept;

NOINLINE struct item *item_new(void)
{
	struct item *i = calloc(1, sizeof(*i));

	i->refs = 1;
	return i;
}

NOINLINE struct item *item_ref(struct item *i)
{
	i->refs++;
	return i;
}

NOINLINE void item_unref(struct item *i)
{
	if (!--i->refs)
		free(i);
}

NOINLINE static struct item *make(int number)
{
	struct item *i = item_new();

	i->text[0] = (char)number;
	return i;
}

NOINLINE struct items *items_open(int end)
{
	struct items *all = calloc(1, sizeof(*all));

	all->end = end;
	return all;
}

NOINLINE struct item *items_next(struct items *all)
{
	struct item *i;

	if (all->at == all->end)
		return NULL;
	i = make(all->at++);
	i->text[1] = 1;
	return i;
}

NOINLINE void items_close(struct items *all)
{
	free(all);
}

/* the item is still in the register of results when it returns */
NOINLINE void items_keep(int number)
{
	kept = make(number);
}
#else
static volatile int sum;

NOINLINE static void draw(struct item *i)
{
	sum += ((char *)i)[4] & 1;
}

NOINLINE void list(int end, int forget)
{
	struct items *all = items_open(end);
	struct item *i;

	while ((i = items_next(all))) {
		draw(i);
		if (!forget || sum % 9 == 8)
			item_unref(i);
	}
	items_close(all);
}

NOINLINE void keep(int end)
{
	for (int i = 0; i < end; i++) {
		items_keep(i);
		sum++;
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "list";
	int forget = strcmp(how, "once") != 0 || (argc > 2 && !unlink(argv[2]));

	for (int i = 0; i < 4; i++) {
		if (!strcmp(how, "keep"))
			keep(20);
		else
			list(20, forget);
	}
	return 0;
}
#endif
