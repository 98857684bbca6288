/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One event record: looks up its point, thread, activation and site, then
 * hands it to the life of its object. A swap is a put of what the slot held
 * and a get of what it takes.
 */
#include <string.h>

#include "lifetime/life.h"
#include "lifetime/thread.h"

static int32_t count_of(const struct rt_wire_event *e)
{
	bool has = (e->flags & (RT_EV_COUNT_READ | RT_EV_COUNT_EXACT)) && !(e->flags & RT_EV_COUNT_FAULT);

	return has ? (int32_t)e->count : INT32_MIN;
}

static uint8_t flags_of(const struct rt_wire_event *e)
{
	return (uint8_t)((e->flags & RT_EV_HIDDEN ? LT_EV_HIDDEN : 0) |
			 (e->flags & RT_EV_AT_RETURN ? LT_EV_RETURN : 0));
}

static void swap(struct rt_lifetime *lt, struct lt_seen *seen)
{
	const struct rt_wire_event *e = seen->e;
	uint64_t *slot =
		seen->ev.slot ? rt_map_put(&lt->slots,
					   rt_key_make(seen->ev.slot, (uint64_t)e->head.pid << 32 | seen->type), NULL)
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
	if (old && lt_inc_find(lt, e->head.pid, seen->type, old)) {
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
	static const struct {
		int16_t least, most;
	} deltas[RT_OP_NR] = {
		[RT_OP_NONE] = { 1, 0 },
		[RT_OP_NEW] = { INT16_MIN, INT16_MAX },
		[RT_OP_GET] = { 0, LT_UNITS - 1 },
		[RT_OP_PUT] = { -(LT_UNITS - 1), 0 },
		[RT_OP_FREE] = { INT16_MIN, INT16_MAX },
		[RT_OP_SINK] = { 0, LT_UNITS - 1 },
		[RT_OP_STEAL] = { INT16_MIN, INT16_MAX },
		[RT_OP_SWAP] = { 0, LT_UNITS - 1 },
		[RT_OP_MOVE] = { INT16_MIN, INT16_MAX },
		[RT_OP_USE] = { INT16_MIN, INT16_MAX },
	};

	/* which operation it is nobody can predict: no branch on that */
	return e->head.op < RT_OP_NR &&
	       ((e->delta >= deltas[e->head.op].least) & (e->delta <= deltas[e->head.op].most));
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

/*
 * None lives there any more, but the very run of the function that put the last reference to it puts once more:
 * whatever else may be at the address by now, it means that one.
 */
static bool goes_on(const struct rt_lifetime *lt, const struct rt_wire_event *e, const struct lt_known *known,
		    uint32_t act)
{
	const struct lt_inc *inc = e->object ? lt_inc_find(lt, e->head.pid, known->type, e->object) : NULL;
	const struct lt_event *put = NULL;

	if (!inc || inc->life != LT_DEAD || e->head.op != RT_OP_PUT || !act)
		return false;
	for (uint32_t i = inc->nr; i-- > 0 && !put;)
		put = inc->ledger[i].op == RT_OP_PUT && inc->ledger[i].delta < 0 ? &inc->ledger[i] : NULL;
	return put && put->act == act && put->tid == e->head.tid;
}

/* what the event means, at a place and in an activation that are known */
static struct lt_seen seen_of(const struct rt_lifetime *lt, const struct rt_wire_event *e,
			      const struct lt_process *process, const struct lt_thread *thread,
			      const struct lt_known *known)
{
	struct lt_seen seen = { .e = e,
				.process = process,
				.type = known->type,
				.raw = count_of(e),
				.sized = lt->points.data[lt->uses.data[known->use].point].aux == RT_AUX_SIZE };

	seen.ev = (struct lt_event){
		.time_ns = e->head.time_ns,
		.slot = known->slot ? e->aux : 0,
		.sp = e->sp,
		.tid = e->head.tid,
		.use = known->use,
		.act = lt_thread_act(thread, known->machine),
		.count = lt->types.data[known->type].counting.off ? INT32_MIN : seen.raw,
		.delta = e->delta,
		.op = e->head.op,
		.flags = flags_of(e),
	};
	seen.ev.up = known->up == known->machine ? seen.ev.act : lt_thread_act(thread, known->up);
	return seen;
}

static void happens(struct rt_lifetime *lt, struct lt_seen *seen, bool silent)
{
	const struct rt_wire_event *e = seen->e;
	const struct lt_type *type = &lt->types.data[seen->type];

	if ((type->flags & RT_TYPE_SAMPLED) && lt_sample_passes(lt, e)) {
		seen->ev.delta = 0;
	} else if (silent) {
		lt_life_pointer(lt, seen);
	} else if (e->head.op == RT_OP_SWAP) {
		swap(lt, seen);
	} else if (e->object && (type->flags & RT_TYPE_KERNEL)) {
		lt_range_operation(lt, seen);
	} else if (e->object) {
		lt_stray_join(lt, seen);
		lt_life_operation(lt, seen);
	}
}

void lt_incarnation_event(struct rt_lifetime *lt, const struct rt_wire_event *e)
{
	struct lt_thread *thread = lt_thread(lt, e->head.pid, e->head.tid);
	const struct lt_process *process = thread ? process_of(lt, thread) : NULL;
	const struct lt_known *known = process && sane(e) ? lt_known(lt, e) : NULL;
	struct lt_known maybe;
	struct lt_seen seen;
	struct lt_type *type;
	struct lt_use *use;
	bool silent, stray;

	if (!known) {
		lt->inconsistent++;
		return;
	}
	lt->lifeless |= lt_thread_lifeless(thread, process, e->head.time_ns);
	silent = e->head.op == RT_OP_MOVE && lt_point_silent(&lt->points.data[lt->uses.data[known->use].point]);
	stray = false;
	if ((e->flags & RT_EV_MAYBE) && !silent) {
		maybe = *known;
		stray = !lt_maybe(lt, e, &maybe);
		known = &maybe;
	}
	type = &lt->types.data[known->type];
	use = &lt->uses.data[known->use];
	use->events++;
	if (e->flags & (RT_EV_NO_OBJECT | RT_EV_COUNT_FAULT))
		lt->points.data[use->point].unread++;
	if (stray && e->head.op != RT_OP_PUT && !lt_stray_counts(e))
		return;
	lt_thread_see(lt, thread, use, &known->plain, e->sp);
	if (stray && !goes_on(lt, e, known, lt_thread_act(thread, known->machine))) {
		seen = seen_of(lt, e, process, thread, known);
		lt_stray_keep(lt, &seen);
		return;
	}
	type->op[e->head.op]++;
	if ((e->flags & RT_EV_NO_OBJECT) && !silent) {
		lt->blind++;
		type->damaged = true;
		lt_thread_last(lt, thread, e, known->type, 0);
		return;
	}
	seen = seen_of(lt, e, process, thread, known);
	type->counter |= seen.raw != INT32_MIN;
	happens(lt, &seen, silent);
	if (known->classed && e->aux && !silent)
		lt_class_seen(lt, e, known->type);
	if (e->flags & RT_EV_OUTSIDE)
		lt_sample_outside(lt, e, known->type);
	lt_thread_last(lt, thread, e, seen.type, silent ? 0 : seen.ev.delta);
}
