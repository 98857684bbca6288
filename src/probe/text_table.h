/* SPDX-License-Identifier: GPL-2.0-only */
/* A function that returns the text of a number: which table does it look into? */
#pragma once

#include "elf/symtab.h"
#include "insn/insn.h"

/*
 * The variable that has the table's address: code of function loads it, and then from it what lies at eight times a
 * register. false: it does not look as if it did.
 */
bool rt_text_table(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		   const struct rt_symbol *function, struct rt_elfaddr *ret);
