/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Most of the time of a search in a large file is spent here: in one step, two bytes are compared at 64 places.
 */
#include "dwarf/words.h"

#include <string.h>

enum {
	WORDS_MAX = 1 << 16,
	PLACES_MAX = 1 << 16,
	STEP = 64, /* places that are looked at together */
	BEHIND = 4 /* bytes after them that may be read */
};

typedef uint8_t lanes __attribute__((vector_size(32)));

static uint32_t word_at(const unsigned char *data)
{
	uint32_t word;

	memcpy(&word, data, sizeof(word));
	return word;
}

static uint32_t hash(uint32_t word)
{
	return (word ^ word >> 16) & 0xffff;
}

void rt_words_deinit(struct rt_words *words)
{
	rt_vec_deinit(&words->list);
}

bool rt_words_add(struct rt_words *words, uint64_t word)
{
	if (word > UINT32_MAX || words->list.len >= WORDS_MAX || !rt_vec_push(&words->list, (uint32_t)word))
		return false;
	words->fits[hash((uint32_t)word) / 64] |= UINT64_C(1) << hash((uint32_t)word) % 64;
	return true;
}

void rt_words_clear(struct rt_words *words)
{
	for (size_t i = 0; i < words->list.len; i++)
		words->fits[hash(words->list.data[i]) / 64] = 0;
	rt_vec_clear(&words->list);
}

static void add_pair(struct rt_words *words, uint32_t word)
{
	words->pairs[words->pair_count].low = (uint8_t)(word >> 8 * words->shift);
	words->pairs[words->pair_count++].high = (uint8_t)(word >> 8 * words->shift >> 8);
}

void rt_words_ready(struct rt_words *words)
{
	words->pair_count = 0;
	words->shift = 0;
	if (words->list.len > RT_WORDS_FEW || (words->text && words->size < sizeof(uint32_t)))
		return;
	/* zeroes are everywhere: any other bytes tell more */
	for (size_t i = 0; i < words->list.len; i++)
		if (!(words->list.data[i] & 0xffff))
			words->shift = 1;
	for (size_t i = 0; i < words->list.len; i++)
		add_pair(words, words->list.data[i]);
	if (words->text)
		add_pair(words, word_at((const unsigned char *)words->text));
}

static bool is_hit(const struct rt_words *words, const unsigned char *at, size_t left)
{
	uint32_t word;

	if (words->text && left >= words->size && !memcmp(at, words->text, words->size))
		return true;
	if (left < sizeof(word))
		return false;
	word = word_at(at);
	if (!(words->fits[hash(word) / 64] >> hash(word) % 64 & 1))
		return false;
	for (size_t i = 0; i < words->list.len; i++)
		if (words->list.data[i] == word)
			return true;
	return false;
}

/* Of the places [from, to). false: too many, or no memory */
static bool find_one_by_one(const struct rt_words *words, struct rt_bytes bytes, size_t from, size_t to,
			    struct rt_places *ret)
{
	for (size_t i = from; i < to; i++)
		if (is_hit(words, bytes.data + i, bytes.size - i) &&
		    (ret->v.len >= PLACES_MAX || !rt_vec_push(&ret->v, (uint32_t)i)))
			return false;
	return true;
}

/* The first of [at, end) in steps from at on that may have a hit; end: none */
static inline __attribute__((always_inline)) size_t next_step(const struct rt_words *words, const unsigned char *data,
							      size_t at, size_t end)
{
	lanes low[RT_WORDS_FEW + 1], high[RT_WORDS_FEW + 1];
	const size_t count = words->pair_count;

	for (size_t i = 0; i < count; i++) {
		low[i] = (lanes){ 0 } + words->pairs[i].low;
		high[i] = (lanes){ 0 } + words->pairs[i].high;
	}
	for (data += words->shift; at < end; at += STEP) {
		lanes a, after_a, b, after_b, any = { 0 };
		uint64_t parts[4];

		memcpy(&a, data + at, sizeof(a));
		memcpy(&after_a, data + at + 1, sizeof(a));
		memcpy(&b, data + at + sizeof(a), sizeof(b));
		memcpy(&after_b, data + at + sizeof(a) + 1, sizeof(b));
		for (size_t i = 0; i < count; i++) {
			any |= (lanes)(a == low[i]) & (lanes)(after_a == high[i]);
			any |= (lanes)(b == low[i]) & (lanes)(after_b == high[i]);
		}
		memcpy(parts, &any, sizeof(parts));
		if (parts[0] | parts[1] | parts[2] | parts[3])
			break;
	}
	return at;
}

static size_t next_step_anywhere(const struct rt_words *words, const unsigned char *data, size_t at, size_t end)
{
	return next_step(words, data, at, end);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static size_t next_step_avx2(const struct rt_words *words, const unsigned char *data,
							     size_t at, size_t end)
{
	return next_step(words, data, at, end);
}
#endif

bool rt_words_find(const struct rt_words *words, struct rt_bytes bytes, struct rt_places *ret)
{
	size_t (*next)(const struct rt_words *, const unsigned char *, size_t, size_t) = next_step_anywhere;
	size_t at = 0, end = bytes.size < STEP + BEHIND ? 0 : (bytes.size - BEHIND) / STEP * STEP;

#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		next = next_step_avx2;
#endif
	rt_vec_clear(&ret->v);
	if (!words->pair_count)
		end = 0;
	while (at < end && (at = next(words, bytes.data, at, end)) < end) {
		if (!find_one_by_one(words, bytes, at, at + STEP, ret))
			return false;
		at += STEP;
	}
	return find_one_by_one(words, bytes, end, bytes.size, ret);
}
