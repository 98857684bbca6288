/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event that nearly all are: a get or put of one reference by a thread whose last stack and whose object are known,
 * with the counter just where it should be. It goes from the record to the ledger in one go:
 * all that could be odd is looked at first, without a change; whatever is odd takes the way of event.c and
 * incarnation.c, which says the same of a plain event.
 */
#include "lifetime/life.h"
#include "lifetime/thread.h"

/* a get that adds one or a put that takes one, with the counter read before it */
static bool usual(const struct rt_wire_event *e)
{
	unsigned kind = e->head.op - (unsigned)RT_OP_GET;

	_Static_assert(RT_OP_PUT == RT_OP_GET + 1, "they differ by one");
	return kind <= 1 && e->delta == 1 - 2 * (int)kind && e->flags == RT_EV_COUNT_READ && e->object;
}

/* inc has been counted right up to here, and lives */
static bool goes_on(const struct lt_inc *inc, const struct rt_wire_event *e)
{
	int32_t count = (int32_t)e->count;

	return (inc->life == LT_LIVE) & inc->known & !inc->assumed & inc->counts & (inc->balance == count) &
	       (inc->due == count) & (count != INT32_MIN) & ((inc->nr > 1) | (inc->born != INT32_MIN)) & !inc->watched;
}

/* the life of e, of which it may be the next operation; the hint is mostly right. NULL: there is none */
static struct lt_inc *life_of(const struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t type)
{
	struct lt_inc *inc = (struct lt_inc *)(uintptr_t)lt->hint;

	if (!inc || !lt_inc_is(inc, e->head.pid, type, e->object))
		inc = lt_inc_find(lt, e->head.pid, type, e->object);
	return inc;
}

/* does e tell of what the thread told before? Two of a kind in a row are rare, and mostly two operations */
static __attribute__((noinline)) bool told_before(struct rt_lifetime *lt, struct lt_inc *inc,
						  const struct rt_wire_event *e, uint32_t use)
{
	const struct lt_event ev = {
		.sp = e->sp, .tid = e->head.tid, .use = use, .count = (int32_t)e->count, .op = e->head.op
	};

	return lt_nest_merge(lt, inc, &ev);
}

/* inc may take e as it takes the usual one: nothing has been changed */
static bool takes(struct rt_lifetime *lt, struct lt_inc *inc, const struct rt_wire_event *e, uint32_t use)
{
	if (!inc || !goes_on(inc, e) || lt->types.data[inc->type].counting.off)
		return false;
	if (lt_nest_may_be(inc, lt_nest_ago(inc, e->head.tid), e->head.op) && told_before(lt, inc, e, use))
		return false;
	return inc->nr < inc->cap || lt_ledger_room(lt, inc);
}

bool lt_plain_event(struct rt_lifetime *lt, const struct rt_wire_event *e)
{
	const struct lt_known *known = lt_known_place(lt, e);
	struct lt_thread *t = *lt_thread_known(lt, e->head.pid, e->head.tid);
	struct lt_type *type;
	struct lt_inc *inc;
	struct lt_use *use;
	struct lt_event *ev;

	if (!t || !usual(e) || !lt_known_is(known, e) || !lt_thread_is(t, e->head.pid, e->head.tid))
		return false;
	if (!known->plain.nr || known->slot || !t->plain.nr || !t->process || lt->observer)
		return false;
	if (lt_thread_lifeless(t, &lt->processes.data[t->process - 1], e->head.time_ns))
		return false;
	inc = life_of(lt, e, known->type);
	if (!takes(lt, inc, e, known->use))
		return false;

	type = &lt->types.data[known->type];
	use = &lt->uses.data[known->use];
	use->events++;
	type->op[e->head.op]++;
	type->counter = true;
	if (!lt_thread_stands(t, use, e->sp))
		lt_thread_see_plain(lt, t, use->stack, &known->plain, e->sp);
	lt_counter_count(&type->counting, inc, e->head.tid, e->head.time_ns, true);
	lt_counter_due(inc, (int32_t)e->count, e->delta);
	lt_life_agrees(type, inc, (int32_t)e->count);
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
		.count = (int32_t)e->count,
		.delta = e->delta,
		.op = e->head.op,
		.flags = 0,
	};
	lt_life_moved(type, inc, ev);
	lt_thread_last(lt, t, e, known->type, e->delta);
	if (lt_life_ends(inc, inc->balance, e->delta))
		lt_life_put_down(lt, inc, e->head.time_ns);
	return true;
}
