/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From the threads' rings to one stream by time. Who is in a hook has said so before it read the time: what is
 * handed on is older than anything that anybody may still tell. Stacks are read after the rings were looked at: an
 * event's stack is there before it. Of a process that has ended all is handed on, whoever is in a hook: what comes
 * later would come behind its end. That is later than what others still have to tell: by time is the stream of each
 * process, and that of all up to told_until.
 *
 * A thread that has lost its processor in a hook holds back all others, until there is one for it again. Their events
 * are kept here meanwhile: nobody waits for room in his ring because of that one.
 */
#include <errno.h>

#include "base/proc.h"
#include "engine/agent_priv.h"

/* A hook takes no time but for its wait for a processor, and for the reader. */
#define LONG_NS 100000000.0
#define ENDLESS_NS 5000000000.0

enum {
	AHEAD = 16,       /* events of a ring that are fetched ahead */
	GIVEN_BACK = 256, /* places that a thread gets back at once */
	BLOCK = 256,      /* events that are handed on at once */
};

/* What waits in one ring. */
struct line {
	struct rt_agent_task *task;
	struct rt_agent_member *member;
	struct rt_agent_thread *thread;
	uint64_t pos, end;
	uint64_t cut;  /* its events from here on wait */
	bool ended;    /* its process has */
	uint64_t time; /* of the event at pos; UINT64_MAX: nothing there for now */
};

struct lines {
	uint64_t cut;
	RT_VEC(struct line) list;
	struct rt_wire_event block[BLOCK];
	size_t blocked; /* events in it */
};

static struct rt_wire_event *slot(const struct line *l, uint64_t pos)
{
	return &l->thread->ring[pos & (RT_AGENT_RING - 1)];
}

static bool is_whole(const struct rt_wire_event *e)
{
	return __atomic_load_n((const uint64_t *)(const void *)e, __ATOMIC_ACQUIRE);
}

static bool is_in_hook(const struct line *l)
{
	return __atomic_load_n(&l->thread->entered, __ATOMIC_ACQUIRE);
}

/*
 * Whether who says that he is in a hook is not: longjmp() took him out of it, in a signal's handler. No hook makes a
 * system call: who waits in one is in none.
 */
static bool is_out(const struct rt_agent *a, struct rt_agent_member *m)
{
	double ns = m->since ? (double)(rt_agent_tsc() - m->since) * a->clock.slope : 0;

	if (!m->out && ns > LONG_NS)
		m->out = ns > ENDLESS_NS || rt_proc_state(m->tid) == 'S';
	return m->out;
}

/*
 * e was begun, and not ended: somebody is at it, or it was left. It is looked at once more after it was looked who is
 * in a hook: who is in none has left nothing half-written. What the thread writes in each hook is asked for here alone.
 */
static bool was_left(const struct line *l, const struct rt_wire_event *e)
{
	bool hooked = is_in_hook(l);

	if (is_whole(e))
		return false;
	return l->member->gone || (l->pos + 1 != l->end && (!hooked || l->member->out));
}

/* The next event of the ring that is whole, or NULL. What was begun and left is passed over once later ones are there.
 */
static const struct rt_wire_event *next_in_ring(struct line *l)
{
	for (; l->pos < l->end; l->pos++) {
		const struct rt_wire_event *e = slot(l, l->pos);

		/* another processor has written them */
		if (l->end - l->pos > AHEAD)
			__builtin_prefetch(slot(l, l->pos + AHEAD));
		if (is_whole(e))
			return e;
		if (!was_left(l, e))
			return NULL;
	}
	return NULL;
}

/* When the next event of a thread was, if it has its turn by now. */
static void look(struct line *l)
{
	const struct rt_wire_event *e = rt_agent_held_next(&l->member->held) ?: next_in_ring(l);

	l->time = e && e->head.time_ns < l->cut ? e->head.time_ns : UINT64_MAX;
}

/* Takes the event at pos out of the ring. */
static void take(struct line *l, struct rt_wire_event *to)
{
	struct rt_wire_event *e = slot(l, l->pos++);

	*to = *e;
	__atomic_store_n((uint64_t *)(void *)e, 0, __ATOMIC_RELAXED);
	/* now and then: each time that the thread looks there afterwards, it waits for it */
	if (l->pos % GIVEN_BACK == 0)
		__atomic_store_n(&l->thread->read, l->pos, __ATOMIC_RELEASE);
}

/* Takes the event that was looked at. */
static void take_next(struct rt_agent *a, struct line *l, struct rt_wire_event *to)
{
	struct rt_agent_held *held = &l->member->held;
	const struct rt_wire_event *e = rt_agent_held_next(held);

	if (!e) {
		take(l, to);
		return;
	}
	*to = *e;
	rt_agent_held_take(&a->held_pool, held);
}

