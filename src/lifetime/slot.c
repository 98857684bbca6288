/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which slot keeps which reference. Who takes a reference to keep it stores the pointer; who gives it back takes the
 * pointer out, overwrites it, or frees the block that it lies in. Where both are seen, the get and the put of one slot
 * belong together, whatever else is done to the object; and a slot that was lost without a put lost the reference that
 * was taken for it.
 *
 * The taker of a stored pointer is the last one before the store that was done in the run of a function that stores
 * it, or called by it, or that called it, and gave nothing back in between; or the next one that the run which stores
 * it takes behind it. Slots on the stack are no keepers: outputs are stored over what was.
 */
#include "lifetime/slot.h"

#include "lifetime/answer.h"

enum {
	CALLERS = 2,
	MOVES = 4 /* from one slot to the next, that are followed back */
};

/* the events around number i in which what belongs to it is looked for: [near_from(), near_to()) */
static uint32_t near_from(uint32_t i)
{
	return i > LT_SLOT_EVENTS ? i - LT_SLOT_EVENTS : 0;
}

static uint32_t near_to(const struct lt_inc *inc, uint32_t i)
{
	return i + LT_SLOT_EVENTS < inc->nr ? i + LT_SLOT_EVENTS : inc->nr;
}

/* A variable of a function that runs, an output of the one that stores mostly: what it had held is of no interest. */
static bool on_stack(const struct lt_event *w)
{
	enum { BELOW = 1 << 16, ABOVE = 8 << 20 }; /* bytes */

	return w->slot && w->sp > BELOW && w->slot >= w->sp - BELOW && w->slot < w->sp + ABOVE;
}

/* The reference is in a slot already; that of an output on the stack it leaves, unless it is given back from there. */
static bool has_slot(const struct lt_inc *inc, const struct lt_event *taken)
{
	if (!taken->slot || !on_stack(taken))
		return taken->slot;
	for (uint32_t i = 0; i < inc->nr; i++) {
		if (inc->ledger[i].delta < 0 && inc->ledger[i].slot == taken->slot)
			return true;
	}
	return false;
}

bool lt_slot_fills(const struct rt_lifetime *lt, const struct lt_event *e)
{
	return e->op == RT_OP_MOVE && e->slot && lt_point_stores(lt_event_point(lt, e)) && !on_stack(e);
}

bool lt_slot_takes(const struct lt_event *e)
{
	return e->slot && lt_event_takes(e) && !on_stack(e);
}

bool lt_slot_empties(const struct rt_lifetime *lt, const struct lt_event *e)
{
	const struct lt_point *p = lt_event_point(lt, e);

	return e->op == RT_OP_MOVE && lt_point_overwrites(p) && !lt_point_stale(p) && !on_stack(e) &&
	       lt_event_function(lt, e);
}

/* what the run called has taken a reference, and the run got the object by its return */
static bool was_handed_one(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t act)
{
	bool taken = false;

	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (taken && e->act == act && e->op == RT_OP_MOVE && lt_point_hands(lt_event_point(lt, e)))
			return true;
		taken |= e->up == act && lt_event_takes(e);
	}
	return false;
}

/*
 * The run has a reference of its own: it took one, or was handed one; or the object was made where nobody saw it, and
 * passed through this run before the first reference was taken.
 */
static bool has_own(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t act)
{
	bool taken = inc->has_new;

	for (uint32_t i = 0; act && i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->act == act && (lt_event_takes(e) || !taken))
			return true;
		taken |= lt_event_takes(e);
	}
	return act && was_handed_one(lt, inc, act);
}

/* other was done by what the run that `level` frames around the put stands for had called when it put */
static bool in_that_call(const struct rt_lifetime *lt, const struct lt_event *other, const struct lt_event *put,
			 unsigned level)
{
	unsigned out, in;

	return other->tid == put->tid && lt_come_together(lt, other, put, &out, &in) &&
	       (in < level || (in == level && lt_in_one_call(lt, other, put)));
}

