/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Structures that begin with another one, by value: what points to "struct commit { struct object base; ... }" points
 * to an object, too.
 */
#pragma once

#include "base/error.h"
#include "base/vec.h"
#include "dwarf/dwarf.h"

/* Both names belong to the debug information. */
struct rt_head {
	const char *structure, *head;
};

/* All zeroes: none. */
struct rt_kin {
	RT_VEC(struct rt_head) all;
};

/* All of the module's that have a name. dwarf may be NULL: there are none. The caller frees it, also after an error. */
RT_CHECK struct rt_error *rt_kin_read(struct rt_dwarf *dwarf, struct rt_kin *ret);
void rt_kin_deinit(struct rt_kin *k);
/* What structure begins with; NULL: with nothing of that kind. */
const char *rt_kin_head(const struct rt_kin *k, const char *structure);
/* structure begins with head, or with what does so, some levels deep. */
bool rt_kin_begins(const struct rt_kin *k, const char *structure, const char *head);
