/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory for millions of small things of many sizes, which come and go: each is told by a number of 32 bits, half of a
 * pointer, and has no header. A slab holds things of one size; one that is empty serves any size, so that what has
 * grown out of its size leaves no hole. Things do not move. All zeroes: empty. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

enum {
	RT_SLAB_SHIFT = 16,
	RT_SLAB_BYTES = 1 << RT_SLAB_SHIFT,
	RT_SLAB_UNIT = 8,    /* sizes are multiples of this, up to RT_SLAB_FINE; then eight steps double a size */
	RT_SLAB_FINE = 128,  /* bytes */
	RT_SLAB_MOST = 8192, /* bytes of a thing at most */
	RT_SLAB_CLASSES = 16 + 6 * 8,
	RT_SLAB_REF_BITS = 31 /* a number is less than 2 to this: who keeps it has a bit of his own */
};

struct rt_slab;

struct rt_slabs {
	RT_VEC(struct rt_slab *) slabs;         /* by number; the first one does not exist */
	RT_VEC(void *) blocks;                  /* of many slabs */
	uint32_t unused;                        /* slabs of the last block that have not been used yet */
	struct rt_slab *roomy[RT_SLAB_CLASSES]; /* with room for one more, by size */
	struct rt_slab *empty;
};

void rt_slabs_deinit(struct rt_slabs *slabs);

/*
 * Room for size bytes (1 to RT_SLAB_MOST), not cleared; a size that is a multiple of 64 begins with a cache line. NULL:
 * out of memory, or numbers.
 */
void *rt_slab_alloc(struct rt_slabs *slabs, size_t size);
void rt_slab_free(struct rt_slabs *slabs, void *thing);
/* bytes that the thing has room for */
size_t rt_slab_room(const void *thing);
/* its number, not 0 */
uint32_t rt_slab_ref(const void *thing);

/* What begins each slab, in a cache line of its own. */
struct rt_slab {
	_Alignas(64) struct rt_slab *next; /* in its list */
	struct rt_slab *prior;
	uint32_t number;
	uint16_t bytes; /* of each thing */
	uint16_t used;  /* things */
	uint16_t fresh,
		freed; /* units from the slab's begin: what follows was never used; the first of the free, or 0 */
	uint8_t size;  /* class */
};

/* the thing of this number */
static inline void *rt_slab_at(const struct rt_slabs *slabs, uint32_t ref)
{
	enum { SHIFT = RT_SLAB_SHIFT - 3 };

	return (char *)slabs->slabs.data[ref >> SHIFT] + (size_t)(ref & ((1u << SHIFT) - 1)) * RT_SLAB_UNIT;
}
