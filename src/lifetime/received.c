/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who had it last. An object that has one reference all its life is passed from function to function, and the reference
 * goes with it: as an argument, as what a function hands out to its caller, out of a slot that is emptied. So it does
 * where others are taken beside that first one, if each of them is given back for sure. Whoever receives the object
 * puts it, stores it, or just looks at it, as healthy objects show. The last who received a lost one, and did neither
 * of the former, has lost it: if it does so otherwise; or if nothing is known of it, but all others do who receive
 * objects by that very call (operations of a table), or from that very function (what takes them out of a queue), or
 * who give them to that very function, which takes a reference of its own (what puts them into a queue); or if it
 * emptied the slot that the object was stored in last.
 *
 * An argument is received by the function that is called; the rest by the function around, or by one further out of
 * which that one is a helper.
 */
#include "lifetime/answer.h"
#include "lifetime/slot.h"

enum { CALLERS = 3, FURTHER = 2 };
static const double SHARE = 0.8, KIN = 3;

/* how it was received */
enum way { NOT, GIVEN, HANDED, TAKEN_OUT };

/*
 * What is counted: by which way who received it, and who gave it; who gave it to what took a reference of its own, and
 * who called, so many functions further out, what took one.
 */
enum { OF_RECEIVER = 0, OF_GIVER = 4, OF_SHARER = 8, OF_CALLER = 12, OF_PUTTER = 16 };

enum {
	EVENTS_MAX = 256, /* of an object that had more than one reference */
	TAKEN_MAX = 32    /* references of one healthy object, taken or put, of which the callers are looked at */
};

/* The way of the first reference to an object. */
struct trail {
	const struct lt_inc *inc;
	uint64_t beside[EVENTS_MAX / 64]; /* a bit for each event that was for another reference */
};

struct balance {
	double acted, idle;
};

static enum way way_of(const struct lt_answer *a, const struct lt_event *e)
{
	const struct lt_point *p = lt_event_point(a->lt, e);

	if (e->op != RT_OP_MOVE)
		return NOT;
	if (lt_point_hands(p))
		return HANDED;
	if (lt_slot_empties(a->lt, e) && p->aux != RT_AUX_BLOCK)
		return TAKEN_OUT;
	return lt_point_given(p) ? GIVEN : NOT;
}

/* so many functions out from it may be the one that received it */
static unsigned levels_of(enum way way)
{
	return way == TAKEN_OUT ? 2 : 1;
}

static struct rt_key key_of(const struct lt_inc *inc, unsigned tag, uint32_t id)
{
	return rt_key_make((uint64_t)tag << 32 | id, inc->type);
}

static struct rt_key receiver_key(const struct lt_answer *a, const struct lt_inc *inc, const struct lt_event *e,
				  unsigned level)
{
	enum way way = way_of(a, e);

	return key_of(inc, OF_RECEIVER + way,
		      way == GIVEN ? a->lt->uses.data[e->use].point : lt_src_around(a->lt, e, level));
}

static struct rt_key giver_key(const struct lt_answer *a, const struct lt_inc *inc, const struct lt_event *e)
{
	const struct lt_use *use = &a->lt->uses.data[e->use];
	enum way way = way_of(a, e);

	return key_of(inc, OF_GIVER + way, way == GIVEN ? lt_event_src(a->lt, e) : use->point);
}

static struct balance balance_of(const struct lt_answer *a, struct rt_key key)
{
	return (struct balance){ lt_counted(&a->received_acted, key), lt_counted(&a->received_idle, key) };
}

static bool mostly_acts(struct balance b)
{
	return b.acted >= SHARE * (b.acted + b.idle);
}

/* what others do in somebody's place tells what he should have done */
static bool others_act(const struct lt_answer *a, struct rt_key key)
{
	const struct balance others = balance_of(a, key);

	return others.acted >= KIN && mostly_acts(others);
}

static bool is_beside(const struct trail *t, uint32_t i)
{
	return i < EVENTS_MAX && t->beside[i / 64] >> i % 64 & 1;
}

