/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Site choice: which instruction to arm so that every call of a function is
 * seen once, cheaply, with the object still in a known register.
 *
 * From the entry on, straight-line code executes exactly once for each call.
 * Any instruction of that line can stand for the entry as long as nothing jumps
 * to it from elsewhere; which one decides the price of a hit (10 times between
 * an emulated and a single-stepped one) and whether the probe fires at all.
 */
#pragma once

#include "elf/image.h"
#include "probe/track.h"

struct rt_site_request {
	const struct rt_image *image;
	struct rt_decoder *decoder;
	struct rt_elfaddr entry;                /* where the line starts */
	struct rt_elfaddr start, end;           /* the function around it; end.v = 0: unknown */
	struct rt_elfaddr cold_start, cold_end; /* its part elsewhere (.cold), or 0 */
	uint8_t reg;                            /* holds the object at entry; RT_REG_NONE: no object is read here */
	bool return_slot;                       /* sp must point to the return address (RT_POINT_RETURN) */
	bool nearest;                           /* the first one that can be armed, not the cheapest */
	bool first_insn;                        /* the entry or nothing */
	bool slot;                              /* reg holds a T **: nothing may have been written before the site */
	bool unshared;                          /* nothing may jump to the entry: it is no function's */
	bool avoid_nop5;
	uint8_t room; /* bytes that the engine writes over, 0: a breakpoint; whole instructions are moved away for them
		       */
	bool breakpoints; /* where there is no room, a place for a breakpoint will do */
};

struct rt_site {
	struct rt_elfaddr address;
	uint8_t cost;          /* enum rt_probe_cost */
	uint8_t reg;           /* holds the object there; RT_REG_NONE if none was asked for */
	int32_t cfa_delta;     /* CFA = sp + cfa_delta, if the line started at a function's entry */
	uint8_t before;        /* where room was asked for: that many bytes before address it begins */
	bool breakpoint;       /* room was asked for, and there is none */
	struct rt_track track; /* what the line did before */
};

/* false: nothing can be armed; *ret_why is static text. */
bool rt_site_find(const struct rt_site_request *request, struct rt_site *ret, const char **ret_why);
