/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The counter against the balance. The balance is what we counted, the counter
 * is what the program counted; they are compared at every event that read it.
 * Where other threads cannot be why they differ, operations were not seen: the
 * life is marked incomplete and the counter is believed.
 */
#include "lifetime/life.h"
#include "lifetime/order.h"

/*
 * A thread that lost the processor between an operation and the probe behind it
 * has yet to tell of it: until it has spoken again, and not for ever. Where there are more threads than processors,
 * this happens to most of them at the same time. What a new thread does first takes long: of that, only the last put
 * but one is put down to it, as its own has to follow.
 */
static bool unheard(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen, int64_t off)
{
	uint64_t missing = (uint64_t)(off < 0 ? -off : off), now = seen->e->head.time_ns;
	bool shared = lt_inc_type(lt, inc)->shared;

	if (!shared && (seen->ev.delta >= 0 || seen->ev.count + seen->ev.delta))
		return false;
	if (!inc->doubted)
		inc->doubt_ns = now;
	inc->doubted = true;
	return now - inc->doubt_ns <= LT_FLIGHT_NS &&
	       missing <= lt_thread_silent(lt, inc, seen->e, inc->doubt_ns, shared, missing);
}

/*
 * Could other threads be why the counter is not what we counted? Each probe is
 * a little off its operation: what another thread did last may be still to
 * come, what it does next may be done.
 */
static bool explained(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen)
{
	int64_t less, more, ahead_less, ahead_more, off = seen->ev.count - inc->balance;
	bool shared = inc->shared || (inc->last_tid && inc->last_tid != seen->ev.tid);

	/* the last one to tell of its put, read behind it: another thread had freed the memory by then */
	if (shared && seen->ev.delta < 0 && inc->balance + seen->ev.delta <= 0 &&
	    (seen->ev.count < 0 || seen->ev.count > 2 * lt_inc_type(lt, inc)->max_count + 8 ||
	     (inc->final_ns && seen->e->head.time_ns - inc->final_ns <= LT_FLIGHT_NS)))
		return true;
	lt_thread_flight(lt, inc, seen->e, &less, &more);
	lt_order_ahead(lt, seen->e, &ahead_less, &ahead_more);
	less += ahead_less;
	more += ahead_more;
	if ((seen->e->flags & RT_EV_AT_RETURN) && seen->ev.delta > 0)
		more += seen->ev.delta;
	if (off >= -less && off <= more)
		return true;
	return unheard(lt, inc, seen, off < 0 ? off + less : off - more);
}

bool lt_life_audit(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen)
{
	const struct rt_wire_event *e = seen->e;
	struct lt_type *type = lt_inc_type(lt, inc);
	int64_t count = seen->ev.count;

	if (count == INT32_MIN || type->counting.off)
		return false;
	inc->counted = true;
	if (!inc->known || inc->assumed) {
		int64_t moved = 0;

		inc->assumed = false;

		for (uint32_t i = 0; i < inc->nr; i++)
			moved += inc->ledger[i].delta;
		if (inc->has_new && type->start < 0 && count - moved >= 0 && count - moved < LT_COUNT_SANE) {
			type->start = inc->start = (int32_t)(count - moved);
			type->start_learnt = true;
		}
		inc->balance = count;
		inc->base = inc->has_new ? 0 : (int32_t)(count - moved > 0 ? count - moved : 0);
		inc->known = true;
		return true;
	}
	if (count == inc->balance) {
		lt_life_agrees(type, inc, count);
		return true;
	}
	/* a counter read when the function returned has the operation in it, or not */
	if ((e->flags & RT_EV_AT_RETURN) && count == inc->balance + seen->ev.delta)
		return true;
	if (!(e->flags & RT_EV_COUNT_EXACT) && explained(lt, inc, seen)) {
		if (seen->ev.delta < 0 && count + seen->ev.delta == 0 && inc->balance > count)
			inc->final_ns = e->head.time_ns;
		return false;
	}
	inc->doubted = false;
	inc->gap += count - inc->balance;
	inc->balance = count;
	lt_life_incomplete(lt, inc);
	return true;
}

void lt_life_audit_start(struct rt_lifetime *lt, struct lt_inc *inc)
{
	const struct lt_type *type = lt_inc_type(lt, inc);

	if (!inc->known || inc->assumed || type->start < 0 || type->start_learnt || inc->base == type->start ||
	    inc->balance == type->start)
		return;
	inc->gap = inc->base - type->start;
	lt_life_incomplete(lt, inc);
}

/* nothing was done to it since its last reference was read to be put, and whoever had yet to tell has not */
static bool awaits_put(const struct lt_inc *inc)
{
	return inc->known && inc->final_ns && inc->final_ns == inc->last_ns && inc->balance > 0;
}

/* The thread of ev has told of nothing since the last reference of past was read to be put; not for ever. */
static bool was_silent(struct rt_lifetime *lt, const struct lt_inc *past, const struct lt_event *ev)
{
	const struct lt_thread *t = lt_thread(lt, past->pid, ev->tid);

	return t && t->last_ns < past->final_ns && ev->time_ns - past->final_ns <= LT_FLIGHT_NS;
}

bool lt_life_late(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen)
{
	const struct lt_event *ev = &seen->ev;
	struct lt_type *type = lt_inc_type(lt, inc);
	struct lt_inc *past = inc->before;

	if (ev->op != RT_OP_PUT || !past || past->life != LT_LOST || !awaits_put(past) || past->gap ||
	    past->balance + ev->delta != 0 || past->last_tid == ev->tid || inc->shared || inc->last_tid == ev->tid ||
	    ev->count == inc->balance || !was_silent(lt, past, ev) || !lt_ledger_add(lt, past, ev))
		return false;
	lt_life_moved(type, past, ev);
	type->incomplete -= past->incomplete;
	past->incomplete = inc->shaky = false;
	past->life = LT_DEAD;
	type->put_deaths++;
	lt_type_death(type, ev->time_ns);
	lt_shape_count(lt, past);
	return true;
}

void lt_life_audit_end(struct rt_lifetime *lt, struct lt_inc *inc)
{
	if (inc->incomplete || !awaits_put(inc))
		return;
	inc->gap -= inc->balance;
	lt_life_incomplete(lt, inc);
}
