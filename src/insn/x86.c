/* SPDX-License-Identifier: GPL-2.0-only */
#include "insn/decoder.h"

#define BIT(reg) (1u << (reg))

/* What a call may change: the caller-saved registers of the System V ABI. */
#define CLOBBERED \
	(BIT(RT_REG_RAX) | BIT(RT_REG_RCX) | BIT(RT_REG_RDX) | BIT(RT_REG_RSI) | BIT(RT_REG_RDI) | BIT(RT_REG_R8) | \
	 BIT(RT_REG_R9) | BIT(RT_REG_R10) | BIT(RT_REG_R11))

static enum rt_reg map_reg(x86_reg reg)
{
#define REG4(r64, r32, r16, r8) \
	case X86_REG_##r64: \
	case X86_REG_##r32: \
	case X86_REG_##r16: \
	case X86_REG_##r8
	switch (reg) {
		REG4(RAX, EAX, AX, AL) : case X86_REG_AH : return RT_REG_RAX;
		REG4(RBX, EBX, BX, BL) : case X86_REG_BH : return RT_REG_RBX;
		REG4(RCX, ECX, CX, CL) : case X86_REG_CH : return RT_REG_RCX;
		REG4(RDX, EDX, DX, DL) : case X86_REG_DH : return RT_REG_RDX;
		REG4(RSI, ESI, SI, SIL) : return RT_REG_RSI;
		REG4(RDI, EDI, DI, DIL) : return RT_REG_RDI;
		REG4(RBP, EBP, BP, BPL) : return RT_REG_RBP;
		REG4(RSP, ESP, SP, SPL) : return RT_REG_RSP;
		REG4(R8, R8D, R8W, R8B) : return RT_REG_R8;
		REG4(R9, R9D, R9W, R9B) : return RT_REG_R9;
		REG4(R10, R10D, R10W, R10B) : return RT_REG_R10;
		REG4(R11, R11D, R11W, R11B) : return RT_REG_R11;
		REG4(R12, R12D, R12W, R12B) : return RT_REG_R12;
		REG4(R13, R13D, R13W, R13B) : return RT_REG_R13;
		REG4(R14, R14D, R14W, R14B) : return RT_REG_R14;
		REG4(R15, R15D, R15W, R15B) : return RT_REG_R15;
	case X86_REG_RIP:
	case X86_REG_EIP:
	case X86_REG_IP:
		return RT_REG_RIP;
	default:
		return RT_REG_NONE;
	}
#undef REG4
}

static uint32_t reg_bit(x86_reg reg)
{
	enum rt_reg r = map_reg(reg);

	return r == RT_REG_NONE ? 0 : BIT(r);
}

static int64_t sign_extend(int64_t v, unsigned bytes)
{
	unsigned shift;

	if (!bytes || bytes >= 8)
		return v;
	shift = 64 - 8 * bytes;
	return (int64_t)((uint64_t)v << shift) >> shift;
}

/* Which way the first memory operand goes: the library is wrong or silent about some of these. */
static void mem_direction(unsigned id, const cs_x86_op *op, struct rt_mem_operand *mem)
{
	mem->reads = op->access & CS_AC_READ;
	mem->writes = op->access & CS_AC_WRITE;
	switch (id) {
	case X86_INS_CMPXCHG:
	case X86_INS_CMPXCHG8B:
	case X86_INS_CMPXCHG16B:
	case X86_INS_XADD:
	case X86_INS_XCHG:
		mem->reads = mem->writes = true;
		break;
	case X86_INS_TEST:
	case X86_INS_CMP:
	case X86_INS_BT:
	case X86_INS_CALL:
	case X86_INS_JMP:
	case X86_INS_PUSH:
		mem->reads = true;
		mem->writes = false;
		break;
	case X86_INS_LEA:
	case X86_INS_NOP:
		mem->reads = mem->writes = false;
		break;
	default:
		break;
	}
}

