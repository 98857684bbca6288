/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which thread is which: the agent knows itself by its thread pointer, and finds its memory by that. Threads are
 * entered here while they stand; one that was not makes itself known with a spare piece.
 */
#include <sys/ptrace.h>
#include <sys/user.h>

#include "engine/agent_priv.h"
#include "engine/point_count.h"

#define MIX 0x9e3779b97f4a7c15ull
enum { FREED = 2, TAKEN = 4 };

/* One that nobody has; where all are in use, one of them. */
static uint32_t take_number(struct rt_agent_numbers *n)
{
	for (uint32_t i = 0; i < RT_AGENT_NUMBERS; i++) {
		n->last = n->last % (RT_AGENT_NUMBERS - 1) + 1;
		if (!n->used[n->last])
			break;
	}
	n->used[n->last] = 1;
	return n->last;
}

static void give_number(struct rt_agent_numbers *n, const struct rt_agent_thread *t)
{
	/* what the program may have written there is no number by that */
	uint32_t number = t->number % RT_AGENT_NUMBERS;

	n->seq[number] = t->seq + (uint32_t)t->taken;
	n->used[number] = 0;
}

uint64_t rt_agent_thread_make(struct rt_agent *a, struct rt_agent_pool *pool, uint32_t tid)
{
	uint64_t offset = rt_agent_pool_take(pool, 1);
	struct rt_agent_thread *t = (void *)(pool->base + offset);

	if (!offset)
		return 0;
	t->tid = tid;
	t->number = take_number(&a->numbers);
	t->seq = a->numbers.seq[t->number];
	/* threads that write at the same time lie in different chunks */
	t->part = RT_AGENT_PART_MAKE(0, offset / RT_AGENT_CHUNK);
	return offset;
}