/*
 * The run that did the put had a reference itself, that it took, or was handed up, and gives that back; or the call by
 * which the run that `level` frames around it stands for led to the put had taken one before, in whatever it called.
 */
static bool gives_own(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *put,
		      unsigned level)
{
	int own = 0;

	for (const struct lt_event *e = inc->ledger; put->act && e < put; e++) {
		if (lt_event_takes(e))
			own += e->act == put->act || e->up == put->act || in_that_call(lt, e, put, level);
		else if (e->delta < 0)
			own -= e->act == put->act || in_that_call(lt, e, put, level);
	}
	return own > 0;
}

/* The object had a reference before the first one that is told of: who frees a block of somebody's puts rather that. */
static bool may_have_own(const struct lt_inc *inc, const struct lt_point *emptied)
{
	return emptied->aux == RT_AUX_BLOCK && !inc->has_new && inc->known && inc->base > 0;
}

/*
 * The store is a caller's by its site, as its function was inlined there; that function itself did the put, beside the
 * store and for no other one.
 */
static bool put_beside(const struct rt_lifetime *lt, const struct lt_event *put, const struct lt_event *w)
{
	const struct lt_point *point = lt_event_point(lt, w);
	const struct lt_event *first = put < w ? put : w, *last = put < w ? w : put;

	if (!(point->flags & RT_EV_INLINE) || put->act != w->act ||
	    !lt_point_is(point, lt_src(lt, lt_event_src(lt, put))))
		return false;
	for (const struct lt_event *e = first + 1; e < last; e++) {
		if (lt_event_point(lt, e) == point)
			return false;
	}
	return true;
}

/*
 * e gives back what the store w has lost: it was done by the run of the function that w lies in, or in it; or by its
 * caller, or the caller's, for itself: helpers take things out and apart that their callers put. A caller, or somebody
 * called, that has a reference of its own put that one.
 */
static bool pays_for(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *e,
		     const struct lt_event *w)
{
	unsigned out, in;

	if (e->delta >= 0 || e->tid != w->tid)
		return false;
	if (lt_event_function(lt, e) == lt_event_function(lt, w) && (!e->act || !w->act || e->act == w->act))
		return true;
	if (put_beside(lt, e, w))
		return true;
	if (lt_come_together(lt, w, e, &out, &in) && (!out || (!in && out <= CALLERS)))
		return out ? !has_own(lt, inc, e->act) && !may_have_own(inc, lt_event_point(lt, w))
			   : !in || !gives_own(lt, inc, e, in);
	/* what it frees itself it need not put */
	return lt_inside(lt, w, e);
}

bool lt_has_one(const struct lt_inc *inc)
{
	uint32_t taken = 0;

	for (uint32_t i = 0; i < inc->nr; i++)
		taken += lt_event_takes(&inc->ledger[i]);
	return taken == 1 && inc->has_new && !inc->folded;
}

/* the slot that event number `stored` filled was emptied before number i */
static bool is_empty_by(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t stored, uint32_t i)
{
	for (uint32_t k = stored + 1; k < i; k++) {
		if (inc->ledger[k].slot == inc->ledger[stored].slot && lt_slot_empties(lt, &inc->ledger[k]))
			return true;
	}
	return false;
}

bool lt_slot_only(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t stored, uint32_t i)
{
	for (uint32_t k = stored; k-- > 0;) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->op == RT_OP_MOVE && lt_point_hands(lt_event_point(lt, e)))
			return true;
		if (lt_slot_fills(lt, e) && e->slot != inc->ledger[stored].slot && !is_empty_by(lt, inc, k, i))
			return false;
	}
	return true;
}