static void set_mem(const cs_insn *in, const cs_x86_op *op, struct rt_insn *ret)
{
	ret->has_mem = true;
	ret->mem = (struct rt_mem_operand){ .base = map_reg(op->mem.base),
					    .index = map_reg(op->mem.index),
					    .scale = (uint8_t)op->mem.scale,
					    .size = op->size,
					    .disp = op->mem.disp };
	ret->mem.segment = op->mem.segment == X86_REG_FS || op->mem.segment == X86_REG_GS;
	mem_direction(in->id, op, &ret->mem);
	if (ret->mem.base == RT_REG_RIP)
		ret->mem.disp = (int64_t)(ret->addr.v + ret->length + (uint64_t)op->mem.disp);
}

static void set_operands(const cs_insn *in, struct rt_insn *ret)
{
	const cs_x86 *x = &in->detail->x86;

	for (unsigned i = 0; i < x->op_count; i++) {
		const cs_x86_op *op = &x->operands[i];

		if (op->type == X86_OP_MEM) {
			ret->reads |= reg_bit(op->mem.base) | reg_bit(op->mem.index);
			if (!ret->has_mem)
				set_mem(in, op, ret);
		} else if (op->type == X86_OP_REG && !i) {
			ret->dst_reg = map_reg(op->reg);
		} else if (op->type == X86_OP_REG && i == 1) {
			ret->src_reg = map_reg(op->reg);
		} else if (op->type == X86_OP_IMM && !ret->has_imm && !ret->jump && !ret->call) {
			ret->has_imm = true;
			ret->imm = sign_extend(op->imm, x->op_count > 1 ? x->operands[0].size : op->size);
		}
	}
	ret->width = x->op_count ? x->operands[0].size : 0;
}

/* 1 << number of a vector register; 0: it is none of the first 16 */
static uint16_t vector_bit(x86_reg reg)
{
	unsigned n = reg >= X86_REG_XMM0 && reg <= X86_REG_XMM15   ? reg - X86_REG_XMM0
		     : reg >= X86_REG_YMM0 && reg <= X86_REG_YMM15 ? reg - X86_REG_YMM0
								   : 16;

	return n < 16 ? (uint16_t)(1u << n) : 0;
}

/* pxor %xmm0, %xmm0, and movups %xmm0, (mem): two pointers are set to NULL at once */
static void set_vectors(const cs_insn *in, struct rt_insn *ret)
{
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *op = x->operands;
	const unsigned last = x->op_count ? x->op_count - 1u : 0;

	if (ret->call)
		ret->vector_writes = UINT16_MAX;
	if (!x->op_count)
		return;
	if (op[0].type == X86_OP_REG)
		ret->vector_writes |= vector_bit(op[0].reg);
	switch (in->id) {
	case X86_INS_PXOR:
	case X86_INS_XORPS:
	case X86_INS_XORPD:
	case X86_INS_VPXOR:
	case X86_INS_VXORPS:
	case X86_INS_VXORPD:
		if (last && op[last].type == X86_OP_REG && op[last].reg == op[last - 1].reg)
			ret->vector_zeroes = ret->vector_writes;
		break;
	case X86_INS_MOVUPS:
	case X86_INS_MOVAPS:
	case X86_INS_MOVUPD:
	case X86_INS_MOVAPD:
	case X86_INS_MOVDQU:
	case X86_INS_MOVDQA:
	case X86_INS_VMOVUPS:
	case X86_INS_VMOVAPS:
	case X86_INS_VMOVUPD:
	case X86_INS_VMOVAPD:
	case X86_INS_VMOVDQU:
	case X86_INS_VMOVDQA:
		if (last == 1 && op[0].type == X86_OP_MEM && op[0].size == 16 && vector_bit(op[1].reg))
			ret->vector_src = (uint8_t)__builtin_ctz(vector_bit(op[1].reg));
		if (last == 1 && op[1].type == X86_OP_MEM && op[1].size == 16)
			ret->vector_loads = ret->vector_writes;
		break;
	default:
		break;
	}
}

