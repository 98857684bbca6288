/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/arena.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/poison.h"

/* An arena that has become large goes on in huge pages, where the kernel has some: its users jump about in it. */
enum { LINE_BYTES = 64, BLOCK_BYTES = 64 * 1024, HUGE_BYTES = 2 * 1024 * 1024, LARGE_BYTES = 1024 * 1024 };

struct rt_arena_block {
	struct rt_arena_block *next;
	size_t used, size;
	alignas(LINE_BYTES) char data[];
};

static struct rt_arena_block *block_new(const struct rt_arena *arena, size_t size)
{
	bool large = arena->bytes >= LARGE_BYTES && size <= HUGE_BYTES - sizeof(struct rt_arena_block);
	size_t bytes = sizeof(struct rt_arena_block) + (size > BLOCK_BYTES ? size : BLOCK_BYTES);
	struct rt_arena_block *b;

	bytes = large ? HUGE_BYTES : (bytes + LINE_BYTES - 1) & ~(size_t)(LINE_BYTES - 1);
	b = aligned_alloc(large ? HUGE_BYTES : LINE_BYTES, bytes);
	if (!b)
		return NULL;
	if (large)
		(void)madvise(b, bytes, MADV_HUGEPAGE);
	memset(b, 0, bytes);
	b->size = bytes - sizeof(*b);
	rt_poison(b->data, b->size);
	return b;
}

void *rt_arena_alloc(struct rt_arena *arena, size_t size)
{
	const size_t align = size % LINE_BYTES ? alignof(max_align_t) : LINE_BYTES, asked = size;
	struct rt_arena_block *b = arena->blocks;
	size_t at;

	if (size > SIZE_MAX - 4 * LINE_BYTES - sizeof(*b))
		return NULL;
	size = (size + RT_POISON_GAP + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	at = b ? (b->used + align - 1) & ~(align - 1) : 0;
	if (!b || b->size < at || b->size - at < size) {
		b = block_new(arena, size);
		if (!b)
			return NULL;
		b->next = arena->blocks;
		arena->blocks = b;
		at = 0;
	}
	rt_unpoison(b->data + at, asked);
	b->used = at + size;
	arena->bytes += size;
	return b->data + at;
}

char *rt_arena_strndup(struct rt_arena *arena, const char *text, size_t len)
{
	char *copy = len < SIZE_MAX ? rt_arena_alloc(arena, len + 1) : NULL;

	if (copy && len)
		memcpy(copy, text, len);
	return copy;
}

char *rt_arena_vprintf(struct rt_arena *arena, const char *format, va_list args)
{
	_cleanup_free_ char *text = NULL;
	int n = vasprintf(&text, format, args);

	if (n < 0) {
		text = NULL;
		return NULL;
	}
	return rt_arena_strndup(arena, text, (size_t)n);
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
