/* SPDX-License-Identifier: GPL-2.0-only */
/* Who takes apart what a block is freed with. Private to probe/. */
#pragma once

#include "probe/build.h"

/*
 * The function that ends, by its name, the part of the struct that lies around byte offset, as it is given just that
 * part, or a pointer to it: it is inlined into the innermost function around the instruction at `at`, or called by the
 * code of the function `from` before that, and nowhere on the stack when the block is freed. *ret is NULL where there
 * is none, or more than one; it lives as long as the module.
 */
RT_CHECK struct rt_error *rt_plan_ender(struct rt_plan_build *b, const struct rt_symbol *from, struct rt_elfaddr at,
					const char *structure, uint64_t offset, const char **ret);
