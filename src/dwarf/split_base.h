/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lists of split debug info, made independent of their skeleton: offsets in them count from where the unit's code
 * begins, which only the skeleton says.
 */
#pragma once

#include "base/bytes.h"

/*
 * A copy of .debug_rnglists.dwo or .debug_loclists.dwo (locations true) of DWARF 5 with the base told in each list that
 * the table of offsets names. Little-endian, addresses of 8 bytes. *ret (size bytes) is freed by the caller. false:
 * damaged, or of another form.
 */
bool rt_split_lists(struct rt_bytes section, bool locations, uint64_t base, char **ret, size_t *ret_size);

/* The same of .debug_ranges (DWARF 4), from where the unit's lists begin. NULL: out of memory. */
char *rt_split_ranges(struct rt_bytes section, uint64_t base);
