/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Blocks of the heap by the chunk headers of glibc's allocator: [prev_size,
 * size | flags] 16 bytes before the user's memory, chunks side by side up to
 * the top. Free chunks are told by the next one's PREV_INUSE flag; those in the
 * thread caches by the cache's key in their second word; those in fast bins by
 * walking the bins. Nothing here is trusted: a chain that does not add up gives no blocks.
 */
#include "engine/census_memory.h"

#define PREV_INUSE 1u
#define IS_MMAPPED 2u
#define FLAGS 7u
#define CHUNK_MIN 32u
#define FIRST_TRY (64u << 10)
#define FAST_MAX 0xb0u
#define TCACHE_SIZE 0x290u
#define TCACHE_BINS 64

static bool header(struct rt_census_memory *m, const struct rt_region *r, uint64_t at, uint64_t *ret_size,
		   unsigned *ret_flags)
{
	uint64_t word;

	if (at + 16 > r->end || !rt_census_word(m, at + 8, &word))
		return false;
	*ret_size = word & ~(uint64_t)FLAGS;
	*ret_flags = word & FLAGS;
	return *ret_size >= CHUNK_MIN && *ret_size % 16 == 0 && *ret_size <= r->end - at;
}

/* Length of the chain of chunks from `at`; *ret_end is where it stops. */
static size_t chain(struct rt_census_memory *m, const struct rt_region *r, uint64_t at, size_t max, uint64_t *ret_end)
{
	size_t n = 0;
	uint64_t size;
	unsigned flags;

	while (n < max && at < r->end && header(m, r, at, &size, &flags) && !(flags & IS_MMAPPED)) {
		at += size;
		n++;
	}
	*ret_end = at;
	return n;
}

/* Where the chunks start: at the region, or behind an arena's head or what a static program keeps there. */
static bool find_start(struct rt_census_memory *m, const struct rt_region *r, uint64_t *ret)
{
	uint64_t limit = r->end - r->start < FIRST_TRY ? r->end : r->start + FIRST_TRY;
	uint64_t end;

	if (chain(m, r, r->start, 3, &end) && (end == r->end || chain(m, r, r->start, SIZE_MAX, &end) > 2) &&
	    (end == r->end || end - r->start > (r->end - r->start) / 2)) {
		*ret = r->start;
		return true;
	}
	for (uint64_t at = r->start + 16; at + CHUNK_MIN <= limit; at += 16) {
		uint64_t word;

		/* the first chunk has nobody before it, and says so */
		if (!rt_census_word(m, at + 8, &word) || !(word & PREV_INUSE))
			continue;
		if (chain(m, r, at, 4, &end) && (end == r->end || chain(m, r, at, SIZE_MAX, &end) > 1) &&
		    end == r->end) {
			*ret = at;
			return true;
		}
	}
	return false;
}

static bool make_tables(struct rt_region *r)
{
	size_t words = (size_t)((r->end - r->start) / RT_UNIT / 64 + 1);

	r->first = calloc(words, 8);
	r->dead = calloc(words, 8);
	return r->first && r->dead;
}

static void mark_chunk(struct rt_region *r, uint64_t at)
{
	rt_bit_set(r->first, (at - r->start) / RT_UNIT);
}

static void mark_dead(struct rt_region *r, uint64_t at)
{
	rt_bit_set(r->dead, (at - r->start) / RT_UNIT);
}

/* Blocks that are mappings of their own, one after the other. */
static bool cut_mapped(struct rt_census_memory *m, struct rt_region *r)
{
	uint64_t at = r->start, size, before;
	unsigned flags;

	while (at < r->end && header(m, r, at, &size, &flags) && flags == IS_MMAPPED && size % 4096 == 0 &&
	       rt_census_word(m, at, &before) && !before) {
		if (at == r->start && !make_tables(r))
			return false;
		mark_chunk(r, at);
		at += size;
	}
	r->chunk_start = r->start;
	r->chunk_end = at;
	return true;
}

static bool cut_chunks(struct rt_census_memory *m, struct rt_region *r)
{
	uint64_t at, size, last = 0;
	unsigned flags;

	if (!find_start(m, r, &at))
		return cut_mapped(m, r);
	if (!make_tables(r))
		return false;
	r->chunk_start = at;
	while (at < r->end && header(m, r, at, &size, &flags) && !(flags & IS_MMAPPED)) {
		mark_chunk(r, at);
		if (last && !(flags & PREV_INUSE))
			mark_dead(r, last);
		last = at;
		at += size;
	}
	r->chunk_end = at;
	/* the last one is the top: not given out yet */
	if (last && at == r->end)
		mark_dead(r, last);
	return true;
}

bool rt_census_is_header(const struct rt_region *r, uint64_t addr)
{
	return r->first && addr >= r->chunk_start && addr < r->chunk_end && addr % 16 == 0 &&
	       rt_bit(r->first, (addr - r->start) / RT_UNIT);
}

/* The nearest set bit at or below n. There is one: the first chunk. */
static uint64_t bit_before(const uint64_t *bits, uint64_t n)
{
	uint64_t word = bits[n / 64] & (~0ull >> (63 - n % 64)), i = n / 64;

	while (!word && i)
		word = bits[--i];
	return word ? i * 64 + 63 - (uint64_t)__builtin_clzll(word) : 0;
}

