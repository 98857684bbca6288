/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/sha1.h"

#include <string.h>

static uint32_t rotate(uint32_t v, unsigned n)
{
	return v << n | v >> (32 - n);
}

static void add_block(uint32_t h[5], const uint8_t *block)
{
	uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

	for (unsigned i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (unsigned i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (unsigned i = 0; i < 80; i++) {
		uint32_t f, t;

		if (i < 20)
			f = ((b & c) | (~b & d)) + 0x5a827999;
		else if (i < 40)
			f = (b ^ c ^ d) + 0x6ed9eba1;
		else if (i < 60)
			f = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
		else
			f = (b ^ c ^ d) + 0xca62c1d6;
		t = rotate(a, 5) + f + e + w[i];
		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = t;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

void rt_sha1(struct rt_bytes bytes, uint8_t digest[RT_SHA1_SIZE])
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	uint64_t bits = (uint64_t)bytes.size * 8;
	size_t whole = bytes.size / 64 * 64, rest = bytes.size - whole;
	uint8_t tail[128] = { 0 };
	size_t tail_size = rest < 56 ? 64 : 128;

	for (size_t i = 0; i < whole; i += 64)
		add_block(h, bytes.data + i);
	if (rest)
		memcpy(tail, bytes.data + whole, rest);
	tail[rest] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		tail[tail_size - 1 - i] = (uint8_t)(bits >> (8 * i));
	for (size_t i = 0; i < tail_size; i += 64)
		add_block(h, tail + i);
	for (unsigned i = 0; i < RT_SHA1_SIZE; i++)
		digest[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}
