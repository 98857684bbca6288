/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Globs with *, ? and [classes], and a backslash before what means itself, as perf-probe(1) has them; in linear space
 * and without recursion: a pattern is user input.
 */
#include "base/glob.h"

#include <string.h>

size_t rt_glob_class(const char *pattern)
{
	size_t n = 1;

	if (*pattern != '[')
		return 0;
	n += pattern[n] == '!';
	/* the first one is a member, even if it is a bracket */
	if (!pattern[n])
		return 0;
	for (n++; pattern[n] && pattern[n] != ']'; n++)
		;
	return pattern[n] ? n + 1 : 0;
}

static bool class_has(const char *pattern, size_t size, unsigned char c)
{
	bool others = pattern[1] == '!';

	for (size_t i = 1 + others; i + 1 < size; i++) {
		unsigned char from = (unsigned char)pattern[i], to = from;

		if (pattern[i + 1] == '-' && i + 3 < size) {
			to = (unsigned char)pattern[i + 2];
			i += 2;
		}
		if (c >= from && c <= to)
			return !others;
	}
	return others;
}

/* Characters of the pattern that stand for c; 0: it does not fit */
static size_t fit_one(const char *pattern, char c)
{
	size_t size = rt_glob_class(pattern);

	if (size)
		return class_has(pattern, size, (unsigned char)c) ? size : 0;
	if (*pattern == '?')
		return 1;
	if (*pattern == '\\' && pattern[1])
		return pattern[1] == c ? 2 : 0;
	return *pattern == c;
}

bool rt_glob_match(const char *pattern, const char *name)
{
	const char *star = NULL, *resume = NULL, *whole = pattern, *all = name;

	/* On a mismatch the last star takes one character more; earlier stars never need another try. */
	while (*name) {
		size_t n = *pattern == '*' ? 0 : fit_one(pattern, *name);

		if (*pattern == '*') {
			star = pattern++;
			resume = name;
		} else if (n) {
			pattern += n;
			name++;
		} else if (star) {
			pattern = star + 1;
			name = ++resume;
		} else {
			/* names have brackets, too: operator[], <[T]>::len */
			return !strcmp(whole, all);
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern || !strcmp(whole, all);
}

bool rt_glob_is(const char *name)
{
	return strpbrk(name, "*?");
}
