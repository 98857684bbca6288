/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One event record: looks up its point, thread, activation and site, then
 * hands it to the life of its object. A swap is a put of what the slot held
 * and a get of what it takes.
 */
#include <string.h>

#include "lifetime/life.h"

static int32_t count_of(const struct rt_wire_event *e)
{
	bool has = (e->flags & (RT_EV_COUNT_READ | RT_EV_COUNT_EXACT)) && !(e->flags & RT_EV_COUNT_FAULT);

	return has && (int32_t)e->count != INT32_MIN ? (int32_t)e->count : INT32_MIN;
}

static void fill(struct rt_lifetime *lt, const struct lt_thread *t, struct lt_seen *seen)
{
	const struct rt_wire_event *e = seen->e;
	const struct lt_use *use = &lt->uses.data[seen->ev.use];

	seen->ev.time_ns = e->head.time_ns;
	seen->ev.tid = e->head.tid;
	seen->ev.sp = e->sp;
	seen->ev.op = e->head.op;
	seen->ev.slot = seen->point->aux == RT_AUX_SLOT ? e->aux : 0;
	seen->raw = count_of(e);
	seen->ev.count = lt->types.data[seen->point->type].counting.off ? INT32_MIN : seen->raw;
	seen->ev.delta = e->delta;
	if (e->flags & RT_EV_HIDDEN)
		seen->ev.flags |= LT_EV_HIDDEN;
	if (e->flags & RT_EV_AT_RETURN)
		seen->ev.flags |= LT_EV_RETURN;
	if (!use->site)
		return;
	seen->ev.act = lt_thread_act(lt, t, use->machine);
	seen->ev.up = use->up == use->machine ? seen->ev.act : lt_thread_act(lt, t, use->up);
}

static void swap(struct rt_lifetime *lt, struct lt_seen *seen)
{
	const struct rt_wire_event *e = seen->e;
	uint64_t *slot =
		seen->ev.slot
			? rt_map_put(&lt->slots,
				     rt_key_make(seen->ev.slot, (uint64_t)e->head.pid << 32 | seen->point->type), NULL)
			: NULL;
	uint64_t old = slot ? *slot : 0;

	if (slot)
		*slot = e->object;
	seen->ev.flags |= LT_EV_SWAPPED;
	if (e->object) {
		struct lt_seen get = *seen;

		get.ev.op = RT_OP_GET;
		get.ev.delta = 1;
		lt_life_operation(lt, &get);
	}
	if (old && lt_inc_find(lt, e->head.pid, seen->point->type, old)) {
		struct rt_wire_event put = *e;
		struct lt_seen drop = *seen;

		put.object = old;
		put.flags &= (uint16_t) ~(RT_EV_COUNT_READ | RT_EV_COUNT_EXACT);
		drop.e = &put;
		drop.ev.op = RT_OP_PUT;
		drop.ev.delta = -1;
		drop.ev.count = drop.raw = INT32_MIN;
		lt_life_operation(lt, &drop);
	}
}

/* sane deltas only: a hostile record must not overflow a balance */
static bool sane(const struct rt_wire_event *e)
{
	if (e->head.op == RT_OP_GET || e->head.op == RT_OP_SWAP || e->head.op == RT_OP_SINK)
		return e->delta >= 0 && e->delta < LT_UNITS;
	if (e->head.op == RT_OP_PUT)
		return e->delta <= 0 && e->delta > -LT_UNITS;
	return e->head.op > RT_OP_NONE && e->head.op < RT_OP_NR;
}

static const struct lt_process *process_of(struct rt_lifetime *lt, struct lt_thread *t)
{
	const struct lt_process *p;

	if (t->process)
		return &lt->processes.data[t->process - 1];
	p = lt_process(lt, t->pid);
	if (p)
		t->process = (uint32_t)(p - lt->processes.data) + 1;
	return p;
}

void lt_incarnation_event(struct rt_lifetime *lt, const struct rt_wire_event *e)
{
	struct lt_seen seen = { .e = e };
	struct lt_thread *thread = lt_thread(lt, e->head.pid, e->head.tid);
	const struct lt_known *known;
	struct lt_point *point;
	struct lt_type *type;

	seen.process = thread ? process_of(lt, thread) : NULL;
	known = seen.process && sane(e) ? lt_known(lt, e) : NULL;
	if (!known) {
		lt->inconsistent++;
		return;
	}
	if (known->use == UINT32_MAX || (e->stack && !known->stack)) {
		lt->inconsistent++;
		if (known->use == UINT32_MAX)
			return;
	}
	seen.ev.use = known->use;
	seen.point = point = &lt->points.data[known->point];
	type = &lt->types.data[point->type];
	point->events++;
	type->op[e->head.op]++;
	lt->uses.data[seen.ev.use].events++;
	type->has_new |= e->head.op == RT_OP_NEW;
	type->has_free |= e->head.op == RT_OP_FREE;
	lt_thread_see(lt, thread, &lt->uses.data[seen.ev.use], e->sp);
	if (e->flags & RT_EV_NO_OBJECT) {
		lt->blind++;
		type->damaged = true;
		lt_thread_last(lt, thread, e, point->type, 0);
		return;
	}
	fill(lt, thread, &seen);
	type->counter |= seen.raw != INT32_MIN;
	if (e->head.op == RT_OP_SWAP)
		swap(lt, &seen);
	else if (e->object)
		lt_life_operation(lt, &seen);
	lt_thread_last(lt, thread, e, (uint32_t)(type - lt->types.data), seen.ev.delta);
}
