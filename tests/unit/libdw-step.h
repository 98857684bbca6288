/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a frame to its caller as libdw has it: the oracle of src/dwarf/step.c. It knows neither our reading of
 * .eh_frame nor of the bytes of expressions; what an operation on two values comes to is the same in both.
 */
#pragma once

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>

#include "dwarf/dwarf.h"
#include "elf/image.h"

struct libdw {
	Elf *elf;
	Dwarf *dw;
	Dwarf_CFI *eh;    /* owned */
	Dwarf_CFI *frame; /* of dw */
};

static inline void libdw_open(struct libdw *l, const struct rt_image *image)
{
	l->elf = elf_memory((char *)(uintptr_t)image->bytes.data, image->bytes.size);
	l->dw = dwarf_begin_elf(l->elf, DWARF_C_READ, NULL);
	l->eh = dwarf_getcfi_elf(l->elf);
	l->frame = l->dw ? dwarf_getcfi(l->dw) : NULL;
}

static inline void libdw_close(struct libdw *l)
{
	if (l->eh)
		dwarf_cfi_end(l->eh);
	dwarf_end(l->dw);
	elf_end(l->elf);
}

enum { STACK = 32, OPS_MAX = 256, RAX = 0, RBX = 3 };

struct machine {
	const struct rt_dwarf_regs *regs;
	const struct rt_dwarf_memory *memory;
	uint64_t cfa;
	bool has_cfa;
	bool no_memory; /* why it failed */
	bool is_value;  /* the top is the value itself, not the place of it */
	uint64_t stack[STACK];
	unsigned depth;
};

static inline bool push(struct machine *m, uint64_t value)
{
	if (m->depth >= STACK)
		return false;
	m->stack[m->depth++] = value;
	return true;
}

static inline bool reg(const struct machine *m, uint64_t number, uint64_t *ret)
{
	if (number >= RT_DWARF_REGS || !(m->regs->known & 1u << number))
		return false;
	*ret = m->regs->value[number];
	return true;
}

static inline bool load(struct machine *m, uint64_t address, uint64_t *ret)
{
	if (m->memory->read(m->memory, address, ret))
		return true;
	m->no_memory = true;
	return false;
}

/* Operations on the two topmost values; those that rows of compilers and linkers use. */
static inline bool binary(struct machine *m, uint8_t atom)
{
	uint64_t a, b, *top;

	if (m->depth < 2)
		return false;
	b = m->stack[--m->depth];
	top = &m->stack[m->depth - 1];
	a = *top;
	switch (atom) {
	case DW_OP_and:
		*top = a & b;
		return true;
	case DW_OP_or:
		*top = a | b;
		return true;
	case DW_OP_plus:
		*top = a + b;
		return true;
	case DW_OP_minus:
		*top = a - b;
		return true;
	case DW_OP_mul:
		*top = a * b;
		return true;
	case DW_OP_shl:
		*top = b < 64 ? a << b : 0;
		return true;
	case DW_OP_shr:
		*top = b < 64 ? a >> b : 0;
		return true;
	case DW_OP_eq:
		*top = a == b;
		return true;
	case DW_OP_ne:
		*top = a != b;
		return true;
	case DW_OP_ge:
		*top = (int64_t)a >= (int64_t)b;
		return true;
	case DW_OP_gt:
		*top = (int64_t)a > (int64_t)b;
		return true;
	case DW_OP_le:
		*top = (int64_t)a <= (int64_t)b;
		return true;
	case DW_OP_lt:
		*top = (int64_t)a < (int64_t)b;
		return true;
	default:
		return false;
	}
}

static inline bool constant(struct machine *m, const Dwarf_Op *op, bool *ret_done)
{
	*ret_done = true;
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push(m, op->atom - DW_OP_lit0);
	switch (op->atom) {
	case DW_OP_addr:
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		return push(m, op->number);
	default:
		*ret_done = false;
		return true;
	}
}

static inline bool from_register(struct machine *m, const Dwarf_Op *op, bool *ret_done)
{
	bool based = op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31;
	uint64_t value;

	*ret_done = true;
	if (based)
		return reg(m, op->atom - DW_OP_breg0, &value) && push(m, value + op->number);
	if (op->atom == DW_OP_bregx)
		return reg(m, op->number, &value) && push(m, value + op->number2);
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
		m->is_value = true;
		return reg(m, op->atom - DW_OP_reg0, &value) && push(m, value);
	}
	if (op->atom == DW_OP_regx) {
		m->is_value = true;
		return reg(m, op->number, &value) && push(m, value);
	}
	*ret_done = false;
	return true;
}

