/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64 * 1024 };

struct rt_arena_block {
	struct rt_arena_block *next;
	size_t used, size;
	alignas(max_align_t) char data[];
};

void *rt_arena_alloc(struct rt_arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t);
	struct rt_arena_block *b = arena->blocks;
	void *p;

	if (size > SIZE_MAX - align - sizeof(*b))
		return NULL;
	size = (size + align - 1) & ~(align - 1);
	if (!b || b->size - b->used < size) {
		size_t want = size > BLOCK_BYTES ? size : BLOCK_BYTES;

		b = calloc(1, sizeof(*b) + want);
		if (!b)
			return NULL;
		b->size = want;
		b->next = arena->blocks;
		arena->blocks = b;
	}
	p = b->data + b->used;
	b->used += size;
	arena->bytes += size;
	return p;
}

char *rt_arena_strndup(struct rt_arena *arena, const char *text, size_t len)
{
	char *copy = len < SIZE_MAX ? rt_arena_alloc(arena, len + 1) : NULL;

	if (copy && len)
		memcpy(copy, text, len);
	return copy;
}

void rt_arena_deinit(struct rt_arena *arena)
{
	while (arena->blocks) {
		struct rt_arena_block *b = arena->blocks;

		arena->blocks = b->next;
		free(b);
	}
	arena->bytes = 0;
}
