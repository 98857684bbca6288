/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ledger of one life. Blocks come in powers of two from 2 to LT_LEDGER
 * events and are used again through free lists: an object costs no malloc. A
 * ledger that is full is folded: references that were closed in the activation
 * that took them go first, then all that can be paired; what remains beyond
 * that is kept as counts by place (spill.h), and then the life says so.
 */
#include <string.h>

#include "lifetime/life.h"
#include "lifetime/slot.h"
#include "lifetime/spill.h"
#include "lifetime/watch.h"

enum {
	BLOCK_LEAST = 2,       /* events: where millions of objects live, most have done little */
	BLOCK_ROOMY = 8,       /* where few do: what grows is copied */
	BLOCK_BEGIN_MOST = 64, /* what a life may begin with */
	PILED = 64,            /* open references that more than one run has left */
};

/* bytes of memory: lives that are not packed, and what all is in the arena */
static size_t used(const struct rt_lifetime *lt)
{
	return lt->arena.bytes + lt->incs.len * sizeof(struct lt_inc);
}

static unsigned size_class(uint32_t cap)
{
	return (unsigned)__builtin_ctz(cap) - (unsigned)__builtin_ctz(BLOCK_LEAST);
}

static struct lt_event *block_new(struct rt_lifetime *lt, uint32_t cap)
{
	void **head = &lt->spare_ledger[size_class(cap)];
	void *block = *head;

	if (!block)
		return rt_arena_alloc(&lt->arena, cap * sizeof(struct lt_event));
	memcpy(head, block, sizeof(*head));
	return block;
}

static void block_free(struct rt_lifetime *lt, struct lt_event *block, uint32_t cap)
{
	void **head = &lt->spare_ledger[size_class(cap)];

	memcpy(block, head, sizeof(*head));
	*head = block;
}

bool lt_ledger_make(struct rt_lifetime *lt, struct lt_inc *inc, uint32_t cap)
{
	inc->ledger = block_new(lt, cap);
	inc->cap = inc->ledger ? (uint16_t)cap : 0;
	return inc->ledger;
}

void lt_ledger_free(struct rt_lifetime *lt, struct lt_inc *inc)
{
	if (inc->ledger)
		block_free(lt, inc->ledger, inc->cap);
	inc->ledger = NULL;
	inc->nr = inc->cap = inc->settled = 0;
}

void lt_ledger_begin(struct rt_lifetime *lt, struct lt_inc *inc, uint32_t past)
{
	const bool roomy = used(lt) < LT_ROOMY_BYTES;
	const uint32_t usual = roomy ? lt_inc_type(lt, inc)->lived : 0;
	const uint32_t events = usual > past ? usual : past;
	uint32_t cap = roomy ? BLOCK_ROOMY : BLOCK_LEAST;

	while (cap < events && cap < BLOCK_BEGIN_MOST)
		cap *= 2;
	lt_ledger_make(lt, inc, cap);
}

/* that a reference was handed up is of interest as long as it is there */
static void fold_handing(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t from, bool gone[LT_LEDGER])
{
	for (uint32_t i = from; i < inc->nr; i++) {
		uint32_t j = i;

		if (!lt_event_silent(lt, &inc->ledger[i]))
			continue;
		while (j > 0 &&
		       (inc->ledger[j - 1].tid != inc->ledger[i].tid || lt_event_silent(lt, &inc->ledger[j - 1])))
			j--;
		gone[i] = j > 0 && gone[j - 1];
	}
}

/* takes out the events that are gone; what comes after one says so */
static uint32_t close_up(struct lt_inc *inc, const bool gone[LT_LEDGER])
{
	uint32_t out = 0, settled = 0, nr = inc->nr;

	for (uint32_t i = 0; i < nr; i++) {
		settled += i < inc->settled && !gone[i];
		if (!gone[i])
			inc->ledger[out++] = inc->ledger[i];
		else if (i + 1 < nr)
			inc->ledger[i + 1].flags |= LT_EV_GAP;
	}
	inc->nr = (uint16_t)out;
	inc->settled = (uint16_t)settled;
	return nr - out;
}

