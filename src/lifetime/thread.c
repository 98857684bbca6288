/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Activations: which run of a function an event lies in.
 *
 * Consecutive stacks of a thread are compared from the outermost frame on. A
 * frame is the same run only if its caller is the same run and still stands at
 * the same call, and the function and its CFA are the same. Anything weaker
 * pairs a get of one request with the put of the next: (function, CFA) comes
 * back in every turn of an event loop. What cannot be proven has number 0. A
 * stack that is cut is laid over the last one where its outermost frame stood.
 */
#include <string.h>

#include "lifetime/thread.h"

enum { THREADS_MAX = 1024 }; /* threads that are looked at for operations under way */

struct lt_thread *lt_thread_find(struct rt_lifetime *lt, uint32_t pid, uint32_t tid)
{
	uint64_t *p = rt_map_put(&lt->thread_by_id, rt_key_make(pid, tid), NULL);
	struct lt_thread *t;

	if (!p)
		return NULL;
	t = (struct lt_thread *)(uintptr_t)*p;
	if (!t) {
		t = rt_arena_alloc(&lt->arena, sizeof(*t));
		if (!t)
			return NULL;
		t->pid = pid;
		t->tid = tid;
		t->until_ns = UINT64_MAX;
		t->turn.newer = t->turn.older = &t->turn;
		*p = (uintptr_t)t;
	}
	*lt_thread_known(lt, pid, tid) = t;
	return t;
}

/* writes down the frames of a plain stack that was seen by its nodes alone */
static void write_frames(const struct rt_lifetime *lt, struct lt_thread *t)
{
	const struct lt_stack *s;

	if (!t->stale)
		return;
	t->stale = false;
	s = &lt->stacks.data[t->stack - 1];
	for (uint32_t at = 0; at < s->nr; at++) {
		const struct lt_machine *m = &lt->machines.data[s->first + s->nr - 1 - at];

		t->frames[t->outside + at] = (struct lt_frame){ t->sp + m->cfa, m->pc, m->function };
	}
}

/* where in the frames of t the outermost frame of a cut stack lies */
static uint32_t align_cut(const struct lt_thread *t, uint64_t cfa, uint64_t pc, uint32_t function)
{
	for (uint32_t i = 0; i < t->nr; i++) {
		if (t->frames[i].cfa == cfa && t->frames[i].function == function && t->frames[i].pc == pc)
			return i;
	}
	return UINT32_MAX;
}

/* frame number at is the one that was there, or a new activation */
static void enter(struct rt_lifetime *lt, struct lt_thread *t, uint32_t at, bool kept, uint64_t cfa)
{
	if (kept)
		return;
	t->act[at] = ++lt->next_act - at;
	if (t->proven > at)
		t->proven = at;
	if (t->proven == at && cfa)
		t->proven++;
}

/*
 * The function that was called and jumped to the API: the API has its place in
 * the stack, so the CFA of the one is the CFA of the other.
 */
static void see_jumped(struct rt_lifetime *lt, struct lt_thread *t, uint32_t at, uint64_t pc, bool kept)
{
	struct lt_frame *f = &t->frames[at], *caller = f - 1;
	struct lt_frame now = { .cfa = t->sp, .function = lt_src(lt, t->jumped)->function };

	kept = kept && at < t->nr && f->function == now.function && f->cfa == now.cfa && caller->pc == pc;
	enter(lt, t, at, kept, now.cfa);
	*f = now;
}

