/* SPDX-License-Identifier: GPL-2.0-only */
/* Sites and uses by number (site.c): whose business an operation is, by the stack in which it was done. */
#pragma once

#include "lifetime/state.h"

/* number of the functions of a site; made when new. 0: out of memory */
uint32_t lt_site_make(struct rt_lifetime *lt, const struct lt_site *site);
/* the use of (stack, point), made when new; UINT32_MAX: out of memory */
uint32_t lt_use_find(struct rt_lifetime *lt, uint32_t stack, uint32_t point, uint32_t pid, uint64_t time_ns);
/* the same as that use, by the function of this source alone; UINT32_MAX: out of memory */
uint32_t lt_use_instead(struct rt_lifetime *lt, uint32_t use, uint32_t src);
/*
 * The functions of a use from its site on, innermost first, at most max, and where each has its place: in a machine
 * frame of the stack, or just inside of it, where it jumped to what it called last. Places grow outward.
 */
#define LT_PLACE(machine) (2 * (machine) + 1)
#define LT_PLACE_CALLED(machine) (2 * (machine))
enum { LT_LEVELS = 24 }; /* of one stack that are looked at, where a caller has no other bound */
unsigned lt_use_levels(const struct rt_lifetime *lt, const struct lt_use *use, uint32_t src[], uint16_t place[],
		       unsigned max);
/* RT_HANDS_* of the function in this machine frame of the event's stack, for the call in which it stands */
uint8_t lt_hands(const struct rt_lifetime *lt, const struct lt_event *e, uint32_t machine);
/* the innermost frame of the use is known to have called the function of its point, not what jumped there */
bool lt_use_called(const struct rt_lifetime *lt, const struct lt_use *use);
/* how many source frames of a use are inside of the function (a lt_src.function); UINT_MAX: it is not in the stack */
unsigned lt_use_depth(const struct rt_lifetime *lt, const struct lt_use *use, uint32_t function);
/*
 * The machine frame so many further out than the function of use stands at the very call that the innermost frame of
 * `of` stands at: both come of it.
 */
bool lt_use_within_call(const struct rt_lifetime *lt, const struct lt_use *use, const struct lt_use *of,
			unsigned frames);
/* what the use is the site of is inlined, at any depth, into the function (a lt_src.function) */
bool lt_use_inlined(const struct rt_lifetime *lt, const struct lt_use *use, uint32_t function);
/* all source frames of a use, innermost first, functions without a frame of their own included; at most max */
size_t lt_use_frames(const struct rt_lifetime *lt, const struct lt_use *use, struct rt_frame *ret, size_t max);
const char *lt_function_name(const struct rt_lifetime *lt, uint32_t site, unsigned level); /* "" unknown */
/* a function of the type, or where that is NULL the function, has a frame in the stack (index + 1) */
bool lt_in_stack(const struct rt_lifetime *lt, uint32_t stack, uint32_t function, const struct lt_type *type);
