/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/bytes.h"

#include <string.h>

bool rt_bytes_sub(struct rt_bytes b, uint64_t offset, uint64_t size, struct rt_bytes *ret)
{
	if (offset > b.size || size > b.size - offset)
		return false;
	/* of nothing, nothing: C adds no 0 to NULL */
	*ret = rt_bytes_make(b.data ? b.data + offset : NULL, size);
	return true;
}

static bool read_int(struct rt_cursor *c, unsigned size, uint64_t *ret)
{
	uint64_t v = 0;

	if (rt_cursor_left(c) < size)
		return false;
	for (unsigned i = 0; i < size; i++) {
		unsigned at = c->big_endian ? i : size - 1 - i;

		v = v << 8 | c->bytes.data[c->pos + at];
	}
	c->pos += size;
	*ret = v;
	return true;
}

#define DEFINE_READ(name, type) \
	bool name(struct rt_cursor *c, type *ret) \
	{ \
		uint64_t v; \
\
		if (!read_int(c, sizeof(type), &v)) \
			return false; \
		*ret = (type)v; \
		return true; \
	}

DEFINE_READ(rt_cursor_u8, uint8_t)
DEFINE_READ(rt_cursor_u16, uint16_t)
DEFINE_READ(rt_cursor_u32, uint32_t)
DEFINE_READ(rt_cursor_u64, uint64_t)

bool rt_cursor_long_uleb(struct rt_cursor *c, uint64_t *ret)
{
	size_t pos = c->pos;
	uint64_t v = 0;

	for (unsigned shift = 0; pos < c->bytes.size && shift < 64; shift += 7) {
		uint8_t b = c->bytes.data[pos++];

		if (shift == 63 && (b & 0x7e))
			return false;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			c->pos = pos;
			*ret = v;
			return true;
		}
	}
	return false;
}

bool rt_cursor_sleb(struct rt_cursor *c, int64_t *ret)
{
	size_t pos = c->pos;
	uint64_t v = 0;

	for (unsigned shift = 0; pos < c->bytes.size && shift < 64; shift += 7) {
		uint8_t b = c->bytes.data[pos++];

		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			if ((b & 0x40) && shift + 7 < 64)
				v |= ~UINT64_C(0) << (shift + 7);
			c->pos = pos;
			*ret = (int64_t)v;
			return true;
		}
	}
	return false;
}

bool rt_cursor_string(struct rt_cursor *c, const char **ret)
{
	const uint8_t *start, *end;

	if (!rt_cursor_left(c)) /* data may be NULL */
		return false;
	start = c->bytes.data + c->pos;
	end = memchr(start, 0, rt_cursor_left(c));
	if (!end)
		return false;
	c->pos += (size_t)(end - start) + 1;
	*ret = (const char *)start;
	return true;
}

bool rt_cursor_bytes(struct rt_cursor *c, uint64_t size, struct rt_bytes *ret)
{
	if (!rt_bytes_sub(c->bytes, c->pos, size, ret))
		return false;
	c->pos += size;
	return true;
}

bool rt_cursor_skip(struct rt_cursor *c, uint64_t size)
{
	struct rt_bytes ignored;

	return rt_cursor_bytes(c, size, &ignored);
}

bool rt_cursor_align(struct rt_cursor *c, size_t align)
{
	size_t to = (c->pos + align - 1) & ~(align - 1);

	if (to < c->pos || to > c->bytes.size)
		return false;
	c->pos = to;
	return true;
}
