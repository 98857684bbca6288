/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Memory of our own, straight from the kernel: the program's malloc may be what is debugged, may call us, and what lies
 * in it keeps blocks alive for LeakSanitizer. Bounded by REFCNT_MEMORY.
 */
#ifndef RC_MEMORY_H
#define RC_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed pages; NULL when the limit is reached or the kernel has none. Any thread. */
void *rc_memory_map(size_t bytes);
void rc_memory_unmap(void *p, size_t bytes);
/* Addresses, zeroed where touched, that count only as they are used (the caller bounds that). NULL without. */
void *rc_memory_reserve(size_t bytes);

/* Blocks of 32 bytes times a power of two. Guarded by its owner. */
#define RC_POOL_SIZES 16
struct rc_pool {
	void *free[RC_POOL_SIZES];
	char *chunk;
	size_t left;
};

/* size: 32 << i. Not zeroed. NULL when the limit is reached. */
void *rc_pool_take(struct rc_pool *pool, size_t size);
void rc_pool_give(struct rc_pool *pool, void *block, size_t size);

#endif