/* What the library knows about registers, and what it leaves out. */
static void set_registers(struct rt_decoder *decoder, const cs_insn *in, struct rt_insn *ret)
{
	cs_regs reads, writes;
	uint8_t nr_reads = 0, nr_writes = 0;

	if (decoder->cs.regs_access(decoder->handle, in, reads, &nr_reads, writes, &nr_writes) == CS_ERR_OK) {
		for (unsigned i = 0; i < nr_reads; i++)
			ret->reads |= reg_bit(reads[i]);
		for (unsigned i = 0; i < nr_writes; i++)
			ret->writes |= reg_bit(writes[i]);
	}
	ret->writes &= ~BIT(RT_REG_RIP);
	switch (in->id) {
	case X86_INS_TEST:
	case X86_INS_CMP:
		ret->writes = 0;
		break;
	case X86_INS_CMPXCHG:
		ret->reads |= BIT(RT_REG_RAX);
		ret->writes |= BIT(RT_REG_RAX);
		if (ret->dst_reg != RT_REG_NONE)
			ret->reads |= BIT(ret->dst_reg);
		break;
	case X86_INS_XADD:
		if (ret->src_reg != RT_REG_NONE) {
			ret->reads |= BIT(ret->src_reg);
			ret->writes |= BIT(ret->src_reg);
		}
		break;
	case X86_INS_SYSCALL:
		ret->reads |= BIT(RT_REG_RAX) | BIT(RT_REG_RDI) | BIT(RT_REG_RSI) | BIT(RT_REG_RDX) | BIT(RT_REG_R10) |
			      BIT(RT_REG_R8) | BIT(RT_REG_R9);
		ret->writes |= BIT(RT_REG_RAX) | BIT(RT_REG_RCX) | BIT(RT_REG_R11);
		break;
	case X86_INS_CWD:
	case X86_INS_CDQ:
	case X86_INS_CQO:
		ret->writes = BIT(RT_REG_RDX);
		break;
	case X86_INS_XLATB:
		ret->reads |= BIT(RT_REG_RAX) | BIT(RT_REG_RBX);
		ret->writes |= BIT(RT_REG_RAX);
		break;
	default:
		break;
	}
	if (ret->call) {
		ret->reads |= BIT(RT_REG_RSP);
		ret->writes = CLOBBERED;
	}
	if (ret->nop || ret->endbr)
		ret->reads = ret->writes = 0;
}

static void set_branch(const cs_insn *in, struct rt_insn *ret)
{
	const cs_detail *d = in->detail;
	const cs_x86_op *op = &d->x86.operands[0];

	ret->ret = in->id == X86_INS_RET || in->id == X86_INS_RETF || in->id == X86_INS_RETFQ;
	ret->call = in->id == X86_INS_CALL || in->id == X86_INS_LCALL;
	switch (in->id) {
	case X86_INS_JMP:
	case X86_INS_LJMP:
		ret->jump = true;
		break;
	case X86_INS_LOOP:
	case X86_INS_LOOPE:
	case X86_INS_LOOPNE:
	case X86_INS_XBEGIN:
		ret->jump = ret->conditional = true;
		break;
	default:
		for (unsigned i = 0; i < d->groups_count && !ret->call && !ret->ret; i++) {
			if (d->groups[i] == X86_GRP_JUMP)
				ret->jump = ret->conditional = true;
		}
	}
	if ((!ret->call && !ret->jump) || !d->x86.op_count)
		return;
	ret->indirect = op->type != X86_OP_IMM;
	ret->has_target = !ret->indirect;
	if (ret->has_target)
		ret->target.v = (uint64_t)op->imm;
}

static bool zeroes(const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;

	/* a write of 4 bytes clears the rest */
	return in->detail->x86.op_count == 2 && op[0].type == X86_OP_REG && op[1].type == X86_OP_REG &&
	       op[0].reg == op[1].reg && op[0].size >= 4;
}

