/* SPDX-License-Identifier: GPL-2.0-only */
/* Words of text that many formats share. ASCII, whatever the locale: hostile bytes are no part of any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One unsigned number in text[0, len), base 10 or 16, nothing else around it. false: not one, or too big. */
bool rt_parse_u64(const char *text, size_t len, unsigned base, uint64_t *ret);

/* Letter, digit or '_'. */
bool rt_is_word(char c);

/* Bytes of the name of C that text, NUL-terminated, begins with; 0: it begins with none. */
size_t rt_identifier_length(const char *text);