/* how many events at each end of a life stay as they are */
static uint32_t ends_of(const struct rt_lifetime *lt)
{
	return lt->history < LT_LEDGER / 4 ? lt->history : LT_LEDGER / 4;
}

/* pairs of one activation in the middle go; returns how many events went */
static uint32_t fold_runs(const struct rt_lifetime *lt, struct lt_inc *inc)
{
	uint32_t keep = ends_of(lt), last = inc->nr - keep;
	bool gone[LT_LEDGER] = { false };

	for (uint32_t i = keep; i < last; i++) {
		const struct lt_event *p = &inc->ledger[i];

		if (p->op == RT_OP_USE) {
			gone[i] = true;
			continue;
		}
		if (p->op != RT_OP_PUT || p->delta != -1 || !p->act)
			continue;
		for (uint32_t j = i; j-- > keep;) {
			const struct lt_event *g = &inc->ledger[j];

			if (gone[j] || g->op != RT_OP_GET || g->delta != 1 || (g->act != p->act && g->up != p->act))
				continue;
			if (!lt_site_passes(lt, lt->uses.data[g->use].site, lt_event_function(lt, p)))
				continue;
			gone[i] = gone[j] = true;
			break;
		}
	}
	fold_handing(lt, inc, keep, gone);
	return close_up(inc, gone);
}

/* u is a plain get or put of one reference, in the middle of the life */
static bool may_go(const struct lt_inc *inc, const struct lt_unit *u, uint32_t keep, uint32_t last)
{
	const struct lt_event *e = u->ev == LT_NO_EVENT ? NULL : &inc->ledger[u->ev];

	return e && u->ev >= keep && u->ev < last && (e->delta == 1 || e->delta == -1) && e->op != RT_OP_NEW &&
	       !(e->flags & (LT_EV_TRANSFER | LT_EV_CLOSES));
}

/*
 * All pairs in the middle go, as they would be found at the end, but for operations that were done twice: these say
 * who did. Returns how many events went.
 */
static uint32_t fold_pairs(const struct rt_lifetime *lt, struct lt_inc *inc)
{
	uint32_t keep = ends_of(lt), behind = keep > LT_SLOT_EVENTS ? keep : LT_SLOT_EVENTS, last = inc->nr - behind;
	bool gone[LT_LEDGER] = { false };
	struct lt_units units;

	lt_slots_settle(lt, inc, last);
	/* where references pile up, what is likely would take those for pairs that nobody gives back */
	if (inc->balance >= PILED)
		lt_pair_certain(lt, inc, &units);
	else
		lt_pair(lt, inc, &units);
	for (unsigned i = 0; i < units.nr; i++) {
		const struct lt_unit *u = &units.u[i], *mate = u->mate >= 0 ? &units.u[u->mate] : NULL;

		if (mate && may_go(inc, u, keep, last) && may_go(inc, mate, keep, last) &&
		    !lt_twice_in_row(lt, inc, u->ev) && !lt_twice_in_row(lt, inc, mate->ev))
			gone[u->ev] = true;
	}
	fold_handing(lt, inc, keep, gone);
	return close_up(inc, gone);
}

/* it says how far up the reference went that is still there */
static bool tells_handing(const struct rt_lifetime *lt, const struct lt_event *e)
{
	return e->op == RT_OP_MOVE && lt_point_hands(&lt->points.data[lt->uses.data[e->use].point]);
}

/*
 * Where pointers went, in the middle: what that says of slots is settled, and no reference is less known for it, but
 * for what was handed up.
 */
static uint32_t fold_silent(const struct rt_lifetime *lt, struct lt_inc *inc)
{
	uint32_t keep = ends_of(lt), behind = keep > LT_SLOT_EVENTS ? keep : LT_SLOT_EVENTS, last = inc->nr - behind;
	bool gone[LT_LEDGER] = { false };

	lt_slots_settle(lt, inc, last);
	for (uint32_t i = keep; i < last; i++)
		gone[i] = lt_event_silent(lt, &inc->ledger[i]) && !tells_handing(lt, &inc->ledger[i]);
	return close_up(inc, gone);
}

