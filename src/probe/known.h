/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * if (!x->refs) x->refs++: compilers know the sum, and store it. Private to probe/.
 */
#pragma once

#include "probe/build.h"
#include "probe/track.h"

/*
 * insn stores a constant through a plain register, and only those come to it that have compared what it overwrites with
 * one and the same other constant, right before: *ret is the difference. false: it is not so, or not understood.
 */
bool rt_known_change(struct rt_plan_build *b, const struct rt_insn *insn, struct rt_change *ret);