/* Before event number i empties a slot, the last that is known of the object's way is that its pointer went there. */
static bool went_there_last(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i)
{
	for (uint32_t k = i; k-- > 0;) {
		const struct lt_event *e = &inc->ledger[k];
		const struct lt_point *p = lt_event_point(lt, e);

		if (lt_slot_fills(lt, e))
			return e->slot == inc->ledger[i].slot && lt_slot_only(lt, inc, k, i);
		if (e->delta || (e->op == RT_OP_MOVE && (lt_point_hands(p) || lt_point_given(p) || lt_point_ends(p))))
			return false;
	}
	return false;
}

/* store was done by the run that empties a slot by w, or by what that called */
static bool is_in_run(const struct rt_lifetime *lt, const struct lt_event *store, const struct lt_event *w)
{
	unsigned out, in;

	return (w->act && w->act == store->act) || (lt_come_together(lt, w, store, &out, &in) && !out);
}

/* whose pointer the slot held when event number i emptied it */
enum held { UNKNOWN, OWN /* that of a reference */, BORROWED };

/* A reference came into the slot of e: one that was taken, or one that was in another slot. */
static bool brings(const struct rt_lifetime *lt, const struct lt_event *e)
{
	return lt_event_takes(e) || lt_slot_fills(lt, e);
}

static enum held held_in(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i, unsigned moves);

/* The run that stored the pointer by event number `stored` took it out of another slot, and the reference with it. */
static bool moved_from(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t stored, unsigned moves)
{
	const struct lt_event *w = &inc->ledger[stored];
	const uint32_t to = near_to(inc, stored);

	for (uint32_t k = near_from(stored); moves && k < to; k++) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->slot != w->slot && lt_slot_empties(lt, e) && is_in_run(lt, w, e))
			return held_in(lt, inc, k, moves - 1) == OWN;
	}
	return false;
}

static enum held held_in(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i, unsigned moves)
{
	const uint64_t slot = inc->ledger[i].slot;
	uint32_t stored = LT_NO_EVENT;

	for (uint32_t k = i; slot && k-- > 0;) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->slot != slot)
			continue;
		if ((e->flags & LT_EV_KEPT) && brings(lt, e))
			return OWN;
		/* what was there before the memory was used again is of no interest */
		if (stored != LT_NO_EVENT && lt_slot_empties(lt, e))
			break;
		if (stored == LT_NO_EVENT && lt_slot_fills(lt, e))
			stored = k;
	}
	if (stored == LT_NO_EVENT)
		return UNKNOWN;
	/* the one reference goes from slot to slot */
	if ((lt_has_one(inc) && went_there_last(lt, inc, i)) || moved_from(lt, inc, stored, moves))
		return OWN;
	return BORROWED;
}

bool lt_slot_borrowed(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i)
{
	return lt_slot_empties(lt, &inc->ledger[i]) && held_in(lt, inc, i, MOVES) == BORROWED;
}

bool lt_slot_owned(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i)
{
	return held_in(lt, inc, i, MOVES) == OWN;
}

/* the run took a reference for the pointer that it stored */
static bool took_for(const struct lt_inc *inc, const struct lt_event *store)
{
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->slot == store->slot && e->act == store->act && (e->flags & LT_EV_KEPT) && lt_event_takes(e))
			return true;
	}
	return false;
}

/*
 * The run that empties the slot puts the same pointer into another one, before or after, itself or by what it calls,
 * and takes no reference for that: what it pushes onto a list, or moves, is not lost. Returns the event that does so;
 * LT_NO_EVENT: it does not.
 */
static uint32_t moved_by(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *w = &inc->ledger[i];
	const uint32_t to = near_to(inc, i);

	for (uint32_t k = near_from(i); w->slot && k < to; k++) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->slot != w->slot && lt_slot_fills(lt, e) && is_in_run(lt, e, w) && !took_for(inc, e))
			return k;
	}
	return LT_NO_EVENT;
}

/*
 * The slot that event number i emptied has the pointer again when somebody looks next, and nothing was taken or given
 * back in between: it was just put aside (list = x->list; x->list = NULL; ... x->list = still).
 */
