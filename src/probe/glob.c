/* SPDX-License-Identifier: GPL-2.0-only */
/* Globs with * and ?, in linear space and without recursion: a pattern is user input. */
#include "probe/spec.h"

#include <string.h>

bool rt_glob_match(const char *pattern, const char *name)
{
	const char *star = NULL, *resume = NULL;

	/* On a mismatch the last star takes one character more; earlier stars never need another try. */
	while (*name) {
		if (*pattern == '*') {
			star = pattern++;
			resume = name;
		} else if (*pattern == '?' || *pattern == *name) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star + 1;
			name = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

bool rt_glob_is(const char *name)
{
	return strpbrk(name, "*?");
}
