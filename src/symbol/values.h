/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is where while a function of x86-64 runs, as far as its code tells: registers and variables on the stack hold
 * values, which have numbers; equal numbers are equal values. What is not understood gets a number of its own.
 */
#pragma once

#include "elf/image.h"
#include "elf/symtab.h"
#include "insn/insn.h"

enum {
	RT_VALUES_REGS = 16,
	RT_VALUES_SLOTS = 32,
	RT_VALUES_PLACES = 16,
	RT_VALUES_INSNS = 4000,
	RT_VALUES_ADDRESS = 8 /* bytes */
};

#define RT_VALUES_ARGUMENTS \
	(1u << RT_REG_RDI | 1u << RT_REG_RSI | 1u << RT_REG_RDX | 1u << RT_REG_RCX | 1u << RT_REG_R8 | 1u << RT_REG_R9)

/* A variable on the stack. */
struct rt_values_slot {
	int64_t disp; /* from base */
	uint8_t base; /* RT_REG_RSP, RT_REG_RBP */
	uint32_t value;
};

/* A value that is an address in the module: which one, or ELSEWHERE, which is read from its memory. */
struct rt_values_place {
	uint64_t address;
	uint32_t value;
};
#define RT_VALUES_ELSEWHERE UINT64_MAX

struct rt_values {
	uint32_t reg[RT_VALUES_REGS];
	struct rt_values_slot slot[RT_VALUES_SLOTS];
	unsigned slots;
	struct rt_values_place place[RT_VALUES_PLACES]; /* the latest ones */
	unsigned places;
	uint32_t next;
};

/* The function [start, end). What it points to outlives it. */
struct rt_values_code {
	const struct rt_image *image;
	/*
	 * NULL: a call changes all that it may change. Else a function of this module may leave registers alone, as gcc
	 * sees to (-fipa-ra): who reads one behind the call knows. What nobody reads is taken for what it was, then.
	 */
	const struct rt_symtab *leaves;
	struct rt_decoder *decoder;
	struct rt_elfaddr start, end;
	int64_t shown[RT_REG_RSP + 1]; /* variables from there on may be known to others: their address was taken */
};

/* The instruction at this address; false: there is none. */
bool rt_values_decode(const struct rt_values_code *code, struct rt_elfaddr at, struct rt_insn *ret);

/* The value of the variable that rsp points to, an argument on the stack; 0: not known. */
uint32_t rt_values_top(const struct rt_values *v);
/* The address in the module that the value is, RT_VALUES_ELSEWHERE, or 0: not known. */
uint64_t rt_values_address(const struct rt_values *v, uint32_t value);

/* Nothing is known any more. */
void rt_values_forget(struct rt_values *v);

/* insn was done. A call may change what rt_values_call() says, and what is shown. */
void rt_values_step(struct rt_values *v, const struct rt_values_code *code, const struct rt_insn *insn);

/* The call was done, as far as registers go: RT_CHAIN_CLOBBERED, or code->leaves. */
void rt_values_call(struct rt_values *v, const struct rt_values_code *code, const struct rt_insn *call);

/*
 * What is where when the call that returns to `after` is made (*ret_call), as far as it surely is, whatever way led
 * there. seen(), where it is not NULL, is called before each instruction up to that call, and the call itself. Fills
 * code->shown. false: not known. Bounded work.
 */
bool rt_values_before(struct rt_values_code *code, struct rt_elfaddr after, struct rt_values *ret,
		      struct rt_insn *ret_call,
		      void (*seen)(const struct rt_values *v, const struct rt_insn *insn, void *arg), void *arg);