static void set_kind(const cs_insn *in, struct rt_insn *ret)
{
	switch (in->id) {
	case X86_INS_INC:
	case X86_INS_DEC:
		ret->is_add = in->id == X86_INS_INC;
		ret->is_sub = !ret->is_add;
		ret->has_imm = true;
		ret->imm = 1;
		break;
	case X86_INS_ADD:
		ret->is_add = true;
		break;
	case X86_INS_SUB:
		ret->is_sub = true;
		ret->is_zero = zeroes(in);
		break;
	case X86_INS_XOR:
		ret->is_zero = zeroes(in);
		break;
	case X86_INS_NEG:
		ret->is_neg = true;
		break;
	case X86_INS_XADD:
		ret->is_xadd = true;
		break;
	case X86_INS_CMPXCHG:
		ret->is_cmpxchg = true;
		break;
	case X86_INS_MOV:
	case X86_INS_MOVABS:
		ret->is_mov = true;
		break;
	case X86_INS_LEA:
		ret->is_lea = true;
		break;
	case X86_INS_TEST:
	case X86_INS_CMP:
		ret->is_test_or_cmp = true;
		ret->is_cmp = in->id == X86_INS_CMP;
		break;
	case X86_INS_NOP:
		ret->nop = true;
		break;
	case X86_INS_PUSH:
		ret->push = true;
		break;
	case X86_INS_POP:
		ret->pop = true;
		break;
	default:
		break;
	}
}

static void set_stack(const cs_insn *in, const struct rt_x86_head *h, struct rt_insn *ret)
{
	int32_t slot = h->prefixes & RT_X86_SIZE ? 2 : 8;
	bool to_sp = ret->dst_reg == RT_REG_RSP && ret->width == 8;

	if (ret->call || !(ret->writes & BIT(RT_REG_RSP)))
		return;
	ret->sp_known = true;
	if (ret->push || in->id == X86_INS_PUSHF || in->id == X86_INS_PUSHFQ)
		ret->sp_delta = -slot;
	else if ((ret->pop && !to_sp) || in->id == X86_INS_POPF || in->id == X86_INS_POPFQ)
		ret->sp_delta = slot;
	else if (in->id == X86_INS_RET)
		ret->sp_delta = 8 + (ret->has_imm ? (int32_t)(uint16_t)ret->imm : 0);
	else if (to_sp && ret->has_imm && ret->is_add)
		ret->sp_delta = (int32_t)ret->imm;
	else if (to_sp && ret->has_imm && ret->is_sub)
		/* sub of INT32_MIN has no int32_t answer, and no sound code does it */
		ret->sp_known = ret->imm != INT32_MIN, ret->sp_delta = ret->sp_known ? (int32_t)-ret->imm : 0;
	else if (to_sp && ret->is_lea && ret->mem.base == RT_REG_RSP && ret->mem.index == RT_REG_NONE)
		ret->sp_delta = (int32_t)ret->mem.disp;
	else
		ret->sp_known = false;
}

/* Hints with a modrm operand that does nothing (prefetch and cet hints): the library knows only some of them. */
static bool decode_hint(struct rt_bytes code, const struct rt_x86_head *h, struct rt_insn *ret)
{
	size_t len;

	if (h->map != 1 || h->vex || h->evex || h->xop || (h->prefixes & RT_X86_LOCK))
		return false;
	if (h->opcode != 0x0d && (h->opcode < 0x18 || h->opcode > 0x1f))
		return false;
	/* 0f 1a and 0f 1b are MPX moves where a prefix says so: registers of their own, nothing of ours changes */
	len = rt_x86_modrm_length(rt_bytes_make(code.data + h->at, code.size - h->at));
	if (!len || h->at + len > 15)
		return false;
	ret->length = (uint8_t)(h->at + len);
	if (h->opcode == 0x1e && (h->prefixes & RT_X86_REP)) {
		static const uint8_t order[8] = { RT_REG_RAX, RT_REG_RCX, RT_REG_RDX, RT_REG_RBX,
						  RT_REG_RSP, RT_REG_RBP, RT_REG_RSI, RT_REG_RDI };
		uint8_t modrm = code.data[h->at], rm = (uint8_t)(modrm & 7);

		ret->endbr = modrm == 0xfa;
		/* rdssp: writes the register in modrm where shadow stacks are on */
		if (modrm >> 3 == 0x19)
			ret->writes = BIT(h->rex & 1 ? RT_REG_R8 + rm : order[rm]);
	}
	ret->nop = h->opcode == 0x1f;
	return true;
}

