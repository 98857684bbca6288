/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Code that may count an object of the type, or of something else, and where none is known to live. Counts that begin
 * at 0 make that the first thing that is seen of an object whose constructor is not: what surely counts it comes later,
 * and finds more references than anybody has taken. So what counts up from 0 is kept for a while, by its address; where
 * the next that is sure reads what these have left, they were the object's.
 */
#include <stdlib.h>

#include "base/map.h"
#include "lifetime/life.h"

enum { ADDRESSES = 1 << 12, CHAIN_MAX = 6 };

struct stray {
	uint64_t object;
	uint32_t pid, nr;
	struct waiting {
		struct rt_wire_event e;
		struct lt_seen seen;
	} w[CHAIN_MAX]; /* each reads what the one before it has left */
};

struct lt_strays {
	uint64_t waits[ADDRESSES / 64]; /* which of these have any: each event of the stream asks */
	struct stray at[ADDRESSES];
};

bool lt_stray_counts(const struct rt_wire_event *e)
{
	const uint16_t read = RT_EV_COUNT_READ | RT_EV_COUNT_EXACT;

	return (e->head.op == RT_OP_GET || e->head.op == RT_OP_PUT) && e->object && e->delta && (e->flags & read) &&
	       !(e->flags & (RT_EV_COUNT_FAULT | RT_EV_AT_RETURN | RT_EV_HIDDEN));
}

static uint32_t place_of(const struct rt_wire_event *e)
{
	const uint64_t key[2] = { e->object, e->head.pid };

	return (uint32_t)(rt_hash(0, key, sizeof(key)) % ADDRESSES);
}

/* the count that is left */
static int64_t left_by(const struct stray *s)
{
	const struct lt_seen *last = &s->w[s->nr - 1].seen;

	return (int64_t)last->raw + last->ev.delta;
}

static bool is_of(const struct stray *s, const struct rt_wire_event *e)
{
	return s->nr && s->object == e->object && s->pid == e->head.pid;
}

/* what seen leaves waiting at its address */
static void keep(struct stray *s, const struct lt_seen *seen)
{
	const struct rt_wire_event *e = seen->e;

	if (!is_of(s, e) || left_by(s) != seen->raw || s->nr == CHAIN_MAX) {
		/* another address, whose turn is over; or another object there */
		if (seen->raw != 0 || seen->ev.delta < 0) {
			s->nr = is_of(s, e) ? 0 : s->nr;
			return;
		}
		*s = (struct stray){ .object = e->object, .pid = e->head.pid };
	}
	s->w[s->nr++] = (struct waiting){ .e = *e, .seen = *seen };
	if (left_by(s) <= 0)
		s->nr = 0;
}

void lt_stray_keep(struct rt_lifetime *lt, const struct lt_seen *seen)
{
	uint32_t place;

	if (!lt_stray_counts(seen->e))
		return;
	if (!lt->strays)
		lt->strays = calloc(1, sizeof(*lt->strays));
	if (!lt->strays) {
		lt->nomem = true;
		return;
	}
	place = place_of(seen->e);
	keep(&lt->strays->at[place], seen);
	if (lt->strays->at[place].nr)
		lt->strays->waits[place / 64] |= 1ull << place % 64;
	else
		lt->strays->waits[place / 64] &= ~(1ull << place % 64);
}

/* takes what waits at the object's address, if anything does */
static bool take(struct lt_strays *all, const struct rt_wire_event *e, struct stray *ret)
{
	const uint32_t place = all ? place_of(e) : 0;

	if (!all || !(all->waits[place / 64] & 1ull << place % 64) || !is_of(&all->at[place], e))
		return false;
	*ret = all->at[place];
	all->at[place].nr = 0;
	all->waits[place / 64] &= ~(1ull << place % 64);
	return true;
}

void lt_stray_join(struct rt_lifetime *lt, const struct lt_seen *seen)
{
	struct stray chain;

	if (seen->ev.op == RT_OP_MOVE || !take(lt->strays, seen->e, &chain))
		return;
	if (lt_maybe_lives(lt, seen->e, seen->type) || !lt_stray_counts(seen->e) || left_by(&chain) != seen->raw)
		return;
	for (uint32_t i = 0; i < chain.nr; i++) {
		struct waiting *w = &chain.w[i];
		const struct lt_known *known = lt_known_find(lt, &w->e);
		struct lt_known as;

		if (!known)
			return;
		as = *known;
		if (!lt_maybe_as(lt, &w->e, seen->type, &as))
			return;
		w->e.flags &= (uint16_t)~RT_EV_MAYBE;
		w->seen.e = &w->e;
		w->seen.process = seen->process;
		w->seen.type = seen->type;
		w->seen.ev.use = as.use;
		w->seen.ev.count = seen->ev.count == INT32_MIN ? INT32_MIN : w->seen.raw;
		lt->types.data[seen->type].op[w->seen.ev.op]++;
		lt_life_operation(lt, &w->seen);
	}
}
