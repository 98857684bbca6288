/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel as a file with functions: places are counted from _text, since its addresses are others at each boot, and
 * a name may be that of several functions. What BTF (Documentation/bpf/btf.rst of Linux) tells of their arguments: by
 * the calling convention of x86-64, at the first instruction.
 */
#pragma once

#include "base/arena.h"
#include "bpfimage/btf.h"
#include "dwarf/variable.h"
#include "elf/symtab.h"

struct rt_kernel {
	const struct rt_symtab *symtab;
	const struct rt_btf *btf; /* for what there is no DWARF of; NULL: none */
	struct rt_elfaddr text;   /* of _text, in the addresses of symtab */
};

/* RT_E_NOT_FOUND: it has no _text, and is no kernel. symtab and btf stay the caller's and outlive *ret. */
RT_CHECK struct rt_error *rt_kernel_init(const struct rt_symtab *symtab, const struct rt_btf *btf,
					 struct rt_kernel *ret);

/* The symbol's distance from _text. false: no such symbol, or it lies before. */
bool rt_kernel_offset(const struct rt_kernel *kernel, const char *symbol, uint64_t *ret);

/*
 * Whether the symbols are those of the image, which has none of its own: what it exports (__ksymtab, of Linux 5.4 and
 * newer) must lie where they say. *ret_compared: how many could be compared; 0 proves nothing.
 */
bool rt_kernel_is_of(const struct rt_kernel *kernel, const struct rt_image *image, size_t *ret_compared);

/* Why the kernel would take no probe at addr, as far as its own marks tell: end of a sentence. NULL: it may. */
const char *rt_kernel_refuses(const struct rt_kernel *kernel, struct rt_elfaddr addr);

/* Distance of data from _text. NULL on success, else why it has none that is the same on each CPU and at each boot. */
const char *rt_kernel_data(const struct rt_kernel *kernel, struct rt_elfaddr addr, uint64_t *ret);

extern const char rt_kernel_no_parameter[];

/*
 * What the parameter `name` of function and the way from it mean at its entry, as BTF says. NULL on success, else why
 * not, as text of a sentence about it (in the arena).
 */
const char *rt_kernel_datum(const struct rt_kernel *kernel, struct rt_arena *arena, const char *function,
			    const char *name, const struct rt_trail *path, size_t count, struct rt_datum *ret);

/* Visits the parameters' names. NULL, or why there are none to be told. */
const char *rt_kernel_parameters(const struct rt_kernel *kernel, const char *function,
				 void (*visit)(const char *name, void *arg), void *arg);

/* What it returns; *ret_void: nothing. NULL, or why that is not known. */
const char *rt_kernel_returns(const struct rt_kernel *kernel, struct rt_arena *arena, const char *function,
			      struct rt_datum *ret, bool *ret_void);
