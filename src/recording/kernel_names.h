/* SPDX-License-Identifier: GPL-2.0-only */
/* The few kernel functions that samples hit, out of all of /proc/kallsyms. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/map.h"

enum { RT_KSYMBOL_OUT_OF_LINE = 2 };

struct rt_kernel_name {
	uint64_t start;
	uint32_t size;
	char *name; /* owned */
};

/*
 * kallsyms: lines "ffffffff81000000 T _text [module]". addresses: keys are kernel addresses. *ret: the functions
 * around them, by address, each once; addresses NULL: all functions. Of several names at one address the last, as in
 * perf, so that a recording's own names and those of the kernel it was made on agree. Lines that cannot be read are
 * passed over; hidden addresses (all 0) give none.
 */
RT_CHECK struct rt_error *rt_kernel_names(struct rt_bytes kallsyms, const struct rt_map *addresses,
					  struct rt_kernel_name **ret, size_t *ret_count);
/* Address of the function of this name; 0: there is none, or addresses are hidden. */
uint64_t rt_kernel_address(struct rt_bytes kallsyms, const char *name);
void rt_kernel_names_free(struct rt_kernel_name *names, size_t count);
