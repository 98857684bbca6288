/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * class=: where an object tells of what class it is.
 *
 *   +N>+N>...        pointers, each so many bytes behind where the one before leads (the first: behind the object); the
 *                    last one leads to the name, a text. An offset may be negative but the first
 *   ...>+N:FN@DSO    the last one is a number of 4 bytes, whose name FN(number) looks up in a table of texts
 *   vtable           C++: the name in the type information that the vtable at the object's beginning leads to
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RT_CLASS_STEPS = 6 };

struct rt_class_path {
	int32_t step[RT_CLASS_STEPS];
	uint8_t steps; /* 0: no class */
	bool mangled;  /* the text is a mangled name of C++ */
	/* where the names of numbers are; offsets in the text of class=, len 0: the text itself is there */
	uint16_t lookup, lookup_len;
};

/* false: text is none; *ret_at is where it is not understood. */
bool rt_class_path_parse(const char *text, size_t len, struct rt_class_path *ret, size_t *ret_at);
