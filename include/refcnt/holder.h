/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Questions to the library: what is left, who holds an object now. In plain mode there is no library: the questions
 * compile, and nobody answers.
 */
#ifndef REFCNT_HOLDER_H
#define REFCNT_HOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "mode.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A reference that is held. Valid while the callback runs. */
struct refcnt_holder {
	const void *handle;        /* the handle or alias; NULL where the mode has none */
	const char *dir;           /* name of the tracker directory; NULL without */
	const void *const *frames; /* return addresses, innermost first: who called the get */
	unsigned n_frames;
	int tid;      /* thread that took it */
	int is_first; /* the reference that the object was made with */
	int is_exact; /* 0: puts say not which reference they give back, this is the likeliest one */
};

typedef void refcnt_holder_fn(const struct refcnt_holder *holder, void *arg);

#if REFCNT_MODE == REFCNT_PLAIN && !defined(REFCNT_LIBRARY)
REFCNT_INLINE long refcnt_holders(const void *object, refcnt_holder_fn *fn, void *arg)
{
	(void)object;
	(void)fn;
	(void)arg;
	return -1;
}
REFCNT_INLINE void refcnt_print_holders(const void *object)
{
	(void)object;
}
REFCNT_INLINE long refcnt_report(void)
{
	return -1;
}
#define REFCNT_TEARDOWN(fn) __attribute__((__unused__)) static void (*const refcnt_teardown_##fn)(void) = (fn)
#else
/* Calls fn for each reference that is held on the object, which the caller holds one of. fn must not use the library.
 * -> how many, -1 when the object is not known (no object of ours, its class is filtered out, memory was short) */
long refcnt_holders(const void *object, refcnt_holder_fn *fn, void *arg);
/* The same as text, where reports go. */
void refcnt_print_holders(const void *object);
/* What is not released now, by where the references were taken; any time, any thread. -> objects */
long refcnt_report(void);
void refcnt_teardown_register(void (*fn)(void));

/* At file scope: fn frees what a release build leaves to the kernel at exit. It runs before the report at exit. */
#define REFCNT_TEARDOWN(fn) \
	__attribute__((__constructor__, __unused__)) static void refcnt_teardown_##fn(void) \
	{ \
		refcnt_teardown_register(fn); \
	} \
	struct refcnt
#endif

#ifdef __cplusplus
}
#endif

#endif
