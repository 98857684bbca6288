/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls that nothing comes back from: what stands behind them is reached by jumps only. */
#pragma once

#include "elf/symtab.h"
#include "insn/insn.h"

/*
 * A direct call, or jump, to abort() and the like, by name; or to a function of the same file in which no way is seen
 * to lead back: no return, no jump to another function, nothing that leads nobody knows where. symtab may be NULL.
 */
bool rt_noreturn(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		 const struct rt_insn *insn);
