/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which functions that a module has or calls free a block that they are given, as a mere pointer: by their names, and
 * by what debug information declares them to take. Private to probe/.
 */
#pragma once

#include "probe/block.h"

/* Adds to ret, by its address, each of them (a stub of one as well) with the register (enum rt_reg) of the block. */
RT_CHECK struct rt_error *rt_frees_find(struct rt_plan_build *b, struct rt_map *ret);
/*
 * The same of functions that the module has pointers to, in variables or members of structs that are called so: ret is
 * by the keys of rt_blocks_through().
 */
RT_CHECK struct rt_error *rt_frees_pointed_to(struct rt_blocks *blocks, struct rt_map *ret);