static void set_beside(struct trail *t, uint32_t i)
{
	t->beside[i / 64] |= UINT64_C(1) << i % 64;
}

/* the reference that opener u began was another one, and is closed: what concerns it alone */
static void leave_out(const struct lt_answer *a, const struct lt_units *units, const struct lt_unit *u, struct trail *t)
{
	const struct lt_event *taken = &t->inc->ledger[u->ev];

	set_beside(t, u->ev);
	set_beside(t, units->u[u->mate].ev);
	for (uint32_t i = 0; (taken->flags & LT_EV_KEPT) && i < t->inc->nr; i++) {
		const struct lt_event *e = &t->inc->ledger[i];

		if (e->slot == taken->slot && (lt_slot_fills(a->lt, e) || lt_slot_empties(a->lt, e)))
			set_beside(t, i);
	}
}

/* false: which of the references went which way is not known for sure */
static bool follow(const struct lt_answer *a, const struct lt_inc *inc, struct trail *ret)
{
	struct lt_units units;
	unsigned first = 0, puts = 0;

	*ret = (struct trail){ .inc = inc };
	if (lt_has_one(inc))
		return true;
	if (!inc->has_new || inc->folded || inc->nr > EVENTS_MAX || inc->ledger[0].op != RT_OP_NEW)
		return false;
	lt_pair_certain(a->lt, inc, &units);
	for (unsigned i = 0; i < units.nr; i++) {
		const struct lt_unit *u = &units.u[i];

		if (u->ev == LT_NO_EVENT || (u->opens && u->ev && u->mate < 0))
			return false;
		first += u->opens && !u->ev;
		puts += !u->opens && u->mate < 0;
		if (u->opens && u->ev)
			leave_out(a, &units, u, ret);
	}
	/* its own put may be what is left */
	return !units.cut && first == 1 && puts <= 1;
}

/* event number k was done by the function so many levels out that received the object by number i, or below it */
static bool within(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i, unsigned level, uint32_t k)
{
	const struct lt_event *receipt = &inc->ledger[i], *e = &inc->ledger[k];
	unsigned mine, other;

	if (way_of(a, receipt) == GIVEN)
		return lt_inside(a->lt, e, receipt);
	return e->tid == receipt->tid && lt_come_together(a->lt, receipt, e, &mine, &other) && mine <= level;
}

/* how many levels out the reference was put, or stored somewhere, after event number i; as many as there are: nowhere
 */
static unsigned acted_at(const struct lt_answer *a, const struct trail *t, uint32_t i)
{
	const struct lt_inc *inc = t->inc;
	const unsigned levels = levels_of(way_of(a, &inc->ledger[i]));
	unsigned level = levels;

	for (uint32_t k = i + 1; k < inc->nr && level; k++) {
		const struct lt_event *e = &inc->ledger[k];

		if (is_beside(t, k) || (e->delta >= 0 && !lt_slot_fills(a->lt, e)))
			continue;
		while (level && within(a, inc, i, level - 1, k))
			level--;
	}
	return level;
}

/* event number i gives the object to a function that takes a reference of its own */
static bool is_shared(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *given = &inc->ledger[i];

	if (!given->act || way_of(a, given) != GIVEN)
		return false;
	for (uint32_t k = i + 1; k < inc->nr; k++) {
		if (lt_event_takes(&inc->ledger[k]) && lt_inside(a->lt, &inc->ledger[k], given))
			return true;
	}
	return false;
}

static struct rt_key sharer_key(const struct lt_answer *a, const struct lt_inc *inc, const struct lt_event *e)
{
	return key_of(inc, OF_SHARER, a->lt->uses.data[e->use].point);
}

/* whether those who give the object to what takes a reference of its own put it themselves, later */
static void count_sharers(struct lt_answer *a, const struct lt_inc *inc)
{
	for (uint32_t i = 0; inc->nr <= EVENTS_MAX && i < inc->nr; i++) {
		bool puts = false;

		if (!is_shared(a, inc, i))
			continue;
		for (uint32_t k = i + 1; k < inc->nr; k++)
			puts |= inc->ledger[k].delta < 0 && inc->ledger[k].act == inc->ledger[i].act;
		lt_count_one(puts ? &a->received_acted : &a->received_idle, sharer_key(a, inc, &inc->ledger[i]));
	}
}

