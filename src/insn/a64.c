/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * aarch64, as far as it is needed for reading branches and calls. The library
 * says whether a word is an instruction; the branches are plain bit fields.
 * Registers are not told: reads and writes stay empty.
 */
#include "insn/decoder.h"

static uint64_t branch_offset(uint32_t word, unsigned low, unsigned bits)
{
	uint32_t field = word >> low & ((1u << bits) - 1);
	uint64_t v = field;

	if (field >> (bits - 1))
		v |= ~(((uint64_t)1 << bits) - 1);
	return v * 4;
}

static void set_target(struct rt_insn *ret, uint64_t offset)
{
	ret->has_target = true;
	ret->target.v = ret->addr.v + offset;
}

static bool set_branch(uint32_t w, struct rt_insn *ret)
{
	if ((w & 0x7c000000) == 0x14000000) { /* b, bl */
		ret->call = w >> 31;
		ret->jump = !ret->call;
		set_target(ret, branch_offset(w, 0, 26));
	} else if ((w & 0xff000010) == 0x54000000 || (w & 0x7e000000) == 0x34000000) { /* b.cond, cbz, cbnz */
		ret->jump = ret->conditional = true;
		set_target(ret, branch_offset(w, 5, 19));
	} else if ((w & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		ret->jump = ret->conditional = true;
		set_target(ret, branch_offset(w, 5, 14));
	} else if ((w & 0xfe9ff000) == 0xd61f0000) { /* br, blr, ret and their authenticated forms */
		unsigned kind = w >> 21 & 3;

		ret->jump = kind == 0;
		ret->call = kind == 1;
		ret->ret = kind == 2;
		ret->indirect = kind < 2;
	} else {
		return false;
	}
	return true;
}

bool rt_a64_decode(struct rt_decoder *decoder, struct rt_bytes code, struct rt_elfaddr addr, struct rt_insn *ret)
{
	struct rt_cursor c = rt_cursor_make(code, false);
	const uint8_t *at = code.data;
	size_t size = 4;
	uint64_t pc = addr.v;
	uint32_t w;

	if (!rt_cursor_u32(&c, &w))
		return false;
	/* the hint space (nop, bti, paciasp) is valid on every machine, newer hints too */
	if ((w & 0xfffff01f) != 0xd503201f && !decoder->cs.disasm_iter(decoder->handle, &at, &size, &pc, decoder->insn))
		return false;
	ret->length = 4;
	ret->sp_known = false;
	ret->nop = w == 0xd503201f;
	ret->endbr = (w & 0xffffff3f) == 0xd503241f;
	if (set_branch(w, ret) || ret->nop || (w & 0x1f000000) == 0x10000000)
		ret->cost = RT_COST_EMULATED; /* adr and adrp as well */
	else if ((w & 0x3f000000) == 0x08000000 || (w & 0xff000000) == 0xd4000000 ||
		 ((w & 0xffc00000) == 0xd5000000 && (w & 0xfffff01f) != 0xd503201f))
		/* exclusive loads and stores fail under single step; traps and system registers are refused */
		ret->cost = RT_COST_NEVER;
	else
		ret->cost = RT_COST_STEP;
	return true;
}

bool rt_a64_call_before(struct rt_bytes before)
{
	struct rt_cursor c;
	struct rt_insn insn = { 0 };
	uint32_t w;

	if (before.size < 4)
		return false;
	c = rt_cursor_make(rt_bytes_make(before.data + before.size - 4, 4), false);
	return rt_cursor_u32(&c, &w) && set_branch(w, &insn) && insn.call;
}
