/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The typed functions of a class (refcnt/refcnt.h has them with their contracts), by mode. What is the same in all of
 * them is REFCNT_DEFINE_COMMON_.
 */
#ifndef REFCNT_DEFINE_H
#define REFCNT_DEFINE_H

#include <stdlib.h>

#include "count.h"
#include "lib.h"
#include "mark.h"
#include "tracker.h"

#define REFCNT_DEFINE_COMMON_(name, type) \
	REFCNT_MUST_USE REFCNT_INLINE type *name##_alloc(void) \
	{ \
		return name##_alloc_more(0); \
	} \
	REFCNT_INLINE void name##_put_at(type **p) \
	{ \
		if (*p) \
			name##_put(*p); \
	} \
	REFCNT_MUST_USE REFCNT_INLINE type *name##_steal(type **from) \
	{ \
		type *p = *from; \
\
		*from = REFCNT_NONE_; \
		return p; \
	} \
	REFCNT_INLINE void name##_swap(type **a, type **b) \
	{ \
		type *p = *a; \
\
		*a = *b; \
		*b = p; \
	} \
	struct refcnt

#define REFCNT_DEFINE_PLAIN_(name, type, member, release) \
	REFCNT_MUST_USE REFCNT_INLINE type *name##_init(type *p) \
	{ \
		refcnt_count_init(&p->member); \
		REFCNT_MARK_NEW(name, p); \
		return p; \
	} \
	REFCNT_MUST_USE REFCNT_INLINE type *name##_alloc_more(size_t extra) \
	{ \
		type *p = extra <= SIZE_MAX - sizeof(type) ? REFCNT_CAST_(type *, calloc(1, sizeof(type) + extra)) \
							   : REFCNT_NONE_; \
\
		return p ? name##_init(p) : p; \
	} \
	REFCNT_INLINE void name##_dealloc(type *p) \
	{ \
		free(p); \
	} \
	REFCNT_MUST_USE REFCNT_INLINE type *name##_get(type *p) \
	{ \
		REFCNT_MARK_GET(name, p); \
		REFCNT_SHOW_COUNT_(name, get, p, &p->member); \
		(void)refcnt_count_more(&p->member); \
		return p; \
	} \
	REFCNT_MUST_USE REFCNT_INLINE type *name##_get_not_zero(type *p) \
	{ \
		if (!refcnt_count_more_not_zero(&p->member)) \
			return REFCNT_NONE_; \
		REFCNT_MARK_GET(name, p); \
		return p; \
	} \
	REFCNT_INLINE bool name##_put(type *p) \
	{ \
		REFCNT_MARK_PUT(name, p); \
		REFCNT_SHOW_COUNT_(name, put, p, &p->member); \
		if (!refcnt_count_less(&p->member)) \
			return false; \
		REFCNT_MARK_LAST(name, p); \
		release(p); \
		return true; \
	} \
	REFCNT_MUST_USE REFCNT_INLINE type *name##_get_tracked(type *p, struct refcnt_dir *dir, \
							       struct refcnt_tracker *cookie) \
	{ \
		(void)dir; \
		(void)cookie; \
		return name##_get(p); \
	} \
	REFCNT_INLINE bool name##_put_tracked(type *p, struct refcnt_tracker *cookie) \
	{ \
		(void)cookie; \
		return name##_put(p); \
	} \
	REFCNT_INLINE uint32_t name##_count(const type *p) \
	{ \
		return refcnt_count_read(&p->member); \
	} \
	REFCNT_INLINE bool name##_same(const type *a, const type *b) \
	{ \
		return a == b; \
	} \
	REFCNT_MUST_USE REFCNT_INLINE void *name##_more(type *p) \
	{ \
		return p + 1; \
	} \
	REFCNT_MUST_USE REFCNT_INLINE type *name##_home(type *p) \
	{ \
		return p; \
	}

#define REFCNT_CLASS_(name, type) \
	__attribute__((__unused__)) static struct refcnt_class name##_refcnt_class = { #name, sizeof(type), \
										       REFCNT_MODE, 0, 0 }

/* what a mode with a library has instead: a call for each */
#define REFCNT_DEFINE_LIBRARY_(name, type, member, release) \
	REFCNT_CLASS_(name, type); \
	REFCNT_MUST_USE REFCNT_INLINE type *name##_init(type *p) \
	{ \
		return REFCNT_CAST_(type *, refcnt_lib_init(&name##_refcnt_class, &p->member, p)); \
	} \
	REFCNT_MUST_USE REFCNT_INLINE type *name##_alloc_more(size_t extra) \
	{ \
		return REFCNT_CAST_(type *, \
				    refcnt_lib_alloc(&name##_refcnt_class, REFCNT_OFFSET_(type, member), extra)); \
	} \
	REFCNT_INLINE void name##_dealloc(type *p) \
	{ \
		refcnt_lib_dealloc(&name##_refcnt_class, &p->member, p); \
	} \
	REFCNT_MUST_USE REFCNT_INLINE type *name##_get(type *p) \
	{ \
		return REFCNT_CAST_(type *, \
				    refcnt_lib_get(&name##_refcnt_class, &p->member, p, REFCNT_NONE_, REFCNT_NONE_)); \
	} \
	REFCNT_MUST_USE REFCNT_INLINE type *name##_get_not_zero(type *p) \
	{ \
		return REFCNT_CAST_(type *, refcnt_lib_get_not_zero(&name##_refcnt_class, &p->member, p)); \
	} \
	REFCNT_INLINE bool name##_put_tracked(type *p, struct refcnt_tracker *cookie) \
	{ \
		void *last = refcnt_lib_put(&name##_refcnt_class, &p->member, p, cookie); \
\
		if (last) \
			release(REFCNT_CAST_(type *, last)); \
		return last != REFCNT_NONE_; \
	} \
	REFCNT_INLINE bool name##_put(type *p) \
	{ \
		return name##_put_tracked(p, REFCNT_NONE_); \
	} \
	REFCNT_MUST_USE REFCNT_INLINE type *name##_get_tracked(type *p, struct refcnt_dir *dir, \
							       struct refcnt_tracker *cookie) \
	{ \
		return REFCNT_CAST_(type *, refcnt_lib_get(&name##_refcnt_class, &p->member, p, dir, cookie)); \
	} \
	REFCNT_INLINE uint32_t name##_count(const type *p) \
	{ \
		return refcnt_count_read(&p->member); \
	} \
	REFCNT_INLINE bool name##_same(const type *a, const type *b) \
	{ \
		return refcnt_lib_home(a) == refcnt_lib_home(b); \
	} \
	REFCNT_MUST_USE REFCNT_INLINE void *name##_more(type *p) \
	{ \
		return p + 1; \
	} \
	REFCNT_MUST_USE REFCNT_INLINE type *name##_home(type *p) \
	{ \
		return REFCNT_CAST_(type *, REFCNT_NOT_CONST_(refcnt_lib_home(p))); \
	}

#if REFCNT_MODE == REFCNT_PLAIN
#define REFCNT_DEFINE_MODE_ REFCNT_DEFINE_PLAIN_
#else
#define REFCNT_DEFINE_MODE_ REFCNT_DEFINE_LIBRARY_
#endif

#endif
