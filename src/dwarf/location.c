/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Location expressions (DWARF 5, 2.5 and 2.6) on a small stack. An entry is a register, a number or a fixed address
 * with loads and additions behind it; any other arithmetic is refused.
 */
#include "dwarf/location.h"

#include <string.h>

enum { DEPTH = 8, REGISTERS = 16 /* general registers of x86-64, by their DWARF numbers */, RBP = 6 };

const char rt_dwarf_no_frame[] = "in a frame that is not set up here";

static const char *refusal(unsigned atom)
{
	switch (atom) {
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		return "only its value at the caller's entry is known (DW_OP_entry_value)";
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
		return "what it points to was optimised away (DW_OP_implicit_pointer)";
	case DW_OP_implicit_value:
		return "a constant of more than 8 bytes (DW_OP_implicit_value)";
	case DW_OP_piece:
	case DW_OP_bit_piece:
		return "in several pieces (DW_OP_piece)";
	case DW_OP_GNU_parameter_ref:
		return "only known at the call (DW_OP_GNU_parameter_ref)";
	case DW_OP_form_tls_address:
	case DW_OP_GNU_push_tls_address:
		return "thread-local (DW_OP_form_tls_address)";
	case DW_OP_fbreg:
		return "relative to a frame base that is no register (DW_OP_fbreg)";
	case DW_OP_call_frame_cfa:
		return "relative to a frame that no unwind row tells (DW_OP_call_frame_cfa)";
	case DW_OP_convert:
	case DW_OP_GNU_convert:
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type:
		return "converted from another type (DW_OP_convert)";
	default:
		if ((atom >= DW_OP_reg0 && atom <= DW_OP_reg31) || atom == DW_OP_regx)
			return "in a register that is not read, such as one for floating point";
		if (atom >= DW_OP_and && atom <= DW_OP_xor)
			return "computed (arithmetic in its location)";
		return "a location that is neither register nor register + offset";
	}
}

static bool number_of(const Dwarf_Op *op, uint64_t *ret)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		*ret = op->atom - DW_OP_lit0;
		return true;
	}
	switch (op->atom) {
	case DW_OP_const1u:
	case DW_OP_const2u:
	case DW_OP_const4u:
	case DW_OP_const8u:
	case DW_OP_constu:
	case DW_OP_const1s:
	case DW_OP_const2s:
	case DW_OP_const4s:
	case DW_OP_const8s:
	case DW_OP_consts:
		*ret = op->number;
		return true;
	default:
		return false;
	}
}

static void add(struct rt_location *l, uint64_t n)
{
	if (l->base == RT_LOCATION_NUMBER && !l->deref_count)
		l->number += n;
	else
		l->offset = (int64_t)((uint64_t)l->offset + n);
	if (!l->deref_count)
		l->cfa_offset = (int64_t)((uint64_t)l->cfa_offset + n);
}

static bool is_number(const struct rt_location *l)
{
	return l->base == RT_LOCATION_NUMBER && !l->deref_count;
}

/* The function that an inlined instance is in has the frame. */
static const struct rt_node *frame_of(const struct rt_expression *e)
{
	const struct rt_node *node = e->node;

	while (node && node->inlined && node->parent)
		node = &e->unit->nodes.data[node->parent - 1];
	return node && !node->inlined ? node : NULL;
}

/* At e->addr, as register + offset; the CFA by the row that unwinds it. */
static const char *cfa(const struct rt_expression *e, struct rt_location *ret)
{
	struct rt_cfi_row row;

	if (!rt_dwarf_cfi(e->dwarf, (struct rt_elfaddr){ e->addr }, &row))
		return refusal(DW_OP_call_frame_cfa);
	*ret = (struct rt_location){ .base = RT_LOCATION_REG, .reg = row.cfa_reg, .offset = row.cfa_offset };
	return NULL;
}

