/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hash map from a 128-bit key to a 64-bit value: open addressing, linear
 * probing, backward-shift deletion (no tombstones), at most 3/4 full. The hot
 * table of the analysis; keep what it is behind this header.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rt_key {
	uint64_t a, b;
};

struct rt_map_slot {
	struct rt_key key;
	uint64_t value;
	uint64_t hash; /* 0 = empty */
};

struct rt_map {
	struct rt_map_slot *slots;
	size_t len, cap; /* cap is 0 or a power of two */
};

static inline struct rt_key rt_key_make(uint64_t a, uint64_t b)
{
	return (struct rt_key){ a, b };
}

/*
 * Of the bytes, eight at a time; for tables of this process alone, as it depends on the byte order. Seeds make several
 * hashes of the same bytes.
 */
uint64_t rt_hash(uint64_t seed, const void *data, size_t size);

/* A key for a text: 128 bits of hash, taken for the text itself. */
struct rt_key rt_key_text(const char *text);

/* An empty map is all zeroes. Frees what it holds (values are plain numbers). */
void rt_map_deinit(struct rt_map *map);

/* Address of the value of key, or NULL. Valid until the next put or remove. */
uint64_t *rt_map_get(const struct rt_map *map, struct rt_key key);

/*
 * Address of the value of key, made with value 0 if it was not there (then
 * *ret_new is true; ret_new may be NULL). NULL: out of memory, nothing changed.
 */
uint64_t *rt_map_put(struct rt_map *map, struct rt_key key, bool *ret_new);

/* Removes key; true and its value in *ret (may be NULL) if it was there. */
bool rt_map_remove(struct rt_map *map, struct rt_key key, uint64_t *ret);

/* The next used slot at or after *pos, or NULL at the end; advances *pos. No changes meanwhile. */
struct rt_map_slot *rt_map_next(const struct rt_map *map, size_t *pos);
