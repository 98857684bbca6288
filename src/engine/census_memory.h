/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of a stopped process as a census sees it: regions by what they can
 * mean, blocks of the heap inside them, and reads through a small cache.
 *
 * Heap regions are cut into blocks by the chunk headers of glibc's allocator
 * where these are plausible, which also tells blocks that were freed: what lies
 * in dead memory holds nothing. Other anonymous memory has no blocks: a pointer into it stands for
 * its surroundings.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"

enum rt_region_kind {
	RT_REGION_GLOBAL, /* writable data of a file, its .bss, thread-local storage: a root */
	RT_REGION_STACK,  /* from a thread's sp upwards: a root */
	RT_REGION_HEAP,   /* anonymous memory: as reachable as what points to it */
};

#define RT_UNIT 16u /* bytes for each bit of the tables */

struct rt_region {
	uint64_t start, end;
	uint8_t kind; /* enum rt_region_kind */
	/* heap regions only; one bit for each RT_UNIT bytes; owned */
	uint64_t *seen;                  /* looked through, or waiting for it */
	uint64_t *first;                 /* a chunk starts here; NULL: no chunks */
	uint64_t *dead;                  /* the chunk that starts here is free */
	uint64_t chunk_start, chunk_end; /* what the chunks cover */
};

struct rt_window {
	uint64_t start;  /* address, a multiple of the window's size; ~0 = empty */
	uint32_t lo, hi; /* the bytes of it that could be read */
};

struct rt_census_memory {
	pid_t pid;                        /* a thread that still has its memory */
	RT_VEC(struct rt_region) regions; /* by address, without overlap */
	uint64_t bytes;                   /* of all regions */
	uint64_t low, high;               /* of all regions: a quick sieve for pointers */
	struct rt_window *windows;
	uint8_t *cache;
	size_t window_count;
};

struct rt_census_thread {
	pid_t tid;
	uint64_t sp, tls; /* 0 = none: it has left its stack */
	uint64_t registers[16];
	unsigned register_count;
};

/*
 * Reads the map of the process. threads tell stacks and thread-local storage. Regions have
 * no tables yet. RT_E_LIMIT when there are more than max_bytes.
 */
RT_CHECK struct rt_error *rt_census_memory_init(struct rt_census_memory *m, pid_t pid,
						const struct rt_census_thread *threads, size_t thread_count,
						uint64_t max_bytes);
void rt_census_memory_deinit(struct rt_census_memory *m);

/* Makes the tables of the heap regions; finds chunks and the dead ones among them. */
RT_CHECK struct rt_error *rt_census_heap(struct rt_census_memory *m);

/* The region that holds addr, or NULL. */
struct rt_region *rt_census_region(const struct rt_census_memory *m, uint64_t addr);

/* size bytes at addr, all or nothing. */
bool rt_census_read(struct rt_census_memory *m, uint64_t addr, void *buffer, size_t size);
bool rt_census_word(struct rt_census_memory *m, uint64_t addr, uint64_t *ret);
/* Up to size bytes from addr on, straight from the process: for long runs. How many were read. */
size_t rt_census_read_long(const struct rt_census_memory *m, uint64_t addr, void *buffer, size_t size);

/* The chunk of r that holds addr: its user memory is [*ret_lo, *ret_hi). false: no chunk there, or a header. */
bool rt_census_chunk(const struct rt_region *r, uint64_t addr, uint64_t *ret_lo, uint64_t *ret_hi, bool *ret_dead);
/* true when addr is exactly where a chunk's header starts: how the allocator itself points to chunks. */
bool rt_census_is_header(const struct rt_region *r, uint64_t addr);

static inline bool rt_bit(const uint64_t *bits, uint64_t n)
{
	return bits[n / 64] >> (n % 64) & 1;
}
static inline void rt_bit_set(uint64_t *bits, uint64_t n)
{
	bits[n / 64] |= 1ull << (n % 64);
}
