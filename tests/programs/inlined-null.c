/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * get and put exist only inlined, and take NULL as well. Where a compiler knows already that there is a page it lets
 * the code go into an instance behind that test: not all who put come by where the instance begins.
 */
#include "truth.h"

#define INLINE static inline __attribute__((always_inline))

struct page {
	unsigned long flags;
	int refcount;
	int order;
};

static bool healthy;

NOINLINE struct page *page_alloc(int order)
{
	struct page *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->refcount = 1;
	p->order = order;
	return p;
}

NOINLINE void page_free(struct page *p)
{
	free(p);
}

INLINE void page_get(struct page *p)
{
	if (p)
		p->refcount++;
}

INLINE void page_put(struct page *p)
{
	if (p && --p->refcount == 0)
		page_free(p);
}

NOINLINE int order_of(const struct page *p)
{
	return p->order > 3;
}

/* Gives back what it is handed. */
NOINLINE int write_back(struct page *p, int how)
{
	int written = 0;

	if (p && how > 2) {
		written = order_of(p);
		if (written)
			written += order_of(p) + how;
	} else if (how < -5) {
		written = 7;
	}
	page_put(p);
	if (p)
		DID("put");
	return written;
}

NOINLINE int map_page(struct page *p, int how)
{
	int mapped = 0;

	page_get(p);
	if (p)
		DID("get");
	if (p && how % 8 == 6 && !healthy) {
		LOST();
		return -12;
	}
	if (p && how > 2)
		mapped = order_of(p);
	page_put(p);
	if (p)
		DID("put");
	return mapped;
}

int main(int argc, char **argv)
{
	int written = 0;

	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < 64; i++) {
		struct page *p = i % 4 == 1 ? NULL : page_alloc(i);

		if (p)
			DID("new");
		written += map_page(p, i);
		written += write_back(p, i % 16 - 8);
	}
	truth_print("type=page new=page_alloc get=page_get put=page_put", "map_page", "leak");
	return written < 0;
}
