/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only way foreign bytes are read: a cursor over a range, bounds-checked.
 * Every next_* leaves the cursor where it was when it fails. No pointer cast
 * onto input, no alignment assumed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rt_bytes {
	const uint8_t *data; /* not owned */
	size_t size;
};

struct rt_cursor {
	struct rt_bytes bytes;
	size_t pos; /* next byte to read, 0 <= pos <= bytes.size */
	bool big_endian;
};

static inline struct rt_bytes rt_bytes_make(const void *data, size_t size)
{
	return (struct rt_bytes){ data, size };
}

static inline struct rt_cursor rt_cursor_make(struct rt_bytes bytes, bool big_endian)
{
	return (struct rt_cursor){ bytes, 0, big_endian };
}

static inline size_t rt_cursor_left(const struct rt_cursor *c)
{
	return c->bytes.size - c->pos;
}

/* Part [offset, offset + size) of b; false when it does not lie inside. */
bool rt_bytes_sub(struct rt_bytes b, uint64_t offset, uint64_t size, struct rt_bytes *ret);

/* Read one integer in the cursor's byte order. false: not enough bytes, nothing changed. */
bool rt_cursor_u8(struct rt_cursor *c, uint8_t *ret);
bool rt_cursor_u16(struct rt_cursor *c, uint16_t *ret);
bool rt_cursor_u32(struct rt_cursor *c, uint32_t *ret);
bool rt_cursor_u64(struct rt_cursor *c, uint64_t *ret);

/* LEB128. false: cut, or more than 64 bits. */
bool rt_cursor_long_uleb(struct rt_cursor *c, uint64_t *ret);
static inline bool rt_cursor_uleb(struct rt_cursor *c, uint64_t *ret)
{
	/* nearly all have one byte */
	if (c->pos >= c->bytes.size || c->bytes.data[c->pos] >= 0x80)
		return rt_cursor_long_uleb(c, ret);
	*ret = c->bytes.data[c->pos++];
	return true;
}
bool rt_cursor_sleb(struct rt_cursor *c, int64_t *ret);

/* The NUL-terminated string here; ret points into the bytes. false: no NUL before the end. */
bool rt_cursor_string(struct rt_cursor *c, const char **ret);

/* The next size bytes, not copied. */
bool rt_cursor_bytes(struct rt_cursor *c, uint64_t size, struct rt_bytes *ret);

bool rt_cursor_skip(struct rt_cursor *c, uint64_t size);

/* Moves to the next multiple of align (a power of two) counted from the start of the bytes. */
bool rt_cursor_align(struct rt_cursor *c, size_t align);
