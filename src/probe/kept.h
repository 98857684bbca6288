/* SPDX-License-Identifier: GPL-2.0-only */
/* Definitions of the build-id cache that a spec asks for, as the markers that they stand for. Private to probe/. */
#pragma once

#include "elf/sdt.h"
#include "probe/build.h"

struct rt_kept_marker {
	struct rt_sdt_marker marker; /* provider: the group with its mark; strings in the arena */
	bool at_return;
	uint32_t results; /* at return: bit n - 1: argument n is the result */
};

struct rt_kept {
	RT_VEC(struct rt_kept_marker *) markers; /* in the arena of the planning */
};

/*
 * Appends what the cache of the plan's options has for this function of the spec and b's module: by the build-id; of
 * another file where the spec names this one and the options allow it, which becomes one of the plan's doubts. Refused
 * where only they stand against it.
 */
RT_CHECK struct rt_error *rt_plan_kept(struct rt_plan_build *b, uint32_t type, uint32_t function, struct rt_kept *kept);
void rt_kept_deinit(struct rt_kept *kept);
