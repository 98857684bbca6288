/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/intern.h"

#include <string.h>

uint32_t rt_intern_bytes(struct rt_intern *in, const void *data, size_t size)
{
	uint64_t hash = rt_hash(size, data, size);

	/* equal hashes of different bytes: try (hash, 1), (hash, 2) ... */
	for (uint64_t probe = 0;; probe++) {
		bool made;
		uint64_t *id = rt_map_put(&in->by_hash, rt_key_make(hash, probe), &made);
		struct rt_bytes *item;
		char *copy;

		if (!id)
			return 0;
		if (!made) {
			struct rt_bytes have = in->items.data[*id - 1];

			if (have.size == size && (!size || !memcmp(have.data, data, size)))
				return (uint32_t)*id;
			continue;
		}
		copy = rt_arena_strndup(&in->arena, data, size);
		item = copy && in->items.len < UINT32_MAX ? rt_vec_add(&in->items) : NULL;
		if (!item) {
			rt_map_remove(&in->by_hash, rt_key_make(hash, probe), NULL);
			return 0;
		}
		*item = rt_bytes_make(copy, size);
		return (uint32_t)(*id = in->items.len);
	}
}

uint32_t rt_intern_string(struct rt_intern *in, const char *text)
{
	return rt_intern_bytes(in, text, strlen(text));
}

struct rt_bytes rt_intern_get(const struct rt_intern *in, uint32_t id)
{
	if (!id || id > in->items.len)
		return rt_bytes_make("", 0);
	return in->items.data[id - 1];
}

const char *rt_intern_text(const struct rt_intern *in, uint32_t id)
{
	return (const char *)rt_intern_get(in, id).data;
}

void rt_intern_deinit(struct rt_intern *in)
{
	rt_arena_deinit(&in->arena);
	rt_vec_deinit(&in->items);
	rt_map_deinit(&in->by_hash);
}
