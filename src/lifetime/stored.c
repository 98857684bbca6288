/* SPDX-License-Identifier: GPL-2.0-only */
#include "lifetime/stored.h"

#include <stdlib.h>

#include "lifetime/state.h"

enum { ROOM_FIRST = 8 };

/* of 8 places 7 are used at most */
static bool is_full(const struct lt_stored_part *p)
{
	return p->nr + 1 > p->room - p->room / 8;
}

static uint32_t pid_of(const struct rt_lifetime *lt, const struct lt_stored_in *in)
{
	return lt->domains.data[in->domain - 1].pid;
}

static uint64_t hash_of(uint64_t slot, uint32_t pid)
{
	uint64_t h = slot * UINT64_C(0x9e3779b97f4a7c15) ^ pid * UINT64_C(0xbf58476d1ce4e5b9);

	h = (h ^ h >> 32) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 29;
}

static struct lt_stored_part *part_of(const struct lt_stored *stored, uint64_t hash)
{
	return (struct lt_stored_part *)(uintptr_t)&stored->parts[hash % LT_STORED_PARTS];
}

/* where the search for a slot begins: rooms are no powers of two */
static uint32_t home_of(const struct lt_stored_part *p, uint64_t hash)
{
	return (uint32_t)((hash >> 32) * p->room >> 32);
}

static uint32_t after(const struct lt_stored_part *p, uint32_t at)
{
	return at + 1 == p->room ? 0 : at + 1;
}

/* how far behind `from` the place lies, round the end */
static uint32_t distance(const struct lt_stored_part *p, uint32_t from, uint32_t at)
{
	return at >= from ? at - from : at + p->room - from;
}

void lt_stored_deinit(struct lt_stored *stored)
{
	for (unsigned i = 0; i < LT_STORED_PARTS; i++)
		free(stored->parts[i].slots);
	*stored = (struct lt_stored){ 0 };
}

struct lt_stored_in *lt_stored_get(const struct lt_stored *stored, const struct rt_lifetime *lt, uint64_t slot,
				   uint32_t pid)
{
	const uint64_t hash = hash_of(slot, pid);
	const struct lt_stored_part *p = part_of(stored, hash);

	if (!p->room)
		return NULL;
	for (uint32_t i = home_of(p, hash); p->slots[i].slot; i = after(p, i)) {
		if (p->slots[i].slot == slot && pid_of(lt, &p->slots[i]) == pid)
			return &p->slots[i];
	}
	return NULL;
}

static void put(struct lt_stored_part *p, uint64_t hash, struct lt_stored_in in)
{
	uint32_t i = home_of(p, hash);

	while (p->slots[i].slot)
		i = after(p, i);
	p->slots[i] = in;
	p->nr++;
}

/* by a quarter */
static bool grow(struct lt_stored_part *p, const struct rt_lifetime *lt)
{
	struct lt_stored_part bigger = { .room = p->room ? p->room + p->room / 4 : ROOM_FIRST };

	bigger.slots = calloc(bigger.room, sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (uint32_t i = 0; i < p->room; i++) {
		const struct lt_stored_in *in = &p->slots[i];

		if (in->slot)
			put(&bigger, hash_of(in->slot, pid_of(lt, in)), *in);
	}
	free(p->slots);
	*p = bigger;
	return true;
}

bool lt_stored_add(struct lt_stored *stored, const struct rt_lifetime *lt, struct lt_stored_in in)
{
	const uint64_t hash = hash_of(in.slot, pid_of(lt, &in));
	struct lt_stored_part *p = part_of(stored, hash);

	if (is_full(p) && !grow(p, lt))
		return false;
	put(p, hash, in);
	stored->nr++;
	return true;
}

void lt_stored_remove(struct lt_stored *stored, const struct rt_lifetime *lt, struct lt_stored_in *in)
{
	struct lt_stored_part *p = part_of(stored, hash_of(in->slot, pid_of(lt, in)));
	uint32_t hole = (uint32_t)(in - p->slots);

	/* whoever of the run may not stay behind a hole moves back into it */
	for (uint32_t i = after(p, hole); p->slots[i].slot; i = after(p, i)) {
		uint32_t home = home_of(p, hash_of(p->slots[i].slot, pid_of(lt, &p->slots[i])));

		if (distance(p, home, i) >= distance(p, hole, i)) {
			p->slots[hole] = p->slots[i];
			hole = i;
		}
	}
	p->slots[hole].slot = 0;
	p->nr--;
	stored->nr--;
}
