/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the pointer census means: an object is rooted when globals, stacks or
 * reachable memory point to it, or a rooted object does. What only lost objects
 * point to is lost with them and not a fault of its own; lost objects in a
 * circle may be (lost.c).
 */
#include "lifetime/answer.h"

struct lt_inc *lt_holder_of(const struct rt_lifetime *lt, const struct lt_holder *h)
{
	for (uint32_t i = 0; i < lt->types.len; i++) {
		struct lt_inc *inc = lt_inc_find(lt, h->inc->pid, i, h->holder);

		if (inc && inc->life == LT_LIVE)
			return inc;
	}
	return NULL;
}

bool lt_in_holder(const struct rt_lifetime *lt, const struct lt_inc *inc, uint64_t slot)
{
	enum { PAGE = 4096 };

	for (size_t i = 0; i < lt->holders.len; i++) {
		const struct lt_holder *h = &lt->holders.data[i];
		const struct lt_inc *by = h->inc == inc ? lt_holder_of(lt, h) : NULL;
		uint32_t size = by ? lt_inc_type(lt, by)->object_size : 0;

		if (by && slot - h->holder < (size ? size : PAGE))
			return true;
	}
	return false;
}

static bool valid(const struct lt_holder *h)
{
	return h->inc->life == LT_LIVE && h->inc->census && h->epoch == h->inc->epoch;
}

/* the pointer lies in memory that the allocator had back, and nobody follows it any more: it is not counted, then */
static bool let_go(const struct rt_lifetime *lt, struct lt_holder *h)
{
	const struct lt_inc *by = lt_holder_of(lt, h);
	struct lt_inc *inc = h->inc;

	if (!by || !by->returned || by == inc || !inc->held[RT_HOLDER_OBJECT])
		return false;
	inc->held[RT_HOLDER_OBJECT]--;
	/* as far as no other pointer holds it, which lt_census() looks at */
	inc->nobody = true;
	return true;
}

/* edges of earlier censuses, of objects that died since, and from blocks that were freed */
static void forget_old(struct rt_lifetime *lt)
{
	size_t n = 0;

	for (size_t i = 0; i < lt->holders.len; i++) {
		struct lt_holder *h = &lt->holders.data[i];

		if (valid(h) && !let_go(lt, h))
			lt->holders.data[n++] = *h;
	}
	lt->holders.len = n;
}

/* spreads a property from holders to what they hold, until nothing changes */
static void spread(struct rt_lifetime *lt, bool roots)
{
	bool changed = true;

	for (unsigned round = 0; changed && round < 10000; round++) {
		changed = false;
		for (size_t i = 0; i < lt->holders.len; i++) {
			struct lt_holder *h = &lt->holders.data[i];
			struct lt_inc *by = valid(h) ? lt_holder_of(lt, h) : NULL;

			if (!valid(h) || by == h->inc)
				continue;
			if (roots && !h->inc->rooted && (!by || by->rooted || !by->census))
				changed = h->inc->rooted = true;
			if (!roots && !h->inc->rooted && !h->inc->child && by && (by->nobody || by->child))
				changed = h->inc->child = true;
		}
	}
}

void lt_census(struct rt_lifetime *lt)
{
	uint32_t at = UINT32_MAX;
	struct lt_inc *inc;

	forget_old(lt);
	while ((inc = lt_row_older(&lt->live, &at))) {
		inc->rooted = inc->held[RT_HOLDER_GLOBAL] || inc->held[RT_HOLDER_STACK] || inc->held[RT_HOLDER_HEAP];
		inc->child = false;
		inc->nobody &= !inc->rooted && !inc->held[RT_HOLDER_OBJECT];
	}
	spread(lt, true);
	spread(lt, false);
	lt->nomem |= !lt_lost(lt);
}