/* the ledger has another one of that use behind event number i, which tells who did such */
static bool has_another(const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *mine = &inc->ledger[i];

	while (++i < inc->nr) {
		if (inc->ledger[i].use == mine->use && (inc->ledger[i].delta > 0) == (mine->delta > 0))
			return true;
	}
	return false;
}

/*
 * The oldest part of the middle goes, and is counted; not what some run did twice in a row, nor the last one of its
 * kind, as long as there is enough else.
 */
static uint32_t drop_oldest(struct rt_lifetime *lt, struct lt_inc *inc)
{
	uint32_t from = ends_of(lt), drop = LT_LEDGER / 4, dropped = 0;
	bool gone[LT_LEDGER] = { false };

	for (uint32_t i = from; i + from < inc->nr && dropped < drop; i++) {
		gone[i] = !inc->ledger[i].delta || (has_another(inc, i) && !lt_twice_in_row(lt, inc, (uint16_t)i));
		dropped += gone[i];
	}
	if (dropped < drop)
		memset(gone + from, true, drop);
	for (uint32_t i = from; i < inc->nr; i++) {
		if (gone[i])
			lt_spill(lt, inc, &inc->ledger[i]);
	}
	return close_up(inc, gone);
}

static void fold(struct rt_lifetime *lt, struct lt_inc *inc)
{
	if (fold_runs(lt, inc) >= LT_LEDGER / 8 || fold_pairs(lt, inc) >= LT_LEDGER / 8 ||
	    fold_silent(lt, inc) >= LT_LEDGER / 8)
		return;
	inc->folded += drop_oldest(lt, inc);
}

/* the ledger has moved on: who did the last operations */
static void remember(const struct rt_lifetime *lt, struct lt_inc *inc)
{
	for (uint32_t i = inc->nr > LT_RECENT ? inc->nr - LT_RECENT : 0; i < inc->nr; i++) {
		inc->recent.tid[i % LT_RECENT] = lt_event_silent(lt, &inc->ledger[i]) ? 0 : inc->ledger[i].tid;
		inc->recent.op[i % LT_RECENT] = inc->ledger[i].op;
	}
}

bool lt_ledger_room(struct rt_lifetime *lt, struct lt_inc *inc)
{
	uint32_t cap = inc->cap ? inc->cap * 2u : BLOCK_LEAST;
	struct lt_event *bigger;

	if (inc->nr < inc->cap)
		return true;
	if (inc->cap == LT_LEDGER) {
		fold(lt, inc);
		remember(lt, inc);
		return true;
	}
	if (inc->cap >= LT_LEDGER_USUAL && used(lt) >= LT_WHOLE_BYTES) {
		uint32_t gone = fold_runs(lt, inc);

		remember(lt, inc);
		if (gone >= inc->cap / 4)
			return true;
	}
	bigger = block_new(lt, cap);
	if (!bigger)
		return false;
	if (inc->nr) {
		memcpy(bigger, inc->ledger, inc->nr * sizeof(*bigger));
		block_free(lt, inc->ledger, inc->cap);
	}
	if (inc->life != LT_LIVE)
		lt->grave_events += cap - inc->cap;
	inc->ledger = bigger;
	inc->cap = (uint16_t)cap;
	return true;
}

struct lt_event *lt_ledger_add(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev)
{
	struct lt_event *place;

	if (inc->watched)
		lt_watch_event(lt, inc, ev);
	if (!lt_ledger_room(lt, inc))
		return NULL;
	lt_observe_step(lt, inc, ev);
	place = lt_ledger_next(inc, ev->tid, ev->op);
	*place = *ev;
	return place;
}

bool lt_ledger_add_silent(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev)
{
	if (!lt_ledger_add(lt, inc, ev))
		return false;
	inc->recent.tid[(inc->nr - 1) % LT_RECENT] = 0;
	return true;
}

bool lt_ledger_insert_front(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev)
{
	if (!lt_ledger_room(lt, inc))
		return false;
	memmove(inc->ledger + 1, inc->ledger, inc->nr * sizeof(*inc->ledger));
	inc->ledger[0] = *ev;
	inc->nr++;
	inc->settled += inc->settled != 0;
	remember(lt, inc);
	return true;
}
