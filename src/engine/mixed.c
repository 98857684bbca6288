/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Both engines in one run. Engine U takes what it can; what has no room for a jump, processes that cannot have the
 * agent, and system calls are left to engine K, which is opened when it is needed for the first time. Their events
 * become one stream by time: what K has told waits until U has told all that is older.
 */
#include "base/map.h"
#include "base/vec.h"
#include "engine/agent_priv.h"
#include "engine/engine.h"
#include "engine/point_probe.h"
#include "insn/move.h"

/* Both number the stacks of a process from 1 on; K's carry this as well. */
#define STACK_OF_K (1u << 31)
/* Of the kernel's returns of uprobes: the start of the last page that a program can have (kernel/events/uprobes.c). */
#define TRAMPOLINE 0x7fffffffe000ull
/* Producers of events: U numbers threads from 1 on, K processors from 0 on, which are told from the other end. */
#define PRODUCER_OF_K(seq) ((seq) ^ ~RT_SEQ_MASK)

struct mixed {
	struct rt_engine base;
	struct rt_engine_options options;
	struct rt_agent *agent;
	struct rt_engine *uprobe; /* NULL as long as nothing needs it */
	struct rt_map without;    /* processes that cannot have the agent */
	struct rt_map returns;    /* processes with the agent in which K waits for returns, too */
	/* one drain */
	struct rt_event_sink of_agent, of_uprobe;
	struct rt_event_sink *to;
	bool asked;                           /* K was, since U knows up to when it tells */
	RT_VEC(struct rt_wire_event) waiting; /* of K, by time */
	size_t told;                          /* of them */
	RT_VEC(struct rt_wire_event) ended;   /* of U, by time, later than the time up to which all is told */
};

static struct mixed *mixed_of(struct rt_engine *engine)
{
	return (struct mixed *)(void *)engine; /* base is its first member */
}

/* ---- the stream ---- */

static struct mixed *mixed_of_agent(struct rt_event_sink *sink)
{
	return (struct mixed *)(void *)((char *)sink - __builtin_offsetof(struct mixed, of_agent));
}

static struct mixed *mixed_of_uprobe(struct rt_event_sink *sink)
{
	return (struct mixed *)(void *)((char *)sink - __builtin_offsetof(struct mixed, of_uprobe));
}

/* A stack record, to be changed. */
union stack_copy {
	struct rt_wire_stack stack;
	uint8_t bytes[sizeof(struct rt_wire_stack) + RT_STACK_MAX * sizeof(struct rt_wire_frame)];
};

static bool copy_stack(const struct rt_wire_head *record, union stack_copy *ret)
{
	if (record->kind != RT_WIRE_STACK || record->size > sizeof(*ret))
		return false;
	memcpy(ret, record, record->size);
	return true;
}

static struct rt_error *take_record(struct rt_event_sink *self, const struct rt_wire_head *record)
{
	struct mixed *m = mixed_of_uprobe(self);
	union stack_copy copy;

	if (!copy_stack(record, &copy))
		return m->to->record(m->to, record);
	copy.stack.id |= STACK_OF_K;
	copy.stack.head.seq = PRODUCER_OF_K(copy.stack.head.seq);
	return m->to->record(m->to, &copy.stack.head);
}

static struct rt_error *take_events(struct rt_event_sink *self, struct rt_wire_event *events, size_t n)
{
	struct mixed *m = mixed_of_uprobe(self);

	for (size_t i = 0; i < n; i++) {
		struct rt_wire_event *e = rt_vec_add(&m->waiting);
		size_t at = m->waiting.len - 1;

		if (!e)
			return rt_error_nomem();
		/* processors hand in their events a little out of order */
		for (; at > m->told && m->waiting.data[at - 1].head.time_ns > events[i].head.time_ns; at--)
			m->waiting.data[at] = m->waiting.data[at - 1];
		m->waiting.data[at] = events[i];
		m->waiting.data[at].head.seq = PRODUCER_OF_K(events[i].head.seq);
		m->waiting.data[at].stack |= events[i].stack ? STACK_OF_K : 0;
	}
	return NULL;
}

/* Hands on what waits and is older than until. */
static struct rt_error *tell(struct mixed *m, uint64_t until)
{
	size_t end = m->told;
	struct rt_error *err = NULL;

