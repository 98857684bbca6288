/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions and data symbols of a module: .symtab and .dynsym of the image,
 * of its debug companion, and of .gnu_debugdata (the xz-compressed small
 * symbol table), merged, sorted by address. Plus "name@plt" for PLT stubs.
 */
#pragma once

#include "elf/image.h"

enum rt_symbol_bind { RT_BIND_LOCAL, RT_BIND_GLOBAL, RT_BIND_WEAK };

struct rt_symbol {
	const char *name; /* as in the file (mangled), version stripped; owned by the table */
	const char *full; /* with its version ("memcpy@@GLIBC_2.14"); name itself where it has none */
	struct rt_elfaddr addr;
	uint64_t size; /* 0 = unknown */
	uint8_t bind;  /* enum rt_symbol_bind */
	bool function; /* STT_FUNC or STT_GNU_IFUNC */
	bool ifunc;
	bool label;   /* STT_NOTYPE and not hidden: code of assembly, such as _dl_start_user */
	bool plt;     /* a PLT stub: name is the function it jumps to, without "@plt" */
	bool dynamic; /* exported: from .dynsym */
};

struct rt_symtab {
	struct rt_symbol *symbols; /* sorted by (addr, -size, name) */
	size_t count;
	bool stripped; /* no .symtab anywhere: only what .dynsym and PLT tell */
	void *owned;   /* string storage */
};

/* Reads all symbol tables of image and its debug companion. Damaged tables are skipped, not fatal. */
RT_CHECK struct rt_error *rt_symtab_create(const struct rt_image *image, struct rt_symtab **ret);
void rt_symtab_destroy(struct rt_symtab *symtab);
RT_CLEANUP(struct rt_symtab *, rt_symtab_destroy);

/*
 * The function symbol that covers addr: [addr, addr + size), or for size 0 up
 * to the next symbol of the section. Of several, the innermost, then one that
 * is not local, then the shortest name. NULL: none.
 */
const struct rt_symbol *rt_symtab_at(const struct rt_symtab *symtab, struct rt_elfaddr addr);

/*
 * The symbol that perf would show for addr: labels of assembly count as functions, a later start wins over an earlier
 * one. Of aliases the one with a size, not weak, global, with fewer underscores before it, longer. NULL: none.
 */
const struct rt_symbol *rt_symtab_code_at(const struct rt_symtab *symtab, struct rt_elfaddr addr);

/* First symbol with this exact name that is no PLT stub, or NULL. */
const struct rt_symbol *rt_symtab_find(const struct rt_symtab *symtab, const char *name);