static bool put_aside(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *w = &inc->ledger[i];

	for (uint32_t k = i + 1; w->slot && lt_event_point(lt, w)->aux != RT_AUX_BLOCK && k < inc->nr; k++) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->delta || (e->slot == w->slot && !lt_slot_empties(lt, e)))
			return false;
		if (e->slot == w->slot)
			return e->tid == w->tid;
	}
	return false;
}

/* References that came into the slot before event number i, and have not left it yet; *ret_taken: of how many. */
static int kept_in(const struct rt_lifetime *lt, const struct lt_inc *inc, uint64_t slot, uint32_t i, int *ret_taken)
{
	int paid = 0;

	*ret_taken = 0;
	for (uint32_t k = 0; k < i; k++) {
		const struct lt_event *e = &inc->ledger[k];

		if (!(e->flags & LT_EV_KEPT) || e->slot != slot)
			continue;
		if (brings(lt, e))
			++*ret_taken;
		else
			paid++;
	}
	return *ret_taken - paid;
}

static bool is_kept(const struct rt_lifetime *lt, const struct lt_inc *inc, uint64_t slot, uint32_t i)
{
	int taken;

	return kept_in(lt, inc, slot, i, &taken) > 0;
}

/* what was taken for the slot was put before event number i: the pointer that is still in it is an old one */
static bool is_paid(const struct rt_lifetime *lt, const struct lt_inc *inc, uint64_t slot, uint32_t i)
{
	int taken;

	return kept_in(lt, inc, slot, i, &taken) <= 0 && taken;
}

/*
 * As many references as the counter said last are kept in other slots: what is overwritten in this one is an old
 * pointer. What is freed takes some of those slots with it that nobody was seen to empty.
 */
static bool all_are_elsewhere(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i)
{
	int64_t left = 0, others = 0;

	if (lt_event_point(lt, &inc->ledger[i])->aux == RT_AUX_BLOCK)
		return false;
	for (uint32_t k = 0; k < i; k++) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->delta)
			left = e->count == INT32_MIN ? 0 : (int64_t)e->count + e->delta;
		if ((e->flags & LT_EV_KEPT) && e->slot != inc->ledger[i].slot)
			others += brings(lt, e) ? 1 : -1;
	}
	return left > 0 && others >= left;
}

bool lt_slot_dropped(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *w = &inc->ledger[i];
	const bool empties = lt_slot_empties(lt, w) && moved_by(lt, inc, i) == LT_NO_EVENT && !put_aside(lt, inc, i);
	enum held held = empties ? held_in(lt, inc, i, MOVES) : BORROWED;

	for (uint32_t k = 0; held != BORROWED && k < inc->nr; k++) {
		const struct lt_event *put = &inc->ledger[k];

		/* one that is known to have paid for another slot has not paid for this one */
		if (held == OWN && (put->flags & LT_EV_KEPT) && put->slot != w->slot)
			continue;
		if (pays_for(lt, inc, put, w))
			return false;
	}
	return held != BORROWED && !(held == OWN && is_paid(lt, inc, w->slot, i)) && !all_are_elsewhere(lt, inc, i);
}

/* x = make(); add(list, x): the run that got the object by the return of what took it gave it to what stores it */
static bool went_by(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t k, uint32_t i)
{
	const struct lt_event *store = &inc->ledger[i];
	uint32_t got = 0;

	for (uint32_t n = k + 1; n < i; n++) {
		const struct lt_event *e = &inc->ledger[n];

		if (e->tid != store->tid || e->op != RT_OP_MOVE)
			continue;
		if (lt_point_hands(lt_event_point(lt, e)))
			got = e->act;
		else if (got && e->act == got && lt_point_given(lt_event_point(lt, e)) && lt_nested(lt, store, e))
			return true;
	}
	return false;
}