	while (end < m->waiting.len && m->waiting.data[end].head.time_ns < until)
		end++;
	if (end > m->told)
		err = rt_event_sink_events(m->to, m->waiting.data + m->told, end - m->told);
	m->told = end;
	return err;
}

/* Of what is left, that of processes which U holds nothing back of: it would come behind their end. */
static struct rt_error *tell_ended(struct mixed *m, bool all)
{
	size_t keep = m->told, of_agent = 0;

	for (size_t i = m->told; i < m->waiting.len; i++) {
		struct rt_wire_event e = m->waiting.data[i];
		const struct rt_agent_task *task = rt_agent_task(m->agent, RT_PID_OF(e.head.pid));
		size_t first = of_agent;

		if (!all && task && task->pool && rt_agent_goes_on(task)) {
			m->waiting.data[keep++] = e;
			continue;
		}
		while (of_agent < m->ended.len && m->ended.data[of_agent].head.time_ns <= e.head.time_ns)
			of_agent++;
		if (of_agent > first)
			RT_TRY(rt_event_sink_events(m->to, m->ended.data + first, of_agent - first));
		RT_TRY(rt_event_sink_events(m->to, &e, 1));
	}
	m->waiting.len = keep;
	if (of_agent < m->ended.len)
		RT_TRY(rt_event_sink_events(m->to, m->ended.data + of_agent, m->ended.len - of_agent));
	m->ended.len = 0;
	return NULL;
}

static struct rt_error *ask_uprobe(struct mixed *m)
{
	m->asked = true;
	if (m->told) {
		memmove(m->waiting.data, m->waiting.data + m->told,
			(m->waiting.len - m->told) * sizeof(m->waiting.data[0]));
		m->waiting.len -= m->told;
		m->told = 0;
	}
	return m->uprobe ? m->uprobe->ops->drain(m->uprobe, &m->of_uprobe) : NULL;
}

/* Where a function's return is K's to see, U finds the kernel's trampoline: who called it is not known here. */
static struct rt_error *agent_record(struct rt_event_sink *self, const struct rt_wire_head *record)
{
	struct mixed *m = mixed_of_agent(self);
	union stack_copy copy;
	uint16_t last;

	if (!m->uprobe || !copy_stack(record, &copy))
		return m->to->record(m->to, record);
	last = copy.stack.nr;
	if (last < 2 || copy.stack.frame[last - 1].pc != TRAMPOLINE)
		return m->to->record(m->to, record);
	copy.stack.nr--;
	copy.stack.head.size = (uint16_t)(record->size - sizeof(copy.stack.frame[0]));
	return m->to->record(m->to, &copy.stack.head);
}

/*
 * U tells events once it knows up to when they are all: what K has by now is all of that time. What is later is of
 * processes that have ended: others have yet to tell what is older, and K's of theirs waits for that.
 */
static struct rt_error *agent_events(struct rt_event_sink *self, struct rt_wire_event *events, size_t n)
{
	struct mixed *m = mixed_of_agent(self);
	size_t first = 0, all = n;

	if (!m->asked)
		RT_TRY(ask_uprobe(m));
	while (n && events[n - 1].head.time_ns >= m->agent->told_until)
		n--;
	for (size_t i = n; i < all; i++)
		if (!rt_vec_push(&m->ended, events[i]))
			return rt_error_nomem();
	for (size_t i = 0; i < n && m->told < m->waiting.len; i++) {
		if (m->waiting.data[m->told].head.time_ns >= events[i].head.time_ns)
			continue;
		if (i > first)
			RT_TRY(rt_event_sink_events(m->to, events + first, i - first));
		first = i;
		RT_TRY(tell(m, events[i].head.time_ns));
	}
	return n > first ? rt_event_sink_events(m->to, events + first, n - first) : NULL;
}

/* drain() of U, or its stop(): then nothing waits any more. */
static struct rt_error *merge(struct mixed *m, struct rt_event_sink *sink, bool last)
{
	m->to = sink;
	m->asked = false;
	if (last)
		RT_TRY(rt_engine_agent.stop(&m->agent->base, &m->of_agent));
	else
		RT_TRY(rt_engine_agent.drain(&m->agent->base, &m->of_agent));
	if (!m->asked)
		RT_TRY(ask_uprobe(m));
	RT_TRY(tell(m, m->agent->told_until));
	return tell_ended(m, last);
}

static struct rt_error *mixed_drain(struct rt_engine *engine, struct rt_event_sink *sink)
{
	return merge(mixed_of(engine), sink, false);
}

