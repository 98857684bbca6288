/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hits are noted by process and page, and matched with the mappings at the
 * end: the records of different CPUs come in no order. Times are left out: a file too many is kept now and
 * then, never one too few.
 */
#include <stdlib.h>

#include "session/binaries_priv.h"

enum { PAGES_MAX = 1 << 20, MAPS_MAX = 1 << 20, PARENTS_MAX = 1 << 20, PAGE_SHIFT = 12 };

struct page {
	uint64_t number;
	uint32_t pid;
};

typedef RT_VEC(struct page) page_vec;

static void overflow(struct rt_hits *h)
{
	h->all = true;
	rt_map_deinit(&h->pages);
	rt_map_deinit(&h->parents);
	rt_vec_deinit(&h->maps);
}

struct rt_error *rt_hits_address(struct rt_hits *h, uint32_t pid, uint64_t address)
{
	uint64_t page = address >> PAGE_SHIFT, mix = (page ^ (uint64_t)pid << 40) * 0x9e3779b97f4a7c15u;
	uint64_t *recent = &h->recent[mix >> 52], *slot;

	/* the kernel's half belongs to no file */
	h->kernel |= address >> 63;
	if (h->all || *recent == mix || address >> 63 || !page)
		return NULL;
	*recent = mix;
	slot = rt_map_put(&h->pages, rt_key_make(pid, page), NULL);
	if (!slot)
		return rt_error_nomem();
	*slot = 1;
	if (h->pages.len > PAGES_MAX)
		overflow(h);
	return NULL;
}

struct rt_error *rt_hits_map(struct rt_hits *h, uint32_t pid, uint64_t start, uint64_t end, uint32_t binary)
{
	const struct rt_hits_map map = { start, end, pid, binary };

	if (h->all || start >= end)
		return NULL;
	if (!rt_vec_push(&h->maps, map))
		return rt_error_nomem();
	if (h->maps.len > MAPS_MAX)
		overflow(h);
	return NULL;
}

struct rt_error *rt_hits_fork(struct rt_hits *h, uint32_t parent, uint32_t child)
{
	uint64_t *slot;

	if (h->all || parent == child)
		return NULL;
	slot = rt_map_put(&h->parents, rt_key_make(child, 0), NULL);
	if (!slot)
		return rt_error_nomem();
	*slot = parent;
	if (h->parents.len > PARENTS_MAX)
		overflow(h);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct page *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* A child has its parent's mappings until its exec: its hits count for both. */
static struct rt_error *inherit(struct rt_hits *h, page_vec *pages)
{
	for (size_t i = 0; i < pages->len && pages->len < 2 * (size_t)PAGES_MAX; i++) {
		struct page page = pages->data[i];
		const uint64_t *parent = rt_map_get(&h->parents, rt_key_make(page.pid, 0));
		bool fresh = false;
		uint64_t *slot;

		if (!parent)
			continue;
		page.pid = (uint32_t)*parent;
		slot = rt_map_put(&h->pages, rt_key_make(page.pid, page.number), &fresh);
		if (!slot || (fresh && !rt_vec_push(pages, page)))
			return rt_error_nomem();
		*slot = 1;
	}
	return NULL;
}

static bool is_hit(const page_vec *pages, const struct rt_hits_map *map)
{
	const struct page first = { map->start >> PAGE_SHIFT, map->pid };
	const struct page last = { (map->end - 1) >> PAGE_SHIFT, map->pid };
	size_t lo = 0, hi = pages->len;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare(&pages->data[mid], &first) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < pages->len && compare(&pages->data[lo], &last) <= 0;
}

struct rt_error *rt_hits_each(struct rt_hits *h, void (*hit)(void *arg, uint32_t binary), void *arg)
{
	page_vec pages = { 0 };
	struct rt_error *err = NULL;
	size_t pos = 0;

	for (struct rt_map_slot *slot; !err && (slot = rt_map_next(&h->pages, &pos));) {
		const struct page page = { slot->key.b, (uint32_t)slot->key.a };

		if (!rt_vec_push(&pages, page))
			err = rt_error_nomem();
	}
	if (!err)
		err = inherit(h, &pages);
	if (!err && pages.len) {
		qsort(pages.data, pages.len, sizeof(pages.data[0]), compare);
		for (size_t i = 0; i < h->maps.len; i++) {
			if (is_hit(&pages, &h->maps.data[i]))
				hit(arg, h->maps.data[i].binary);
		}
	}
	rt_vec_deinit(&pages);
	return err;
}

void rt_hits_deinit(struct rt_hits *h)
{
	rt_map_deinit(&h->pages);
	rt_map_deinit(&h->parents);
	rt_vec_deinit(&h->maps);
}
