/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a frame to its caller by call frame information, evaluated over registers and memory that were kept. All of it
 * is foreign: expressions are bounded, nothing is read but through the caller's memory. libdw is not asked: it believes
 * what a damaged file says about itself.
 */
#include "dwarf/cfi.h"

#include <string.h>

enum { STACK = 32, OPS_MAX = 256, RBX = 3, R12 = 12, R15 = 15 };

struct machine {
	const struct rt_dwarf_regs *regs;
	const struct rt_dwarf_memory *memory;
	uint64_t cfa;
	bool no_memory; /* why it failed */
	uint64_t stack[STACK];
	unsigned depth;
};

static bool push(struct machine *m, uint64_t value)
{
	if (m->depth >= STACK)
		return false;
	m->stack[m->depth++] = value;
	return true;
}

static bool reg(const struct machine *m, uint64_t number, uint64_t *ret)
{
	if (number >= RT_DWARF_REGS || !(m->regs->known & 1u << number))
		return false;
	*ret = m->regs->value[number];
	return true;
}

static bool load(struct machine *m, uint64_t address, uint64_t *ret)
{
	if (m->memory->read(m->memory, address, ret))
		return true;
	m->no_memory = true;
	return false;
}

/* Operations on the two topmost values; those that rows of compilers and linkers use. */
static bool binary(struct machine *m, uint8_t atom)
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

/* A number that stands in the expression. false: it is cut off; *ret_done: the operation is one of these. */
static bool constant(struct rt_cursor *c, uint8_t op, uint64_t *ret, bool *ret_done)
{
	uint8_t u8;
	uint16_t u16;
	uint32_t u32;
	int64_t s64;

	*ret_done = true;
	if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
		*ret = op - DW_OP_lit0;
		return true;
	}
	switch (op) {
	case DW_OP_const1u:
	case DW_OP_const1s:
		if (!rt_cursor_u8(c, &u8))
			return false;
		*ret = op == DW_OP_const1u ? u8 : (uint64_t)(int8_t)u8;
		return true;
	case DW_OP_const2u:
	case DW_OP_const2s:
		if (!rt_cursor_u16(c, &u16))
			return false;
		*ret = op == DW_OP_const2u ? u16 : (uint64_t)(int16_t)u16;
		return true;
	case DW_OP_const4u:
	case DW_OP_const4s:
		if (!rt_cursor_u32(c, &u32))
			return false;
		*ret = op == DW_OP_const4u ? u32 : (uint64_t)(int32_t)u32;
		return true;
	case DW_OP_addr:
	case DW_OP_const8u:
	case DW_OP_const8s:
		return rt_cursor_u64(c, ret);
	case DW_OP_constu:
		return rt_cursor_uleb(c, ret);
	case DW_OP_consts:
		if (!rt_cursor_sleb(c, &s64))
			return false;
		*ret = (uint64_t)s64;
		return true;
	default:
		*ret_done = false;
		return true;
	}
}

static bool from_register(struct machine *m, struct rt_cursor *c, uint8_t op, bool *ret_done)
{
	uint64_t number, value;
	int64_t offset;

	*ret_done = true;
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		return rt_cursor_sleb(c, &offset) && reg(m, op - DW_OP_breg0, &value) &&
		       push(m, value + (uint64_t)offset);
	if (op == DW_OP_bregx)
		return rt_cursor_uleb(c, &number) && rt_cursor_sleb(c, &offset) && reg(m, number, &value) &&
		       push(m, value + (uint64_t)offset);
	*ret_done = false;
	return true;
}

static bool operation(struct machine *m, struct rt_cursor *c, uint8_t op)
{
	uint64_t number;
	bool done;

	if (!constant(c, op, &number, &done))
		return false;
	if (done)
		return push(m, number);
	if (!from_register(m, c, op, &done))
		return false;
	if (done)
		return true;
	switch (op) {
	case DW_OP_nop:
		return true;
	case DW_OP_dup:
		return m->depth && push(m, m->stack[m->depth - 1]);
	case DW_OP_drop:
		return m->depth && m->depth--;
	case DW_OP_plus_uconst:
		if (!m->depth || !rt_cursor_uleb(c, &number))
			return false;
		m->stack[m->depth - 1] += number;
		return true;
	case DW_OP_deref:
		return m->depth && load(m, m->stack[m->depth - 1], &m->stack[m->depth - 1]);
	default:
		return binary(m, op);
	}
}

/* Branches are not taken by any row that was seen: they are refused. */
static bool evaluate(struct machine *m, struct rt_bytes expression, bool with_cfa, uint64_t *ret)
{
	struct rt_cursor c = rt_cursor_make(expression, false);
	uint8_t op;

	m->depth = 0;
	if (with_cfa)
		m->stack[m->depth++] = m->cfa; /* DWARF 5, 6.4.2.3: what a register's expression begins with */
	for (unsigned count = 0; rt_cursor_left(&c); count++) {
		if (count >= OPS_MAX || !rt_cursor_u8(&c, &op) || !operation(m, &c, op))
			return false;
	}
	if (!m->depth)
		return false;
	*ret = m->stack[m->depth - 1];
	return true;
}