static void see_frames(struct rt_lifetime *lt, struct lt_thread *t, const struct lt_stack *s)
{
	uint64_t sp = t->sp;
	bool kept = true;
	uint32_t at = 0;

	if (s->cut) {
		const struct lt_machine *m = &lt->machines.data[s->first + s->nr - 1];

		at = align_cut(t, m->cfa ? sp + m->cfa : 0, m->pc, m->function);
		if (at == UINT32_MAX || at + s->nr >= RT_STACK_MAX) {
			at = 0;
			kept = false;
		}
	}
	for (uint32_t i = s->nr; i-- > 0; at++) {
		const struct lt_machine *m = &lt->machines.data[s->first + i];
		struct lt_frame *f = &t->frames[at], *caller = at ? f - 1 : NULL;
		struct lt_frame now = { .cfa = m->cfa ? sp + m->cfa : 0, .pc = m->pc, .function = m->function };

		kept = kept && at < t->nr && f->function == now.function && f->cfa == now.cfa;
		if (kept && caller && i + 1 < s->nr && caller->pc != lt->machines.data[s->first + i + 1].pc)
			kept = false;
		enter(lt, t, at, kept, now.cfa);
		/* the caller's pc is compared one turn later: keep the old one until then */
		if (caller && i + 1 < s->nr)
			caller->pc = lt->machines.data[s->first + i + 1].pc;
		now.pc = kept ? f->pc : m->pc;
		*f = now;
	}
	if (t->jumped && at < RT_STACK_MAX)
		see_jumped(lt, t, at++, lt->machines.data[s->first].pc, kept);
	else
		t->jumped = 0;
	t->frames[at - 1 - (t->jumped != 0)].pc = lt->machines.data[s->first].pc;
	t->nr = at;
}

/* a stack that is not plain, or not after a plain one */
static void see_stack(struct rt_lifetime *lt, struct lt_thread *t, const struct lt_use *use, uint64_t sp)
{
	const struct lt_stack *s = use->stack ? &lt->stacks.data[use->stack - 1] : NULL;

	write_frames(lt, t);
	if (!s || !s->nr || !s->named) {
		/* only what lies below sp is known to be over */
		while (t->nr && sp && t->frames[t->nr - 1].cfa && t->frames[t->nr - 1].cfa <= sp)
			t->nr--;
		t->proven = t->proven < t->nr ? t->proven : t->nr;
		t->stack = t->jumped = 0;
		return;
	}
	t->stack = use->stack;
	t->jumped = use->jumped;
	t->sp = sp;
	see_frames(lt, t, s);
}

void lt_thread_see(struct rt_lifetime *lt, struct lt_thread *t, const struct lt_use *use, const struct lt_plain *plain,
		   uint64_t sp)
{
	if (lt_thread_stands(t, use, sp))
		return;
	if (lt_thread_follows(lt, t, plain, sp)) {
		lt_thread_see_plain(lt, t, use->stack, plain, sp);
		return;
	}
	see_stack(lt, t, use, sp);
	t->plain = *plain;
	t->outside = plain->nr ? t->nr - plain->nr : 0;
}

/* the outermost frame of the stack at sp that is one of t's; *ret_at: which of the stack's; UINT32_MAX: none is */
static uint32_t outermost_common(const struct rt_lifetime *lt, const struct lt_thread *t, const struct lt_stack *s,
				 uint64_t sp, uint32_t *ret_at)
{
	for (uint32_t at = s->nr; at-- > 0;) {
		const struct lt_machine *m = &lt->machines.data[s->first + at];

		for (uint32_t i = 0; m->cfa && i < t->nr; i++) {
			if (t->frames[i].cfa == sp + m->cfa && t->frames[i].function == m->function) {
				*ret_at = at;
				return i;
			}
		}
	}
	return UINT32_MAX;
}

void lt_thread_stand(struct rt_lifetime *lt, struct lt_thread *t, uint32_t stack, uint64_t sp)
{
	const struct lt_stack *s = &lt->stacks.data[stack - 1];
	uint32_t at = 0, i;

	t->left = 0;
	write_frames(lt, t);
	i = outermost_common(lt, t, s, sp, &at);
	if (i == UINT32_MAX)
		return;
	/* further in as long as each frame is the one that was there, called from the same place */
	for (; at && i + 1 < t->nr; i++, at--) {
		const struct lt_machine *m = &lt->machines.data[s->first + at - 1];
		const struct lt_frame *f = &t->frames[i + 1];

		if (t->frames[i].pc != m[1].pc || !m->cfa || f->cfa != sp + m->cfa)
			break;
		if (f->function != m->function) {
			t->left = t->act[i + 1] + i + 1;
			break;
		}
	}
	t->nr = i + 1;
	t->proven = t->proven < t->nr ? t->proven : t->nr;
	t->stack = t->jumped = 0;
	t->plain.nr = 0;
	t->stood = true;
	t->stand = stack;
	t->stand_sp = sp;
}

