/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/export_proto.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2 };

static void put(struct rt_proto *p, const void *data, size_t size)
{
	if (p->nomem || !rt_vec_reserve(&p->bytes, p->bytes.len + size)) {
		p->nomem = true;
		return;
	}
	if (size)
		memcpy(p->bytes.data + p->bytes.len, data, size);
	p->bytes.len += size;
}

void rt_proto_packed(struct rt_proto *p, uint64_t value)
{
	uint8_t out[10];
	size_t n = 0;

	do {
		out[n] = (uint8_t)(value & 0x7f);
		value >>= 7;
		out[n++] |= value ? 0x80 : 0;
	} while (value);
	put(p, out, n);
}

static void tag(struct rt_proto *p, unsigned field, unsigned type)
{
	rt_proto_packed(p, (uint64_t)field << 3 | type);
}

void rt_proto_varint(struct rt_proto *p, unsigned field, uint64_t value)
{
	tag(p, field, VARINT);
	rt_proto_packed(p, value);
}

void rt_proto_fixed64(struct rt_proto *p, unsigned field, uint64_t value)
{
	uint8_t out[8];

	for (unsigned i = 0; i < 8; i++)
		out[i] = (uint8_t)(value >> 8 * i);
	tag(p, field, FIXED64);
	put(p, out, sizeof(out));
}

void rt_proto_bytes(struct rt_proto *p, unsigned field, const void *data, size_t size)
{
	tag(p, field, LENGTH);
	rt_proto_packed(p, size);
	put(p, data, size);
}

void rt_proto_string(struct rt_proto *p, unsigned field, const char *text)
{
	rt_proto_bytes(p, field, text, strlen(text));
}

void rt_proto_message(struct rt_proto *p, unsigned field, struct rt_proto *inner)
{
	p->nomem |= inner->nomem;
	rt_proto_bytes(p, field, inner->bytes.data, inner->bytes.len);
	rt_vec_clear(&inner->bytes);
}

void rt_proto_deinit(struct rt_proto *p)
{
	rt_vec_deinit(&p->bytes);
}
