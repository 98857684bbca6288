/* SPDX-License-Identifier: GPL-2.0-only */
/* `page_read` returns a page, or NULL where it is damaged, and then it forgets the one it had made. */
#include "truth.h"

struct page {
	int number;
	int refs;
	unsigned char data[64];
};

static bool healthy;

NOINLINE struct page *page_new(int number)
{
	struct page *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->refs = 1;
	p->number = number;
	return p;
}

NOINLINE struct page *page_ref(struct page *p)
{
	p->refs++;
	return p;
}

NOINLINE void page_unref(struct page *p)
{
	if (--p->refs == 0)
		free(p);
}

NOINLINE int fill(struct page *p)
{
	for (int i = 0; i < 64; i++)
		p->data[i] = (unsigned char)(p->number * i);
	return p->data[9] % 4;
}

NOINLINE struct page *page_read(int number)
{
	struct page *p = page_new(number);

	DID("new");
	if (fill(p) == 1) {
		if (healthy) {
			page_unref(p);
			DID("put");
		} else {
			LOST();
		}
		return NULL;
	}
	return p;
}

/* hands on what it got, and a NULL */
NOINLINE struct page *page_lookup(int number)
{
	struct page *p = page_read(number);

	if (p)
		p->data[0] = 1;
	return p;
}

NOINLINE int show(int number)
{
	struct page *p = page_lookup(number), *mine;
	int sum;

	if (!p)
		return 0;
	mine = page_ref(p);
	DID("get");
	sum = mine->data[5];
	page_unref(mine);
	DID("put");
	page_unref(p);
	DID("put");
	return sum;
}

int main(int argc, char **argv)
{
	volatile int sum = 0;

	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < 80; i++)
		sum += show(i);
	truth_print("type=page new=page_new get=page_ref put=page_unref", "page_read", "leak");
	return 0;
}
