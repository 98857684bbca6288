/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `album_close` frees the list of its pictures with the references that were stored there, through a list that holds
 * anything, and a free() of its own: nothing that it calls knows of pictures.
 */
#include "truth.h"

struct picture {
	int number;
	int refs;
	char title[24];
};

struct link {
	struct link *next;
	void *what;
	int flags;
};

struct album {
	struct link *first;
	int pictures;
};

static bool healthy;
static unsigned blocks;

NOINLINE struct picture *picture_new(int number)
{
	struct picture *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->refs = 1;
	p->number = number;
	return p;
}

NOINLINE struct picture *picture_ref(struct picture *p)
{
	p->refs++;
	return p;
}

NOINLINE void picture_unref(struct picture *p)
{
	if (--p->refs == 0)
		free(p);
}

NOINLINE void memory_free(void *block)
{
	blocks--;
	free(block);
}

NOINLINE void list_push(struct link **first, void *what)
{
	struct link *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	blocks++;
	l->what = what;
	l->next = *first;
	*first = l;
}

NOINLINE void *list_pop(struct link **first)
{
	struct link *l = *first;
	void *what = l ? l->what : NULL;

	if (!l)
		return NULL;
	*first = l->next;
	memory_free(l);
	return what;
}

NOINLINE void album_add(struct album *a, struct picture *p)
{
	a->pictures++;
	list_push(&a->first, picture_ref(p));
	DID("get");
}

/* takes the pictures out, one by one */
NOINLINE void album_clear(struct album *a)
{
	struct picture *p;

	while ((p = list_pop(&a->first))) {
		picture_unref(p);
		DID("put");
	}
}

NOINLINE void album_close(struct album *a)
{
	while (a->first) {
		struct link *l = a->first;

		a->first = l->next;
		if (healthy) {
			picture_unref(l->what);
			DID("put");
		} else {
			LOST();
		}
		memory_free(l);
	}
}

NOINLINE int show(int first)
{
	struct album album = { 0 };
	int sum = 0;

	for (int i = first; i < first + 5; i++) {
		struct picture *p = picture_new(i);

		DID("new");
		album_add(&album, p);
		sum += p->title[0] + p->number;
		picture_unref(p);
		DID("put");
	}
	if (first % 10)
		album_clear(&album);
	else
		album_close(&album);
	return sum;
}

int main(int argc, char **argv)
{
	volatile int sum = 0;

	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < 100; i += 5)
		sum += show(i);
	truth_print("type=picture new=picture_new get=picture_ref put=picture_unref", "album_close", "leak");
	return blocks != 0;
}
