/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that is freed all at once: graphs that live as long as one analysis.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/cleanup.h"

struct rt_arena_block;

struct rt_arena {
	struct rt_arena_block *blocks; /* newest first */
	size_t bytes;                  /* handed out so far */
};

/*
 * Zeroed, aligned for any type, valid until deinit. NULL: out of memory. A size that is a multiple of 64 begins with a
 * cache line.
 */
void *rt_arena_alloc(struct rt_arena *arena, size_t size);

/* Copy of the first len bytes of text, NUL-terminated. NULL: out of memory. */
char *rt_arena_strndup(struct rt_arena *arena, const char *text, size_t len);

/* printf-style. NULL: out of memory, or a format that cannot be said. */
char *rt_arena_vprintf(struct rt_arena *arena, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* An empty arena is all zeroes. Frees everything. */
void rt_arena_deinit(struct rt_arena *arena);
