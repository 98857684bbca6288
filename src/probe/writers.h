/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which instructions may have written what a register holds at some place of a function, whatever the way that leads
 * there: along its code backwards. Private to probe/.
 */
#pragma once

#include "probe/build.h"

struct rt_writers_edge {
	uint32_t to, from; /* numbers of instructions */
};

/* A function that is looked at, and kept until another one is asked for. All zeroes: none. */
struct rt_writers {
	struct rt_elfaddr start, end;
	RT_VEC(uint64_t) insns;               /* addresses, ascending */
	RT_VEC(uint32_t) ends;                /* those behind which the next one is not reached */
	RT_VEC(struct rt_writers_edge) edges; /* jumps, by `to` */
	RT_VEC(uint32_t) todo;
	uint8_t *seen; /* of each instruction */
	bool unknown;  /* some jump leads nobody knows where, or there is too much code */
};

void rt_writers_deinit(struct rt_writers *w);

enum { RT_WRITERS_MAX = 8 };

/*
 * Puts the addresses of those that wrote reg (enum rt_reg), as it is before the instruction at `at`, into ret; what
 * writes a 0 is left out. *ret_entry: it may be what it was at the beginning of the function. false: not known, or more
 * than there is room for.
 */
bool rt_writers_find(struct rt_writers *w, struct rt_plan_build *b, struct rt_elfaddr at, uint8_t reg,
		     struct rt_elfaddr ret[RT_WRITERS_MAX], unsigned *ret_count, bool *ret_entry);
