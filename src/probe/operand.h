/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arguments of SDT markers: "8@%rdi -4@$5 8@-16(%rbp) 4@counter(%rip) 8@8(%rdx,%rcx,8) 8f@%xmm0", as the assembler
 * prints operands. Format: sys/sdt.h, and the SystemTap wiki's page on user space probe implementation; x86-64
 * in AT&T syntax, aarch64 as "8@x0", "8@[sp, 16]", "4@5".
 */
#pragma once

#include "insn/insn.h"

enum rt_operand_kind {
	RT_OPERAND_CONST,   /* value */
	RT_OPERAND_REG,     /* base */
	RT_OPERAND_MEMORY,  /* what lies at base + index * scale + value */
	RT_OPERAND_SYMBOL,  /* what lies at the address of symbol + value */
	RT_OPERAND_ADDRESS, /* the address of symbol + value itself */
	RT_OPERAND_UNKNOWN, /* see why */
};

struct rt_operand {
	const char *text; /* the whole argument: text_len bytes in the caller's string */
	size_t text_len;
	uint8_t kind; /* enum rt_operand_kind */
	uint8_t size; /* bytes: 1, 2, 4, 8; 0 = not told */
	bool is_signed, is_float;
	uint8_t base, index; /* enum rt_reg by DWARF number of the machine; RT_REG_NONE: none */
	uint8_t scale;       /* of index: 1, 2, 4, 8 */
	int64_t value;
	const char *symbol; /* symbol_len bytes in the caller's string */
	size_t symbol_len;
	const char *why; /* static text */
};

/*
 * Takes the next argument off *args, which then points behind it. machine: enum rt_machine. false: there is none. An
 * argument that is not understood is RT_OPERAND_UNKNOWN with the reason, and the next one may be taken.
 */
bool rt_operand_next(const char **args, uint16_t machine, struct rt_operand *ret);
