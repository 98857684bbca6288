/* SPDX-License-Identifier: GPL-2.0-only */
/* Names that stand for others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Glob with *, ?, [a-z] and [!a-z] over a whole name; a backslash takes the meaning from what is behind it, and a class
 * that is not closed has none. What is the same text fits in any case.
 */
bool rt_glob_match(const char *pattern, const char *name);
/* Characters of the class that the pattern begins with; 0: it does not */
size_t rt_glob_class(const char *pattern);

/* Does the name stand for others? */
bool rt_glob_is(const char *name);
