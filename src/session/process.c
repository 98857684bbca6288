/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of processes and threads that are followed. A pid that comes again
 * is another process: its generation goes on where the last one ended.
 */
#include "session/internal.h"

static struct rt_key key_of(uint32_t id)
{
	return rt_key_make(id, 0);
}

static void *lookup(const struct rt_map *map, uint32_t id)
{
	uint64_t *value = rt_map_get(map, key_of(id));

	return value ? (void *)(uintptr_t)*value : NULL;
}

struct rt_process *rt_session_process(const struct rt_session *s, uint32_t tgid)
{
	return lookup(&s->processes, tgid);
}

struct rt_thread *rt_session_thread(const struct rt_session *s, uint32_t tid)
{
	return lookup(&s->threads, tid);
}

uint32_t rt_session_wire_pid(const struct rt_session *s, uint32_t tgid)
{
	uint64_t *gen = rt_map_get(&s->generations, key_of(tgid));

	return RT_PID_MAKE(tgid, gen ? (uint32_t)*gen : 0);
}

struct rt_process *rt_process_add(struct rt_session *s, uint32_t tgid)
{
	struct rt_process *p = calloc(1, sizeof(*p));
	uint64_t *slot = p ? rt_map_put(&s->processes, key_of(tgid), NULL) : NULL;
	bool fresh = false;
	uint64_t *gen = slot ? rt_map_put(&s->generations, key_of(tgid), &fresh) : NULL;

	if (!gen) {
		if (slot)
			rt_map_remove(&s->processes, key_of(tgid), NULL);
		free(p);
		return NULL;
	}
	if (!fresh)
		++*gen;
	p->tgid = tgid;
	p->gen = (uint32_t)*gen;
	p->guard_slot = rt_guardian_add(&s->guardian, tgid);
	*slot = (uint64_t)(uintptr_t)p;
	s->last_tgid = 0;
	return p;
}

struct rt_thread *rt_thread_add(struct rt_session *s, struct rt_process *process, uint32_t tid)
{
	struct rt_thread *t = rt_session_thread(s, tid);

	if (!t) {
		uint64_t *slot;

		t = calloc(1, sizeof(*t));
		slot = t ? rt_map_put(&s->threads, key_of(tid), NULL) : NULL;
		if (!slot) {
			free(t);
			return NULL;
		}
		t->tid = tid;
		t->since_ns = rt_now_ns();
		*slot = (uint64_t)(uintptr_t)t;
	}
	if (process && t->process != process) {
		if (!rt_vec_push(&process->threads, t))
			return NULL;
		t->process = process;
	}
	return t;
}

void rt_thread_remove(struct rt_session *s, struct rt_thread *thread)
{
	struct rt_process *p = thread->process;

	for (size_t i = 0; p && i < p->threads.len; i++) {
		if (p->threads.data[i] == thread) {
			p->threads.data[i] = p->threads.data[--p->threads.len];
			break;
		}
	}
	rt_map_remove(&s->threads, key_of(thread->tid), NULL);
	free(thread);
}

void rt_process_remove(struct rt_session *s, struct rt_process *p)
{
	while (p->threads.len)
		rt_thread_remove(s, p->threads.data[p->threads.len - 1]);
	rt_guardian_remove(&s->guardian, p->guard_slot);
	rt_map_remove(&s->processes, key_of(p->tgid), NULL);
	rt_vec_deinit(&p->threads);
	rt_vec_deinit(&p->maps);
	rt_vec_deinit(&p->armed);
	rt_vec_deinit(&p->hooked);
	free(p);
}

void rt_process_remove_all(struct rt_session *s)
{
	struct rt_map_slot *slot;
	size_t pos = 0;

	while ((slot = rt_map_next(&s->processes, &pos)) != NULL) {
		rt_process_remove(s, (struct rt_process *)(uintptr_t)slot->value);
		pos = 0;
	}
	pos = 0;
	while ((slot = rt_map_next(&s->threads, &pos)) != NULL) {
		rt_thread_remove(s, (struct rt_thread *)(uintptr_t)slot->value);
		pos = 0;
	}
}

uint32_t rt_process_standing(const struct rt_process *p)
{
	for (size_t i = 0; i < p->threads.len; i++)
		if (p->threads.data[i]->stopped)
			return p->threads.data[i]->tid;
	return 0;
}

bool rt_process_has_armed(const struct rt_process *p, uint32_t module)
{
	for (size_t i = 0; i < p->armed.len; i++) {
		if (p->armed.data[i] == module)
			return true;
	}
	return false;
}

struct rt_error *rt_process_each(struct rt_session *s,
				 struct rt_error *(*visit)(struct rt_session *s, struct rt_process *p))
{
	RT_VEC(uint32_t) pids = { 0 };
	struct rt_error *err = NULL;
	struct rt_map_slot *slot;
	size_t pos = 0;

	/* the map may change in the call: walk a copy of the keys */
	while ((slot = rt_map_next(&s->processes, &pos)) != NULL) {
		if (!rt_vec_push(&pids, (uint32_t)slot->key.a)) {
			rt_vec_deinit(&pids);
			return rt_error_nomem();
		}
	}
	for (size_t i = 0; i < pids.len && !err; i++) {
		struct rt_process *p = rt_session_process(s, pids.data[i]);

		if (p)
			err = visit(s, p);
	}
	rt_vec_deinit(&pids);
	return err;
}
