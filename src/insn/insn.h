/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decoding of machine instructions, as far as probing needs it: lengths,
 * branches, which registers change, what the kernel can emulate, memory
 * operands. One decoder library (capstone) hides behind this header.
 */
#pragma once

#include "base/address.h"
#include "base/bytes.h"
#include "base/error.h"

/* x86-64 registers by their DWARF numbers, so that location lists and code speak alike. */
enum rt_reg {
	RT_REG_RAX,
	RT_REG_RDX,
	RT_REG_RCX,
	RT_REG_RBX,
	RT_REG_RSI,
	RT_REG_RDI,
	RT_REG_RBP,
	RT_REG_RSP,
	RT_REG_R8,
	RT_REG_R9,
	RT_REG_R10,
	RT_REG_R11,
	RT_REG_R12,
	RT_REG_R13,
	RT_REG_R14,
	RT_REG_R15,
	RT_REG_RIP,
	RT_REG_NR,
	RT_REG_NONE = 255,
};

/* Register of integer or pointer argument n (from 1..6); RT_REG_NONE beyond. System V x86-64. */
enum rt_reg rt_reg_argument(unsigned n);
/* "rdi"; static string. */
const char *rt_reg_name(enum rt_reg reg);

/* How the kernel's uprobes treat a breakpoint on an instruction. */
enum rt_probe_cost {
	RT_COST_EMULATED, /* nop, push, call/jmp/jcc relative: no single step */
	RT_COST_STEP,     /* executed out of line: works, slow */
	RT_COST_AVOID,    /* attaches but is unsafe on some kernels (5-byte nops on 6.18) */
	RT_COST_NEVER,    /* lock or segment prefix, unknown bytes: cannot fire */
};

struct rt_mem_operand {
	uint8_t base, index; /* enum rt_reg or RT_REG_NONE; base RT_REG_RIP: disp is already absolute */
	uint8_t scale;
	uint8_t size; /* bytes accessed */
	int64_t disp;
	bool reads, writes;
	bool segment; /* relative to fs or gs (thread-local): base, index and disp are not the whole address */
};

struct rt_insn {
	struct rt_elfaddr addr;
	uint8_t length;
	uint8_t cost; /* enum rt_probe_cost */
	bool call, ret, jump, conditional;
	bool indirect; /* call or jump through a register or memory */
	bool endbr, nop, lock;
	bool push, pop;  /* of a register or immediate: sp changes by 8 */
	bool has_target; /* target is known (relative branch) */
	struct rt_elfaddr target;
	uint32_t reads, writes; /* bit sets over enum rt_reg (whole register, any width; rsp included) */
	int32_t sp_delta;       /* change of rsp by push, pop, sub/add imm, call excluded; valid if sp_known */
	bool sp_known;
	bool has_mem;
	struct rt_mem_operand mem; /* the first memory operand */
	bool is_add, is_sub, is_xadd, is_cmpxchg, is_mov, is_lea,
		is_test_or_cmp; /* inc counts as add 1, dec as sub 1 */
	bool is_cmp;            /* of is_test_or_cmp */
	bool is_neg;
	bool is_zero; /* xor or sub of a whole register with itself */
	bool has_imm;
	int64_t imm;              /* sign-extended from width */
	uint8_t width;            /* bytes of the first operand: a mov of 4 is no copy of a pointer */
	uint8_t dst_reg, src_reg; /* first and second operand where they are registers, enum rt_reg or RT_REG_NONE */
	/* vector registers 0 to 15: bit sets of those changed, of those set to 0, and of those loaded whole (16 bytes)
	 * from mem; the one stored whole into mem, or RT_REG_NONE */
	uint16_t vector_writes, vector_zeroes, vector_loads;
	uint8_t vector_src;
};

struct rt_decoder;

/* A decoder for a machine (EM_*). RT_E_UNSUPPORTED for others than x86-64 and aarch64. One per thread. */
RT_CHECK struct rt_error *rt_decoder_create(uint16_t machine, struct rt_decoder **ret);
void rt_decoder_destroy(struct rt_decoder *decoder);
RT_CLEANUP(struct rt_decoder *, rt_decoder_destroy);

/* Decodes the instruction at the start of code, which lies at addr. false: no valid instruction. */
bool rt_decode(struct rt_decoder *decoder, struct rt_bytes code, struct rt_elfaddr addr, struct rt_insn *ret);

/*
 * Bytes of the x86-64 instruction at the start of code, without a decoder; 0: cut, or not known. Right whenever it is
 * not 0.
 */
size_t rt_x86_length(struct rt_bytes code);
/*
 * Whether an instruction that can hold a probe begins at code.data + at, where code begins with one, too. false: there
 * is none, or something before it is not known to rt_x86_length().
 */
bool rt_x86_holds_probe(struct rt_bytes code, size_t at);

/*
 * true when a call instruction ends exactly at addr: used to prove that a
 * value on the stack can be a return address. before: the bytes that end at addr (up to 8 are looked at).
 */
bool rt_call_before(struct rt_decoder *decoder, struct rt_bytes before, struct rt_elfaddr addr);

/*
 * The instruction at the start of code, which lies at addr, as text: on x86-64 in AT&T syntax ("addl $1, (%rdi)"). Cut
 * to size - 1 bytes and NUL-terminated; *ret_length is how many bytes of code it takes (at least 1). Bytes that are no
 * instruction become ".byte 0x..". RT_E_TRUNCATED when code is empty.
 */
RT_CHECK struct rt_error *rt_disassemble(struct rt_decoder *decoder, struct rt_bytes code, struct rt_elfaddr addr,
					 char *text, size_t size, size_t *ret_length);