static const char *frame_base(const struct rt_expression *e, int64_t offset, struct rt_location *ret)
{
	const struct rt_node *node = frame_of(e);
	struct rt_cfi_row row;
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t nops;
	Dwarf_Die die;
	unsigned reg;

	if (!node)
		return refusal(DW_OP_fbreg);
	die = node->die;
	if (!dwarf_attr_integrate(&die, DW_AT_frame_base, &attr) ||
	    dwarf_getlocation_addr(&attr, e->addr, &ops, &nops, 1) != 1 || nops != 1)
		return refusal(DW_OP_fbreg);
	if (ops[0].atom == DW_OP_call_frame_cfa) {
		const char *why = cfa(e, ret);

		if (why)
			return why;
		/* above the CFA is what the caller has stored */
		ret->in_frame = offset < 0;
		ret->cfa_known = true;
	} else if (ops[0].atom >= DW_OP_breg0 && ops[0].atom < DW_OP_breg0 + REGISTERS) {
		*ret = (struct rt_location){ .reg = ops[0].atom - DW_OP_breg0, .offset = (int64_t)ops[0].number };
		ret->in_frame = true;
	} else if (ops[0].atom >= DW_OP_reg0 && ops[0].atom < DW_OP_reg0 + REGISTERS) {
		reg = ops[0].atom - DW_OP_reg0;
		*ret = (struct rt_location){ .base = RT_LOCATION_REG, .reg = reg, .in_frame = true };
		if (rt_dwarf_cfi(e->dwarf, (struct rt_elfaddr){ e->addr }, &row)) {
			/* before the register is the frame's, and when it is the caller's again */
			if (reg == RBP && row.cfa_reg != RBP)
				return rt_dwarf_no_frame;
			ret->cfa_known = row.cfa_reg == reg;
			ret->cfa_offset = -row.cfa_offset;
		}
	} else {
		return refusal(DW_OP_fbreg);
	}
	add(ret, (uint64_t)offset);
	return NULL;
}

/* Ops that put something onto the stack. *ret_known false: it is none of them. */
static const char *push(const struct rt_expression *e, const Dwarf_Op *op, struct rt_location *ret, bool *ret_known)
{
	struct rt_location l = { .base = RT_LOCATION_REG };
	Dwarf_Attribute at;
	Dwarf_Addr address;

	*ret_known = true;
	if (number_of(op, &l.number)) {
		l.base = RT_LOCATION_NUMBER;
	} else if (op->atom >= DW_OP_breg0 && op->atom < DW_OP_breg0 + REGISTERS) {
		l.reg = op->atom - DW_OP_breg0;
		l.offset = (int64_t)op->number;
	} else if (op->atom == DW_OP_bregx && op->number < REGISTERS) {
		l.reg = op->number;
		l.offset = (int64_t)op->number2;
	} else if (op->atom == DW_OP_fbreg) {
		return frame_base(e, (int64_t)op->number, ret);
	} else if (op->atom == DW_OP_call_frame_cfa) {
		return cfa(e, ret);
	} else if (op->atom == DW_OP_addr) {
		l.base = RT_LOCATION_ADDRESS;
		l.number = op->number;
	} else if (op->atom == DW_OP_addrx || op->atom == DW_OP_GNU_addr_index) {
		if (!e->attr || dwarf_getlocation_attr(e->attr, op, &at) != 0 || dwarf_formaddr(&at, &address) != 0)
			return refusal(op->atom);
		l.base = RT_LOCATION_ADDRESS;
		l.number = address;
	} else {
		*ret_known = false;
		return NULL;
	}
	*ret = l;
	return NULL;
}

/* DW_OP_entry_value of a register alone. */
static const char *entry_value(const struct rt_expression *e, const Dwarf_Op *op, struct rt_location *ret)
{
	Dwarf_Attribute at;
	Dwarf_Op *ops;
	size_t nops;

	if (!e->attr || dwarf_getlocation_attr(e->attr, op, &at) != 0 || dwarf_getlocation(&at, &ops, &nops) != 0 ||
	    nops != 1)
		return refusal(op->atom);
	*ret = (struct rt_location){ .base = RT_LOCATION_REG, .at_entry = true };
	if (ops[0].atom >= DW_OP_reg0 && ops[0].atom < DW_OP_reg0 + REGISTERS)
		ret->reg = ops[0].atom - DW_OP_reg0;
	else if (ops[0].atom == DW_OP_regx && ops[0].number < REGISTERS)
		ret->reg = ops[0].number;
	else
		return refusal(op->atom);
	return NULL;
}

static const char *implicit_value(const struct rt_expression *e, const Dwarf_Op *op, struct rt_location *ret)
{
	Dwarf_Block block;

	*ret = (struct rt_location){ .base = RT_LOCATION_NUMBER, .is_value = true };
	if (!e->attr || e->dwarf->image->big_endian || dwarf_getlocation_implicit_value(e->attr, op, &block) != 0 ||
	    block.length > sizeof(ret->number))
		return refusal(op->atom);
	memcpy(&ret->number, block.data, block.length);
	return NULL;
}

