/* SPDX-License-Identifier: GPL-2.0-only */
/* What names say about who closes what (stem.c). */
#pragma once

#include "lifetime/state.h"

/* 0 = nothing in common, 1 = as add_x and remove_x */
double lt_stem_match(const char *opens, const char *closes);
/* what part ends, by its name, may be what whole ends, or named after it: item_free() and item_list_free() */
bool lt_stem_within(const char *part, const char *whole);
/* two functions that by their names end the same: x_del() and x_free() */
bool lt_stem_twins(const char *a, const char *b);
/* by its name it ends objects of the type, or no other: item_free() and free_item(), but not item_free_list() */
bool lt_stem_ends(const char *name, const char *type);
/* the name says that a container keeps what it is given */
bool lt_stem_keeps(const char *name);
/* ... or one of those on the path of the site */
bool lt_site_keeps(const struct rt_lifetime *lt, uint32_t site);
