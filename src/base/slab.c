/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/slab.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/poison.h"

enum { BLOCK_BYTES = 2 * 1024 * 1024, BLOCK_SLABS = BLOCK_BYTES / RT_SLAB_BYTES, STEPS = 8 };

_Static_assert(1 << 3 == RT_SLAB_UNIT && RT_SLAB_FINE / RT_SLAB_UNIT == 16 && RT_SLAB_MOST == RT_SLAB_FINE << 6,
	       "classes are numbered so");
_Static_assert(sizeof(struct rt_slab) == 64, "things begin behind a cache line");

static unsigned class_of(size_t size)
{
	unsigned double_of; /* RT_SLAB_FINE << double_of is less than the size */

	if (size <= RT_SLAB_FINE)
		return (unsigned)((size - 1) / RT_SLAB_UNIT);
	double_of = 63 - 7 - (unsigned)__builtin_clzll(size - 1);
	return 16 + double_of * STEPS + (unsigned)(((size - 1) >> (7 + double_of - 3)) & (STEPS - 1));
}

static size_t bytes_of(unsigned class)
{
	unsigned double_of = (class - 16) / STEPS, step = (class - 16) % STEPS;

	if (class < 16)
		return (class + 1) * RT_SLAB_UNIT;
	return ((size_t)RT_SLAB_FINE << double_of) + (((size_t)step + 1) << (7 + double_of - 3));
}

static struct rt_slab *slab_of(const void *thing)
{
	return (struct rt_slab *)((uintptr_t)thing & ~(uintptr_t)(RT_SLAB_BYTES - 1));
}

static void link_in(struct rt_slab **list, struct rt_slab *s)
{
	s->prior = NULL;
	s->next = *list;
	if (s->next)
		s->next->prior = s;
	*list = s;
}

static void unlink_from(struct rt_slab **list, struct rt_slab *s)
{
	if (s->prior)
		s->prior->next = s->next;
	else
		*list = s->next;
	if (s->next)
		s->next->prior = s->prior;
}

static bool has_room(const struct rt_slab *s)
{
	return s->freed || (size_t)s->fresh * RT_SLAB_UNIT + s->bytes <= RT_SLAB_BYTES;
}

/* slabs of block number i: little is little memory */
static uint32_t slabs_of(size_t i)
{
	return i < 2 ? 1u << 2 * i : BLOCK_SLABS;
}

/* Things lie all over the memory: once there are many, in huge pages, where the kernel has some. */
static bool block_new(struct rt_slabs *slabs)
{
	const uint32_t nr = slabs_of(slabs->blocks.len);
	void *block = aligned_alloc(nr == BLOCK_SLABS ? BLOCK_BYTES : RT_SLAB_BYTES, (size_t)nr * RT_SLAB_BYTES);

	if (!block || !rt_vec_push(&slabs->blocks, block)) {
		free(block);
		return false;
	}
	if (nr == BLOCK_SLABS)
		(void)madvise(block, BLOCK_BYTES, MADV_HUGEPAGE);
	slabs->unused = nr;
	return true;
}

static struct rt_slab *slab_new(struct rt_slabs *slabs)
{
	struct rt_slab *s;

	if (slabs->slabs.len >= 1u << (RT_SLAB_REF_BITS - RT_SLAB_SHIFT + 3))
		return NULL;
	if (!slabs->slabs.len && !rt_vec_push(&slabs->slabs, NULL))
		return NULL;
	if (!slabs->unused && !block_new(slabs))
		return NULL;
	s = (struct rt_slab *)((char *)slabs->blocks.data[slabs->blocks.len - 1] +
			       (size_t)(slabs_of(slabs->blocks.len - 1) - slabs->unused) * RT_SLAB_BYTES);
	if (!rt_vec_push(&slabs->slabs, s))
		return NULL;
	slabs->unused--;
	s->number = (uint32_t)slabs->slabs.len - 1;
	return s;
}

/* a slab without things, of this size from now on */
static struct rt_slab *slab_begin(struct rt_slabs *slabs, unsigned class)
{
	struct rt_slab *s = slabs->empty;

	if (s)
		unlink_from(&slabs->empty, s);
	else
		s = slab_new(slabs);
	if (!s)
		return NULL;
	s->size = (uint8_t) class;
	s->bytes = (uint16_t)bytes_of(class);
	s->used = s->freed = 0;
	s->fresh = sizeof(*s) / RT_SLAB_UNIT;
	rt_poison(s + 1, RT_SLAB_BYTES - sizeof(*s));
	link_in(&slabs->roomy[class], s);
	return s;
}

void *rt_slab_alloc(struct rt_slabs *slabs, size_t size)
{
	unsigned class;
	struct rt_slab *s;
	char *thing;

	if (!size || size > RT_SLAB_MOST)
		return NULL;
	class = class_of(size);
	s = slabs->roomy[class];
	if (!s)
		s = slab_begin(slabs, class);
	if (!s)
		return NULL;
	thing = (char *)s + (size_t)(s->freed ? s->freed : s->fresh) * RT_SLAB_UNIT;
	rt_unpoison(thing, s->bytes);
	if (s->freed)
		memcpy(&s->freed, thing, sizeof(s->freed));
	else
		s->fresh = (uint16_t)(s->fresh + s->bytes / RT_SLAB_UNIT);
	s->used++;
	if (!has_room(s))
		unlink_from(&slabs->roomy[class], s);
	return thing;
}

void rt_slab_free(struct rt_slabs *slabs, void *thing)
{
	struct rt_slab *s = slab_of(thing);
	bool was_full = !has_room(s);

	memcpy(thing, &s->freed, sizeof(s->freed));
	rt_poison(thing, s->bytes);
	s->freed = (uint16_t)(((char *)thing - (char *)s) / RT_SLAB_UNIT);
	if (was_full)
		link_in(&slabs->roomy[s->size], s);
	if (--s->used)
		return;
	unlink_from(&slabs->roomy[s->size], s);
	link_in(&slabs->empty, s);
}

size_t rt_slab_room(const void *thing)
{
	return slab_of(thing)->bytes;
}

uint32_t rt_slab_ref(const void *thing)
{
	const struct rt_slab *s = slab_of(thing);

	return s->number << (RT_SLAB_SHIFT - 3) | (uint32_t)(((const char *)thing - (const char *)s) / RT_SLAB_UNIT);
}

void rt_slabs_deinit(struct rt_slabs *slabs)
{
	for (size_t i = 0; i < slabs->blocks.len; i++) {
		rt_unpoison(slabs->blocks.data[i], (size_t)slabs_of(i) * RT_SLAB_BYTES);
		free(slabs->blocks.data[i]);
	}
	rt_vec_deinit(&slabs->blocks);
	rt_vec_deinit(&slabs->slabs);
	*slabs = (struct rt_slabs){ 0 };
}
