/* SPDX-License-Identifier: GPL-2.0-only */
#include "lifetime/index.h"

#include <stdlib.h>
#include <string.h>

#include "lifetime/state.h"

enum {
	BUCKETS_FIRST = 16,
	FULL = 9, /* lives in two buckets before there are more buckets: few look behind the one that is theirs */
	BEHIND_SHIFT = 56,
	BEHIND_MOST = 255, /* or more: is not counted down any more */
};

static uint32_t behind(const struct lt_bucket *b)
{
	return (uint32_t)(b->tags >> BEHIND_SHIFT);
}

static void look_behind(struct lt_bucket *b, int more)
{
	if (behind(b) != BEHIND_MOST)
		b->tags += (uint64_t)(int64_t)more << BEHIND_SHIFT;
}

static void set_tag(struct lt_bucket *b, unsigned i, uint8_t tag)
{
	b->tags = (b->tags & ~(UINT64_C(0xff) << 8 * i)) | (uint64_t)tag << 8 * i;
}

static uint32_t hash_of(const struct lt_inc *inc)
{
	return lt_index_hash(inc->object, inc->pid, inc->type);
}

/* the place of a life, NULL = there is none */
static struct lt_inc **find(const struct lt_index *index, uint32_t hash, uint64_t object, uint32_t pid, uint32_t type)
{
	if (!index->buckets)
		return NULL;
	/* counts that are not counted down any more could lead round and round */
	for (uint32_t n = 0; n <= index->mask; n++) {
		struct lt_bucket *b = &index->buckets[(hash + n) & index->mask];

		for (uint64_t match = lt_bucket_match(b, lt_index_tag(hash)); match; match &= match - 1) {
			struct lt_inc **place = &b->lives[__builtin_ctzll(match) / 8];

			/* a byte above one that is equal may be different */
			if (*place && (*place)->object == object && (*place)->pid == pid && (*place)->type == type)
				return place;
		}
		if (!behind(b))
			return NULL;
	}
	return NULL;
}

/* a life whose key is not there; there is room */
static void add(struct lt_index *index, struct lt_inc *inc)
{
	uint32_t hash = hash_of(inc);

	for (uint32_t i = hash & index->mask;; i = (i + 1) & index->mask) {
		struct lt_bucket *b = &index->buckets[i];

		for (unsigned k = 0; k < LT_BUCKET_LIVES; k++) {
			if (b->lives[k])
				continue;
			b->lives[k] = inc;
			set_tag(b, k, lt_index_tag(hash));
			return;
		}
		look_behind(b, 1);
	}
}

static bool grow(struct lt_index *index)
{
	size_t old = index->buckets ? (size_t)index->mask + 1 : 0, buckets = old ? 2 * old : BUCKETS_FIRST;
	struct lt_index bigger = { .mask = (uint32_t)(buckets - 1) };

	if (buckets > UINT32_MAX)
		return false;
	bigger.buckets = aligned_alloc(sizeof(struct lt_bucket), buckets * sizeof(struct lt_bucket));
	if (!bigger.buckets)
		return false;
	memset(bigger.buckets, 0, buckets * sizeof(struct lt_bucket));
	for (size_t i = 0; i < old; i++) {
		const struct lt_bucket *b = &index->buckets[i], *soon = &index->buckets[(i + 4) & index->mask];

		for (unsigned k = 0; k < LT_BUCKET_LIVES; k++) {
			__builtin_prefetch(soon->lives[k]);
			if (b->lives[k])
				add(&bigger, b->lives[k]);
		}
	}
	free(index->buckets);
	index->buckets = bigger.buckets;
	index->mask = bigger.mask;
	return true;
}

void lt_index_deinit(struct lt_index *index)
{
	free(index->buckets);
	*index = (struct lt_index){ 0 };
}

struct lt_inc *lt_index_find(const struct lt_index *index, uint32_t hash, uint64_t object, uint32_t pid, uint32_t type)
{
	struct lt_inc **place = find(index, hash, object, pid, type);

	return place ? *place : NULL;
}

bool lt_index_put(struct lt_index *index, struct lt_inc *inc)
{
	struct lt_inc **place = find(index, hash_of(inc), inc->object, inc->pid, inc->type);

	if (place) {
		*place = inc;
		return true;
	}
	if (!index->buckets || index->len >= (index->mask + 1ull) * FULL / 2) {
		if (!grow(index))
			return false;
	}
	add(index, inc);
	index->len++;
	return true;
}

void lt_index_remove(struct lt_index *index, const struct lt_inc *inc)
{
	uint32_t hash = hash_of(inc);

	for (uint32_t i = hash & index->mask;; i = (i + 1) & index->mask) {
		struct lt_bucket *b = &index->buckets[i];

		for (unsigned k = 0; k < LT_BUCKET_LIVES; k++) {
			if (b->lives[k] != inc)
				continue;
			b->lives[k] = NULL;
			set_tag(b, k, 0);
			index->len--;
			return;
		}
		look_behind(b, -1);
	}
}
