/* SPDX-License-Identifier: GPL-2.0-only */
/* Code that a module's data points to: tables of operations, callbacks in initialised structures. */
#pragma once

#include "base/vec.h"
#include "elf/image.h"

/* Sorted, each once. */
struct rt_pointed {
	RT_VEC(uint64_t) addresses; /* ELF addresses in executable segments */
};

/*
 * Reads it from relocations (R_*_RELATIVE, R_*_64 of symbols of the module's own), and, for what is linked to a fixed
 * address or has packed relocations, from the words of the data themselves: some of these may be numbers that look like
 * addresses. 64-bit little-endian files only; of others, and of what does not lie in the file, nothing is found.
 * Sections of a hostile file that overlap are read up to the size of the file. The caller deinits with
 * rt_pointed_deinit(), whatever is returned. Errors: out of memory.
 */
RT_CHECK struct rt_error *rt_pointed_read(const struct rt_image *image, struct rt_pointed *ret);
bool rt_pointed_has(const struct rt_pointed *pointed, struct rt_elfaddr at);
void rt_pointed_deinit(struct rt_pointed *pointed);
