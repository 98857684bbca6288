/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The raw bytes of x86-64 instructions: prefixes, opcode, modrm. Only what must
 * be seen byte by byte because the kernel sees it so (cost), because it is read
 * backwards (calls), or because the decoder library does not know it.
 */
#include "insn/decoder.h"

static unsigned prefix_bit(uint8_t byte)
{
	switch (byte) {
	case 0xf0:
		return RT_X86_LOCK;
	case 0xf2:
		return RT_X86_REPNE;
	case 0xf3:
		return RT_X86_REP;
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
		return RT_X86_SEGMENT;
	case 0x64:
	case 0x65:
		return RT_X86_FS_GS;
	case 0x66:
		return RT_X86_SIZE;
	case 0x67:
		return RT_X86_ADDRESS;
	default:
		return 0;
	}
}

/* VEX, EVEX and XOP say the opcode's map in their second byte. */
static bool read_vector_head(struct rt_cursor *c, uint8_t first, struct rt_x86_head *h)
{
	uint8_t second = 0;
	size_t skip = first == 0xc5 ? 0 : first == 0x62 ? 2 : 1;

	if (!rt_cursor_u8(c, &second) || !rt_cursor_skip(c, skip) || !rt_cursor_u8(c, &h->opcode))
		return false;
	h->vex = first == 0xc4 || first == 0xc5;
	h->evex = first == 0x62;
	h->xop = first == 0x8f;
	h->map = first == 0xc5 ? 1 : second & (h->evex ? 7 : 31);
	return true;
}

bool rt_x86_head(struct rt_bytes code, struct rt_x86_head *ret)
{
	struct rt_cursor c = rt_cursor_make(code, false);
	struct rt_x86_head h = { 0 };
	uint8_t byte = 0;
	unsigned bit;

	if (!rt_cursor_u8(&c, &byte))
		return false;
	while ((bit = prefix_bit(byte))) {
		h.prefixes |= bit;
		if (!rt_cursor_u8(&c, &byte))
			return false;
	}
	if ((byte & 0xf0) == 0x40) {
		h.rex = byte;
		if (!rt_cursor_u8(&c, &byte))
			return false;
	}
	/* 8f is pop with modrm.reg 0, else the XOP prefix: its map is 8 or more */
	if (byte == 0xc4 || byte == 0xc5 || byte == 0x62 ||
	    (byte == 0x8f && rt_cursor_left(&c) && (code.data[c.pos] & 31) >= 8)) {
		if (!read_vector_head(&c, byte, &h))
			return false;
	} else if (byte == 0x0f) {
		if (!rt_cursor_u8(&c, &byte))
			return false;
		h.map = byte == 0x38 ? 2 : byte == 0x3a ? 3 : 1;
		if (h.map > 1 && !rt_cursor_u8(&c, &byte))
			return false;
		h.opcode = byte;
	} else {
		h.opcode = byte;
	}
	h.at = (uint8_t)c.pos;
	*ret = h;
	return c.pos < 16;
}

size_t rt_x86_modrm_length(struct rt_bytes code)
{
	size_t len = 1;
	uint8_t mod, rm;

	if (!code.size)
		return 0;
	mod = code.data[0] >> 6;
	rm = code.data[0] & 7;
	if (mod == 3)
		return 1;
	if (rm == 4) {
		if (code.size < 2)
			return 0;
		len++;
		if (!mod && (code.data[1] & 7) == 5)
			len += 4;
	} else if (!mod && rm == 5) {
		len += 4;
	}
	len += mod == 1 ? 1 : mod == 2 ? 4 : 0;
	return len <= code.size ? len : 0;
}

/* A call is at most 8 bytes here: notrack or bnd, REX, FF, modrm, sib, disp32 would be 9 with both. */
static bool is_call(struct rt_bytes code)
{
	struct rt_x86_head h;
	struct rt_bytes rest;

	if (!rt_x86_head(code, &h) || h.map || h.vex || h.evex || h.xop)
		return false;
	if (h.prefixes & ~(RT_X86_REPNE | RT_X86_SEGMENT | RT_X86_FS_GS | RT_X86_ADDRESS))
		return false;
	rest = rt_bytes_make(code.data + h.at, code.size - h.at);
	if (h.opcode == 0xe8)
		return rest.size == 4;
	return h.opcode == 0xff && rest.size && (rest.data[0] >> 3 & 7) == 2 && rt_x86_modrm_length(rest) == rest.size;
}

bool rt_x86_call_before(struct rt_bytes before)
{
	for (size_t len = 2; len <= 8 && len <= before.size; len++) {
		if (is_call(rt_bytes_make(before.data + before.size - len, len)))
			return true;
	}
	return false;
}