void lt_thread_begin(struct rt_lifetime *lt, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	struct lt_thread *t = lt_thread(lt, pid, tid);

	if (!t)
		return;
	lt->lifeless |= !t->ended && t->told && t->last_ns + LT_CLOCK_NS < time_ns;
	/* what the one before did may come late, behind what is told here */
	if (!t->ended && time_ns > LT_CLOCK_NS)
		t->from_ns = time_ns - LT_CLOCK_NS;
	else
		t->from_ns = 0;
	t->until_ns = UINT64_MAX;
	t->ended = t->stood = t->struck = t->told = false;
	t->stand = 0;
	t->last_ns = time_ns;
	t->last_object = 0;
	lt_thread_turn(lt, t);
}

void lt_thread_end(struct rt_lifetime *lt, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	struct lt_thread *t = lt_thread(lt, pid, tid);

	if (!t)
		return;
	t->ended = true;
	t->until_ns = time_ns < UINT64_MAX - LT_CLOCK_NS ? time_ns + LT_CLOCK_NS : UINT64_MAX;
	t->nr = t->proven = 0;
	t->stale = false;
	t->stack = t->plain.nr = 0;
}

/* the thread whose turn it is, NULL at the end of the ring */
static const struct lt_thread *thread_of(const struct rt_lifetime *lt, const struct lt_turn *turn)
{
	if (turn == &lt->newest_turn)
		return NULL;
	return (const struct lt_thread *)(const void *)((const char *)turn - offsetof(struct lt_thread, turn));
}

void lt_thread_flight(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct rt_wire_event *e,
		      int64_t *ret_less, int64_t *ret_more)
{
	const struct lt_thread *t = thread_of(lt, lt->newest_turn.older);

	*ret_less = *ret_more = 0;
	for (unsigned n = 0; t && n < THREADS_MAX && (int64_t)(e->head.time_ns - t->last_ns) <= LT_FLIGHT_NS;
	     n++, t = thread_of(lt, t->turn.older)) {
		if (t->pid != inc->pid || t->tid == e->head.tid || t->ended || t->last_object != inc->object ||
		    t->last_type != inc->type || t->last_ns < inc->birth_ns)
			continue;
		*ret_less += t->last_delta > 0 ? t->last_delta : 0;
		*ret_more -= t->last_delta < 0 ? t->last_delta : 0;
	}
	/* the counter is read before the time is taken */
	for (uint32_t i = inc->nr; i-- > 0 && (int64_t)(e->head.time_ns - inc->ledger[i].time_ns) <= LT_RACE_NS;) {
		const struct lt_event *old = &inc->ledger[i];

		if (old->tid == e->head.tid || old->op == RT_OP_NEW)
			continue;
		*ret_less += old->delta > 0 ? old->delta : 0;
		*ret_more -= old->delta < 0 ? old->delta : 0;
	}
}

uint64_t lt_thread_silent(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct rt_wire_event *e,
			  uint64_t since_ns, bool told, uint64_t max)
{
	const struct lt_thread *t = thread_of(lt, lt->newest_turn.older);
	uint64_t silent = 0;

	for (unsigned n = 0; t && n < THREADS_MAX && silent < max; n++, t = thread_of(lt, t->turn.older)) {
		if ((int64_t)(e->head.time_ns - t->last_ns) > LT_FLIGHT_NS)
			break;
		silent += t->pid == inc->pid && t->tid != e->head.tid && !t->ended && t->told == told &&
			  t->last_ns < since_ns;
	}
	return silent;
}