/*
 * Who stands so many functions out at event number i puts a reference later, in the run that stood there: itself, or a
 * function up to so many further in.
 */
static bool caller_puts(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i, unsigned level,
			unsigned further)
{
	const struct lt_event *taken = &inc->ledger[i];
	unsigned out, in;

	for (uint32_t k = i + 1; k < inc->nr && k <= i + LT_SLOT_EVENTS; k++) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->delta >= 0 || e->tid != taken->tid)
			continue;
		if ((lt_come_together(a->lt, taken, e, &out, &in) && out == level && in <= further) ||
		    lt_left_by(a->lt, taken, level, e))
			return true;
	}
	return false;
}

/* callers of what took a reference by event number i, or put one, by that function and how far out they stand */
static struct rt_key caller_key(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i, unsigned level)
{
	const struct lt_event *e = &inc->ledger[i];

	return key_of(inc, (e->delta < 0 ? OF_PUTTER : OF_CALLER) + level, lt_event_function(a->lt, e));
}

/* event number i puts a reference in a function that somebody called */
static bool puts_for(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *e = &inc->ledger[i];

	return e->op == RT_OP_PUT && e->delta < 0 && e->act && lt_event_function(a->lt, e);
}

/* event number i takes a reference, and the run that did so does not give it back itself: it is for somebody else */
static bool takes_away(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *taken = &inc->ledger[i];

	if (taken->op != RT_OP_GET || !taken->act || !lt_event_function(a->lt, taken))
		return false;
	for (uint32_t k = i + 1; k < inc->nr; k++) {
		if (inc->ledger[k].delta < 0 && inc->ledger[k].act == taken->act)
			return false;
	}
	return true;
}

static void count_callers(struct lt_answer *a, const struct lt_inc *inc)
{
	unsigned taken = 0;

	for (uint32_t i = 0; inc->nr <= EVENTS_MAX && i < inc->nr && taken < TAKEN_MAX; i++) {
		if (!takes_away(a, inc, i) && !puts_for(a, inc, i))
			continue;
		taken++;
		for (unsigned level = 1; level <= CALLERS; level++)
			lt_count_one(caller_puts(a, inc, i, level, 0) ? &a->received_acted : &a->received_idle,
				     caller_key(a, inc, i, level));
	}
}

/*
 * Who had the object made still runs when event number i takes a reference, further out than so many functions: it is
 * his, and whom he calls he just lends it. One that jumped there is gone.
 */
static bool is_lent(const struct lt_answer *a, const struct lt_ref *ref, uint32_t i, unsigned level)
{
	const struct lt_event *made = &ref->inc->ledger[0], *taken = &ref->inc->ledger[i];
	uint32_t stack;
	unsigned out, in;

	if (!lt_come_together(a->lt, made, taken, &out, &in) || out >= lt_site(a->lt, ref->site)->nr || level >= in)
		return false;
	stack = a->lt->uses.data[taken->use].stack;
	return stack && lt_in_stack(a->lt, stack, lt_src(a->lt, lt_src_around(a->lt, made, out))->function, NULL);
}

/* all of its life is known, and looked at */
static bool is_short(const struct lt_inc *inc)
{
	return !inc->folded && inc->nr <= EVENTS_MAX;
}

/*
 * Who called what put a reference, and did not put the one that he has himself, as all others do who call it: "done(o);
 * obj_put(o);"
 */
static uint32_t forgot_after_put(const struct lt_answer *a, const struct lt_inc *inc)
{
	for (uint32_t i = inc->nr; i-- > 1;) {
		for (unsigned level = 1; puts_for(a, inc, i) && level <= CALLERS; level++) {
			if (others_act(a, caller_key(a, inc, i, level)) && !caller_puts(a, inc, i, level, FURTHER))
				return lt_src_around(a->lt, &inc->ledger[i], level);
		}
	}
	return 0;
}