static const char *combine(const Dwarf_Op *op, struct rt_location *stack, unsigned *depth)
{
	struct rt_location *top = &stack[*depth - 1], *under = top - 1;

	switch (op->atom) {
	case DW_OP_plus_uconst:
		add(top, op->number);
		return NULL;
	case DW_OP_plus:
	case DW_OP_minus:
		if (*depth < 2)
			return "damaged (its location expression)";
		--*depth;
		if (is_number(top)) {
			add(under, op->atom == DW_OP_plus ? top->number : 0 - top->number);
			return NULL;
		}
		if (op->atom == DW_OP_minus || !is_number(under))
			return refusal(DW_OP_and);
		add(top, under->number);
		*under = *top;
		return NULL;
	case DW_OP_deref:
		if (top->deref_count == RT_LOCATION_DEREFS_MAX)
			return "behind too many pointers";
		if (is_number(top))
			top->base = RT_LOCATION_ADDRESS;
		top->derefs[top->deref_count++] = top->offset;
		top->offset = 0;
		return NULL;
	case DW_OP_dup:
		if (*depth == DEPTH)
			return refusal(DW_OP_and);
		stack[*depth] = *top;
		++*depth;
		return NULL;
	case DW_OP_drop:
		--*depth;
		return *depth ? NULL : "damaged (its location expression)";
	case DW_OP_swap:
		if (*depth < 2)
			return "damaged (its location expression)";
		stack[*depth] = *top;
		*top = *under;
		*under = stack[*depth];
		return NULL;
	default:
		return refusal(op->atom);
	}
}

/* A location that is no expression on the stack: a register, or a constant as bytes. *ret_known false: it is one. */
static const char *alone(const struct rt_expression *e, const Dwarf_Op *ops, size_t nops, struct rt_location *ret,
			 bool *ret_known)
{
	*ret_known = true;
	if (ops[0].atom == DW_OP_implicit_value) {
		if (nops > 1)
			return refusal(ops[1].atom);
		return implicit_value(e, &ops[0], ret);
	}
	*ret = (struct rt_location){ .base = RT_LOCATION_REG, .is_value = true };
	if (ops[0].atom >= DW_OP_reg0 && ops[0].atom < DW_OP_reg0 + REGISTERS)
		ret->reg = ops[0].atom - DW_OP_reg0;
	else if (ops[0].atom == DW_OP_regx && ops[0].number < REGISTERS)
		ret->reg = ops[0].number;
	else
		*ret_known = false;
	/* behind a register there can only be a DW_OP_piece */
	return *ret_known && nops > 1 ? refusal(ops[1].atom) : NULL;
}

const char *rt_location_evaluate(const struct rt_expression *e, const Dwarf_Op *ops, size_t nops,
				 struct rt_location *ret)
{
	struct rt_location stack[DEPTH + 1] = { 0 };
	unsigned depth = 0;
	const char *why;
	bool known;

	if (!nops)
		return "optimised away";
	why = alone(e, ops, nops, ret, &known);
	if (why || known)
		return why;
	for (size_t i = 0; i < nops; i++) {
		const Dwarf_Op *op = &ops[i];

		if (op->atom == DW_OP_nop)
			continue;
		if (op->atom == DW_OP_stack_value) {
			if (i + 1 < nops)
				return refusal(ops[i + 1].atom);
			if (!depth)
				return "damaged (its location expression)";
			stack[depth - 1].is_value = true;
			/* where something is in the frame is known before it is there */
			if (!stack[depth - 1].deref_count)
				stack[depth - 1].in_frame = false;
			continue;
		}
		if (depth == DEPTH)
			return refusal(DW_OP_and);
		if (op->atom == DW_OP_entry_value || op->atom == DW_OP_GNU_entry_value) {
			why = entry_value(e, op, &stack[depth]);
			known = true;
		} else {
			why = push(e, op, &stack[depth], &known);
		}
		if (!why && known)
			depth++;
		else if (!why)
			why = depth ? combine(op, stack, &depth) : refusal(op->atom);
		if (why)
			return why;
	}
	if (!depth)
		return "optimised away";
	*ret = stack[depth - 1];
	if (!ret->is_value && is_number(ret))
		ret->base = RT_LOCATION_ADDRESS;
	return NULL;
}