/* What a callee keeps where a row says nothing of it (psABI). */
static bool is_kept(unsigned number)
{
	return number == RBX || number == RT_DWARF_RBP || (number >= R12 && number <= R15);
}

/* false: it cannot be told, or is none of the caller's any more. */
static bool restore(struct machine *m, const struct rt_frame_value *v, unsigned number, uint64_t *ret)
{
	uint64_t address;

	switch ((enum rt_frame_place)v->place) {
	case RT_FRAME_UNSAID:
		return is_kept(number) && reg(m, number, ret);
	case RT_FRAME_SAME:
		return reg(m, number, ret);
	case RT_FRAME_AT_CFA:
		return load(m, m->cfa + (uint64_t)v->offset, ret);
	case RT_FRAME_VAL_CFA:
		*ret = m->cfa + (uint64_t)v->offset;
		return true;
	case RT_FRAME_REGISTER:
		return reg(m, (uint64_t)v->offset, ret);
	case RT_FRAME_EXPRESSION:
		return evaluate(m, rt_bytes_make(v->code, v->size), true, &address) && load(m, address, ret);
	case RT_FRAME_VALUE:
		return evaluate(m, rt_bytes_make(v->code, v->size), true, ret);
	case RT_FRAME_UNDEFINED:
	default:
		return false;
	}
}

static bool find_cfa(struct machine *m, const struct rt_frame_state *state)
{
	if (state->cfa == RT_CFA_EXPRESSION)
		return evaluate(m, state->expression, false, &m->cfa);
	if (state->cfa != RT_CFA_REGISTER || !reg(m, state->reg, &m->cfa))
		return false;
	m->cfa += (uint64_t)state->offset;
	return true;
}

static enum rt_dwarf_step step(struct machine *m, const struct rt_frame_state *state, struct rt_dwarf_regs *ret)
{
	struct rt_dwarf_regs caller = { .known = 0 };

	if (!find_cfa(m, state))
		return m->no_memory ? RT_DWARF_NO_MEMORY : RT_DWARF_NO_ROW;
	if (state->value[RT_DWARF_RA].place == RT_FRAME_UNDEFINED)
		return RT_DWARF_OUTERMOST;
	if (!restore(m, &state->value[RT_DWARF_RA], RT_DWARF_RA, &caller.value[RT_DWARF_RA]))
		return m->no_memory ? RT_DWARF_NO_MEMORY : RT_DWARF_NO_ROW;
	caller.known = 1u << RT_DWARF_RA;
	for (unsigned i = 0; i < RT_DWARF_RA; i++) {
		if (restore(m, &state->value[i], i, &caller.value[i]))
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

/* The state that holds at an address. */
struct place {
	uint64_t address;
	struct rt_frame_state state;
	bool found;
};

static bool take(void *arg, uint64_t start, uint64_t end, const struct rt_frame_state *state)
{
	struct place *p = arg;

	if (p->address < start || p->address >= end)
		return true;
	p->state = *state;
	p->found = true;
	return false;
}

static bool find_state(struct rt_dwarf *dwarf, struct rt_elfaddr addr, struct rt_frame_state *ret, bool *ret_signal)
{
	const struct rt_frame_section *section;
	const struct rt_fde *fde = rt_fde_find(dwarf, addr, &section);
	struct rt_frame_state initial, state;
	struct rt_frame_entry entry;
	struct rt_frame_cie cie;
	struct rt_frame_fde f;
	struct place place = { .address = addr.v };
	struct rt_frame_run run = { .cie = &cie, .initial = &initial, .emit = take, .arg = &place };

	if (!fde || !rt_frame_entry_read(section, fde->at, &entry) || !rt_frame_cie_read(section, entry.cie, &cie) ||
	    cie.ra != RT_FRAME_RA || !rt_frame_fde_read(section, &entry, &cie, &f) || !rt_frame_initial(&cie, &initial))
		return false;
	run.here = section->address + f.program_at;
	run.start = f.start;
	run.end = f.end;
	state = initial;
	/* what stands behind the place may be damaged, as libdw has it, too */
	(void)rt_frame_program(&run, f.program, &state);
	*ret = place.state;
	*ret_signal = cie.signal;
	return place.found;
}

enum rt_dwarf_step rt_dwarf_step(struct rt_dwarf *dwarf, struct rt_elfaddr addr, const struct rt_dwarf_memory *memory,
				 struct rt_dwarf_regs *regs, bool *ret_signal)
{
	struct rt_dwarf_regs callee = *regs;
	struct machine m = { .regs = &callee, .memory = memory };
	struct rt_frame_state state;

	if (dwarf->image->machine != RT_MACHINE_X86_64 || dwarf->image->big_endian ||
	    !find_state(dwarf, addr, &state, ret_signal))
		return RT_DWARF_NO_ROW;
	return step(&m, &state, regs);
}
