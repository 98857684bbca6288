/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The counter itself. Users embed struct refcnt and work through the functions that REFCNT_DEFINE makes; these are what
 * those are made of, and see no mode. They have no names of a family of get and put, so that no tracer that goes by
 * names counts an operation twice.
 *
 * The count is valid from 1 to REFCNT_MAX. A get of 0 or at REFCNT_MAX, and a put of 0, write REFCNT_SATURATED: from
 * there no operation comes back, the count never wraps, and the object is never released. 2^30 threads would have to be
 * between the two instructions to break that.
 *
 * Threads: all functions but refcnt_count_init() may run at the same time. Memory order: a get orders nothing (whoever
 * calls has a reference already); a get_not_zero that takes one acquires; a put releases, and the last put acquires:
 * what all holders did happened before the release function.
 */
#ifndef REFCNT_COUNT_H
#define REFCNT_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "mode.h"

#define REFCNT_MAX UINT32_C(0x7fffffff)
#define REFCNT_SATURATED UINT32_C(0xc0000000)

struct refcnt {
	uint32_t refcnt_count; /* nobody's but this library's; the same in every mode */
};

#if defined(__SANITIZE_THREAD__)
#define REFCNT_TSAN_
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define REFCNT_TSAN_
#endif
#endif

#define REFCNT_UNLIKELY_(x) __builtin_expect(!!(x), 0)

/* The first reference. Before any other thread knows the object. */
REFCNT_INLINE void refcnt_count_init(struct refcnt *r)
{
	__atomic_store_n(&r->refcnt_count, 1, __ATOMIC_RELAXED);
}

/* One more. -> the count before */
REFCNT_INLINE uint32_t refcnt_count_more(struct refcnt *r)
{
	uint32_t old = __atomic_fetch_add(&r->refcnt_count, 1, __ATOMIC_RELAXED);

	if (REFCNT_UNLIKELY_(old - 1 >= REFCNT_MAX - 1))
		__atomic_store_n(&r->refcnt_count, REFCNT_SATURATED, __ATOMIC_RELAXED);
	return old;
}

/* One more, unless there is none: for tables that know objects without holding them. -> was it taken? */
REFCNT_INLINE bool refcnt_count_more_not_zero(struct refcnt *r)
{
	uint32_t old = __atomic_load_n(&r->refcnt_count, __ATOMIC_RELAXED);
	uint32_t next;

	do {
		if (old == 0)
			return false;
		next = old >= REFCNT_MAX ? REFCNT_SATURATED : old + 1;
	} while (!__atomic_compare_exchange_n(&r->refcnt_count, &old, next, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	return true;
}

/* One less. -> was it the last? */
REFCNT_INLINE bool refcnt_count_less(struct refcnt *r)
{
	uint32_t old = __atomic_fetch_sub(&r->refcnt_count, 1, __ATOMIC_RELEASE);

	if (old == 1) {
#ifdef REFCNT_TSAN_
		(void)__atomic_load_n(&r->refcnt_count, __ATOMIC_ACQUIRE); /* it knows no fences */
#else
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
		return true;
	}
	if (REFCNT_UNLIKELY_(old - 1 >= REFCNT_MAX))
		__atomic_store_n(&r->refcnt_count, REFCNT_SATURATED, __ATOMIC_RELAXED);
	return false;
}

/* For a look only: it may be another a moment later. */
REFCNT_INLINE uint32_t refcnt_count_read(const struct refcnt *r)
{
	return __atomic_load_n(&r->refcnt_count, __ATOMIC_RELAXED);
}

#endif
