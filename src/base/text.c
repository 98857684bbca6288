/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/text.h"

bool rt_parse_u64(const char *text, size_t len, unsigned base, uint64_t *ret)
{
	uint64_t v = 0;

	if (!len)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		unsigned digit = 99;

		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'f')
			digit = (unsigned)(c - 'a') + 10;
		else if (c >= 'A' && c <= 'F')
			digit = (unsigned)(c - 'A') + 10;
		if (digit >= base || v > (UINT64_MAX - digit) / base)
			return false;
		v = v * base + digit;
	}
	*ret = v;
	return true;
}

bool rt_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

size_t rt_identifier_length(const char *text)
{
	size_t len = 0;

	if (*text >= '0' && *text <= '9')
		return 0;
	while (rt_is_word(text[len]))
		len++;
	return len;
}