/* ... what took a reference, and did not put the first one: the last time that all others do */
static uint32_t forgot_after_get(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_inc *inc = ref->inc;

	for (uint32_t i = inc->nr; !ref->ev && inc->ledger[0].op == RT_OP_NEW && i-- > 1;) {
		if (!takes_away(a, inc, i))
			continue;
		for (unsigned level = 1; level <= CALLERS; level++) {
			if (!others_act(a, caller_key(a, inc, i, level)))
				continue;
			if (caller_puts(a, inc, i, level, FURTHER) || is_lent(a, ref, i, level))
				return 0;
			/* what it called to end the object may have been to put it */
			return lt_ender_called(a, inc, i, level) ?: lt_src_around(a->lt, &inc->ledger[i], level);
		}
	}
	return 0;
}

static struct lt_receiver forgot(const struct lt_answer *a, const struct lt_ref *ref)
{
	struct lt_receiver it = { 0, LT_BY_CALLERS };

	if (!is_short(ref->inc))
		return it;
	it.src = forgot_after_get(a, ref);
	if (!it.src && (it.src = forgot_after_put(a, ref->inc)))
		it.by = LT_BY_PUTTERS;
	return it;
}

uint32_t lt_received_forgot(const struct lt_answer *a, const struct lt_ref *ref)
{
	return forgot(a, ref).src;
}

void lt_received_healthy(struct lt_answer *a, const struct lt_inc *inc)
{
	struct trail trail;

	count_sharers(a, inc);
	count_callers(a, inc);
	if (!follow(a, inc, &trail))
		return;
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];
		enum way way = is_beside(&trail, i) ? NOT : way_of(a, e);
		unsigned at = way ? acted_at(a, &trail, i) : 0;

		if (!way)
			continue;
		for (unsigned level = 0; level < levels_of(way); level++)
			lt_count_one(level >= at ? &a->received_acted : &a->received_idle,
				     receiver_key(a, inc, e, level));
		lt_count_one(at < levels_of(way) ? &a->received_acted : &a->received_idle, giver_key(a, inc, e));
	}
}

/*
 * How many levels out the function that event number i tells to have received the object puts or stores what it
 * receives so, as healthy objects show; as many as there are: none does.
 */
static unsigned acts_at(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *e = &inc->ledger[i];
	unsigned level = 0;

	for (; level < levels_of(way_of(a, e)); level++) {
		struct balance b = balance_of(a, receiver_key(a, inc, e, level));

		if (b.acted > 0 && mostly_acts(b))
			break;
	}
	return level;
}

/* nothing is known of the function that event number i tells to have received the object, but others act in its place
 */
static bool kin_acts(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	return others_act(a, giver_key(a, inc, &inc->ledger[i]));
}

static bool is_unknown(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	struct balance b = balance_of(a, receiver_key(a, inc, &inc->ledger[i], 0));

	return b.acted + b.idle == 0;
}

/* event number i took the object out of the slot that it was stored in last, and nobody had received it from there */
static bool out_of_its_slot(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	uint32_t k = i;

	while (k-- > 0 && !lt_slot_fills(a->lt, &inc->ledger[k])) {
		enum way way = way_of(a, &inc->ledger[k]);

		/* what goes out of another slot was a pointer that had been left there */
		if (way == GIVEN || way == HANDED || (way == TAKEN_OUT && inc->ledger[k].slot == inc->ledger[i].slot))
			return false;
	}
	return k != UINT32_MAX && inc->ledger[k].slot == inc->ledger[i].slot;
}

/* what returns such objects took it out for its caller */
static unsigned taker_out(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	unsigned level = 0;
	uint32_t src;

	while (level + 1 < CALLERS && (src = lt_src_around(a->lt, &inc->ledger[i], level)) &&
	       lt_returns_object(lt_inc_type(a->lt, inc), &lt_src(a->lt, src)->frame))
		level++;
	return level;
}

static uint32_t source_of(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i, unsigned level)
{
	const struct lt_event *e = &inc->ledger[i];

	return way_of(a, e) == GIVEN ? lt_entry_source(a, e) : lt_src_around(a->lt, e, level);
}