/*
 * The reference that event number k took was there when number i stored the pointer, as far as functions tell: helpers
 * store what their callers took, and functions that just get one hand it up. What is stored far below somebody who has
 * a reference while it works is not his.
 */
static bool may_be_for(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t k, uint32_t i)
{
	const struct lt_event *taken = &inc->ledger[k], *store = &inc->ledger[i];
	unsigned out, in;

	if (taken->act && (taken->act == store->act || taken->up == store->act))
		return true;
	if (!lt_come_together(lt, taken, store, &out, &in) || out > CALLERS)
		return false;
	return out && in ? went_by(lt, inc, k, i) : in <= CALLERS;
}

/* the event that took the reference for which number i stored the pointer; NULL: not known */
static struct lt_event *taker_of(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i)
{
	unsigned given_back = 0;

	for (uint32_t k = i; k-- > 0 && k + LT_SLOT_EVENTS >= i;) {
		struct lt_event *e = &inc->ledger[k];

		if (e->tid != inc->ledger[i].tid)
			continue;
		if (e->delta < 0) {
			given_back++;
		} else if (lt_event_takes(e)) {
			if (given_back)
				given_back--;
			else if (!has_slot(inc, e) && may_be_for(lt, inc, k, i))
				return e;
			/* who has taken a reference stores that one, more than once maybe, and not one that he was
			 * given */
			else if (e->act && e->act == inc->ledger[i].act)
				return NULL;
		}
	}
	return NULL;
}

/*
 * x->p = p; p_get(p): the store comes first. The one reference that the same run takes next is for it, unless it gives
 * that back itself, or stores the pointer once more before it.
 */
static struct lt_event *taker_behind(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *store = &inc->ledger[i];
	struct lt_event *taken = NULL;

	for (uint32_t k = i + 1; store->act && k < inc->nr && k <= i + LT_SLOT_EVENTS; k++) {
		struct lt_event *e = &inc->ledger[k];

		if (e->act != store->act)
			continue;
		if (e->delta < 0 || (!taken && (lt_slot_fills(lt, e) || e->slot == store->slot)))
			return NULL;
		if (!lt_event_takes(e))
			continue;
		if (taken || has_slot(inc, e))
			return NULL;
		taken = e;
	}
	return taken;
}

/* the next operation of the thread behind the store, where it takes a reference that is in no slot yet; NULL: none */
static struct lt_event *next_taken(const struct lt_inc *inc, uint32_t i)
{
	uint32_t k = i + 1;

	while (k < inc->nr && (inc->ledger[k].tid != inc->ledger[i].tid || !inc->ledger[k].delta))
		k++;
	if (k == inc->nr || !lt_event_takes(&inc->ledger[k]) || has_slot(inc, &inc->ledger[k]))
		return NULL;
	return &inc->ledger[k];
}

/* the run that takes the reference has stored the pointer itself since event number i: it is for that slot */
static bool stored_itself(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i,
			  const struct lt_event *taken)
{
	for (const struct lt_event *e = &inc->ledger[i + 1]; e < taken; e++) {
		if (e->act && e->act == taken->act && lt_slot_fills(lt, e))
			return true;
	}
	return false;
}

/*
 * insert(table, p); p_get(p): who called what stores the pointer takes a reference right behind it, and stands nearer
 * to the store than who took one before, if anybody did. Or x->p = p; p_keep(p): a helper takes it for who stores it.
 * NULL: it is not so.
 */
static struct lt_event *nearer_behind(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i,
				      const struct lt_event *before)
{
	const struct lt_event *store = &inc->ledger[i];
	struct lt_event *next = next_taken(inc, i);
	unsigned out, in, further;

	if (!next || !lt_come_together(lt, store, next, &out, &in) || (out && in) || out + in > CALLERS ||
	    (in && stored_itself(lt, inc, i, next)))
		return NULL;
	if (!before)
		return out ? NULL : next;
	return lt_come_together(lt, store, before, &further, &in) && out < further ? next : NULL;
}

