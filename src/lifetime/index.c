/* SPDX-License-Identifier: GPL-2.0-only */
#include "lifetime/index.h"

#include <stdlib.h>
#include <string.h>

#include "lifetime/state.h"

enum {
	BUCKETS_FIRST = 16,
	FULL = 17, /* lives in two buckets before there are more buckets: few look behind the one that is theirs */
	BEHIND_SHIFT = 56,
	BEHIND_MOST = 255, /* or more: is not counted down any more */
};

static uint32_t behind(const struct lt_bucket *b)
{
	return (uint32_t)(b->tags[1] >> BEHIND_SHIFT);
}

static void look_behind(struct lt_bucket *b, int more)
{
	if (behind(b) != BEHIND_MOST)
		b->tags[1] += (uint64_t)(int64_t)more << BEHIND_SHIFT;
}

static void set_tag(struct lt_bucket *b, unsigned i, uint8_t tag)
{
	unsigned shift = i % 8 * 8;

	b->tags[i / 8] = (b->tags[i / 8] & ~(UINT64_C(0xff) << shift)) | (uint64_t)tag << shift;
}

static uint32_t hash_of(const struct rt_lifetime *lt, uint32_t ref)
{
	struct lt_domain of;
	uint64_t object = lt_life_key(lt, ref, &of);

	return lt_index_hash(object, of.pid, of.type);
}

static bool is_of(const struct rt_lifetime *lt, uint32_t ref, uint64_t object, uint32_t pid, uint32_t type)
{
	struct lt_domain of;

	return ref && lt_life_key(lt, ref, &of) == object && of.pid == pid && of.type == type;
}

/* the place of a life, NULL = there is none */
static uint32_t *find(const struct rt_lifetime *lt, uint32_t hash, uint64_t object, uint32_t pid, uint32_t type)
{
	const struct lt_index *index = &lt->by_object;

	if (!index->buckets)
		return NULL;
	/* counts that are not counted down any more could lead round and round */
	for (uint32_t n = 0; n <= index->mask; n++) {
		struct lt_bucket *b = &index->buckets[(hash + n) & index->mask];

		for (unsigned word = 0; word < 2; word++) {
			uint64_t match = lt_bucket_match(b, word, lt_index_tag(hash));

			for (; match; match &= match - 1) {
				uint32_t *place = &b->lives[word * 8 + (unsigned)__builtin_ctzll(match) / 8];

				/* a byte above one that is equal may be different */
				if (is_of(lt, *place, object, pid, type))
					return place;
			}
		}
		if (!behind(b))
			return NULL;
	}
	return NULL;
}

/* a life whose key is not there; there is room */
static void add(struct lt_index *index, uint32_t hash, uint32_t ref)
{
	for (uint32_t i = hash & index->mask;; i = (i + 1) & index->mask) {
		struct lt_bucket *b = &index->buckets[i];

		for (unsigned k = 0; k < LT_BUCKET_LIVES; k++) {
			if (b->lives[k])
				continue;
			b->lives[k] = ref;
			set_tag(b, k, lt_index_tag(hash));
			return;
		}
		look_behind(b, 1);
	}
}

static bool grow(struct rt_lifetime *lt)
{
	struct lt_index *index = &lt->by_object;
	size_t old = index->buckets ? (size_t)index->mask + 1 : 0, buckets = old ? 2 * old : BUCKETS_FIRST;
	struct lt_index bigger = { .mask = (uint32_t)(buckets - 1) };

	if (buckets > UINT32_MAX)
		return false;
	bigger.buckets = aligned_alloc(sizeof(struct lt_bucket), buckets * sizeof(struct lt_bucket));
	if (!bigger.buckets)
		return false;
	memset(bigger.buckets, 0, buckets * sizeof(struct lt_bucket));
	for (size_t i = 0; i < old; i++) {
		const struct lt_bucket *b = &index->buckets[i], *soon = &index->buckets[(i + 2) & index->mask];

		for (unsigned k = 0; k < LT_BUCKET_LIVES; k++) {
			if (soon->lives[k])
				__builtin_prefetch(rt_slab_at(&lt->slabs, soon->lives[k] & ~LT_PACKED));
			if (b->lives[k])
				add(&bigger, hash_of(lt, b->lives[k]), b->lives[k]);
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

uint32_t lt_index_find(const struct rt_lifetime *lt, uint32_t hash, uint64_t object, uint32_t pid, uint32_t type)
{
	const uint32_t *place = find(lt, hash, object, pid, type);

	return place ? *place : 0;
}

bool lt_index_put(struct rt_lifetime *lt, const struct lt_inc *inc)
{
	struct lt_index *index = &lt->by_object;
	uint32_t hash = lt_index_hash(inc->object, inc->pid, inc->type);
	uint32_t *place = find(lt, hash, inc->object, inc->pid, inc->type);

	if (place) {
		*place = rt_slab_ref(inc);
		return true;
	}
	if (!index->buckets || index->len >= (index->mask + 1ull) * FULL / 2) {
		if (!grow(lt))
			return false;
	}
	add(index, hash, rt_slab_ref(inc));
	index->len++;
	return true;
}

void lt_index_remove(struct rt_lifetime *lt, const struct lt_inc *inc)
{
	struct lt_index *index = &lt->by_object;
	uint32_t hash = lt_index_hash(inc->object, inc->pid, inc->type), ref = rt_slab_ref(inc);

	for (uint32_t i = hash & index->mask;; i = (i + 1) & index->mask) {
		struct lt_bucket *b = &index->buckets[i];

		for (unsigned k = 0; k < LT_BUCKET_LIVES; k++) {
			if (b->lives[k] != ref)
				continue;
			b->lives[k] = 0;
			set_tag(b, k, 0);
			index->len--;
			return;
		}
		look_behind(b, -1);
	}
}

void lt_index_moved(struct rt_lifetime *lt, uint32_t hash, uint32_t from, uint32_t to)
{
	struct lt_index *index = &lt->by_object;

	for (uint32_t n = 0; n <= index->mask; n++) {
		struct lt_bucket *b = &index->buckets[(hash + n) & index->mask];

		for (unsigned k = 0; k < LT_BUCKET_LIVES; k++) {
			if (b->lives[k] == from) {
				b->lives[k] = to;
				return;
			}
		}
	}
}
