/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which instructions the kernel's x86 uprobes refuse, emulate or single-step.
 * The kernel decides by bytes, so this does too. Where kernels differ (5.10 to
 * 7.x), the answer is the worse one.
 */
#include "insn/decoder.h"

/* First opcode bytes that uprobes refuse in 64-bit code: invalid, privileged, or traps of their own. */
static bool refused_opcode(uint8_t op)
{
	switch (op) {
	case 0x06:
	case 0x07:
	case 0x0e:
	case 0x16:
	case 0x17:
	case 0x1e:
	case 0x1f:
	case 0x27:
	case 0x2f:
	case 0x37:
	case 0x3f:
	case 0x60 ... 0x62:
	case 0x6c ... 0x6f: /* ins, outs */
	case 0x82:
	case 0x9a:
	case 0xcc ... 0xcf: /* int3, int, into, iret */
	case 0xd4 ... 0xd6:
	case 0xe4 ... 0xe7: /* in, out */
	case 0xea:
	case 0xec ... 0xef: /* in, out */
	case 0xf1:          /* int1 */
	case 0xf4:          /* hlt */
	case 0xfa:          /* cli */
	case 0xfb:          /* sti */
		return true;
	default:
		return false;
	}
}

/* Bytes behind 0f that must not run out of line: system calls, privileged ones, ud2. */
static bool refused_opcode2(uint8_t op)
{
	switch (op) {
	case 0x00:
	case 0x05 ... 0x09: /* syscall, clts, sysret, invd, wbinvd */
	case 0x0b:          /* ud2 */
	case 0x30:
	case 0x34:
	case 0x35:
	case 0x37:
	case 0xaa:
	case 0xff:
		return true;
	default:
		return false;
	}
}

static bool prefix_or_rex(uint8_t op)
{
	return (op & 0xf0) == 0x40 || (op & 0xe7) == 0x26 || (op >= 0x64 && op <= 0x67) || op == 0xf0 || op == 0xf2 ||
	       op == 0xf3;
}

static bool relative_branch(const struct rt_x86_head *h)
{
	if (h->map == 1)
		return h->opcode >= 0x80 && h->opcode <= 0x8f;
	return (h->opcode >= 0x70 && h->opcode <= 0x7f) || h->opcode == 0xe8 || h->opcode == 0xe9 || h->opcode == 0xeb;
}

static enum rt_probe_cost nop_cost(struct rt_bytes code, const struct rt_x86_head *h)
{
	/* 6.18 patches these to a call: the red zone is lost, and forked children die */
	if (code.size == 5)
		return RT_COST_AVOID;
	if (!h->map && (h->prefixes & RT_X86_SIZE))
		/* 66 90: refused by older kernels as a branch with a 16-bit prefix */
		return RT_COST_AVOID;
	return RT_COST_EMULATED;
}

/* lea that changes nothing: newer kernels take its 5-byte form for a nop. */
static bool idle_lea(const struct rt_insn *insn)
{
	return insn->is_lea && insn->dst_reg != RT_REG_NONE && insn->mem.base == insn->dst_reg &&
	       insn->mem.index == RT_REG_NONE && !insn->mem.disp;
}

enum rt_probe_cost rt_x86_cost(struct rt_bytes code, const struct rt_insn *insn)
{
	struct rt_x86_head h;

	if (!rt_x86_head(code, &h) || h.xop)
		return RT_COST_NEVER;
	if (h.prefixes & (RT_X86_LOCK | RT_X86_SEGMENT))
		return RT_COST_NEVER;
	if (h.vex || h.evex || !h.map) {
		/* the kernel looks a vector opcode up in the one-byte table as well */
		if (refused_opcode(h.opcode) || h.evex)
			return RT_COST_NEVER;
		if (h.vex)
			return RT_COST_STEP;
	} else if (h.map == 1 && refused_opcode2(h.opcode)) {
		return RT_COST_NEVER;
	}
	/* a REX in front of another prefix has no effect, and decoders disagree about what follows */
	if (!h.map && prefix_or_rex(h.opcode))
		return RT_COST_NEVER;
	/* a load of ss masks the step trap */
	if (!h.map && h.opcode == 0x8e && h.at < code.size && (code.data[h.at] >> 3 & 7) == 2)
		return RT_COST_NEVER;
	/* the emulation of 90 knows no REX.B: an xchg with r8 would be lost */
	if (!h.map && h.opcode == 0x90 && (h.rex & 1))
		return RT_COST_NEVER;
	if (insn->nop)
		return nop_cost(code, &h);
	if (code.size == 5 && idle_lea(insn))
		return RT_COST_AVOID;
	if (relative_branch(&h))
		return h.prefixes & RT_X86_SIZE ? RT_COST_NEVER : RT_COST_EMULATED;
	/* push of a register, without any prefix but 41 */
	if (!h.map && (h.opcode & 0xf8) == 0x50 && (code.size == 1 || (code.size == 2 && h.rex == 0x41)))
		return RT_COST_EMULATED;
	return RT_COST_STEP;
}
