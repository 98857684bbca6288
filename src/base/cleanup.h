/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scope guards. A variable marked _cleanup_(fn) is handed to fn when its scope
 * ends; it must be initialised where it is declared. rt_take() hands the value
 * over and disarms the guard.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))

/* Defines fnp(), a guard for variables of pointer type: RT_CLEANUP(struct x *, x_destroy) -> x_destroyp */
#define RT_CLEANUP(type, fn) \
	static inline void fn##p(type *p) \
	{ \
		if (*p) \
			fn(*p); \
	} \
	struct rt_swallow_semicolon

#define rt_take(ptr) \
	({ \
		__typeof__(ptr) *rt_take_p_ = &(ptr); \
		__typeof__(ptr) rt_take_v_ = *rt_take_p_; \
		*rt_take_p_ = NULL; \
		rt_take_v_; \
	})

static inline void rt_freep(void *p)
{
	free(*(void **)p);
}

static inline void rt_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void rt_fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define _cleanup_free_ _cleanup_(rt_freep)
#define _cleanup_close_ _cleanup_(rt_closep)
#define _cleanup_fclose_ _cleanup_(rt_fclosep)

/* Hands an fd over and disarms its guard. */
static inline int rt_take_fd(int *fd)
{
	int v = *fd;
	*fd = -1;
	return v;
}
