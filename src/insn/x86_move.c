/* SPDX-License-Identifier: GPL-2.0-only */
#include "insn/move.h"

#include <string.h>

#include "insn/decoder.h"

enum { CALL_REL = 0xe8, JMP_REL = 0xe9, JMP_SHORT = 0xeb, GROUP5 = 0xff, GROUP5_CALL = 2, GROUP5_JMP = 4 };

/* What the bytes are, as far as moving them goes. */
struct form {
	struct rt_x86_head head;
	uint8_t modrm;
	bool near_call, near_jump, conditional; /* relative ones */
	bool call;                              /* through a register or memory */
	bool rip;                               /* a disp32 counts from the end of the instruction */
};

static bool form_of(struct rt_bytes code, const struct rt_insn *insn, struct form *ret)
{
	struct form f = { 0 };

	code = rt_bytes_make(code.data, insn->length);
	if (!rt_x86_head(code, &f.head) || f.head.at > code.size)
		return false;
	f.modrm = f.head.at < code.size ? code.data[f.head.at] : 0;
	if (insn->has_target) {
		uint8_t op = f.head.opcode;

		if (f.head.prefixes & RT_X86_SIZE)
			return false;
		if (f.head.map == 0 && op == CALL_REL)
			f.near_call = true;
		else if (f.head.map == 0 && (op == JMP_REL || op == JMP_SHORT))
			f.near_jump = true;
		else if ((f.head.map == 0 && op >= 0x70 && op <= 0x7f) || (f.head.map == 1 && op >= 0x80 && op <= 0x8f))
			f.conditional = true;
		else
			return false; /* loop, jrcxz, xbegin */
	} else if (insn->call) {
		if (f.head.map || f.head.opcode != GROUP5 || (f.modrm >> 3 & 7) != GROUP5_CALL)
			return false;
		f.call = true;
		/* where it goes is read behind the push that stands for it */
		if ((f.modrm >> 6) != 3 && (f.modrm & 7) == 4)
			return false;
		if ((f.modrm >> 6) == 3 && (f.modrm & 7) == 4 && !(f.head.rex & 1))
			return false;
	}
	f.rip = insn->has_mem && insn->mem.base == RT_REG_RIP;
	if (f.rip && ((f.modrm & 0xc7) != 5 || f.head.at + 5u > code.size))
		return false;
	*ret = f;
	return true;
}

bool rt_insn_moves(struct rt_bytes code, const struct rt_insn *insn)
{
	struct form f;

	return insn->length && insn->length <= code.size && form_of(code, insn, &f);
}

static size_t put_word(uint8_t *out, uint64_t v)
{
	memcpy(out, &v, sizeof(v));
	return sizeof(v);
}

size_t rt_insn_jump(uint64_t target, uint8_t *out)
{
	static const uint8_t jump[] = { 0xff, 0x25, 0, 0, 0, 0 }; /* jmp *(%rip) */

	memcpy(out, jump, sizeof(jump));
	return sizeof(jump) + put_word(out + sizeof(jump), target);
}

/* Pushes the word that lies `behind` bytes behind this instruction. */
static size_t put_push(uint8_t *out, uint8_t behind)
{
	const uint8_t push[] = { 0xff, 0x35, behind, 0, 0, 0 };

	memcpy(out, push, sizeof(push));
	return sizeof(push);
}

/* The bytes as they are, at `to`. */
static bool copy(struct rt_bytes code, const struct form *f, uint64_t from, uint64_t to, uint8_t *out)
{
	memcpy(out, code.data, code.size);
	if (f->rip) {
		int32_t disp;
		int64_t moved;

		memcpy(&disp, code.data + f->head.at + 1, sizeof(disp));
		moved = disp + (int64_t)(from - to);
		if (moved != (int32_t)moved)
			return false;
		disp = (int32_t)moved;
		memcpy(out + f->head.at + 1, &disp, sizeof(disp));
	}
	return true;
}

bool rt_insn_move(struct rt_bytes code, const struct rt_insn *insn, uint64_t from, uint64_t to, uint8_t *out,
		  size_t *ret)
{
	uint64_t target = from + (insn->target.v - insn->addr.v), back = from + insn->length;
	struct form f;
	size_t n = 0;

	if (!insn->length || insn->length > code.size || !form_of(code, insn, &f))
		return false;
	code = rt_bytes_make(code.data, insn->length);
	if (f.near_call) {
		static const uint8_t jump[] = { 0xff, 0x25, 8, 0, 0, 0 };

		/* push back; jmp *target; both lie behind */
		n = put_push(out, sizeof(jump));
		memcpy(out + n, jump, sizeof(jump));
		n += sizeof(jump);
		n += put_word(out + n, back);
		n += put_word(out + n, target);
	} else if (f.conditional) {
		out[n++] = 0x70 | ((f.head.opcode & 15) ^ 1);
		out[n++] = 14;
		n += rt_insn_jump(target, out + n);
	} else if (f.near_jump) {
		n = rt_insn_jump(target, out);
	} else if (f.call) {
		n = put_push(out, insn->length);
		if (!copy(code, &f, from, to + n, out + n))
			return false;
		/* call becomes jmp */
		out[n + f.head.at] = (uint8_t)((f.modrm & ~(7 << 3)) | GROUP5_JMP << 3);
		n += insn->length;
		n += put_word(out + n, back);
	} else {
		if (!copy(code, &f, from, to, out))
			return false;
		n = insn->length;
	}
	*ret = n;
	return true;
}
