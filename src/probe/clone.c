/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/clone.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static const struct {
	const char *word;
	enum rt_clone clone;
} suffixes[] = {
	{ "isra", RT_CLONE_ARGS },       { "constprop", RT_CLONE_ARGS }, { "part", RT_CLONE_PART },
	{ "cold", RT_CLONE_PART },       { "lto_priv", RT_CLONE_FULL },  { "llvm", RT_CLONE_FULL },
	{ "localalias", RT_CLONE_FULL },
};

/* Takes one ".word" or ".number" of s; false: not one of ours. */
static bool suffix(const char *s, size_t len, enum rt_clone *clone)
{
	size_t digits = 0;

	while (digits < len && isdigit((unsigned char)s[digits]))
		digits++;
	if (len && digits == len)
		return true;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (strlen(suffixes[i].word) == len && memcmp(suffixes[i].word, s, len) == 0) {
			if (suffixes[i].clone > *clone)
				*clone = suffixes[i].clone;
			return true;
		}
	return false;
}

size_t rt_clone_base(const char *symbol, enum rt_clone *ret)
{
	size_t len = strlen(symbol), base = strcspn(symbol, ".");
	enum rt_clone clone = RT_CLONE_FULL;

	*ret = RT_CLONE_FULL;
	if (!base || base == len)
		return len;
	for (size_t at = base; at < len;) {
		size_t n = strcspn(symbol + at + 1, ".");

		if (!suffix(symbol + at + 1, n, &clone))
			return len;
		at += 1 + n;
	}
	*ret = clone;
	return base;
}
