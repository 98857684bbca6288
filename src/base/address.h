/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Three kinds of address are three types: mixing them up is the classic fault
 * of uprobe tools, and the compiler shall refuse it.
 */
#pragma once

#include <stdint.h>

/* Address in a running process. */
struct rt_vaddr {
	uint64_t v;
};

/* Address as the ELF file's own headers say it (p_vaddr, st_value). */
struct rt_elfaddr {
	uint64_t v;
};

/* Byte offset in the file: what uprobes take. */
struct rt_foff {
	uint64_t v;
};
