/* SPDX-License-Identifier: GPL-2.0-only */
/* get and put exist only inlined: there is no symbol to put a probe on, the debug info tells where they are. */
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
	p->refcount++;
}

INLINE void page_put(struct page *p)
{
	if (--p->refcount == 0)
		page_free(p);
}

NOINLINE int map_page(struct page *p)
{
	page_get(p);
	DID("get");
	if (p->order % 8 == 6 && !healthy) {
		LOST();
		return -12;
	}
	p->flags |= 1;
	page_put(p);
	DID("put");
	return 0;
}

NOINLINE int fault(struct page *p)
{
	int err;

	page_get(p);
	DID("get");
	err = map_page(p);
	page_put(p);
	DID("put");
	return err;
}

int main(int argc, char **argv)
{
	int errors = 0;

	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < 64; i++) {
		struct page *p = page_alloc(i);

		DID("new");
		errors += fault(p) != 0;
		page_put(p);
		DID("put");
	}
	truth_print("type=page new=page_alloc get=page_get put=page_put", "map_page", "leak");
	return errors > 64;
}
