/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "memory.h"
#include "option.h"

#define CHUNK ((size_t)256 << 10)

static size_t used_bytes;

static void *map(size_t bytes, int flags)
{
	int error = errno; /* an operation that goes on without memory is none that failed */
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	errno = error;
	return p == MAP_FAILED ? NULL : p;
}

void *rc_memory_map(size_t bytes)
{
	void *p = NULL;

	if (__atomic_add_fetch(&used_bytes, bytes, __ATOMIC_RELAXED) <= rc_option()->memory_bytes)
		p = map(bytes, 0);
	if (!p)
		__atomic_sub_fetch(&used_bytes, bytes, __ATOMIC_RELAXED);
	return p;
}

void rc_memory_unmap(void *p, size_t bytes)
{
	munmap(p, bytes);
	__atomic_sub_fetch(&used_bytes, bytes, __ATOMIC_RELAXED);
}

void *rc_memory_reserve(size_t bytes)
{
	return map(bytes, MAP_NORESERVE);
}

static unsigned index_of(size_t size)
{
	return (unsigned)__builtin_ctzl(size / 32);
}

void *rc_pool_take(struct rc_pool *pool, size_t size)
{
	unsigned i = index_of(size);
	void *block = pool->free[i];

	if (block) {
		pool->free[i] = *(void **)block;
		return block;
	}
	if (size > CHUNK)
		return rc_memory_map(size);
	if (pool->left < size) {
		char *chunk = (char *)rc_memory_map(CHUNK);

		if (!chunk)
			return NULL;
		/* what is left of the old one still serves smaller blocks */
		for (size_t part = CHUNK / 2; part >= 32; part /= 2) {
			if (pool->left < part)
				continue;
			rc_pool_give(pool, pool->chunk, part);
			pool->chunk += part;
			pool->left -= part;
		}
		pool->chunk = chunk;
		pool->left = CHUNK;
	}
	block = pool->chunk;
	pool->chunk += size;
	pool->left -= size;
	return block;
}

void rc_pool_give(struct rc_pool *pool, void *block, size_t size)
{
	unsigned i = index_of(size);

	*(void **)block = pool->free[i];
	pool->free[i] = block;
}
