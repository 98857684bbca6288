/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Foreign text: names from ELF files, source lines and command lines may hold
 * any bytes. Both renderers look at them through this.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the character at text (NUL-terminated, not at its end): its length in
 * bytes, the code point in *ret. 0: the bytes here are no UTF-8 (overlong
 * forms, surrogates and cut sequences included); *ret is then the single byte.
 */
size_t rt_utf8_next(const char *text, uint32_t *ret);
