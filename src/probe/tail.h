/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A public function that only checks its argument and jumps to the one that does
 * the work: a library counts through the inner one as well, and in a stripped
 * file that has no name.
 */
#pragma once

#include "elf/symtab.h"
#include "insn/insn.h"

/*
 * The one place outside of function that it jumps to with the object still in
 * reg; functions that others can call by name do not count. false: none, or several, or the function is more than
 * such a wrapper. symtab may be NULL.
 */
bool rt_tail_of(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		const struct rt_symbol *function, uint8_t reg, struct rt_elfaddr *ret);
