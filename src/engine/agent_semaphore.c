/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Semaphores of markers: a thread of the program that stands adds to them itself, by one atomic instruction of the
 * agent. The keeper (engine/semaphore.h) knows what is raised, in case that we are killed, or nobody stands.
 */
#include <signal.h>
#include <sys/ptrace.h>

#include "base/log.h"
#include "engine/agent_priv.h"

static uint64_t add_at(const struct rt_agent_task *task)
{
	return task->pool->code + rt_agent_blob_head()->add;
}

static bool is_listed(const struct rt_agent_task *task, uint64_t counter)
{
	for (size_t i = 0; i < task->semaphores.len; i++)
		if (task->semaphores.data[i].counter == counter)
			return true;
	return false;
}

struct rt_error *rt_agent_raise(struct rt_agent *a, struct rt_agent_task *task, struct rt_stopped *r,
				const struct rt_semaphore_place *place, const char **ret_why)
{
	enum rt_semaphore_state state = RT_SEMAPHORE_GONE;
	struct rt_error *err;

	*ret_why = NULL;
	if (!a->semaphores)
		RT_TRY(rt_semaphores_create(&a->semaphores));
	RT_TRY(rt_semaphores_look(a->semaphores, place, &state));
	if (state == RT_SEMAPHORE_RAISED)
		return NULL;
	*ret_why = "its semaphore is in no writable memory";
	if (state != RT_SEMAPHORE_READY)
		return NULL;
	*ret_why = "the process did not stand when its semaphore was to be raised";
	if (!r->tid)
		return NULL;
	err = rt_stopped_do(r, add_at(task), place->counter, 1);
	if (rt_error_catch(&err, RT_E_UNSUPPORTED))
		return NULL;
	RT_TRY(err);
	*ret_why = NULL;
	if (!is_listed(task, place->counter) && !rt_vec_push(&task->semaphores, *place))
		return rt_error_nomem();
	return rt_semaphores_note(a->semaphores, place, true);
}

struct rt_error *rt_agent_semaphores_fork(struct rt_agent *a, const struct rt_agent_task *from,
					  struct rt_agent_task *task)
{
	for (size_t i = 0; i < from->semaphores.len; i++) {
		struct rt_semaphore_place place = from->semaphores.data[i];

		place.pid = task->pid;
		if (!rt_vec_push(&task->semaphores, place))
			return rt_error_nomem();
	}
	return from->semaphores.len ? rt_semaphores_fork(a->semaphores, from->pid, task->pid) : NULL;
}

/* A thread that stands because we have asked for it, and not at a signal of its own; 0: none. */
static uint32_t standing(const struct rt_agent_task *task)
{
	for (size_t i = 0; i <= task->members.len; i++) {
		uint32_t tid = i ? task->members.data[i - 1].tid : task->pid;
		siginfo_t info;

		if (!ptrace(PTRACE_GETSIGINFO, tid, 0, &info) && info.si_code >> 8 == PTRACE_EVENT_STOP)
			return tid;
	}
	return 0;
}

static struct rt_error *lower(struct rt_agent *a, const struct rt_agent_task *task, struct rt_stopped *r,
			      const struct rt_semaphore_place *place)
{
	enum rt_semaphore_state state = RT_SEMAPHORE_GONE;

	RT_TRY(rt_semaphores_look(a->semaphores, place, &state));
	if (state != RT_SEMAPHORE_RAISED)
		return NULL;
	RT_TRY(rt_stopped_do(r, add_at(task), place->counter, UINT16_MAX));
	return rt_semaphores_note(a->semaphores, place, false);
}

void rt_agent_lower(struct rt_agent *a, struct rt_agent_task *task)
{
	uint32_t tid = task->semaphores.len ? standing(task) : 0;
	struct rt_error *err = NULL;
	struct rt_stopped r;

	if (!tid) {
		if (task->semaphores.len)
			rt_log_debug("engine", "process %u: no thread stands, the keeper lowers", task->pid);
		return;
	}
	err = rt_stopped_open(&r, task->pid, tid);
	if (!err) {
		for (size_t i = 0; i < task->semaphores.len && !err; i++)
			err = lower(a, task, &r, &task->semaphores.data[i]);
		rt_stopped_close(&r);
	}
	/* the keeper does it then */
	if (err)
		rt_log_debug("engine", "process %u: %s, the keeper lowers", task->pid, err->message);
	rt_error_free(err);
	rt_vec_clear(&task->semaphores);
}
