/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which life was the last one at an address: found by (object, pid, type). A hash table whose places are cache lines:
 * one look at the first eight bytes of a line tells which of its lives it can be, whatever else lies there, so that
 * nothing is left that a processor had to predict. The keys are in the lives themselves, which who asks needs anyway.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lt_inc;

enum { LT_BUCKET_LIVES = 7 };

struct lt_bucket {
	/* byte i: of the hash of lives[i], 0 = empty; the top one: how many lives look behind this bucket for a place
	 */
	_Alignas(64) uint64_t tags;
	struct lt_inc *lives[LT_BUCKET_LIVES];
};

_Static_assert(sizeof(struct lt_bucket) == 64, "a bucket is a cache line");

/* Empty: all zeroes. The lives are not owned. */
struct lt_index {
	struct lt_bucket *buckets;
	uint32_t mask; /* number of buckets - 1 */
	uint32_t len;
};

void lt_index_deinit(struct lt_index *index);

/* the life of the key whose hash this is, NULL = there is none */
struct lt_inc *lt_index_find(const struct lt_index *index, uint32_t hash, uint64_t object, uint32_t pid, uint32_t type);
/* inc is the last life of its key from now on; false: out of memory, nothing changed */
bool lt_index_put(struct lt_index *index, struct lt_inc *inc);
/* inc is in the index */
void lt_index_remove(struct lt_index *index, const struct lt_inc *inc);

static inline uint32_t lt_index_hash(uint64_t object, uint32_t pid, uint32_t type)
{
	uint64_t h =
		object * UINT64_C(0x9e3779b97f4a7c15) + ((uint64_t)pid << 32 | type) * UINT64_C(0xbf58476d1ce4e5b9);

	return (uint32_t)((h ^ h >> 32) * UINT64_C(0x94d049bb133111eb) >> 32);
}

static inline uint8_t lt_index_tag(uint32_t hash)
{
	uint32_t tag = hash >> 24;

	return (uint8_t)(tag + !tag);
}

static inline struct lt_bucket *lt_index_bucket(const struct lt_index *index, uint32_t hash)
{
	return &index->buckets[hash & index->mask];
}

/* The top bit of each byte of the bucket's tags that may be this one: the lowest that is set, is. */
static inline uint64_t lt_bucket_match(const struct lt_bucket *b, uint8_t tag)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t differ = b->tags ^ ones * tag;

	return (differ - ones) & ~differ & ones << 7 & (UINT64_MAX >> 8);
}

/* A guess which life it is, for who fetches it: not checked. NULL: not known. The index is not empty. */
static inline struct lt_inc *lt_index_guess(const struct lt_index *index, uint32_t hash)
{
	const struct lt_bucket *b = lt_index_bucket(index, hash);
	uint64_t match = lt_bucket_match(b, lt_index_tag(hash));

	return match ? b->lives[__builtin_ctzll(match) / 8] : NULL;
}
