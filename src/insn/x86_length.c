/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long x86-64 instructions are, from their bytes alone: where one begins can then be told of much code in no time,
 * and without the decoder library. What is rare, or what decoders disagree about, has no length here.
 */
#include "insn/decoder.h"

enum { INSN_MAX = 15, NO_MODRM = 1 << 4, UNKNOWN = 1 << 5, IMM_Z = 1 << 6 };

/* What follows the opcode: bytes of an immediate, or IMM_Z (2 with prefix 66, else 4), and whether there is a modrm. */
static unsigned one_byte(const struct rt_x86_head *h)
{
	uint8_t op = h->opcode;

	if (op < 0x40) {
		static const unsigned columns[8] = { 0, 0, 0, 0, NO_MODRM | 1, NO_MODRM | IMM_Z, UNKNOWN, UNKNOWN };

		return columns[op & 7];
	}
	switch (op) {
	case 0x63:
	case 0x84 ... 0x8f:
	case 0xd0 ... 0xd3:
	case 0xd8 ... 0xdf:
	case 0xf6 ... 0xf7: /* test has an immediate: see rt_x86_length() */
	case 0xfe ... 0xff:
		return 0;
	case 0x6b:
	case 0x80:
	case 0x83:
	case 0xc0 ... 0xc1:
	case 0xc6:
		return 1;
	case 0x69:
	case 0x81:
	case 0xc7:
		return IMM_Z;
	case 0x50 ... 0x5f:
	case 0x90 ... 0x99:
	case 0x9b ... 0x9f:
	case 0xa4 ... 0xa7:
	case 0xaa ... 0xaf:
	case 0xc3:
	case 0xc9:
	case 0xcc:
	case 0xf4 ... 0xf5:
	case 0xf8 ... 0xfd:
		return NO_MODRM;
	case 0x6a:
	case 0x70 ... 0x7f:
	case 0xa8:
	case 0xb0 ... 0xb7:
	case 0xcd:
	case 0xe0 ... 0xe3:
	case 0xeb:
		return NO_MODRM | 1;
	case 0xc2:
		return NO_MODRM | 2;
	case 0x68:
	case 0xa9:
		return NO_MODRM | IMM_Z;
	case 0xb8 ... 0xbf:
		return NO_MODRM | (h->rex & 8 ? 8 : IMM_Z);
	case 0xe8 ... 0xe9:
		return h->prefixes & RT_X86_SIZE ? UNKNOWN : NO_MODRM | 4;
	default:
		return UNKNOWN;
	}
}

static unsigned two_bytes(const struct rt_x86_head *h)
{
	bool vector = h->vex || h->evex;

	switch (h->opcode) {
	case 0x70 ... 0x73:
	case 0xc2:
	case 0xc4 ... 0xc6:
		return 1;
	case 0xa4:
	case 0xac:
	case 0xba:
		return vector ? UNKNOWN : 1;
	case 0x77:
		return NO_MODRM;
	case 0x80 ... 0x8f:
		return vector || h->prefixes & RT_X86_SIZE ? UNKNOWN : NO_MODRM | 4;
	case 0x05:
	case 0x0b:
	case 0x31:
	case 0xa0 ... 0xa2:
	case 0xc8 ... 0xcf:
		return vector ? UNKNOWN : NO_MODRM;
	case 0x04:
	case 0x06 ... 0x0a:
	case 0x0c:
	case 0x0e ... 0x0f:
	case 0x20 ... 0x27:
	case 0x30:
	case 0x32 ... 0x3f:
	case 0x78 ... 0x7b:
	case 0xa6 ... 0xaa:
	case 0xff:
		return vector && h->opcode >= 0x78 ? 0 : UNKNOWN;
	default:
		return 0;
	}
}

static unsigned tail(const struct rt_x86_head *h)
{
	if (h->xop)
		return UNKNOWN;
	switch (h->map) {
	case 0:
		return h->vex || h->evex ? UNKNOWN : one_byte(h);
	case 1:
		return two_bytes(h);
	case 2:
		return 0;
	case 3:
		return 1;
	default:
		return h->evex ? 0 : UNKNOWN;
	}
}

size_t rt_x86_length(struct rt_bytes code)
{
	struct rt_bytes window = rt_bytes_make(code.data, code.size < INSN_MAX ? code.size : INSN_MAX);
	struct rt_x86_head h;
	size_t length, more;
	unsigned what;

	if (!rt_x86_head(window, &h) || h.at > window.size)
		return 0;
	what = tail(&h);
	if (what & UNKNOWN)
		return 0;
	if (what & IMM_Z)
		what = (what & NO_MODRM) | (h.prefixes & RT_X86_SIZE && !(h.rex & 8) ? 2 : 4);
	length = h.at;
	if (!(what & NO_MODRM)) {
		more = rt_x86_modrm_length(rt_bytes_make(window.data + length, window.size - length));
		if (!more)
			return 0;
		if (!h.map && (h.opcode & 0xfe) == 0xf6 && (window.data[length] >> 3 & 7) < 2)
			what = h.opcode == 0xf6 ? 1 : h.prefixes & RT_X86_SIZE && !(h.rex & 8) ? 2 : 4;
		length += more;
	}
	length += what & ~(unsigned)NO_MODRM;
	return length <= window.size ? length : 0;
}

bool rt_x86_holds_probe(struct rt_bytes code, size_t at)
{
	static const struct rt_insn plain = { .dst_reg = RT_REG_NONE };
	size_t pos = 0, length = 0;

	while (pos <= at && pos < code.size) {
		length = rt_x86_length(rt_bytes_make(code.data + pos, code.size - pos));
		if (!length)
			return false;
		if (pos == at)
			return rt_x86_cost(rt_bytes_make(code.data + pos, length), &plain) != RT_COST_NEVER;
		pos += length;
	}
	return false;
}
