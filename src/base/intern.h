/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Equal byte strings get equal numbers: names and stacks are compared by id.
 * Ids count from 1; 0 means "none". Interned bytes stay until deinit.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/map.h"
#include "base/vec.h"

struct rt_intern {
	struct rt_arena arena;
	RT_VEC(struct rt_bytes) items; /* items.data[id - 1] */
	struct rt_map by_hash;         /* hash, probe number -> id */
};

/* Id of these bytes, made if new. 0: out of memory. The stored copy is NUL-terminated. */
uint32_t rt_intern_bytes(struct rt_intern *in, const void *data, size_t size);

/* Id of a NUL-terminated string. */
uint32_t rt_intern_string(struct rt_intern *in, const char *text);

/* The bytes of id; empty for an unknown id. */
struct rt_bytes rt_intern_get(const struct rt_intern *in, uint32_t id);

/* The string of id; "" for an unknown id. */
const char *rt_intern_text(const struct rt_intern *in, uint32_t id);

/* An empty table is all zeroes. */
void rt_intern_deinit(struct rt_intern *in);