/* From now on the thread pointer of key stands for the memory at offset. */
static void enter(struct rt_agent_process *process, uint64_t key, uint64_t offset)
{
	for (uint32_t n = 0; n < RT_AGENT_THREADS; n++) {
		struct rt_agent_thread_key *k = &process->thread[((key * MIX >> 32) + n) & (RT_AGENT_THREADS - 1)];
		uint64_t now = __atomic_load_n(&k->key, __ATOMIC_ACQUIRE);

		/* whose it was has ended */
		if (now == key) {
			__atomic_store_n(&k->thread, offset, __ATOMIC_RELEASE);
			return;
		}
		if (now && now != FREED)
			continue;
		if (!__atomic_compare_exchange_n(&k->key, &now, TAKEN, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		k->thread = offset;
		__atomic_store_n(&k->key, key, __ATOMIC_RELEASE);
		return;
	}
}

static void leave(struct rt_agent_process *process, uint64_t offset)
{
	for (uint32_t i = 0; i < RT_AGENT_THREADS; i++)
		if (process->thread[i].thread == offset && process->thread[i].key > TAKEN)
			__atomic_store_n(&process->thread[i].key, FREED, __ATOMIC_RELEASE);
}

static struct rt_agent_member *find(struct rt_agent_task *task, uint32_t tid)
{
	for (size_t i = 0; i < task->members.len; i++)
		if (task->members.data[i].tid == tid && !task->members.data[i].gone)
			return &task->members.data[i];
	return NULL;
}

static bool has_member(const struct rt_agent_task *task, uint64_t offset)
{
	for (size_t i = 0; i < task->members.len; i++)
		if (task->members.data[i].offset == offset)
			return true;
	return false;
}

static bool is_spare_gone(const struct rt_agent_task *task, uint32_t i)
{
	return !task->spare[i] || !__atomic_load_n(&rt_agent_process(task)->spare[i], __ATOMIC_ACQUIRE);
}

/*
 * There is a new spare where there was none, or where who took the last one is known by now: between the two steps of a
 * thread, which takes it and then says who it is, nobody would look for that thread again.
 */
static void renew_spares(struct rt_agent *a, struct rt_agent_task *task)
{
	struct rt_agent_process *p = rt_agent_process(task);

	for (uint32_t i = 0; i < RT_AGENT_SPARES; i++) {
		if (!is_spare_gone(task, i) || (task->spare[i] && !has_member(task, task->spare[i])))
			continue;
		task->spare[i] = rt_agent_thread_make(a, task->pool, 0);
		__atomic_store_n(&p->spare[i], task->spare[i], __ATOMIC_RELEASE);
	}
}

/* A thread that nobody told of has taken a spare: it says its tid there. */
static struct rt_error *take_strangers(struct rt_agent *a, struct rt_agent_task *task)
{
	struct rt_agent_process *p = rt_agent_process(task);
	bool gone = false;

	for (uint32_t i = 0; i < RT_AGENT_SPARES; i++)
		gone = gone || is_spare_gone(task, i);
	if (!gone)
		return NULL;
	for (uint32_t i = 0; i < RT_AGENT_THREADS; i++) {
		uint64_t key = __atomic_load_n(&p->thread[i].key, __ATOMIC_ACQUIRE), offset = p->thread[i].thread;
		struct rt_agent_member *m;

		/* what the program may have written there is no place of memory by that */
		if (key <= TAKEN || !rt_agent_pool_has(task->pool, offset) || has_member(task, offset))
			continue;
		m = rt_vec_add(&task->members);
		if (!m)
			return rt_error_nomem();
		*m = (struct rt_agent_member){ .tid = rt_agent_thread(task, offset)->tid,
					       .key = key,
					       .offset = offset };
	}
	renew_spares(a, task);
	return NULL;
}

struct rt_error *rt_agent_thread_stands(struct rt_agent *a, struct rt_agent_task *task, uint32_t tid)
{
	struct rt_agent_member *m;
	struct user_regs_struct regs;
	uint64_t key;

	if (ptrace(PTRACE_GETREGS, tid, 0, &regs) < 0)
		return NULL; /* killed */
	key = regs.fs_base | 1;
	RT_TRY(take_strangers(a, task));
	for (size_t i = 0; i < task->members.len; i++)
		if (task->members.data[i].tid == tid && task->members.data[i].key == key && !task->members.data[i].gone)
			return NULL;
	m = find(task, tid);
	if (!m) {
		uint64_t offset = rt_agent_thread_make(a, task->pool, tid);

		if (!offset)
			return NULL; /* its events are counted as lost */
		m = rt_vec_add(&task->members);
		if (!m) {
			rt_agent_pool_give(task->pool, offset, 1);
			return rt_error_nomem();
		}
		*m = (struct rt_agent_member){ .tid = tid, .offset = offset, .idle = rt_agent_tsc() };
	}
	m->key = key;
	enter(rt_agent_process(task), key, m->offset);
	return NULL;
}

void rt_agent_thread_ends(struct rt_agent_task *task, uint32_t tid)
{
	struct rt_agent_member *m;

	while ((m = find(task, tid)) != NULL) {
		m->gone = true;
		leave(rt_agent_process(task), m->offset);
	}
}

/* Counters of a thread that writes no more, kept. */
static void sum_up(struct rt_agent *a, struct rt_agent_task *task, struct rt_agent_thread *t)
{
	rt_agent_tallies_thread(a, task, t);
	a->struck += __atomic_load_n(&t->entered, __ATOMIC_ACQUIRE) != 0;
	give_number(&a->numbers, t);
	for (uint32_t i = 1; i <= a->last_point; i++)
		rt_point_count_add(&a->gone[i], &t->count[i]);
	for (unsigned told = 0; told < 2; told++) {
		a->timed[told] += t->timed[told];
		a->cycles[told] += (double)t->cycles[told];
	}
}

struct rt_error *rt_agent_threads_look(struct rt_agent *a, struct rt_agent_task *task)
{
	RT_TRY(take_strangers(a, task));
	for (size_t i = task->members.len; i-- > 0;) {
		struct rt_agent_member *m = &task->members.data[i];
		struct rt_agent_thread *t = rt_agent_thread(task, m->offset);

		if (!m->gone || t->read != t->taken || rt_agent_held_next(&m->held))
			continue;
		sum_up(a, task, t);
		rt_agent_pool_give(task->pool, m->offset, 1);
		task->members.data[i] = task->members.data[--task->members.len];
	}
	return NULL;
}

void rt_agent_threads_leave(struct rt_agent *a, struct rt_agent_task *task)
{
	for (size_t i = 0; i < task->members.len; i++) {
		struct rt_agent_member *m = &task->members.data[i];

		sum_up(a, task, rt_agent_thread(task, m->offset));
		rt_agent_pool_give(task->pool, m->offset, 1);
		rt_agent_held_clear(&a->held_pool, &m->held);
	}
	task->members.len = 0;
	for (uint32_t i = 0; i < RT_AGENT_SPARES; i++) {
		if (!task->spare[i])
			continue;
		give_number(&a->numbers, rt_agent_thread(task, task->spare[i]));
		rt_agent_pool_give(task->pool, task->spare[i], 1);
		task->spare[i] = 0;
	}
}
