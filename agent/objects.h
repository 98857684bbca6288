/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Of which objects it is told who frees them. Each has an entry with a tag made of its address: blocks that are no such
 * objects take none away, but for one in 2^16 that come to the same entries.
 */
#pragma once

#include "wire/agent.h"

static inline void note_object(struct rt_agent_process *p, uint64_t address)
{
	uint16_t *way = &p->objects[rt_agent_object(address)];
	const uint16_t tag = rt_agent_object_tag(address);

	for (unsigned i = 0; i < RT_AGENT_OBJECT_WAYS; i++) {
		const uint16_t was = __atomic_load_n(&way[i], __ATOMIC_RELAXED);

		if (was == tag || was == RT_AGENT_OBJECT_ANY)
			return;
	}
	for (unsigned i = 0; i < RT_AGENT_OBJECT_WAYS; i++) {
		uint16_t none = RT_AGENT_OBJECT_NONE;

		if (__atomic_compare_exchange_n(&way[i], &none, tag, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return;
	}
	__atomic_store_n(&way[RT_AGENT_OBJECT_WAYS - 1], RT_AGENT_OBJECT_ANY, __ATOMIC_RELAXED);
}

/* The block is, or may be, such an object, and is one no more. */
static inline bool take_object(struct rt_agent_process *p, uint64_t address)
{
	uint16_t *way = &p->objects[rt_agent_object(address)];
	const uint16_t tag = rt_agent_object_tag(address);

	for (unsigned i = 0; i < RT_AGENT_OBJECT_WAYS; i++) {
		uint16_t was = __atomic_load_n(&way[i], __ATOMIC_RELAXED);

		if (was == RT_AGENT_OBJECT_ANY)
			return true;
		if (was == tag)
			return __atomic_compare_exchange_n(&way[i], &was, RT_AGENT_OBJECT_NONE, false, __ATOMIC_RELAXED,
							   __ATOMIC_RELAXED);
	}
	return false;
}
