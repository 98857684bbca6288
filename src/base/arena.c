/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/poison.h"

/* An arena that has become large goes on in huge pages, where the kernel has some: its users jump about in it. */
enum { BLOCK_BYTES = 64 * 1024, HUGE_BYTES = 2 * 1024 * 1024, LARGE_BYTES = 1024 * 1024 };

struct rt_arena_block {
	struct rt_arena_block *next;
	size_t used, size;
	alignas(max_align_t) char data[];
};

static struct rt_arena_block *block_new(const struct rt_arena *arena, size_t size)
{
	struct rt_arena_block *b = NULL;
	size_t want = 0;

	if (arena->bytes >= LARGE_BYTES && size <= HUGE_BYTES - sizeof(*b)) {
		b = aligned_alloc(HUGE_BYTES, HUGE_BYTES);
		want = HUGE_BYTES - sizeof(*b);
	}
	if (b) {
		(void)madvise(b, HUGE_BYTES, MADV_HUGEPAGE);
		memset(b, 0, HUGE_BYTES);
	} else {
		want = size > BLOCK_BYTES ? size : BLOCK_BYTES;
		b = calloc(1, sizeof(*b) + want);
	}
	if (b) {
		b->size = want;
		rt_poison(b->data, want);
	}
	return b;
}

void *rt_arena_alloc(struct rt_arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t), asked = size;
	struct rt_arena_block *b = arena->blocks;
	void *p;

	if (size > SIZE_MAX - 2 * align - sizeof(*b))
		return NULL;
	size = (size + RT_POISON_GAP + align - 1) & ~(align - 1);
	if (!b || b->size - b->used < size) {
		b = block_new(arena, size);
		if (!b)
			return NULL;
		b->next = arena->blocks;
		arena->blocks = b;
	}
	p = b->data + b->used;
	rt_unpoison(p, asked);
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
