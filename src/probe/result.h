/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a function's code says about its result, where no declaration does.
 */
#pragma once

#include "elf/image.h"
#include "elf/symtab.h"
#include "insn/insn.h"

/*
 * Does the function return a number, or nothing, on all ways that can be followed, but for those that return 0? false:
 * it may return an address, or what another function does. Bounded work.
 */
bool rt_result_is_number(const struct rt_image *image, struct rt_decoder *decoder, const struct rt_symbol *function);
