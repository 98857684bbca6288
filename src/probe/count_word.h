/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of functions that count references for whoever calls them. Who takes one for a purpose of his own does the same
 * to the counter, and is whom reports should name. Private to probe/.
 */
#pragma once

#include <stdbool.h>

/* One of the words of name, between underscores or in CamelCase, says that it takes a reference, or gives one back. */
bool rt_count_word(const char *name, bool get);
/* ... and hardly anything else: where not all that it does is proven. */
bool rt_count_word_sure(const char *name, bool get);
