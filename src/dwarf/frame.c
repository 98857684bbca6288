/* SPDX-License-Identifier: GPL-2.0-only */
/* Call frame programs (DWARF 5, 6.4.2; .eh_frame: LSB). */
#include "dwarf/frame.h"

#include <dwarf.h>
#include <string.h>

#include "dwarf/pointer.h"

enum { BP = RT_FRAME_BP, SP = RT_FRAME_SP, RA = RT_FRAME_RA };

#define SKIPPED 0x2f /* DW_CFA_GNU_negative_offset_extended: of compilers that never made x86-64 code */

struct machine {
	const struct rt_frame_run *run;
	struct rt_frame_state *state;
	struct rt_cursor c;
	uint64_t pc;
	bool done; /* behind the end of the code, or the taker has enough */
	unsigned depth;
	struct rt_frame_state kept[RT_FRAME_REMEMBERED_MAX]; /* [depth] */
};

static bool sleb_is(struct rt_cursor *c, uint8_t op, int64_t *ret)
{
	uint8_t byte;

	return rt_cursor_u8(c, &byte) && byte == op && rt_cursor_sleb(c, ret);
}

/* The expression "reg + offset" and nothing else; op: DW_OP_breg of the register. */
static bool is_based(const struct rt_frame_value *v, uint8_t op, int64_t offset)
{
	struct rt_cursor c;
	int64_t number;

	if (v->place != RT_FRAME_EXPRESSION)
		return false;
	c = rt_cursor_make(rt_bytes_make(v->code, v->size), false);
	return sleb_is(&c, op, &number) && number == offset && !rt_cursor_left(&c);
}

static uint32_t bp_rule(const struct rt_frame_value *bp)
{
	switch (bp->place) {
	case RT_FRAME_UNSAID: /* the callee keeps it (psABI) */
	case RT_FRAME_SAME:
		return RT_UNWIND_RULE(0, RT_UNWIND_BP_SAME, 0, 0);
	case RT_FRAME_EXPRESSION:
		if (is_based(bp, DW_OP_breg6, 0))
			return RT_UNWIND_RULE(0, RT_UNWIND_BP_AT_BP, 0, 0);
		break;
	case RT_FRAME_AT_CFA:
		if (bp->offset < 0 && bp->offset % 8 == 0 && bp->offset >= -8 * RT_UNWIND_SLOT_MAX)
			return RT_UNWIND_RULE(0, RT_UNWIND_BP_SAVED, -bp->offset / 8, 0);
		break;
	default:
		break;
	}
	return RT_UNWIND_RULE(0, RT_UNWIND_BP_LOST, 0, 0);
}

/* As linkers write it: rsp + 8 + ((rip & 15) >= n) << 3. */
static bool is_plt(struct rt_bytes e, int64_t *ret)
{
	static const uint8_t before[] = { DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and };
	static const uint8_t behind[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };

	if (e.size != sizeof(before) + 1 + sizeof(behind) || memcmp(e.data, before, sizeof(before)) ||
	    memcmp(e.data + sizeof(before) + 1, behind, sizeof(behind)) || e.data[sizeof(before)] < DW_OP_lit0 ||
	    e.data[sizeof(before)] > DW_OP_lit15)
		return false;
	*ret = e.data[sizeof(before)] - DW_OP_lit0;
	return true;
}

/* What lies at rbp + offset (op: DW_OP_breg6) or rsp + offset (DW_OP_breg7). */
static bool is_load(struct rt_bytes e, uint8_t op, int64_t *ret)
{
	struct rt_cursor c = rt_cursor_make(e, false);
	uint8_t byte;

	return sleb_is(&c, op, ret) && rt_cursor_u8(&c, &byte) && byte == DW_OP_deref && !rt_cursor_left(&c);
}

static uint32_t cfa_rule(const struct rt_frame_state *s)
{
	int64_t bytes = s->offset, offset;

	if (s->cfa == RT_CFA_EXPRESSION) {
		if (is_plt(s->expression, &bytes))
			return RT_UNWIND_RULE(RT_UNWIND_PLT, 0, 0, bytes);
		if (!is_load(s->expression, DW_OP_breg6, &bytes))
			return RT_UNWIND_OTHER;
	} else if (s->cfa != RT_CFA_REGISTER) {
		return RT_UNWIND_OTHER;
	}
	offset = bytes / 8;
	if (bytes % 8)
		return RT_UNWIND_OTHER;
	if (s->cfa == RT_CFA_REGISTER && s->reg == SP && offset > 0 && offset <= RT_UNWIND_SP_MAX)
		return RT_UNWIND_RULE(RT_UNWIND_SP, 0, 0, offset);
	if (offset < -RT_UNWIND_BP_MAX || offset > RT_UNWIND_BP_MAX)
		return RT_UNWIND_OTHER;
	if (s->cfa == RT_CFA_EXPRESSION)
		return RT_UNWIND_RULE(RT_UNWIND_BP_LOAD, 0, 0, offset);
	return s->reg == BP ? RT_UNWIND_RULE(RT_UNWIND_BP, 0, 0, offset) : RT_UNWIND_OTHER;
}

