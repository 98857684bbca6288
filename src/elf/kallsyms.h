/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Text of /proc/kallsyms, lines "ffffffff81000000 T _text" with "\t[module]" behind what is a module's. Addresses are
 * those of one boot: only their distances stay the same. Lines that cannot be read are skipped.
 */
#pragma once

#include "elf/symtab.h"

struct rt_kallsym {
	uint64_t address;   /* 0 for all of them: hidden from who has read the file */
	const char *name;   /* into the text, not NUL-terminated */
	size_t len;         /* of name, 1..511 */
	char type;          /* as nm(1) has it: 't' */
	const char *module; /* "[bpf]", not NUL-terminated; NULL: of the kernel itself */
	size_t module_len;
};

/* The next one at or behind *pos, which is moved on (start with 0). false: the end. */
bool rt_kallsyms_next(struct rt_bytes text, size_t *pos, struct rt_kallsym *ret);

/*
 * A symbol table of the kernel itself, without its modules; names are copied. Sizes are not known there: functions end
 * where the next one begins. *ret is destroyed with rt_symtab_destroy().
 */
RT_CHECK struct rt_error *rt_symtab_of_kallsyms(struct rt_bytes text, struct rt_symtab **ret);
