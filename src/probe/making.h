/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What code says about the beginning and the end of objects: a function that
 * allocates and writes the first count makes them, one that hands its argument
 * to a free() ends them. Looks at code in the order of its addresses: evidence
 * for a name or a declaration, never alone.
 */
#pragma once

#include "elf/symtab.h"
#include "insn/insn.h"

struct rt_making {
	const struct rt_image *image;
	const struct rt_symtab *symtab;
	struct rt_decoder *decoder;
	int32_t counter; /* bytes from the object */
	uint32_t counter_size;
};

/* "malloc", "my_alloc", "g_memdup", operator new */
bool rt_making_allocates(const char *name);

/* function calls an allocator and stores a small constant as the counter of what it got, itself or in an init(). */
bool rt_making_starts(const struct rt_making *m, const struct rt_symbol *function);

/* function stores a small constant, no 0, as the counter of its first argument, itself or in what it gives that. */
bool rt_making_inits(const struct rt_making *m, const struct rt_symbol *function);

/* function returns what it has from an allocator, or a place inside of that. */
bool rt_making_returns(const struct rt_making *m, const struct rt_symbol *function);

/* function leaves what it has from an allocator where the pointer in register slot (an argument's) leads to. */
bool rt_making_leaves(const struct rt_making *m, const struct rt_symbol *function, uint8_t slot);

/* As rt_making_starts(), and it leaves the object where the pointer in register slot (an argument's) leads to. */
bool rt_making_stores(const struct rt_making *m, const struct rt_symbol *function, uint8_t slot);

/* function gives its first argument to free() or the like, itself or one call deeper. */
bool rt_making_ends(const struct rt_making *m, const struct rt_symbol *function);

/* ... or what its first argument leads to, itself, or by one that frees what it is led to as well: "void obj_free(T
 * **)" */
bool rt_making_ends_slot(const struct rt_making *m, const struct rt_symbol *function);