/* ---- what belongs to whom ---- */

static struct rt_error *need_uprobe(struct mixed *m)
{
	if (m->uprobe)
		return NULL;
	RT_TRY(rt_engine_uprobe.open(&m->options, &m->uprobe));
	/* what was told of processes, it has not heard */
	m->base.code_epoch++;
	return NULL;
}

/* What U could not arm: K may. */
struct refused {
	const struct rt_arm *arm;
	RT_VEC(const struct rt_point *) points;
	bool stop, nomem;
};

static void refuse(const struct rt_arm_failure *failure, void *arg)
{
	struct refused *r = arg;

	r->stop |= !failure->point;
	for (size_t i = 0; i < r->arm->point_count; i++)
		if (r->arm->points[i]->id == failure->point)
			r->nomem |= !rt_vec_push(&r->points, r->arm->points[i]);
}

static struct rt_error *leave_to_uprobe(struct refused *r, const struct rt_point *p)
{
	return rt_vec_push(&r->points, p) ? NULL : rt_error_nomem();
}

/* Arms for U what it can see; the rest is in r. */
static struct rt_error *extend_agent(struct mixed *m, const struct rt_arm *arm, struct refused *r)
{
	struct rt_error *err = rt_engine_agent.extend(&m->agent->base, arm, refuse, r);

	if (!err || err->code != RT_E_UNSUPPORTED)
		return err;
	/* this process cannot have it: all of it is K's */
	rt_error_free(err);
	if (!rt_map_put(&m->without, rt_key_make(arm->pid, 0), NULL))
		return rt_error_nomem();
	r->stop = arm->stop_at.v != 0;
	r->points.len = 0;
	for (size_t i = 0; i < arm->point_count; i++)
		RT_TRY(leave_to_uprobe(r, arm->points[i]));
	return NULL;
}

/* Those of r that no jump of U's has written over. */
static struct rt_error *extend_uprobe(struct mixed *m, const struct rt_arm *arm, struct refused *r,
				      void (*failed)(const struct rt_arm_failure *failure, void *arg), void *arg)
{
	const struct rt_agent_task *task = rt_agent_task(m->agent, arm->pid);
	struct rt_arm part = *arm;
	size_t n = 0;

	for (size_t i = 0; i < r->points.len; i++) {
		const struct rt_point *p = r->points.data[i];
		struct rt_arm_failure failure = { .point = p->id, .why = "another probe's jump reaches into it" };

		if (task && rt_agent_is_jumped(task, arm->bias + p->address.v, 1))
			failed(&failure, arg);
		else
			r->points.data[n++] = p;
	}
	for (size_t i = 0; i < n; i++)
		if (rt_point_at_return(r->points.data[i]) && !rt_map_put(&m->returns, rt_key_make(arm->pid, 0), NULL))
			return rt_error_nomem();
	part.points = r->points.data;
	part.point_count = n;
	if (!r->stop)
		part.stop_at.v = 0;
	if (!n && !part.stop_at.v)
		return NULL;
	RT_TRY(need_uprobe(m));
	return m->uprobe->ops->extend(m->uprobe, &part, failed, arg);
}

/*
 * U makes way for who unwinds a stack by a jump. Where returns are K's to see as well, K stops the thread behind that;
 * not where nothing of the unwinder is left behind it: what K waited for is told as missed then.
 */
static struct rt_error *extend_unwinders(struct mixed *m, const struct rt_arm *arm,
					 void (*failed)(const struct rt_arm_failure *failure, void *arg), void *arg)
{
	const struct rt_agent_task *task;
	struct rt_arm part = *arm;
	_cleanup_free_ struct rt_unwinder *list = calloc(arm->unwinder_count, sizeof(*list));

	if (!list)
		return rt_error_nomem();
	RT_TRY(rt_engine_agent.extend(&m->agent->base, arm, failed, arg));
	task = rt_agent_task(m->agent, arm->pid);
	if (!task || !m->uprobe || !rt_map_get(&m->returns, rt_key_make(arm->pid, 0)))
		return NULL;
	part.unwinders = list;
	part.unwinder_count = 0;
	for (size_t i = 0; i < arm->unwinder_count; i++) {
		struct rt_unwinder *u = &list[part.unwinder_count];
		size_t behind;

		*u = arm->unwinders[i];
		behind = rt_agent_behind_jump(task, arm->bias + u->address.v);
		if (behind && u->kind == RT_UNWINDER_OVER && u->before)
			continue;
		u->address.v += behind;
		u->offset.v += behind;
		part.unwinder_count++;
	}
	return m->uprobe->ops->extend(m->uprobe, &part, failed, arg);
}