static inline bool operation(struct machine *m, const Dwarf_Op *op)
{
	bool done;

	if (!constant(m, op, &done) || (!done && !from_register(m, op, &done)))
		return false;
	if (done)
		return true;
	switch (op->atom) {
	case DW_OP_nop:
		return true;
	case DW_OP_call_frame_cfa:
		return m->has_cfa && push(m, m->cfa);
	case DW_OP_dup:
		return m->depth && push(m, m->stack[m->depth - 1]);
	case DW_OP_drop:
		return m->depth && m->depth--;
	case DW_OP_plus_uconst:
		if (!m->depth)
			return false;
		m->stack[m->depth - 1] += op->number;
		return true;
	case DW_OP_deref:
		return m->depth && load(m, m->stack[m->depth - 1], &m->stack[m->depth - 1]);
	case DW_OP_stack_value:
		m->is_value = true;
		return true;
	default:
		return binary(m, op->atom);
	}
}

/* Branches are not taken by any row that was seen: they are refused. */
static inline bool evaluate(struct machine *m, const Dwarf_Op *ops, size_t count, uint64_t *ret)
{
	m->depth = 0;
	m->is_value = false;
	if (count > OPS_MAX)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!operation(m, &ops[i]))
			return false;
	}
	if (!m->depth)
		return false;
	*ret = m->stack[m->depth - 1];
	return true;
}

/* false: it cannot be told, which is none of the caller's registers. */
static inline bool restore(struct machine *m, Dwarf_Frame *frame, int number, uint64_t *ret, bool *ret_undefined)
{
	Dwarf_Op memory[3], *ops;
	size_t count;

	*ret_undefined = false;
	if (dwarf_frame_register(frame, number, memory, &ops, &count) != 0)
		return false;
	if (!count) {
		/* libdw: no ops but a pointer to the buffer is "undefined", NULL is "the same" */
		*ret_undefined = ops != NULL && number != RBX;
		/* its table of what a callee keeps where a row says nothing names rax (0) for rbx */
		return !*ret_undefined && number != RAX && reg(m, (uint64_t)number, ret);
	}
	if (!evaluate(m, ops, count, ret))
		return false;
	return m->is_value || load(m, *ret, ret);
}

static inline enum rt_dwarf_step step(struct machine *m, Dwarf_Frame *frame, struct rt_dwarf_regs *ret)
{
	struct rt_dwarf_regs caller = { .known = 0 };
	Dwarf_Op *ops;
	size_t count;
	bool undefined;

	if (dwarf_frame_cfa(frame, &ops, &count) != 0 || !evaluate(m, ops, count, &m->cfa))
		return m->no_memory ? RT_DWARF_NO_MEMORY : RT_DWARF_NO_ROW;
	m->has_cfa = true;
	if (!restore(m, frame, RT_DWARF_RA, &caller.value[RT_DWARF_RA], &undefined))
		return undefined ? RT_DWARF_OUTERMOST : m->no_memory ? RT_DWARF_NO_MEMORY : RT_DWARF_NO_ROW;
	caller.known = 1u << RT_DWARF_RA;
	for (int i = 0; i < RT_DWARF_RA; i++) {
		if (restore(m, frame, i, &caller.value[i], &undefined))
			caller.known |= 1u << i;
	}
	/* a row that says nothing of the stack pointer means the CFA */
	if (!(caller.known & 1u << RT_DWARF_RSP)) {
		caller.value[RT_DWARF_RSP] = m->cfa;
		caller.known |= 1u << RT_DWARF_RSP;
	}
	*ret = caller;
	return RT_DWARF_STEPPED;
}

/* As rt_dwarf_step(). */
static inline enum rt_dwarf_step libdw_step(struct libdw *l, struct rt_elfaddr addr,
					    const struct rt_dwarf_memory *memory, struct rt_dwarf_regs *regs,
					    bool *ret_signal)
{
	struct rt_dwarf_regs callee = *regs;
	struct machine m = { .regs = &callee, .memory = memory };
	enum rt_dwarf_step result;
	Dwarf_Frame *frame = NULL;
	Dwarf_Addr start, end;

	if (!(l->eh && dwarf_cfi_addrframe(l->eh, addr.v, &frame) == 0) &&
	    !(l->frame && dwarf_cfi_addrframe(l->frame, addr.v, &frame) == 0))
		return RT_DWARF_NO_ROW;
	*ret_signal = false;
	dwarf_frame_info(frame, &start, &end, ret_signal);
	result = step(&m, frame, regs);
	free(frame);
	return result;
}