/* Keeps what waits in a ring that fills up, as far as there is memory for that. */
static void make_room(struct rt_agent *a, struct line *l)
{
	struct rt_wire_event *to;

	if (l->end - l->pos < RT_AGENT_RING / 4)
		return;
	while (next_in_ring(l) && (to = rt_agent_held_add(&a->held_pool, &l->member->held)) != NULL)
		take(l, to);
}

bool rt_agent_goes_on(const struct rt_agent_task *task)
{
	for (size_t i = 0; i < task->members.len; i++)
		if (!task->members.data[i].gone)
			return true;
	return false;
}

static struct rt_error *add_line(struct lines *lines, struct rt_agent_task *task, struct rt_agent_member *m, bool ended)
{
	struct line *l = rt_vec_add(&lines->list);

	if (!l)
		return rt_error_nomem();
	l->task = task;
	l->member = m;
	l->thread = rt_agent_thread(task, m->offset);
	l->pos = l->thread->read;
	l->ended = ended;
	return NULL;
}

/*
 * Up to when a thread tells nothing more, as of now. Who is in no hook reads the time later than now; who is in one has
 * maybe read it, but after its last event, and after it was last seen in none.
 */
static void set_idle(struct line *l, uint64_t now)
{
	struct rt_agent_member *m = l->member;
	bool hooked = is_in_hook(l);
	uint64_t idle = hooked ? m->idle : now;

	if (hooked) {
		uint64_t end = __atomic_load_n(&l->thread->taken, __ATOMIC_ACQUIRE);
		const struct rt_wire_event *last = end > l->pos ? slot(l, end - 1) : NULL;

		if (last && is_whole(last) && last->head.time_ns > idle)
			idle = last->head.time_ns;
	}
	if (!hooked || idle != m->idle || !m->since) {
		m->since = hooked ? now : 0;
		m->out = false;
	}
	m->idle = idle;
}

/* Who is in a hook holds back what is later, of all who go on. */
static void set_cuts(const struct rt_agent *a, struct lines *lines)
{
	uint64_t now = rt_agent_tsc();

	lines->cut = now;
	for (size_t i = 0; i < lines->list.len; i++) {
		struct line *l = &lines->list.data[i];

		set_idle(l, now);
		if (l->member->idle < lines->cut && !l->member->gone && !is_out(a, l->member))
			lines->cut = l->member->idle;
	}
	for (size_t i = 0; i < lines->list.len; i++)
		lines->list.data[i].cut = lines->list.data[i].ended ? UINT64_MAX : lines->cut;
}

/* What there is, and up to when it is all. */
static struct rt_error *survey(struct rt_agent *a, struct lines *lines)
{
	for (size_t i = 0; i < a->tasks.len; i++) {
		struct rt_agent_task *task = a->tasks.data[i];
		bool ended;

		if (!task->pool)
			continue;
		RT_TRY(rt_agent_threads_look(a, task));
		ended = !rt_agent_goes_on(task);
		for (size_t k = 0; k < task->members.len; k++)
			RT_TRY(add_line(lines, task, &task->members.data[k], ended));
	}
	set_cuts(a, lines);
	for (size_t i = 0; i < lines->list.len; i++) {
		struct line *l = &lines->list.data[i];

		l->end = __atomic_load_n(&l->thread->taken, __ATOMIC_ACQUIRE);
		if (l->end - l->pos > RT_AGENT_RING)
			return rt_error_new(RT_E_INTERNAL, "engine agent: process %u has damaged its rings",
					    l->task->pid);
		look(l);
	}
	return NULL;
}

static struct rt_error *deliver_stack(struct rt_agent *a, struct rt_agent_task *task, const struct rt_wire_stack *s,
				      struct rt_event_sink *sink)
{
	union {
		struct rt_wire_stack stack;
		uint8_t bytes[sizeof(struct rt_wire_stack) + RT_STACK_MAX * sizeof(struct rt_wire_frame)];
	} copy;

	memcpy(&copy.stack, s, sizeof(*s));
	if (copy.stack.nr > RT_STACK_MAX)
		return rt_error_new(RT_E_INTERNAL, "engine agent: process %u has damaged its rings", task->pid);
	copy.stack.head.size = (uint16_t)(sizeof(*s) + copy.stack.nr * sizeof(s->frame[0]));
	copy.stack.head.kind = RT_WIRE_STACK;
	copy.stack.head.op = 0;
	copy.stack.head.seq = 0;
	copy.stack.head.pid = task->wire_pid;
	memcpy(copy.stack.frame, s->frame, copy.stack.nr * sizeof(s->frame[0]));
	copy.stack.head.time_ns = rt_agent_clock_at(&a->clock, copy.stack.head.time_ns);
	return sink->record(sink, &copy.stack.head);
}