static struct rt_error *mixed_extend(struct rt_engine *engine, const struct rt_arm *arm,
				     void (*failed)(const struct rt_arm_failure *failure, void *arg), void *arg)
{
	struct mixed *m = mixed_of(engine);
	struct refused r = { .arm = arm };
	struct rt_error *err = NULL;

	if (!arm->path || rt_map_get(&m->without, rt_key_make(arm->pid, 0))) {
		RT_TRY(need_uprobe(m));
		return m->uprobe->ops->extend(m->uprobe, arm, failed, arg);
	}
	if (arm->unwinder_count)
		return extend_unwinders(m, arm, failed, arg);
	err = extend_agent(m, arm, &r);
	if (!err && r.nomem)
		err = rt_error_nomem();
	if (!err)
		err = extend_uprobe(m, arm, &r, failed, arg);
	rt_vec_deinit(&r.points);
	return err;
}

static struct rt_error *mixed_code(struct rt_engine *engine, const struct rt_arm *arm,
				   const struct rt_engine_code *list, size_t count)
{
	struct mixed *m = mixed_of(engine);
	struct rt_error *err = rt_engine_agent.code(&m->agent->base, arm, list, count), *other;

	if (!m->uprobe || (err && err->code != RT_E_LIMIT))
		return err;
	other = m->uprobe->ops->code(m->uprobe, arm, list, count);
	if (!err)
		return other;
	rt_error_free(other);
	return err;
}

/* A child of a process without the agent has none either. */
static struct rt_error *mixed_fork(struct rt_engine *engine, uint32_t parent, uint32_t pid, uint32_t wire_pid)
{
	struct mixed *m = mixed_of(engine);

	if (rt_map_get(&m->without, rt_key_make(parent, 0)) && !rt_map_put(&m->without, rt_key_make(pid, 0), NULL))
		return rt_error_nomem();
	RT_TRY(rt_engine_agent.fork(&m->agent->base, parent, pid, wire_pid));
	return m->uprobe ? m->uprobe->ops->fork(m->uprobe, parent, pid, wire_pid) : NULL;
}

static struct rt_error *mixed_leave(struct rt_engine *engine, uint32_t parent, uint32_t pid)
{
	struct mixed *m = mixed_of(engine);

	RT_TRY(rt_engine_agent.leave(&m->agent->base, parent, pid));
	return m->uprobe ? m->uprobe->ops->leave(m->uprobe, parent, pid) : NULL;
}

static void mixed_forget(struct rt_engine *engine, uint32_t pid)
{
	struct mixed *m = mixed_of(engine);

	(void)rt_map_remove(&m->without, rt_key_make(pid, 0), NULL);
	(void)rt_map_remove(&m->returns, rt_key_make(pid, 0), NULL);
	rt_engine_agent.forget(&m->agent->base, pid);
	if (m->uprobe)
		m->uprobe->ops->forget(m->uprobe, pid);
}

static bool mixed_unwinds(struct rt_engine *engine, uint32_t pid, uint32_t tid)
{
	struct mixed *m = mixed_of(engine);

	return m->uprobe && m->uprobe->ops->unwinds(m->uprobe, pid, tid);
}

static void mixed_settle(struct rt_engine *engine)
{
	struct mixed *m = mixed_of(engine);

	if (m->uprobe)
		m->uprobe->ops->settle(m->uprobe);
}

/* ---- the rest is U's, or both's ---- */

static struct rt_error *mixed_thread(struct rt_engine *engine, uint32_t pid, uint32_t tid, bool ends)
{
	struct mixed *m = mixed_of(engine);

	return rt_engine_agent.thread(&m->agent->base, pid, tid, ends);
}

static bool mixed_fault(struct rt_engine *engine, uint32_t pid, uint32_t tid)
{
	struct mixed *m = mixed_of(engine);

	return rt_engine_agent.fault(&m->agent->base, pid, tid);
}

static bool mixed_is_in(struct rt_engine *engine, uint32_t pid, uint64_t pc)
{
	struct mixed *m = mixed_of(engine);

	return rt_engine_agent.is_in(&m->agent->base, pid, pc);
}

