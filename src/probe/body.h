/* SPDX-License-Identifier: GPL-2.0-only */
/* The machine code of one function: where its instructions begin, and where something jumps to. */
#pragma once

#include "elf/symtab.h"
#include "insn/insn.h"

struct rt_dwarf;

struct rt_body {
	const struct rt_image *image;
	struct rt_decoder *decoder;
	struct rt_elfaddr start, end; /* [start, end) */
	uint8_t *marks;               /* of each byte; owned. Private to body.c */
};

/*
 * The function around addr: by its symbol, else by unwind tables (dwarf may be NULL). RT_E_NO_FUNCTION: neither knows
 * it, or it is too long. *ret is to be freed by rt_body_deinit() in any case.
 */
RT_CHECK struct rt_error *rt_body_read(const struct rt_image *image, const struct rt_symtab *symtab,
				       struct rt_dwarf *dwarf, struct rt_decoder *decoder, struct rt_elfaddr addr,
				       struct rt_body *ret);
void rt_body_deinit(struct rt_body *code);

bool rt_body_holds(const struct rt_body *code, struct rt_elfaddr addr);
/* Does an instruction begin at addr? If not, *ret_before and *ret_behind are the nearest ones. */
bool rt_body_is_insn(const struct rt_body *code, struct rt_elfaddr addr, struct rt_elfaddr *ret_before,
		     struct rt_elfaddr *ret_behind);
/* Does a branch of this function lead to addr? */
bool rt_body_is_target(const struct rt_body *code, struct rt_elfaddr addr);
/* The instruction at addr; false: none that can be understood. */
bool rt_body_at(const struct rt_body *code, struct rt_elfaddr addr, struct rt_insn *ret);