uint32_t rt_frame_rule(const struct rt_frame_state *s, bool signal)
{
	const struct rt_frame_value *bp = &s->value[BP], *sp = &s->value[SP], *ra = &s->value[RA];
	int64_t offset;
	uint32_t rule;

	if (ra->place == RT_FRAME_UNDEFINED)
		return RT_UNWIND_ROOT;
	if (signal) {
		if (s->cfa == RT_CFA_EXPRESSION && is_load(s->expression, DW_OP_breg7, &offset) &&
		    offset == RT_UNWIND_UC_SP && is_based(bp, DW_OP_breg7, RT_UNWIND_UC_BP) &&
		    is_based(sp, DW_OP_breg7, RT_UNWIND_UC_SP) && is_based(ra, DW_OP_breg7, RT_UNWIND_UC_IP))
			return RT_UNWIND_SIGNAL;
		return RT_UNWIND_OTHER;
	}
	if (ra->place != RT_FRAME_AT_CFA || ra->offset != -8)
		return RT_UNWIND_OTHER;
	if (sp->place != RT_FRAME_UNSAID && (sp->place != RT_FRAME_VAL_CFA || sp->offset))
		return RT_UNWIND_OTHER;
	rule = cfa_rule(s);
	return rule == RT_UNWIND_OTHER ? rule : rule | bp_rule(bp);
}

static void set(struct machine *m, uint64_t reg, enum rt_frame_place place, int64_t offset)
{
	if (reg < RT_FRAME_REGS)
		m->state->value[reg] = (struct rt_frame_value){ .place = place, .offset = offset };
}

static void restore(struct machine *m, uint64_t reg)
{
	if (reg < RT_FRAME_REGS)
		m->state->value[reg] = m->run->initial->value[reg];
}

/* To another place of the code: what held up to it is complete. */
static bool advance(struct machine *m, uint64_t pc)
{
	const struct rt_frame_run *run = m->run;
	uint64_t end = pc < run->end ? pc : run->end;

	if (!run->emit || pc < m->pc)
		return false;
	if (end > m->pc)
		m->done = !run->emit(run->arg, m->pc, end, m->state);
	m->done |= pc >= run->end;
	m->pc = pc;
	return true;
}

static bool advance_by(struct machine *m, uint64_t delta)
{
	uint64_t bytes, pc;

	return !__builtin_mul_overflow(delta, m->run->cie->code_align, &bytes) &&
	       !__builtin_add_overflow(m->pc, bytes, &pc) && advance(m, pc);
}

/* number times the alignment of data. */
static bool factored(const struct machine *m, int64_t number, int64_t *ret)
{
	return !__builtin_mul_overflow(number, m->run->cie->data_align, ret);
}

static bool set_cfa(struct machine *m, bool with_reg, bool with_offset, bool factor)
{
	struct rt_frame_state *s = m->state;
	uint64_t reg = s->reg, number;
	int64_t offset = s->offset;

	if (with_reg && !rt_cursor_uleb(&m->c, &reg))
		return false;
	if (with_offset && factor) {
		if (!rt_cursor_sleb(&m->c, &offset) || !factored(m, offset, &offset))
			return false;
	} else if (with_offset) {
		if (!rt_cursor_uleb(&m->c, &number) || number > INT64_MAX)
			return false;
		offset = (int64_t)number;
	}
	/* half a rule needs the other half */
	if (!(with_reg && with_offset) && s->cfa != RT_CFA_REGISTER)
		return false;
	s->cfa = RT_CFA_REGISTER;
	s->reg = reg;
	s->offset = offset;
	return true;
}

static bool set_offset(struct machine *m, uint64_t reg, enum rt_frame_place place, bool is_signed)
{
	uint64_t number = 0;
	int64_t offset;

	if (is_signed ? !rt_cursor_sleb(&m->c, &offset) : !rt_cursor_uleb(&m->c, &number) || number > INT64_MAX)
		return false;
	if (!factored(m, is_signed ? offset : (int64_t)number, &offset))
		return false;
	set(m, reg, place, offset);
	return true;
}

static bool block(struct machine *m, struct rt_bytes *ret)
{
	uint64_t size;

	return rt_cursor_uleb(&m->c, &size) && size <= UINT32_MAX && rt_cursor_bytes(&m->c, size, ret);
}

static bool set_expression(struct machine *m, uint64_t reg, enum rt_frame_place place)
{
	struct rt_bytes e;

	if (!block(m, &e))
		return false;
	if (reg < RT_FRAME_REGS)
		m->state->value[reg] =
			(struct rt_frame_value){ .place = place, .size = (uint32_t)e.size, .code = e.data };
	return true;
}

