/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

uint64_t rt_hash(uint64_t seed, const void *data, size_t size)
{
	const uint64_t prime = UINT64_C(0x9fb21c651e98df25);
	const uint8_t *p = data;
	uint64_t h = (seed ^ size) * UINT64_C(0x9e3779b97f4a7c15) ^ UINT64_C(0xcbf29ce484222325), word;

	for (; size >= sizeof(word); size -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = (h ^ word) * prime;
		h ^= h >> 32; /* a product tells its high bits nothing of those above */
	}
	word = 0;
	if (size)
		memcpy(&word, p, size);
	h = (h ^ word) * prime;
	return h ^ h >> 32;
}

struct rt_key rt_key_text(const char *text)
{
	size_t len = strlen(text);

	return rt_key_make(rt_hash(1, text, len), rt_hash(2, text, len));
}

/* splitmix64's finaliser over both halves; never 0, which marks an empty slot */
static uint64_t hash_key(struct rt_key key)
{
	uint64_t h = key.a * UINT64_C(0x9e3779b97f4a7c15) ^ (key.b + UINT64_C(0x7f4a7c159e3779b9));

	h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
	h ^= h >> 31;
	return h ? h : 1;
}

static struct rt_map_slot *find(const struct rt_map *map, struct rt_key key, uint64_t hash)
{
	size_t mask = map->cap - 1;

	for (size_t i = hash & mask;; i = (i + 1) & mask) {
		struct rt_map_slot *s = &map->slots[i];

		if (!s->hash || (s->hash == hash && s->key.a == key.a && s->key.b == key.b))
			return s;
	}
}

static bool grow(struct rt_map *map)
{
	struct rt_map bigger = { .cap = map->cap ? map->cap * 2 : 16, .len = map->len };

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < map->cap; i++) {
		struct rt_map_slot *s = &map->slots[i];

		if (s->hash)
			*find(&bigger, s->key, s->hash) = *s;
	}
	free(map->slots);
	*map = bigger;
	return true;
}

void rt_map_deinit(struct rt_map *map)
{
	free(map->slots);
	*map = (struct rt_map){ 0 };
}

uint64_t *rt_map_get(const struct rt_map *map, struct rt_key key)
{
	struct rt_map_slot *s;

	if (!map->cap)
		return NULL;
	s = find(map, key, hash_key(key));
	return s->hash ? &s->value : NULL;
}

uint64_t *rt_map_put(struct rt_map *map, struct rt_key key, bool *ret_new)
{
	uint64_t hash = hash_key(key);
	struct rt_map_slot *s;

	if (map->len + 1 > map->cap / 4 * 3 && !grow(map))
		return NULL;
	s = find(map, key, hash);
	if (ret_new)
		*ret_new = !s->hash;
	if (!s->hash) {
		*s = (struct rt_map_slot){ .key = key, .hash = hash };
		map->len++;
	}
	return &s->value;
}

bool rt_map_remove(struct rt_map *map, struct rt_key key, uint64_t *ret)
{
	size_t mask = map->cap - 1, hole;
	struct rt_map_slot *s;

	if (!map->cap)
		return false;
	s = find(map, key, hash_key(key));
	if (!s->hash)
		return false;
	if (ret)
		*ret = s->value;
	hole = (size_t)(s - map->slots);
	/* move back every later slot of the run that may not stay behind a hole */
	for (size_t i = (hole + 1) & mask; map->slots[i].hash; i = (i + 1) & mask) {
		size_t home = map->slots[i].hash & mask;

		if (((i - home) & mask) >= ((i - hole) & mask)) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole].hash = 0;
	map->len--;
	return true;
}

struct rt_map_slot *rt_map_next(const struct rt_map *map, size_t *pos)
{
	while (*pos < map->cap) {
		struct rt_map_slot *s = &map->slots[(*pos)++];

		if (s->hash)
			return s;
	}
	return NULL;
}
