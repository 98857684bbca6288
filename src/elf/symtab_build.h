/* SPDX-License-Identifier: GPL-2.0-only */
/* A symbol table while it is being put together. Private to elf/. */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "elf/symtab.h"

struct rt_symtab_build {
	struct rt_arena *arena; /* names */
	RT_VEC(struct rt_symbol) symbols;
	RT_VEC(struct rt_elfaddr) limits; /* same index: end of the symbol's section */
	bool has_symtab;                  /* a .symtab was seen */
};

/* Names longer than this are skipped: a hostile table may have all symbols share one endless name. */
#define RT_SYMBOL_NAME_MAX 8192

/* Adds a symbol that ends before limit. */
RT_CHECK struct rt_error *rt_symtab_add(struct rt_symtab_build *build, const struct rt_symbol *symbol,
					struct rt_elfaddr limit);

/* An empty table, and build for it. The two are handed to rt_symtab_finish() in any case. */
RT_CHECK struct rt_error *rt_symtab_begin(struct rt_symtab_build *build, struct rt_symtab **ret);
/* Sorts what was collected into *ret, or hands err on, if there was one. build and symtab are gone then. */
RT_CHECK struct rt_error *rt_symtab_finish(struct rt_error *err, struct rt_symtab_build *build,
					   struct rt_symtab *symtab, struct rt_symtab **ret);

/*
 * Adds the PLT stubs of image: code that jumps through a GOT slot which a
 * relocation fills. Must come after the symbols: an IRELATIVE slot is named
 * after the function at its resolver.
 */
RT_CHECK struct rt_error *rt_plt_read(const struct rt_image *image, struct rt_symtab_build *build);

/*
 * The xz-compressed ELF file in .gnu_debugdata, unpacked into *ret (owned by the
 * caller); *ret stays NULL when there is none or it is damaged or too big.
 */
RT_CHECK struct rt_error *rt_debugdata_read(const struct rt_image *image, uint8_t **ret, size_t *ret_size);