/* the store is that of an output of what takes a reference, which is told of when that returns */
static bool hands_out(const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *store = &inc->ledger[i];

	for (uint32_t k = i + 1; k < inc->nr && k <= i + LT_SLOT_EVENTS; k++) {
		if (inc->ledger[k].tid == store->tid && inc->ledger[k].delta)
			return lt_slot_takes(&inc->ledger[k]) && inc->ledger[k].slot == store->slot;
	}
	return false;
}

/* What the run that stores the pointer took itself is rather for it than what others took. */
static struct lt_event *taker_for(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i)
{
	struct lt_event *before, *behind = NULL;

	if (hands_out(inc, i))
		return NULL;
	before = taker_of(lt, inc, i);
	if (!before || before->act != inc->ledger[i].act)
		behind = taker_behind(lt, inc, i);
	if (!behind)
		behind = nearer_behind(lt, inc, i, before);
	return behind ? behind : before;
}

/* the run that did put number k empties itself a slot that it has to pay for, another one than w */
static bool pays_its_own(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t k, const struct lt_event *w)
{
	const struct lt_event *put = &inc->ledger[k];
	const uint32_t to = near_to(inc, k);

	for (uint32_t i = near_from(k); put->act && put->act != w->act && i < to; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->act == put->act && e->slot != w->slot && lt_slot_empties(lt, e) && is_kept(lt, inc, e->slot, i))
			return true;
	}
	return false;
}

/* event number k pays for the slot that number i empties, as far as it has not paid for another one */
static bool may_pay(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t k, uint32_t i)
{
	const struct lt_event *e = &inc->ledger[k], *w = &inc->ledger[i];

	return !e->slot && pays_for(lt, inc, e, w) && !pays_its_own(lt, inc, k, w);
}

/* the put that pays for the slot that event number i empties, the nearest one: mostly just before; NULL: none does */
static struct lt_event *payer_of(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i)
{
	struct lt_event *before = NULL, *after = NULL;

	for (uint32_t k = i; k-- > 0 && k + LT_SLOT_EVENTS >= i && !before;) {
		if (may_pay(lt, inc, k, i))
			before = &inc->ledger[k];
	}
	for (uint32_t k = i + 1; k < inc->nr && k <= i + LT_SLOT_EVENTS && !before && !after; k++) {
		if (may_pay(lt, inc, k, i))
			after = &inc->ledger[k];
	}
	return before ? before : after;
}

/* the pointer that event number k left in this slot is there until number i, as far as is known */
static bool stays_until(const struct rt_lifetime *lt, const struct lt_inc *inc, uint64_t slot, uint32_t k, uint32_t i)
{
	while (++k < i) {
		if (inc->ledger[k].slot == slot && lt_slot_empties(lt, &inc->ledger[k]))
			return false;
	}
	return true;
}

/*
 * The slot for which the reference was taken whose pointer event number i finds in another one: x->of = get(); part->of
 * = x->of; and nothing was taken or put in between. 0: it was not stored there so, or is paid for, or has moved.
 */
static uint64_t taken_for(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *w = &inc->ledger[i];
	bool stored = false;

	for (uint32_t k = i; k-- > 0;) {
		const struct lt_event *e = &inc->ledger[k];

		if (stored && e->delta)
			return lt_event_takes(e) && (e->flags & LT_EV_KEPT) && e->tid == w->tid &&
					       is_kept(lt, inc, e->slot, i) && stays_until(lt, inc, e->slot, k, i)
				       ? e->slot
				       : 0;
		if (e->slot == w->slot && lt_slot_empties(lt, e))
			return 0;
		stored |= e->slot == w->slot && lt_slot_fills(lt, e);
	}
	return 0;
}

/*
 * Event number i empties a slot that has a reference: where the pointer goes to another slot, the reference goes along,
 * and nobody has to pay. false: it does not go on.
 */
