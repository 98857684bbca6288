/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The order of time. Producers hand in their records a little out of order; a
 * sorted window of LT_WINDOW_NS of stream time (at most LT_WINDOW records) puts
 * that right. Streams are nearly sorted: a record mostly goes to the end.
 * Within one object exact counts are better than clocks (linear.c): an operation
 * that waits may be taken out of the window before its turn.
 */
#include <stdlib.h>
#include <string.h>

#include "lifetime/fetch.h"
#include "lifetime/life.h"
#include "lifetime/order.h"

enum {
	LOOK = 512, /* waiting records that are looked through for one object */
	AHEAD = 32, /* more than any of these; a power of two */
	AHEAD_FIRST = 30,
	AHEAD_LIFE = 22,
	AHEAD_PAST = 14,
	AHEAD_LEDGER = 6,
	PAST = 8,       /* dead lives whose ledgers are being fetched; a power of two */
	PAST_LINES = 3, /* with each record */
};

/* A record that waits. It stays where it is until it was told. */
union lt_waiting {
	_Alignas(LT_LINE) struct rt_wire_head head;
	struct rt_wire_event event;
	struct rt_wire_task task;
	struct rt_wire_held held;
	struct rt_wire_sample sample;
};

_Static_assert(LT_WINDOW % AHEAD == 0, "both rings go round together");
_Static_assert(sizeof(union lt_waiting) == LT_LINE, "a record that waits is one cache line");

/* Its turn: this is what is kept in order. */
struct turn {
	uint64_t time_ns;
	uint16_t place;  /* in waiting[] */
	uint16_t object; /* object_bits() of an event; of others anything */
	uint32_t hash;   /* of its object (lt_index_hash()); of others anything */
};

/* The life of one of the next records, as it was a few records before; NULL = not known. One that comes late moves
 * those behind it: all of it is a guess. */
struct ahead {
	const struct lt_inc *inc;
};

/*
 * Ledgers of dead lives that are paired soon: many lines each. A processor that is told to fetch all of them at once
 * waits for that, so some go with each record.
 */
struct past {
	struct {
		const char *at, *end;
	} ledgers[PAST];
	uint32_t first, nr;
};

struct lt_window {
	union lt_waiting waiting[LT_WINDOW];
	struct turn turns[LT_WINDOW]; /* a ring, sorted by time */
	struct ahead ahead[AHEAD];    /* of the turn with that index, modulo AHEAD */
	struct past past;
	uint32_t first, nr;
	uint16_t free[LT_WINDOW]; /* places, LT_WINDOW - nr of them */
};

/* Who looks for the records of one object looks at few others: those that wait have mostly left the cache. */
static uint16_t object_bits(uint64_t object)
{
	return (uint16_t)(object >> 4 ^ object >> 20);
}

static struct turn *turn_at(struct lt_window *w, uint32_t i)
{
	return &w->turns[(w->first + i) & (LT_WINDOW - 1)];
}

static const union lt_waiting *waiting_at(const struct lt_window *w, uint32_t i)
{
	return &w->waiting[w->turns[(w->first + i) & (LT_WINDOW - 1)].place];
}

static struct ahead *ahead_at(struct lt_window *w, uint32_t i)
{
	return &w->ahead[(w->first + i) & (AHEAD - 1)];
}

static void fetch_past(struct past *p, const struct lt_inc *inc)
{
	size_t bytes;
	const char *ledger = inc && p->nr < PAST ? lt_fetch_past(inc, &bytes) : NULL;

	if (ledger) {
		p->ledgers[(p->first + p->nr) % PAST].at = ledger;
		p->ledgers[(p->first + p->nr++) % PAST].end = ledger + bytes;
	}
	if (!p->nr)
		return;
	for (unsigned i = 0; i < PAST_LINES; i++)
		__builtin_prefetch(p->ledgers[p->first].at + i * LT_LINE);
	p->ledgers[p->first].at += PAST_LINES * LT_LINE;
	if (p->ledgers[p->first].at >= p->ledgers[p->first].end) {
		p->first = (p->first + 1) % PAST;
		p->nr--;
	}
}

/*
 * Objects lie all over the memory, and an event needs three places that follow
 * from each other. They are fetched some records ahead, one after the other; and
 * before that the record, which has waited for long.
 */