/*
 * The run that gave the object to somebody by event number i had been handed it, and nothing is known of its function,
 * or had it made in some way by what it called; all others that give such to him, who takes a reference of his own, put
 * the one they have afterwards.
 */
static bool sharers_act(const struct lt_answer *a, const struct trail *t, uint32_t i)
{
	const struct lt_event *given = &t->inc->ledger[i];
	unsigned out, in;

	if (!is_shared(a, t->inc, i) || !others_act(a, sharer_key(a, t->inc, given)))
		return false;
	for (uint32_t k = i; k-- > 0;) {
		const struct lt_event *e = &t->inc->ledger[k];

		if (e->act == given->act && way_of(a, e) == HANDED)
			return is_unknown(a, t->inc, k);
	}
	return lt_come_together(a->lt, given, &t->inc->ledger[0], &out, &in) && !out && in;
}

static struct lt_receiver received_last(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_inc *inc = ref->inc;
	struct trail trail;
	uint32_t last = LT_NO_EVENT;  /* the last time that a function received it */
	uint32_t inner = LT_NO_EVENT; /* ... of which nothing is known */

	if (!follow(a, inc, &trail) || is_beside(&trail, ref->ev))
		return (struct lt_receiver){ 0 };
	for (uint32_t i = inc->nr; i-- > ref->ev + 1u;) {
		enum way way = way_of(a, &inc->ledger[i]);
		unsigned level;

		if (is_beside(&trail, i))
			continue;
		if (lt_slot_fills(a->lt, &inc->ledger[i]) || (way && acted_at(a, &trail, i) < levels_of(way)))
			break;
		if (!way)
			continue;
		/* it went on to others from there */
		level = acts_at(a, inc, i);
		if (last != LT_NO_EVENT && !within(a, inc, i, level < levels_of(way) ? level : 0, last))
			break;
		if (level < levels_of(way))
			return (struct lt_receiver){ source_of(a, inc, i, level), LT_BY_ITSELF };
		if (way == TAKEN_OUT) {
			if (last == LT_NO_EVENT && is_unknown(a, inc, i) && out_of_its_slot(a, inc, i))
				return (struct lt_receiver){ source_of(a, inc, i, taker_out(a, inc, i)), LT_BY_SLOT };
			continue;
		}
		if (last == LT_NO_EVENT && sharers_act(a, &trail, i))
			return (struct lt_receiver){ lt_event_src(a->lt, &inc->ledger[i]), LT_BY_SHARERS };
		if (last == LT_NO_EVENT)
			last = i;
		if (!is_unknown(a, inc, i))
			continue;
		if (inner == LT_NO_EVENT)
			inner = i;
		if (kin_acts(a, inc, i))
			return (struct lt_receiver){ source_of(a, inc, inner, 0), LT_BY_KIN };
	}
	return (struct lt_receiver){ 0 };
}

struct lt_receiver lt_received_last(const struct lt_answer *a, const struct lt_ref *ref)
{
	struct lt_receiver last = received_last(a, ref);

	return last.src ? last : forgot(a, ref);
}

bool lt_received_before(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	for (uint32_t k = i; lt_has_one(inc) && k-- > 0 && !lt_slot_fills(a->lt, &inc->ledger[k]);) {
		if (way_of(a, &inc->ledger[k]) == HANDED && kin_acts(a, inc, k))
			return true;
	}
	return false;
}

bool lt_received_passed_on(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	struct balance b;

	if (way_of(a, &inc->ledger[i]) != TAKEN_OUT)
		return false;
	b = balance_of(a, receiver_key(a, inc, &inc->ledger[i], 0));
	return b.idle > b.acted || taker_out(a, inc, i);
}

bool lt_received_to_look(const struct lt_answer *a, const struct lt_inc *inc, uint32_t from, uint32_t to)
{
	for (uint32_t i = from + 1; i < to; i++) {
		enum way way = way_of(a, &inc->ledger[i]);

		if (way && way != TAKEN_OUT && (is_unknown(a, inc, i) || acts_at(a, inc, i) < levels_of(way)))
			return false;
	}
	return true;
}