static bool move_on(const struct rt_lifetime *lt, struct lt_inc *inc, uint32_t i)
{
	const uint32_t to = moved_by(lt, inc, i);

	if (to == LT_NO_EVENT || (inc->ledger[to].flags & LT_EV_KEPT))
		return false;
	inc->ledger[i].flags |= LT_EV_KEPT;
	inc->ledger[to].flags |= LT_EV_KEPT;
	return true;
}

static void settle(const struct rt_lifetime *lt, struct lt_inc *inc, uint32_t i)
{
	struct lt_event *w = &inc->ledger[i], *e = NULL;
	uint64_t slot = w->slot;
	bool kept;

	if (lt_slot_takes(w)) {
		w->flags |= LT_EV_KEPT;
	} else if (lt_slot_fills(lt, w) && !(w->flags & LT_EV_KEPT)) {
		e = taker_for(lt, inc, i);
	} else if (lt_slot_empties(lt, w)) {
		kept = is_kept(lt, inc, slot, i);
		if (kept && move_on(lt, inc, i))
			return;
		if (kept || (slot && (slot = taken_for(lt, inc, i))))
			e = payer_of(lt, inc, i);
	}
	if (!e)
		return;
	e->slot = slot;
	e->flags |= LT_EV_KEPT;
}

void lt_slots_settle(const struct rt_lifetime *lt, struct lt_inc *inc, uint32_t end)
{
	uint32_t from = inc->settled;

	if (!inc->slotted)
		return;
	inc->slotted = end < inc->nr;
	inc->settled = (uint16_t)end;
	for (uint32_t i = from; i < end; i++)
		settle(lt, inc, i);
}

uint32_t lt_slot_lost(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t ev)
{
	const struct lt_event *taken = &inc->ledger[ev];
	uint64_t slot = taken->slot;

	if (!(taken->flags & LT_EV_KEPT))
		return LT_NO_EVENT;
	for (uint32_t i = ev + 1; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];
		uint32_t to;

		if (e->slot != slot)
			continue;
		/* another reference was taken for the slot, or one was put: that was this one */
		if ((e->flags & LT_EV_KEPT) && e->delta)
			return LT_NO_EVENT;
		if (!lt_slot_empties(lt, e) || put_aside(lt, inc, i))
			continue;
		to = moved_by(lt, inc, i);
		if (to != LT_NO_EVENT)
			slot = inc->ledger[to].slot;
		else
			return lt_slot_dropped(lt, inc, i) ? i : LT_NO_EVENT;
	}
	return LT_NO_EVENT;
}

/* e hands the object out through a T ** which is no variable of the stack: it stays in that slot */
static bool hands_to_slot(const struct rt_lifetime *lt, const struct lt_event *e)
{
	return e->op == RT_OP_MOVE && e->slot && lt_point_hands(lt_event_point(lt, e)) && !on_stack(e);
}

/* one of those that lt_slots_kept() counts */
static bool is_kept_to_the_end(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t ev)
{
	const struct lt_event *taken = &inc->ledger[ev];
	bool handed = false;

	if (!lt_event_takes(taken) || !(taken->flags & LT_EV_KEPT))
		return false;
	for (uint32_t i = ev + 1; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->slot == taken->slot && (lt_slot_empties(lt, e) || (e->flags & LT_EV_KEPT)))
			return false;
		if (hands_to_slot(lt, e) || (e->slot == taken->slot && lt_slot_fills(lt, e)))
			handed = false;
		else if (e->op == RT_OP_MOVE && lt_point_hands(lt_event_point(lt, e)))
			handed = true;
	}
	return !handed;
}

int64_t lt_slots_kept(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	int64_t kept = 0;

	for (uint32_t i = 0; i < inc->nr; i++)
		kept += is_kept_to_the_end(lt, inc, i);
	return kept;
}
