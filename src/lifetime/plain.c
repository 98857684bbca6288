/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event that nearly all are: a get or put of one reference by a thread whose last stack and whose object are known,
 * with the counter just where it should be. It goes from the record to the ledger in one go:
 * all that could be odd is looked at first, without a change; whatever is odd takes the way of event.c and
 * incarnation.c, which says the same of a plain event.
 */
#include "lifetime/life.h"
#include "lifetime/thread.h"

/* a get that adds one or a put that takes one, with the counter read before it or not at all */
static bool usual(const struct rt_wire_event *e)
{
	unsigned kind = e->head.op - (unsigned)RT_OP_GET;

	_Static_assert(RT_OP_PUT == RT_OP_GET + 1, "they differ by one");
	return kind <= 1 && e->delta == 1 - 2 * (int)kind &&
	       !(e->flags & ~(RT_EV_COUNT_READ | RT_RANK_MAX << RT_RANK_SHIFT)) && e->object;
}

/* as read; INT32_MIN = not read */
static int32_t count_of(const struct rt_wire_event *e)
{
	return e->flags & RT_EV_COUNT_READ ? (int32_t)e->count : INT32_MIN;
}

/* inc lives, and how many references there are is known; assumed as well, where nobody reads the counter */
static bool lives(const struct lt_inc *inc, bool counted)
{
	/* life, counts, current, known, assumed: they lie side by side, so that one look is enough */
	static const uint8_t looked_at[2][8] = { { 0xff, 0, 1, 1 }, { 0xff, 1, 1, 1, 1 } };
	static const uint8_t wanted[2][8] = { { LT_LIVE, 0, true, true }, { LT_LIVE, true, true, true, false } };
	uint64_t is, mask, want;

	_Static_assert(offsetof(struct lt_inc, counts) == offsetof(struct lt_inc, life) + 1 &&
			       offsetof(struct lt_inc, current) == offsetof(struct lt_inc, life) + 2 &&
			       offsetof(struct lt_inc, known) == offsetof(struct lt_inc, life) + 3 &&
			       offsetof(struct lt_inc, assumed) == offsetof(struct lt_inc, life) + 4,
		       "side by side");
	memcpy(&is, &inc->life, sizeof(is));
	memcpy(&mask, looked_at[counted], sizeof(mask));
	memcpy(&want, wanted[counted], sizeof(want));
	return (is & mask) == want;
}

/* inc has been counted right up to here, and lives */
static bool goes_on(const struct lt_inc *inc, int32_t count)
{
	if (count == INT32_MIN)
		return lives(inc, false) & !inc->watched;
	return lives(inc, true) & (inc->balance == count) & (inc->due == count) &
	       ((inc->nr > 1) | (inc->born != INT32_MIN)) & !inc->watched;
}

/* the life of e, of which it may be the next operation; the hint is mostly right. NULL: there is none */
static struct lt_inc *life_of(const struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t type)
{
	struct lt_inc *inc = (struct lt_inc *)(uintptr_t)lt->hint;

	if (!inc || !lt_inc_is(inc, e->head.pid, type, e->object))
		inc = lt_inc_find(lt, e->head.pid, type, e->object);
	return inc;
}

/*
 * Does e tell of what the thread told before, so many events ago? Two of a kind in a row are rare, and mostly two
 * operations: the counter has moved between them.
 */
static __attribute__((noinline)) bool told_before(struct rt_lifetime *lt, struct lt_inc *inc,
						  const struct rt_wire_event *e, uint32_t use, uint32_t ago)
{
	const int32_t old = inc->ledger[inc->nr - ago].count, count = count_of(e);
	const struct lt_event ev = { .sp = e->sp, .tid = e->head.tid, .use = use, .count = count, .op = e->head.op };

	return (old == count || old == INT32_MIN || count == INT32_MIN) && lt_nest_merge(lt, inc, &ev);
}

/* inc may take e as it takes the usual one: nothing has been changed */
static bool takes(struct rt_lifetime *lt, struct lt_inc *inc, const struct rt_wire_event *e, uint32_t use)
{
	uint32_t ago;

	if (!inc || !goes_on(inc, count_of(e)) || lt->types.data[inc->type].counting.off)
		return false;
	ago = lt_nest_ago(inc, e->head.tid);
	if (lt_nest_may_be(inc, ago, e->head.op) && told_before(lt, inc, e, use, ago))
		return false;
	return inc->nr < inc->cap || lt_ledger_room(lt, inc);
}

bool lt_plain_event(struct rt_lifetime *lt, const struct rt_wire_event *e)
{
	const struct lt_known *known = lt_known_place(lt, e);
	struct lt_thread *t = *lt_thread_known(lt, e->head.pid, e->head.tid);
	const int32_t count = count_of(e);
	struct lt_type *type;
	struct lt_inc *inc;
	struct lt_use *use;
	struct lt_event *ev;

	if (!t || !usual(e) || !lt_known_is(known, e) || !lt_thread_is(t, e->head.pid, e->head.tid))
		return false;
	if (known->slot || !t->process || lt->observer || !lt_thread_follows(lt, t, &known->plain, e->sp))
		return false;
	if (lt_thread_lifeless(t, &lt->processes.data[t->process - 1], e->head.time_ns))
		return false;
	inc = life_of(lt, e, known->type);
	if (known->classed && inc && !inc->klass)
		return false;
	if (!takes(lt, inc, e, known->use))
		return false;

	type = &lt->types.data[known->type];
	use = &lt->uses.data[known->use];
	use->events++;
	type->op[e->head.op]++;
	if (!lt_thread_stands(t, use, e->sp))
		lt_thread_see_plain(lt, t, use->stack, &known->plain, e->sp);
	if (count != INT32_MIN) {
		type->counter = true;
		lt_counter_count(&type->counting, inc, e->head.tid, e->head.time_ns, true);
		lt_counter_due(inc, count, e->delta);
		lt_life_agrees(type, inc, count);
	} else {
		lt_counter_unread(inc, e->delta);
	}
	lt_life_forget_census(inc);
	ev = lt_ledger_next(inc, e->head.tid, e->head.op);
	/* all of it is named: what is not would be cleared first */
	*ev = (struct lt_event){
		.time_ns = e->head.time_ns,
		.slot = 0,
		.sp = e->sp,
		.tid = e->head.tid,
		.use = known->use,
		.act = lt_thread_act_at(t, known->machine),
		.up = lt_thread_act_at(t, known->up),
		.count = count,
		.delta = e->delta,
		.op = e->head.op,
		.flags = 0,
	};
	lt_life_moved(type, inc, ev);
	lt_thread_last(lt, t, e, known->type, e->delta);
	if (lt_life_ends(inc, inc->balance, e->delta)) {
		inc->soft = count == INT32_MIN; /* nobody but the balance says so */
		lt_life_put_down(lt, inc, e->head.time_ns);
	}
	return true;
}