static void fetch(const struct rt_lifetime *lt, struct lt_window *w)
{
	struct ahead *a;

	/* nothing has begun yet: there is nowhere to look */
	if (w->nr <= AHEAD_FIRST || !lt->by_object.buckets)
		return;
	__builtin_prefetch(waiting_at(w, AHEAD_FIRST));
	__builtin_prefetch(lt_index_bucket(&lt->by_object, turn_at(w, AHEAD_FIRST)->hash));
	ahead_at(w, AHEAD_LIFE)->inc = lt_fetch_life(lt, turn_at(w, AHEAD_LIFE)->hash);
	fetch_past(&w->past, ahead_at(w, AHEAD_PAST)->inc);
	a = ahead_at(w, AHEAD_LEDGER);
	if (a->inc)
		lt_fetch_ledger(a->inc, waiting_at(w, AHEAD_LEDGER)->event.delta);
}

static void pop(struct rt_lifetime *lt)
{
	struct lt_window *w = lt->window;
	uint16_t place = turn_at(w, 0)->place;
	const union lt_waiting *r = &w->waiting[place];
	const uint64_t now_ns = turn_at(w, 0)->time_ns;

	lt->hint = ahead_at(w, 0)->inc;
	*ahead_at(w, 0) = (struct ahead){ 0 };
	w->first = (w->first + 1) & (LT_WINDOW - 1);
	w->nr--;
	/* nothing is put into the window while a record is told: it stays as it is */
	w->free[LT_WINDOW - 1 - w->nr] = place;
	fetch(lt, w);
	if (lt->live.nr - lt->packing.packed > LT_LOOSE)
		lt_pack(lt, now_ns);
	if (r->head.kind == RT_WIRE_EVENT && lt_plain_event(lt, &r->event))
		return;
	if (r->head.kind)
		lt_dispatch(lt, &r->head);
}

static struct lt_window *window_new(void)
{
	struct lt_window *w = aligned_alloc(LT_LINE, sizeof(*w));

	if (!w)
		return NULL;
	w->first = w->nr = 0;
	memset(w->ahead, 0, sizeof(w->ahead));
	w->past = (struct past){ 0 };
	for (uint32_t i = 0; i < LT_WINDOW; i++)
		w->free[i] = (uint16_t)i;
	return w;
}

void lt_order_free(struct rt_lifetime *lt)
{
	free(lt->window);
}

static bool begin(struct rt_lifetime *lt)
{
	if (!lt->window)
		lt->window = window_new();
	return lt->window;
}

/* the turn of a record at this time, behind all of the same; the record has to be put into its place */
static inline union lt_waiting *enter(struct rt_lifetime *lt, uint64_t time, uint64_t object, uint32_t hash)
{
	struct lt_window *w = lt->window;
	uint16_t place;
	uint32_t i;

	if (w->nr == LT_WINDOW)
		pop(lt);
	place = w->free[LT_WINDOW - 1 - w->nr];
	for (i = w->nr; i && turn_at(w, i - 1)->time_ns > time; i--)
		*turn_at(w, i) = *turn_at(w, i - 1);
	*turn_at(w, i) = (struct turn){ time, place, object_bits(object), hash };
	w->nr++;
	return &w->waiting[place];
}

static inline void tell_old_ones(struct rt_lifetime *lt)
{
	struct lt_window *w = lt->window;

	while (w->nr && (int64_t)(lt->newest_ns - turn_at(w, 0)->time_ns) > LT_WINDOW_NS)
		pop(lt);
}

bool lt_order_push(struct rt_lifetime *lt, const struct rt_wire_head *r)
{
	uint64_t time = r->time_ns;

	if (!begin(lt))
		return false;
	/* a process ends, and its census is taken, after everything that was seen of it */
	if (r->kind == RT_WIRE_EXIT || r->kind == RT_WIRE_STAND || r->kind == RT_WIRE_HELD ||
	    r->kind == RT_WIRE_COUNT || r->kind == RT_WIRE_MARK)
		time = time > lt->newest_ns ? time : lt->newest_ns;
	memcpy(enter(lt, time, 0, 0), r, r->size < sizeof(union lt_waiting) ? r->size : sizeof(union lt_waiting));
	tell_old_ones(lt);
	return true;
}

bool lt_order_events(struct rt_lifetime *lt, const struct rt_wire_event *events, size_t n)
{
	if (!begin(lt))
		return false;
	for (const struct rt_wire_event *e = events; e < events + n && !lt->nomem; e++) {
		uint64_t time = e->head.time_ns;

		enter(lt, time, e->object, lt_fetch_hash(lt, e))->event = *e;
		/* what the session says is ahead of the events, which wait in the engine for a while */
		lt->newest_ns = time > lt->newest_ns ? time : lt->newest_ns;
		tell_old_ones(lt);
	}
	return true;
}

