/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Operations of a signal handler that came into the library in the same thread: they wait for no lock, so they change
 * the count and note nothing, and reports say how many they were. New references have no handle.
 */
#ifndef RC_INTERRUPT_H
#define RC_INTERRUPT_H

#include <stdbool.h>
#include <stddef.h>

#include "refcnt/lib.h"

void *rc_interrupt_alloc(size_t size, size_t counter);
void rc_interrupt_init(struct refcnt *r);
/* p as alloc gave it, or its home */
void rc_interrupt_free(void *p);
/* -> the pointer of the new reference; NULL: not_zero, and there is none */
void *rc_interrupt_get(const struct refcnt *r, void *p, bool not_zero);
/* -> the object to release, or NULL */
void *rc_interrupt_put(const struct refcnt *r, void *p);

#endif