static uint64_t bit_after(const uint64_t *bits, uint64_t n, uint64_t end)
{
	uint64_t i = n / 64, word = bits[i] & (~0ull << (n % 64));

	while (!word && ++i * 64 < end)
		word = bits[i];
	if (!word)
		return end;
	n = i * 64 + (uint64_t)__builtin_ctzll(word);
	return n < end ? n : end;
}

bool rt_census_chunk(const struct rt_region *r, uint64_t addr, uint64_t *ret_lo, uint64_t *ret_hi, bool *ret_dead)
{
	uint64_t start, end, units;

	if (!r->first || addr < r->chunk_start || addr >= r->chunk_end)
		return false;
	units = (r->chunk_end - r->start) / RT_UNIT;
	start = bit_before(r->first, (addr - r->start) / RT_UNIT);
	end = bit_after(r->first, start + 1, units);
	*ret_dead = rt_bit(r->dead, start);
	*ret_lo = r->start + start * RT_UNIT + 16;
	/* the next header's first word belongs to this block */
	*ret_hi = r->start + end * RT_UNIT + (end < units ? 8 : 0);
	return addr >= *ret_lo && addr < *ret_hi;
}

/* ---- blocks that the allocator keeps for itself ---- */

/* The thread cache is the first chunk of an arena: the key that marks what it holds; 0 = unknown. */
static uint64_t cache_key(struct rt_census_memory *m)
{
	for (size_t i = 0; i < m->regions.len; i++) {
		const struct rt_region *r = &m->regions.data[i];
		uint64_t size, entry, key;
		uint16_t counts[TCACHE_BINS];
		unsigned flags;

		if (!r->first || !header(m, r, r->chunk_start, &size, &flags) || size != TCACHE_SIZE ||
		    !rt_census_read(m, r->chunk_start + 16, counts, sizeof(counts)))
			continue;
		for (unsigned bin = 0; bin < TCACHE_BINS; bin++) {
			if (!counts[bin] || !rt_census_word(m, r->chunk_start + 16 + sizeof(counts) + 8 * bin, &entry))
				continue;
			if (entry % 16 == 0 && rt_census_region(m, entry) && rt_census_word(m, entry + 8, &key) && key)
				return key;
		}
	}
	return 0;
}

static void mark_cached(struct rt_census_memory *m, struct rt_region *r, uint64_t key)
{
	uint64_t units = (r->chunk_end - r->start) / RT_UNIT, word;

	for (uint64_t n = bit_after(r->first, (r->chunk_start - r->start) / RT_UNIT, units); n < units;
	     n = bit_after(r->first, n + 1, units)) {
		if (rt_census_word(m, r->start + n * RT_UNIT + 24, &word) && word == key)
			rt_bit_set(r->dead, n);
	}
}

/* What a fast bin's link means: xored with its own place (glibc 2.32 and newer) or plain. */
static uint64_t bin_link(const struct rt_census_memory *m, uint64_t at, uint64_t link)
{
	const struct rt_region *r = rt_census_region(m, link);

	if (!link || (r && rt_census_is_header(r, link)))
		return link;
	return link ^ (at + 16) >> 12;
}

/* Follows a fast bin from its head. */
static void mark_bin(struct rt_census_memory *m, uint64_t at)
{
	uint64_t size = 0, link, first = 0;
	unsigned flags;

	for (unsigned n = 0; n < 1u << 20; n++) {
		struct rt_region *r = rt_census_region(m, at);

		if (!r || !rt_census_is_header(r, at) || !header(m, r, at, &size, &flags) || size > FAST_MAX)
			return;
		if (first && size != first)
			return;
		first = size;
		if (rt_bit(r->dead, (at - r->start) / RT_UNIT))
			return;
		if (!rt_census_word(m, at + 16, &link))
			return;
		link = bin_link(m, at, link);
		/* the head alone could be any pointer of the program: the link must make sense as well */
		if (link && (link % 16 || !rt_census_region(m, link)))
			return;
		mark_dead(r, at);
		if (!link)
			return;
		at = link;
	}
}

static void mark_bins_from(struct rt_census_memory *m, uint64_t start, uint64_t end)
{
	uint64_t words[512];

	for (uint64_t at = start; at < end; at += sizeof(words)) {
		size_t want = end - at < sizeof(words) ? (size_t)(end - at) : sizeof(words);
		size_t got = rt_census_read_long(m, at, words, want) / 8;

		for (size_t i = 0; i < got; i++) {
			struct rt_region *r = words[i] % 16 ? NULL : rt_census_region(m, words[i]);

			if (r && rt_census_is_header(r, words[i]))
				mark_bin(m, words[i]);
		}
	}
}

struct rt_error *rt_census_heap(struct rt_census_memory *m)
{
	uint64_t key;

	for (size_t i = 0; i < m->regions.len; i++) {
		struct rt_region *r = &m->regions.data[i];

		if (r->kind != RT_REGION_HEAP)
			continue;
		r->seen = calloc((size_t)((r->end - r->start) / RT_UNIT / 64 + 1), 8);
		if (!r->seen || !cut_chunks(m, r))
			return rt_error_nomem();
	}
	key = cache_key(m);
	for (size_t i = 0; i < m->regions.len; i++) {
		struct rt_region *r = &m->regions.data[i];

		if (r->first && key)
			mark_cached(m, r, key);
		/* the arenas' heads lie in the C library's data, or before their first chunk */
		if (r->kind == RT_REGION_GLOBAL)
			mark_bins_from(m, r->start, r->end);
		else if (r->first && r->chunk_start > r->start)
			mark_bins_from(m, r->start, r->chunk_start);
	}
	return NULL;
}
