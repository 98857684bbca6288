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
struct rt_lifetime;

enum { LT_BUCKET_LIVES = 12 };

/* 0 = no life; else of the slabs of the analysis: of a struct lt_inc, or with this bit of a struct lt_packed */
#define LT_PACKED (UINT32_C(1) << 31)

struct lt_bucket {
	/* byte i: of the hash of lives[i], 0 = empty; the top one of all: how many lives look behind this bucket for a
	 * place; the three below it are 0
	 */
	_Alignas(64) uint64_t tags[2];
	uint32_t lives[LT_BUCKET_LIVES];
};

_Static_assert(sizeof(struct lt_bucket) == 64, "a bucket is a cache line");

/* Empty: all zeroes. The lives are not owned. */
struct lt_index {
	struct lt_bucket *buckets;
	uint32_t mask; /* number of buckets - 1 */
	uint32_t len;
};

void lt_index_deinit(struct lt_index *index);

/* Of lt->by_object: the life of the key whose hash this is, 0 = there is none. */
uint32_t lt_index_find(const struct rt_lifetime *lt, uint32_t hash, uint64_t object, uint32_t pid, uint32_t type);
/* inc is the last life of its key from now on; false: out of memory, nothing changed */
bool lt_index_put(struct rt_lifetime *lt, const struct lt_inc *inc);
/* inc is in the index */
void lt_index_remove(struct rt_lifetime *lt, const struct lt_inc *inc);
/* the life that was `from`, of a key with this hash, is `to` */
void lt_index_moved(struct rt_lifetime *lt, uint32_t hash, uint32_t from, uint32_t to);

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

/* The top bit of each byte of one of the tags that may be this one: the lowest that is set, is. */
static inline uint64_t lt_bucket_match(const struct lt_bucket *b, unsigned word, uint8_t tag)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t differ = b->tags[word] ^ ones * tag;

	return (differ - ones) & ~differ & ones << 7 & (word ? UINT32_MAX : UINT64_MAX);
}

/* A guess which life it is, for who fetches it: not checked. 0: not known. The index is not empty. */
static inline uint32_t lt_index_guess(const struct lt_index *index, uint32_t hash)
{
	const struct lt_bucket *b = lt_index_bucket(index, hash);
	uint64_t match = lt_bucket_match(b, 0, lt_index_tag(hash));

	if (match)
		return b->lives[__builtin_ctzll(match) / 8];
	match = lt_bucket_match(b, 1, lt_index_tag(hash));
	return match ? b->lives[8 + __builtin_ctzll(match) / 8] : 0;
}