static bool mixed_asks(struct rt_engine *engine, uint32_t pid, uint32_t *ret_tid)
{
	struct mixed *m = mixed_of(engine);

	return rt_engine_agent.asks(&m->agent->base, pid, ret_tid);
}

static void mixed_answer(struct rt_engine *engine, uint32_t pid)
{
	struct mixed *m = mixed_of(engine);

	rt_engine_agent.answer(&m->agent->base, pid);
}

static void mixed_sample(struct rt_engine *engine, uint32_t rate)
{
	struct mixed *m = mixed_of(engine);

	m->options.sample.rate = rate;
	rt_engine_agent.sample(&m->agent->base, rate);
	if (m->uprobe)
		m->uprobe->ops->sample(m->uprobe, rate);
}

static void mixed_disarm(struct rt_engine *engine)
{
	struct mixed *m = mixed_of(engine);

	rt_engine_agent.disarm(&m->agent->base);
}

static struct rt_error *mixed_stop(struct rt_engine *engine, struct rt_event_sink *sink)
{
	struct mixed *m = mixed_of(engine);

	RT_TRY(merge(m, sink, true));
	return m->uprobe ? m->uprobe->ops->stop(m->uprobe, &m->of_uprobe) ?: tell(m, UINT64_MAX) : NULL;
}

static void mixed_stats(struct rt_engine *engine, struct rt_engine_stats *ret)
{
	struct mixed *m = mixed_of(engine);
	struct rt_engine_stats k = { .balanced = true };

	rt_engine_agent.stats(&m->agent->base, ret);
	if (m->uprobe)
		m->uprobe->ops->stats(m->uprobe, &k);
	ret->records += k.records;
	ret->hits += k.hits;
	ret->dropped += k.dropped;
	ret->faults += k.faults;
	ret->stack_resent += k.stack_resent;
	ret->returns_missed += k.returns_missed;
	ret->steps += k.steps;
	ret->returns += k.returns;
	ret->passed += k.passed;
	ret->balanced &= k.balanced;
}

static void mixed_close(struct rt_engine *engine)
{
	struct mixed *m = mixed_of(engine);

	if (!m)
		return;
	if (m->agent)
		rt_engine_agent.close(&m->agent->base);
	if (m->uprobe)
		m->uprobe->ops->close(m->uprobe);
	rt_vec_deinit(&m->waiting);
	rt_vec_deinit(&m->ended);
	rt_map_deinit(&m->without);
	rt_map_deinit(&m->returns);
	free(m);
}

static void mixed_closep(struct mixed **m)
{
	if (*m)
		mixed_close(&(*m)->base);
}

static struct rt_error *mixed_probe(const struct rt_engine_options *options)
{
	RT_TRY(rt_engine_agent.probe(options));
	return rt_engine_uprobe.probe(options);
}

static struct rt_error *mixed_open(const struct rt_engine_options *options, struct rt_engine **ret)
{
	_cleanup_(mixed_closep) struct mixed *m = calloc(1, sizeof(*m));
	struct rt_engine *agent;

	if (!m)
		return rt_error_nomem();
	m->base.ops = &rt_engine_mixed;
	m->options = *options;
	m->of_agent.record = agent_record;
	m->of_agent.events = agent_events;
	m->of_uprobe.record = take_record;
	m->of_uprobe.events = take_events;
	RT_TRY(rt_engine_agent.open(options, &agent));
	m->agent = (struct rt_agent *)(void *)agent; /* base is its first member */
	*ret = &rt_take(m)->base;
	return NULL;
}

/* no cost(): it would depend on who sees what */
const struct rt_engine_ops rt_engine_mixed = {
	.name = "agent+uprobe",
	.room = RT_MOVE_JUMP,
	.breakpoints = true,
	.probe = mixed_probe,
	.open = mixed_open,
	.extend = mixed_extend,
	.code = mixed_code,
	.fork = mixed_fork,
	.leave = mixed_leave,
	.thread = mixed_thread,
	.fault = mixed_fault,
	.is_in = mixed_is_in,
	.asks = mixed_asks,
	.answer = mixed_answer,
	.sample = mixed_sample,
	.drain = mixed_drain,
	.forget = mixed_forget,
	.settle = mixed_settle,
	.unwinds = mixed_unwinds,
	.disarm = mixed_disarm,
	.stop = mixed_stop,
	.stats = mixed_stats,
	.close = mixed_close,
};