/* Those that tell about one register, whose number comes first. */
static bool about_register(struct machine *m, uint8_t op)
{
	uint64_t reg, other;

	if (!rt_cursor_uleb(&m->c, &reg))
		return false;
	switch (op) {
	case DW_CFA_offset_extended:
		return set_offset(m, reg, RT_FRAME_AT_CFA, false);
	case DW_CFA_offset_extended_sf:
		return set_offset(m, reg, RT_FRAME_AT_CFA, true);
	case DW_CFA_val_offset:
		return set_offset(m, reg, RT_FRAME_VAL_CFA, false);
	case DW_CFA_val_offset_sf:
		return set_offset(m, reg, RT_FRAME_VAL_CFA, true);
	case DW_CFA_restore_extended:
		restore(m, reg);
		return true;
	case DW_CFA_undefined:
		set(m, reg, RT_FRAME_UNDEFINED, 0);
		return true;
	case DW_CFA_same_value:
		set(m, reg, RT_FRAME_SAME, 0);
		return true;
	case DW_CFA_register:
		if (!rt_cursor_uleb(&m->c, &other) || other > INT64_MAX)
			return false;
		set(m, reg, RT_FRAME_REGISTER, (int64_t)other);
		return true;
	case DW_CFA_val_expression:
		return set_expression(m, reg, RT_FRAME_VALUE);
	case DW_CFA_expression:
		return set_expression(m, reg, RT_FRAME_EXPRESSION);
	default:
		return false;
	}
}

static bool advance_told(struct machine *m, uint8_t op)
{
	uint64_t pc, here = m->run->here + m->c.pos;
	uint8_t u8;
	uint16_t u16;
	uint32_t u32;

	switch (op) {
	case DW_CFA_set_loc:
		return rt_pointer_read(&m->c, m->run->cie->encoding, here, false, &pc) && advance(m, pc);
	case DW_CFA_advance_loc1:
		return rt_cursor_u8(&m->c, &u8) && advance_by(m, u8);
	case DW_CFA_advance_loc2:
		return rt_cursor_u16(&m->c, &u16) && advance_by(m, u16);
	default:
		return rt_cursor_u32(&m->c, &u32) && advance_by(m, u32);
	}
}

static bool step(struct machine *m, uint8_t op)
{
	uint64_t size;

	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_set_loc:
	case DW_CFA_advance_loc1:
	case DW_CFA_advance_loc2:
	case DW_CFA_advance_loc4:
		return advance_told(m, op);
	case DW_CFA_remember_state:
		if (m->depth >= RT_FRAME_REMEMBERED_MAX)
			return false;
		m->kept[m->depth++] = *m->state;
		return true;
	case DW_CFA_restore_state:
		if (!m->depth)
			return false;
		*m->state = m->kept[--m->depth];
		return true;
	case DW_CFA_def_cfa:
		return set_cfa(m, true, true, false);
	case DW_CFA_def_cfa_sf:
		return set_cfa(m, true, true, true);
	case DW_CFA_def_cfa_register:
		return set_cfa(m, true, false, false);
	case DW_CFA_def_cfa_offset:
		return set_cfa(m, false, true, false);
	case DW_CFA_def_cfa_offset_sf:
		return set_cfa(m, false, true, true);
	case DW_CFA_def_cfa_expression:
		m->state->cfa = RT_CFA_EXPRESSION;
		return block(m, &m->state->expression);
	case DW_CFA_GNU_args_size: /* how much a callee takes off the stack when it is left by an exception */
		return rt_cursor_uleb(&m->c, &size);
	default:
		return op != SKIPPED && about_register(m, op);
	}
}

bool rt_frame_program(const struct rt_frame_run *run, struct rt_bytes program, struct rt_frame_state *state)
{
	struct machine m; /* of what is kept, nothing yet */
	uint8_t op;

	m.run = run;
	m.state = state;
	m.c = rt_cursor_make(program, false);
	m.pc = run->start;
	m.done = false;
	m.depth = 0;
	while (!m.done && rt_cursor_u8(&m.c, &op)) {
		uint8_t low = op & 0x3f;
		bool ok = true;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			ok = advance_by(&m, low);
			break;
		case DW_CFA_offset:
			ok = set_offset(&m, low, RT_FRAME_AT_CFA, false);
			break;
		case DW_CFA_restore:
			restore(&m, low);
			break;
		default:
			ok = step(&m, low);
		}
		if (!ok)
			return false;
	}
	return !run->emit || m.done || advance(&m, run->end);
}

bool rt_frame_initial(const struct rt_frame_cie *cie, struct rt_frame_state *ret)
{
	static const struct rt_frame_state nothing;

	*ret = nothing;
	return rt_frame_program(&(struct rt_frame_run){ .cie = cie, .initial = &nothing }, cie->program, ret);
}
