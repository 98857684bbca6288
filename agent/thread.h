/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Who runs: the thread of a hit, by its thread pointer. */
#pragma once

#include "hit.h"

static uint64_t thread_pointer(void)
{
	uint64_t v;

	asm volatile("rdfsbase %0" : "=r"(v));
	return v;
}

static uint32_t own_tid(void)
{
	uint64_t ret;

	asm volatile("syscall" : "=a"(ret) : "a"(186) : "rcx", "r11", "memory"); /* gettid */
	return (uint32_t)ret;
}

#define PLACE(process, key, n) (&(process)->thread[(((key)*MIX >> 32) + (n)) & (RT_AGENT_THREADS - 1)])

/* From now on the thread pointer of key stands for the memory at offset. false: the table is full. */
static bool make_known(struct rt_agent_process *p, uint64_t key, uint64_t offset)
{
	for (uint32_t n = 0; n < RT_AGENT_THREADS; n++) {
		struct rt_agent_thread_key *k = PLACE(p, key, n);
		uint64_t free = load(k->key);

		if ((free && free != 2) ||
		    !__atomic_compare_exchange_n(&k->key, &free, 4, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		k->thread = offset;
		store(k->key, key);
		return true;
	}
	return false;
}

/*
 * A thread that the tool has not told of: the first one, once it has a thread pointer; or one made behind its back.
 * The tool takes no spare for used before it has found who did: whoever has not made himself known is not heard.
 */
static SELDOM struct rt_agent_thread *stranger(struct rt_agent_process *p, uint64_t key)
{
	uint64_t offset = 0;

	for (uint32_t i = 0; i < RT_AGENT_SPARES && !offset; i++)
		offset = __atomic_exchange_n(&p->spare[i], 0, __ATOMIC_ACQ_REL);
	if (offset) {
		struct rt_agent_thread *t = (void *)(rt_agent_head.pool + offset);

		t->tid = own_tid();
		t->owner = key;
		if (make_known(p, key, offset))
			return t;
	}
	__atomic_fetch_add(&p->strangers, 1, __ATOMIC_RELAXED);
	return NULL;
}

static SELDOM struct rt_agent_thread *look_for(struct rt_agent_process *p, uint64_t key)
{
	for (uint32_t n = 0; n < RT_AGENT_THREADS; n++) {
		const struct rt_agent_thread_key *k = PLACE(p, key, n);
		uint64_t now = load(k->key);

		if (now == key)
			return (void *)(rt_agent_head.pool + k->thread);
		if (!now)
			break;
	}
	return NULL;
}

/* NULL: the tool has not been told of it. */
static inline struct rt_agent_thread *known(struct rt_agent_process *p, uint64_t key)
{
	const struct rt_agent_thread_key *k = PLACE(p, key, 0);

	if (__builtin_expect(load(k->key) == key, 1))
		return (void *)(rt_agent_head.pool + k->thread);
	return look_for(p, key);
}

static inline struct rt_agent_thread *current(struct rt_agent_process *p)
{
	uint64_t key = thread_pointer() | 1;

	return known(p, key) ?: stranger(p, key);
}
