/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The order of time. Producers hand in their records a little out of order; a
 * sorted window of LT_WINDOW_NS of stream time (at most LT_WINDOW records) puts
 * that right. Streams are nearly sorted: a record mostly goes to the end.
 * Within one object exact counts are better than clocks (linear.c): an operation
 * that waits may be taken out of the window before its turn.
 */
#include <string.h>

#include "lifetime/state.h"

enum {
	LOOK = 512, /* waiting records that are looked through for one object */
	AHEAD_FIRST = 24,
	AHEAD_LIFE = 16,
	AHEAD_LEDGER = 8,
};

static struct lt_slot *ring_at(const struct rt_lifetime *lt, uint32_t i)
{
	return &lt->ring[(lt->ring_first + i) & (LT_WINDOW - 1)];
}

/*
 * Objects lie all over the memory, and an event needs three places that follow
 * from each other. They are fetched some records ahead, one after the other.
 */
static void fetch(struct rt_lifetime *lt)
{
	struct lt_slot *s;

	if (lt->ring_nr <= AHEAD_FIRST)
		return;
	s = ring_at(lt, AHEAD_FIRST);
	if (s->head.kind == RT_WIRE_EVENT)
		lt_inc_fetch_first(lt, &s->event);
	s = ring_at(lt, AHEAD_LIFE);
	s->hint = s->head.kind == RT_WIRE_EVENT ? lt_inc_fetch(lt, &s->event) : NULL;
	s = ring_at(lt, AHEAD_LEDGER);
	if (s->hint)
		lt_inc_fetch_ledger(s->hint);
}

static void pop(struct rt_lifetime *lt)
{
	/* nothing is put into the window while a record is told: its slot stays as it is */
	struct lt_slot *s = ring_at(lt, 0);

	lt->ring_first = (lt->ring_first + 1) & (LT_WINDOW - 1);
	lt->ring_nr--;
	fetch(lt);
	lt->hint = s->hint;
	if (s->head.kind)
		lt_dispatch(lt, &s->head);
}

bool lt_order_push(struct rt_lifetime *lt, const struct rt_wire_head *r)
{
	uint64_t time = r->time_ns;
	bool event = r->kind == RT_WIRE_EVENT;
	uint32_t i;

	if (!lt->ring) {
		lt->ring = calloc(LT_WINDOW, sizeof(*lt->ring));
		if (!lt->ring)
			return false;
	}
	/* a process ends, and its census is taken, after everything that was seen of it */
	if (!event &&
	    (r->kind == RT_WIRE_EXIT || r->kind == RT_WIRE_HELD || r->kind == RT_WIRE_COUNT || r->kind == RT_WIRE_MARK))
		time = time > lt->newest_ns ? time : lt->newest_ns;
	if (lt->ring_nr == LT_WINDOW)
		pop(lt);
	for (i = lt->ring_nr; i && ring_at(lt, i - 1)->time_ns > time; i--)
		*ring_at(lt, i) = *ring_at(lt, i - 1);
	ring_at(lt, i)->time_ns = time;
	ring_at(lt, i)->hint = NULL;
	/* the size is known for nearly all of them: no loop */
	if (event)
		memcpy(&ring_at(lt, i)->event, r, sizeof(struct rt_wire_event));
	else
		memcpy(&ring_at(lt, i)->event, r,
		       r->size < sizeof(struct rt_wire_event) ? r->size : sizeof(struct rt_wire_event));
	lt->ring_nr++;
	/* what the session says is ahead of the events, which wait in the engine for a while */
	if (event && time > lt->newest_ns)
		lt->newest_ns = time;
	while (lt->ring_nr && (int64_t)(lt->newest_ns - ring_at(lt, 0)->time_ns) > LT_WINDOW_NS)
		pop(lt);
	return true;
}

void lt_order_flush(struct rt_lifetime *lt)
{
	while (lt->ring_nr)
		pop(lt);
}

static bool concerns(const struct lt_slot *s, const struct rt_wire_event *e)
{
	return s->head.kind == RT_WIRE_EVENT && s->event.object == e->object && s->head.pid == e->head.pid &&
	       s->time_ns - e->head.time_ns <= LT_RACE_NS;
}

unsigned lt_order_pending(const struct rt_lifetime *lt, const struct rt_wire_event *e, const struct rt_wire_event **ret,
			  unsigned max)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < lt->ring_nr && i < LOOK && n < max; i++) {
		struct lt_slot *s = ring_at(lt, i);

		if (s->time_ns - e->head.time_ns > LT_RACE_NS && s->time_ns > e->head.time_ns)
			break;
		if (concerns(s, e))
			ret[n++] = &s->event;
	}
	return n;
}

void lt_order_done(struct rt_lifetime *lt, const struct rt_wire_event *pending)
{
	for (uint32_t i = 0; i < lt->ring_nr; i++) {
		if (&ring_at(lt, i)->event == pending) {
			ring_at(lt, i)->head.kind = 0; /* its slot stays until its turn */
			return;
		}
	}
}

/* the op of an event as its point has it; what happens to the count */
static int16_t delta_of(struct rt_lifetime *lt, const struct rt_wire_event *e)
{
	return lt_point(lt, e->point) && e->head.op != RT_OP_NEW ? e->delta : 0;
}

/*
 * A counter is read a little before its event is stamped, and may be read after
 * the operation, too: the next event of each thread may have happened already,
 * and everything of the next LT_RACE_NS.
 */
void lt_order_ahead(struct rt_lifetime *lt, const struct rt_wire_event *e, int64_t *ret_less, int64_t *ret_more)
{
	uint32_t tids[16];
	unsigned seen = 0;

	*ret_less = *ret_more = 0;
	for (uint32_t i = 0; i < lt->ring_nr && i < LOOK; i++) {
		const struct lt_slot *s = ring_at(lt, i);
		bool near = (int64_t)(s->time_ns - e->head.time_ns) <= LT_RACE_NS, first = true;
		int16_t delta;

		if (s->head.kind != RT_WIRE_EVENT || s->head.pid != e->head.pid || s->head.tid == e->head.tid)
			continue;
		for (unsigned k = 0; k < seen && first; k++)
			first = tids[k] != s->head.tid;
		if (first && seen < sizeof(tids) / sizeof(tids[0]))
			tids[seen++] = s->head.tid;
		if ((!first && !near) || s->event.object != e->object)
			continue;
		delta = delta_of(lt, &s->event);
		*ret_more += delta > 0 ? delta : 0;
		*ret_less -= delta < 0 ? delta : 0;
	}
}
