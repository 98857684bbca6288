/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exact counts order the operations on one object: each says what the counter
 * was before it, so a legal order walks from count to count. Probes hit a
 * little before the operation takes effect, so clocks of several threads can be
 * wrong. Searched is an order of all operations of nearly the same time that
 * is legal and keeps the order within each thread; the order of time is tried first.
 */
#include "lifetime/order.h"
#include "lifetime/state.h"

enum { CLUSTER = 12, STEPS = 4096 };

struct cluster {
	const struct rt_wire_event *ev[CLUSTER]; /* in the order of time */
	unsigned nr, steps;
	bool used[CLUSTER];
};

/* an earlier operation of the same thread waits, too */
static bool blocked(const struct cluster *c, unsigned i)
{
	for (unsigned k = 0; k < i; k++) {
		if (!c->used[k] && c->ev[k]->head.tid == c->ev[i]->head.tid)
			return true;
	}
	return false;
}

/* index of the first of a legal order of the `left` unused operations, or -1 */
static int search(struct cluster *c, unsigned left, int64_t balance)
{
	for (unsigned i = 0; i < c->nr && c->steps < STEPS; i++) {
		int64_t after = balance + c->ev[i]->delta;
		bool legal;

		c->steps++;
		if (c->used[i] || (int32_t)c->ev[i]->count != balance || blocked(c, i) || (left > 1 && after <= 0))
			continue;
		c->used[i] = true;
		legal = left == 1 || search(c, left - 1, after) >= 0;
		c->used[i] = false;
		if (legal)
			return (int)i;
	}
	return -1;
}

static bool ordered(const struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t type)
{
	const uint64_t *at;

	if (!(e->flags & RT_EV_COUNT_EXACT) || !e->delta || e->head.op == RT_OP_NEW)
		return false;
	at = rt_map_get(&lt->point_by_id, rt_key_make(e->point, 0));
	return at && lt->points.data[*at].type == type;
}

const struct rt_wire_event *lt_linear_first(struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t type,
					    int64_t balance)
{
	const struct rt_wire_event *pending[CLUSTER - 1];
	struct cluster c = { .ev = { e }, .nr = 1 };
	unsigned n;
	int first;

	if (!ordered(lt, e, type))
		return NULL;
	n = lt_order_pending(lt, e, pending, CLUSTER - 1);
	for (unsigned i = 0; i < n; i++) {
		if (ordered(lt, pending[i], type))
			c.ev[c.nr++] = pending[i];
	}
	/* the last ones may wait for what is not in the window: leave them out, one by one */
	for (; c.nr > 1; c.nr--) {
		c.steps = 0;
		first = search(&c, c.nr, balance);
		if (first >= 0)
			return first ? c.ev[first] : NULL;
	}
	return NULL;
}
