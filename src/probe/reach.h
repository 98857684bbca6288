/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ways through a function: by which instruction they come to another one, and where registers still hold what one
 * put there. Private to probe/.
 */
#pragma once

#include "probe/build.h"

/*
 * Each way through the code of [start, end) from start to the instruction at `at` passes the one at `by`, and what it
 * passes then writes none of these registers (bits by enum rt_reg) but there. false: not so, or not known, where a jump
 * leads nobody knows where.
 */
bool rt_reach_only_by(struct rt_plan_build *b, struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr by,
		      struct rt_elfaddr at, uint32_t regs);

/*
 * The table that the jump at `jump`, by a register, goes through; each function's are looked for once. false: not known
 * which, or how many entries it has.
 */
bool rt_reach_table(struct rt_plan_build *b, struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr jump,
		    struct rt_table *ret);

/* Some way through that code from start to `at` does not come by `by`. false: none, or none that is followed. */
bool rt_reach_past(struct rt_plan_build *b, struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr by,
		   struct rt_elfaddr at);
