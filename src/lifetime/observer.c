/* SPDX-License-Identifier: GPL-2.0-only */
/* Tells an observer what becomes of each life, as the analysis counts it; and the frames of a place. */
#include "lifetime/site.h"
#include "lifetime/state.h"

void rt_lifetime_observe(struct rt_lifetime *lt, struct rt_life_observer *observer)
{
	lt->observer = observer;
}

static void fill(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *ev,
		 struct rt_life_step *ret)
{
	const struct lt_type *type = lt_inc_type(lt, inc);
	const struct lt_use *use = &lt->uses.data[ev->use];

	*ret = (struct rt_life_step){
		.object = inc->object,
		.serial = inc->serial,
		.pid = inc->pid,
		.type = type->id,
		.tid = ev->tid,
		.point = lt->points.data[use->point].id,
		.place = use->stack ? ev->use + 1 : 0,
		.time_ns = ev->time_ns,
		.slot = ev->slot,
		.act = ev->act,
		.op = ev->op,
		.after_end = (ev->flags & LT_EV_POST) != 0,
	};
	/* as pair.c counts them */
	if (ev->op == RT_OP_NEW)
		ret->opens = type->flags & RT_TYPE_HEAP_ONLY ? 1 : inc->start > 0 ? (uint32_t)inc->start : 0;
	if (ev->flags & (LT_EV_TRANSFER | LT_EV_CLOSES))
		ret->closes++;
	if (ev->flags & LT_EV_TRANSFER)
		ret->opens++;
	if (ev->delta > 0)
		ret->opens += (uint32_t)ev->delta;
	else
		ret->closes += (uint32_t)-ev->delta;
}

void lt_observe_step(struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *ev)
{
	struct rt_life_step step;

	if (!lt->observer)
		return;
	fill(lt, inc, ev, &step);
	lt->observer->step(lt->observer, &step);
}

void lt_observe_moved(struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *old,
		      const struct lt_event *outer)
{
	struct lt_event now = *old;
	struct rt_life_step from, to;

	if (!lt->observer)
		return;
	now.use = outer->use;
	now.act = outer->act;
	fill(lt, inc, old, &from);
	fill(lt, inc, &now, &to);
	lt->observer->moved(lt->observer, &from, &to);
}

void lt_observe_end(struct rt_lifetime *lt, const struct lt_inc *inc)
{
	if (lt->observer)
		lt->observer->end(lt->observer, lt_inc_type(lt, inc)->id, inc->serial, inc->end_ns,
				  inc->life == LT_DEAD);
}

size_t rt_lifetime_frames(const struct rt_lifetime *lt, uint32_t place, struct rt_frame *ret, size_t max)
{
	return place && place <= lt->uses.len ? lt_use_frames(lt, &lt->uses.data[place - 1], ret, max) : 0;
}