/* *ret_all: nothing that was begun is missing. */
static struct rt_error *drain_stacks(struct rt_agent *a, struct rt_agent_task *task, struct rt_event_sink *sink,
				     bool *ret_all)
{
	struct rt_agent_process *p = rt_agent_process(task);
	uint64_t pos = p->stacks_read, end = __atomic_load_n(&p->stacks_taken, __ATOMIC_ACQUIRE);
	struct rt_error *err = NULL;

	if (end - pos > RT_AGENT_STACKS)
		return rt_error_new(RT_E_INTERNAL, "engine agent: process %u has damaged its rings", task->pid);
	while (pos < end && !err) {
		uint64_t *piece = p->stacks[pos & (RT_AGENT_STACKS - 1)];
		uint64_t first = __atomic_load_n(piece, __ATOMIC_ACQUIRE), n = ((first & 0xffff) + 63) / 64;

		if (!first)
			break;
		if (!n || n > RT_AGENT_STACKS - (pos & (RT_AGENT_STACKS - 1)))
			return rt_error_new(RT_E_INTERNAL, "engine agent: process %u has damaged its rings", task->pid);
		if (first >> 16 == RT_WIRE_STACK)
			err = deliver_stack(a, task, (const void *)piece, sink);
		memset(piece, 0, n * 64);
		pos += n;
	}
	__atomic_store_n(&p->stacks_read, pos, __ATOMIC_RELEASE);
	*ret_all = pos >= end;
	return err;
}

static struct rt_error *hand_on(struct lines *lines, struct rt_event_sink *sink)
{
	size_t n = lines->blocked;

	lines->blocked = 0;
	return n ? rt_event_sink_events(sink, lines->block, n) : NULL;
}

static struct rt_error *deliver(struct rt_agent *a, struct lines *lines, struct line *l, struct rt_event_sink *sink)
{
	struct rt_wire_event *to = &lines->block[lines->blocked];

	take_next(a, l, to);
	if (!to->point || to->point > a->last_point || to->head.size != sizeof(*to) || to->head.kind != RT_WIRE_EVENT)
		return rt_error_new(RT_E_INTERNAL, "engine agent: process %u has damaged its rings", l->task->pid);
	a->records[to->point]++;
	to->head.pid = l->task->wire_pid;
	to->head.tid = l->member->tid;
	to->head.time_ns = rt_agent_clock_ns(&a->clock, to->head.time_ns, &l->task->last_ns);
	return ++lines->blocked == BLOCK ? hand_on(lines, sink) : NULL;
}

/* The oldest event first; from the same ring as long as no other has an older one. */
static struct rt_error *merge(struct rt_agent *a, struct lines *lines, struct rt_event_sink *sink)
{
	for (;;) {
		struct line *first = NULL;
		uint64_t until = UINT64_MAX;

		for (size_t i = 0; i < lines->list.len; i++) {
			struct line *l = &lines->list.data[i];

			if (!first || l->time < first->time) {
				until = first ? first->time : UINT64_MAX;
				first = l;
			} else if (l->time < until) {
				until = l->time;
			}
		}
		if (!first || first->time == UINT64_MAX)
			return hand_on(lines, sink);
		while (first->time <= until && first->time != UINT64_MAX) {
			RT_TRY(deliver(a, lines, first, sink));
			look(first);
		}
	}
}

static struct rt_error *drain(struct rt_agent *a, struct lines *lines, struct rt_event_sink *sink)
{
	bool all = true;

	RT_TRY(survey(a, lines));
	for (size_t i = 0; i < a->tasks.len; i++) {
		bool these = true;

		if (a->tasks.data[i]->pool)
			RT_TRY(drain_stacks(a, a->tasks.data[i], sink, &these));
		/* of a process that has ended in the middle of one, nothing more will come */
		all = all && (these || !rt_agent_goes_on(a->tasks.data[i]));
	}
	/* a stack is being written: what leads to it waits */
	for (size_t i = 0; !all && i < lines->list.len; i++)
		if (!lines->list.data[i].ended)
			lines->list.data[i].time = UINT64_MAX;
	rt_agent_clock_set(&a->clock);
	if (all)
		a->told_until = rt_agent_clock_at(&a->clock, lines->cut);
	RT_TRY(merge(a, lines, sink));
	for (size_t i = 0; i < lines->list.len; i++) {
		struct line *l = &lines->list.data[i];

		make_room(a, l);
		/* with what was passed over */
		__atomic_store_n(&l->thread->read, l->pos, __ATOMIC_RELEASE);
	}
	return NULL;
}

struct rt_error *rt_agent_drain(struct rt_agent *a, struct rt_event_sink *sink)
{
	struct lines lines;
	struct rt_error *err;

	lines.list = (__typeof__(lines.list)){ 0 };
	lines.blocked = 0;
	err = drain(a, &lines, sink);
	rt_vec_deinit(&lines.list);
	return err;
}