void lt_order_flush(struct rt_lifetime *lt)
{
	while (lt->window && lt->window->nr)
		pop(lt);
}

static uint32_t look(const struct lt_window *w)
{
	return w->nr < LOOK ? w->nr : LOOK;
}

unsigned lt_order_pending(const struct rt_lifetime *lt, const struct rt_wire_event *e, const struct rt_wire_event **ret,
			  unsigned max)
{
	struct lt_window *w = lt->window;
	unsigned n = 0;

	for (uint32_t i = 0; i < look(w) && n < max; i++) {
		uint64_t time = turn_at(w, i)->time_ns;
		const union lt_waiting *r = waiting_at(w, i);

		if (time - e->head.time_ns > LT_RACE_NS && time > e->head.time_ns)
			break;
		if (r->head.kind == RT_WIRE_EVENT && r->event.object == e->object && r->head.pid == e->head.pid &&
		    time - e->head.time_ns <= LT_RACE_NS)
			ret[n++] = &r->event;
	}
	return n;
}

void lt_order_done(struct rt_lifetime *lt, const struct rt_wire_event *pending)
{
	struct lt_window *w = lt->window;

	for (uint32_t i = 0; i < w->nr; i++) {
		union lt_waiting *r = &w->waiting[turn_at(w, i)->place];

		if (&r->event == pending) {
			r->head.kind = 0; /* its place stays until its turn */
			return;
		}
	}
}

/* the op of an event as its point has it; what happens to the count */
static int16_t delta_of(struct rt_lifetime *lt, const struct rt_wire_event *e)
{
	return lt_point(lt, e->point) && e->head.op != RT_OP_NEW ? e->delta : 0;
}

/* what the counter that e read may have of r, where that is another thread's operation on its object */
static void add_ahead(struct rt_lifetime *lt, const struct rt_wire_event *e, const union lt_waiting *r,
		      int64_t *ret_less, int64_t *ret_more)
{
	int16_t delta;

	if (r->head.kind != RT_WIRE_EVENT || r->head.pid != e->head.pid || r->head.tid == e->head.tid ||
	    r->event.object != e->object)
		return;
	delta = delta_of(lt, &r->event);
	*ret_more += delta > 0 ? delta : 0;
	*ret_less -= delta < 0 ? delta : 0;
}

static bool is_near(struct lt_window *w, uint32_t i, const struct rt_wire_event *e)
{
	return (int64_t)(turn_at(w, i)->time_ns - e->head.time_ns) <= LT_RACE_NS;
}

/* of the records from `from` on, those that are near after all, and the first one of each thread */
static void add_first_ones(struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t from, int64_t *ret_less,
			   int64_t *ret_more)
{
	struct lt_window *w = lt->window;
	uint32_t tids[16];
	unsigned seen = 0;

	for (uint32_t i = 0; i < look(w); i++) {
		const union lt_waiting *r = waiting_at(w, i);
		bool first = true;

		if (r->head.kind != RT_WIRE_EVENT || r->head.pid != e->head.pid || r->head.tid == e->head.tid)
			continue;
		for (unsigned k = 0; k < seen && first; k++)
			first = tids[k] != r->head.tid;
		if (first && seen < sizeof(tids) / sizeof(tids[0]))
			tids[seen++] = r->head.tid;
		if (i >= from && (first || is_near(w, i, e)))
			add_ahead(lt, e, r, ret_less, ret_more);
	}
}

/*
 * A counter is read a little before its event is stamped, and may be read after
 * the operation, too: the next event of each thread may have happened already,
 * and everything of the next LT_RACE_NS.
 */
void lt_order_ahead(struct rt_lifetime *lt, const struct rt_wire_event *e, int64_t *ret_less, int64_t *ret_more)
{
	struct lt_window *w = lt->window;
	uint16_t bits = object_bits(e->object);
	uint32_t i;

	*ret_less = *ret_more = 0;
	for (i = 0; i < look(w) && is_near(w, i, e); i++) {
		if (turn_at(w, i)->object == bits)
			add_ahead(lt, e, waiting_at(w, i), ret_less, ret_more);
	}
	if (i < look(w))
		add_first_ones(lt, e, i, ret_less, ret_more);
}
