/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of insn/ share. Private to insn/. */
#pragma once

#include <capstone/capstone.h>

#include "insn/insn.h"

/* The library is opened by name when it is needed: its tables cost 2.5 ms of every start. */
struct rt_capstone {
	void *library;
	__typeof__(cs_open) *open;
	__typeof__(cs_close) *close;
	__typeof__(cs_option) *option;
	__typeof__(cs_malloc) *malloc;
	__typeof__(cs_free) *free;
	__typeof__(cs_disasm_iter) *disasm_iter;
	__typeof__(cs_regs_access) *regs_access;
};

struct rt_decoder {
	struct rt_capstone cs;
	csh handle;
	cs_insn *insn;   /* scratch of the library */
	csh text_handle; /* made at the first text, 0 until then */
	cs_insn *text_insn;
	uint16_t machine;
};

/* Legacy prefixes, as bits. */
enum {
	RT_X86_LOCK = 1 << 0,
	RT_X86_REPNE = 1 << 1, /* also bnd */
	RT_X86_REP = 1 << 2,
	RT_X86_SEGMENT = 1 << 3, /* cs, ds (also notrack), es, ss */
	RT_X86_FS_GS = 1 << 4,
	RT_X86_SIZE = 1 << 5,
	RT_X86_ADDRESS = 1 << 6,
};

/* The head of an x86-64 instruction: prefixes and opcode, from the bytes alone. */
struct rt_x86_head {
	uint16_t prefixes;
	uint8_t rex;    /* 0 = none */
	bool vex, evex; /* opcode is then the byte behind that prefix, map tells the rest */
	bool xop;
	uint8_t map;    /* 0 = one byte, 1 = 0f, 2 = 0f 38, 3 = 0f 3a */
	uint8_t opcode; /* last byte of the opcode */
	uint8_t at;     /* offset of the byte behind the opcode: modrm, where there is one */
};

/* false: the bytes end inside the head. */
bool rt_x86_head(struct rt_bytes code, struct rt_x86_head *ret);

/* Bytes of modrm, sib and displacement at code; 0: cut. */
size_t rt_x86_modrm_length(struct rt_bytes code);

/* What the kernel's uprobes do with the instruction insn whose bytes are code (exactly its length). */
enum rt_probe_cost rt_x86_cost(struct rt_bytes code, const struct rt_insn *insn);

bool rt_x86_decode(struct rt_decoder *decoder, struct rt_bytes code, struct rt_elfaddr addr, struct rt_insn *ret);
bool rt_x86_call_before(struct rt_bytes before);
bool rt_a64_decode(struct rt_decoder *decoder, struct rt_bytes code, struct rt_elfaddr addr, struct rt_insn *ret);
bool rt_a64_call_before(struct rt_bytes before);