/* Length of the immediate of a vector instruction of the 0f and 0f 38 maps; 0f 3a always has one byte. */
static size_t vector_imm(const struct rt_x86_head *h)
{
	switch (h->opcode) {
	case 0x70 ... 0x73:
	case 0xc2:
	case 0xc4 ... 0xc6:
		return h->map == 1;
	default:
		return h->map == 3;
	}
}

/*
 * VEX and EVEX instructions that are newer than the library: only the length is
 * sure. The registers that modrm names count as written, all as read.
 */
static bool decode_vector(struct rt_bytes code, const struct rt_x86_head *h, struct rt_insn *ret)
{
	static const uint8_t order[8] = { RT_REG_RAX, RT_REG_RCX, RT_REG_RDX, RT_REG_RBX,
					  RT_REG_RSP, RT_REG_RBP, RT_REG_RSI, RT_REG_RDI };
	uint8_t modrm;
	size_t len;

	if ((!h->vex && !h->evex) || h->map < 1 || h->map > 3 || h->rex ||
	    (h->prefixes & (RT_X86_LOCK | RT_X86_REP | RT_X86_REPNE | RT_X86_SIZE)))
		return false;
	len = rt_x86_modrm_length(rt_bytes_make(code.data + h->at, code.size - h->at));
	if (!len || h->at + len + vector_imm(h) > code.size)
		return false;
	modrm = code.data[h->at];
	ret->length = (uint8_t)(h->at + len + vector_imm(h));
	ret->writes = BIT(order[modrm >> 3 & 7]) | BIT(RT_REG_R8 + (modrm >> 3 & 7));
	if (modrm >> 6 == 3)
		ret->writes |= BIT(order[modrm & 7]) | BIT(RT_REG_R8 + (modrm & 7));
	ret->writes &= ~BIT(RT_REG_RSP);
	ret->reads = BIT(RT_REG_RIP) - 1;
	return true;
}

static bool finish(struct rt_bytes code, struct rt_insn *ret)
{
	code.size = ret->length;
	ret->cost = rt_x86_cost(code, ret);
	return true;
}

bool rt_x86_decode(struct rt_decoder *decoder, struct rt_bytes code, struct rt_elfaddr addr, struct rt_insn *ret)
{
	const uint8_t *at = code.data;
	size_t size = code.size < 15 ? code.size : 15;
	uint64_t pc = addr.v;
	struct rt_x86_head h;

	code.size = size;
	if (!rt_x86_head(code, &h))
		return false;
	if (!decode_hint(code, &h, ret)) {
		if (!decoder->cs.disasm_iter(decoder->handle, &at, &size, &pc, decoder->insn))
			return decode_vector(code, &h, ret) && finish(code, ret);
		ret->length = (uint8_t)decoder->insn->size;
		ret->lock = h.prefixes & RT_X86_LOCK;
		set_branch(decoder->insn, ret);
		set_operands(decoder->insn, ret);
		set_kind(decoder->insn, ret);
		set_vectors(decoder->insn, ret);
		set_registers(decoder, decoder->insn, ret);
		set_stack(decoder->insn, &h, ret);
	}
	return finish(code, ret);
}
