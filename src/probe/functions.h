/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions of a file that a probe can name: those of its symbol tables and those of its debug information, put
 * together. PLT stubs are none.
 */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "dwarf/listing.h"
#include "elf/symtab.h"

struct rt_listed {
	const char *name;        /* the symbol, else the linkage name, else the name in the source */
	const char *source_name; /* DW_AT_name; NULL without debug info */
	const char **aliases;    /* other symbols at the same address */
	size_t alias_count;
	bool has_body; /* false: it is only inlined, there is no address */
	struct rt_elfaddr addr;
	uint64_t size;    /* bytes, 0 = unknown */
	const char *file; /* of the declaration; NULL: unknown */
	uint32_t line;
	uint32_t inlined; /* instances in other functions */
	bool ifunc;       /* its code chooses the implementation, and runs once */
	bool exported;
};

struct rt_functions {
	struct rt_arena arena;
	RT_VEC(struct rt_listed) list; /* by name, then address */
};

/* dwarf may be without debug info. Strings live as long as symtab and dwarf. Deinit *ret in any case. */
RT_CHECK struct rt_error *rt_functions_read(const struct rt_image *image, const struct rt_symtab *symtab,
					    struct rt_dwarf *dwarf, struct rt_functions *ret);
void rt_functions_deinit(struct rt_functions *functions);
