/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a register leads to, where debug information gives the variable that was meant no place any more: compilers keep
 * few of them, and C programs count what they have just read from somewhere. From the instruction backwards to what
 * wrote the register, and on to what that was made from.
 */
#include <string.h>

#include "probe/counted.h"
#include "probe/pointee.h"

enum {
	FUNCTION_BYTES = 64 << 10,
	SCOPES_MAX = 16,
	DEPTH_MAX = 6,  /* from the register back to what its value was made from */
	LOOKS_MAX = 48, /* at registers, for one question */
};

struct asked {
	struct rt_elfaddr at;
	uint8_t reg;
};

struct typing {
	struct rt_pointees *p;
	struct asked asked[DEPTH_MAX];
	unsigned depth, looks;
	bool frame; /* what was asked for was read from a variable in the frame */
};

static bool type_of(struct typing *t, struct rt_elfaddr at, uint8_t reg, struct rt_typed *ret);

/* void, and what is no pointer, says nothing */
static bool declared(const char *type, struct rt_typed *ret)
{
	*ret = (struct rt_typed){ type, rt_pointee_stars(type) };
	return ret->pointers && strncmp(type, "void", 4) != 0 && strncmp(type, "const void", 10) != 0;
}

struct seen {
	const struct rt_pointees *p;
	struct rt_instance in;
	struct rt_elfaddr at;
	uint8_t reg;                /* the variable is in this register */
	const struct rt_insn *load; /* or this reads it from the frame */
	struct rt_typed found;
};

/* load reads the variable itself, from where it lies in the frame */
static bool is_in_frame(const struct seen *s, const struct rt_datum *d)
{
	const struct rt_location *at = &d->where;
	struct rt_cfi_row row;

	if (d->kind != RT_DATUM_POINTER || at->base != RT_LOCATION_REG || at->is_value || at->at_entry ||
	    at->deref_count)
		return false;
	if (at->reg == s->load->mem.base && at->offset == s->load->mem.disp)
		return true;
	return at->cfa_known && rt_dwarf_cfi(s->p->b->module->dwarf, s->load->addr, &row) &&
	       row.cfa_reg == s->load->mem.base && s->load->mem.disp - row.cfa_offset == at->cfa_offset;
}

static void see_variable(const char *name, void *arg)
{
	struct seen *s = arg;
	struct rt_typed type;
	struct rt_datum d;

	if (s->found.type || rt_dwarf_datum(s->p->b->module->dwarf, &s->in, s->at, name, NULL, 0, &d) != NULL)
		return;
	if (s->load ? !is_in_frame(s, &d) : !rt_pointee_based(&d) || d.where.offset || d.where.reg != s->reg)
		return;
	if (d.type && declared(d.type, &type))
		s->found = type;
}

/* what the function, or one that is inlined there, calls what is in the register, or what load reads from the frame */
static bool variable_at(const struct typing *t, struct rt_elfaddr at, uint8_t reg, const struct rt_insn *load,
			struct rt_typed *ret)
{
	struct seen s = { .p = t->p, .at = at, .reg = reg, .load = load };
	struct rt_dwarf *dwarf = t->p->b->module->dwarf;
	bool more = rt_dwarf_instance_at(dwarf, at, &s.in);
	struct rt_instance inner;

	for (unsigned depth = 0; more && !s.found.type && depth < SCOPES_MAX; depth++) {
		rt_dwarf_names(dwarf, &s.in, at, true, see_variable, &s);
		inner = s.in;
		more = rt_dwarf_instance_outer(dwarf, &inner, &s.in);
	}
	*ret = s.found;
	return s.found.type != NULL;
}

static bool agree(const struct rt_typed *a, const struct rt_typed *b)
{
	return a->pointers == b->pointers && rt_same_struct(a->type, b->type);
}

/* rbp keeps the place of the frame, or is a register like others: unwind tables say which */
static bool frame_place(const struct typing *t, const struct rt_insn *insn, int64_t *ret)
{
	struct rt_cfi_row row;

	if (insn->mem.index != RT_REG_NONE || insn->mem.segment ||
	    (insn->mem.base != RT_REG_RSP && insn->mem.base != RT_REG_RBP) ||
	    !rt_dwarf_cfi(t->p->b->module->dwarf, insn->addr, &row) || row.cfa_reg != insn->mem.base)
		return false;
	*ret = insn->mem.disp - row.cfa_offset;
	return true;
}

static bool stores_pointer(const struct rt_insn *insn)
{
	return insn->is_mov && !insn->has_imm && insn->mem.size == 8 && insn->src_reg < RT_TRACK_REGS;
}

/* All that the function ever puts where load reads is of one type; zeros are no objects. */
static bool kept_in_frame(struct typing *t, const struct rt_insn *load, struct rt_typed *ret)
{
	struct rt_elfaddr start, end;
	struct rt_typed one;
	struct rt_insn insn;
	int64_t place, other;

	*ret = (struct rt_typed){ 0 };
	if (!frame_place(t, load, &place) || !rt_survey_range(&t->p->b->survey, load->addr, &start, &end) ||
	    end.v - start.v > FUNCTION_BYTES)
		return false;
	for (; start.v < end.v; start.v += insn.length) {
		if (!rt_plan_decode(t->p->b, start, &insn))
			return false;
		if (!insn.has_mem || insn.push || !(insn.is_lea || insn.mem.writes))
			continue;
		if (!frame_place(t, &insn, &other)) {
			/* somewhere in the frame, all the same */
			if (insn.mem.base == RT_REG_RSP)
				return false;
			continue;
		}
		/* its address is taken, or that of an array which it may be in: whoever has that may write to it */
		if (insn.is_lea ? other == place : other < place + 8 && other + insn.mem.size > place) {
			if (insn.is_mov && insn.has_imm && !insn.imm && other == place && insn.mem.size == 8)
				continue;
			if (insn.is_lea || other != place || !stores_pointer(&insn) ||
			    !type_of(t, insn.addr, insn.src_reg, &one) || (ret->type && !agree(ret, &one)))
				return false;
			*ret = one;
		}
	}
	return ret->type != NULL;
}

/* what lies at so much behind a pointer of this type */
static bool member_of(const struct typing *t, const struct rt_typed *base, int64_t disp, struct rt_typed *ret)
{
	if (base->pointers > 1) {
		*ret = (struct rt_typed){ base->type, base->pointers - 1 };
		return disp % 8 == 0;
	}
	return base->pointers == 1 && rt_pointee_member(t->p, base->type, disp, ret);
}

/* what the memory operand lies behind: a structure, or with an index, which may come first, one of several pointers */
static bool type_at(struct typing *t, const struct rt_insn *insn, struct rt_typed *ret)
{
	const struct rt_mem_operand *mem = &insn->mem;
	struct rt_typed base;

	if (mem->base < RT_TRACK_REGS && type_of(t, insn->addr, mem->base, &base) &&
	    (mem->index == RT_REG_NONE || mem->scale == 8 || base.pointers > 1))
		return member_of(t, &base, mem->disp, ret);
	return mem->index < RT_TRACK_REGS && mem->scale == 1 && type_of(t, insn->addr, mem->index, &base) &&
	       base.pointers > 1 && member_of(t, &base, mem->disp, ret);
}

/* what the register has after insn, which wrote it */
static bool type_written(struct typing *t, const struct rt_insn *insn, uint8_t reg, struct rt_typed *ret)
{
	const struct rt_plan_build *b = t->p->b;

	if (insn->call) {
		const struct rt_survey_function *f = insn->has_target && reg == RT_REG_RAX
							     ? rt_survey_at(&b->survey, rt_plan_callee(b, insn->target))
							     : NULL;

		if (!f || !f->returns.pointee)
			return false;
		*ret = (struct rt_typed){ f->returns.pointee, f->returns.pointers };
		return true;
	}
	if (insn->is_mov && !insn->has_mem && !insn->has_imm && insn->width == 8)
		return type_of(t, insn->addr, insn->src_reg, ret);
	/* a step to the next element */
	if ((insn->is_add || insn->is_sub) && !insn->has_mem && insn->has_imm && insn->imm % 8 == 0)
		return type_of(t, insn->addr, reg, ret) && ret->pointers > 1;
	if (!insn->has_mem || insn->mem.segment)
		return false;
	if (insn->is_mov && insn->mem.reads && insn->mem.size == 8) {
		if (variable_at(t, insn->addr, RT_REG_NONE, insn, ret)) {
			t->frame |= t->depth == 1;
			return true;
		}
		if (insn->mem.base == RT_REG_RSP)
			return kept_in_frame(t, insn, ret);
		return type_at(t, insn, ret) || (insn->mem.base == RT_REG_RBP && kept_in_frame(t, insn, ret));
	}
	if (insn->is_lea && insn->mem.base != RT_REG_RSP && type_at(t, insn, ret)) {
		ret->pointers++;
		return true;
	}
	return false;
}

/* it is made from itself, in a loop: it is of the type that it begins with */
static bool is_asked(const struct typing *t, struct rt_elfaddr at, uint8_t reg)
{
	for (unsigned i = 0; i < t->depth; i++) {
		if (t->asked[i].at.v == at.v && t->asked[i].reg == reg)
			return true;
	}
	return false;
}

static bool is_argument(uint8_t reg)
{
	for (unsigned n = 1; n <= 6; n++) {
		if (rt_reg_argument(n) == reg)
			return true;
	}
	return false;
}

static bool writes(const struct rt_insn *insn, uint8_t reg)
{
	return insn->writes & 1u << reg;
}

/*
 * The instruction that wrote reg as it is at `at`, on the only way that leads there from it; false: there is none. Who
 * is called leaves callee-saved registers as they are.
 */
static bool find_writer(struct rt_plan_build *b, struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr at,
			uint8_t reg, struct rt_insn *ret)
{
	struct rt_insn one;
	bool written = false;

	for (struct rt_elfaddr pc = start; pc.v < at.v; pc.v += one.length) {
		if (!rt_plan_decode(b, pc, &one))
			return false;
		if (one.ret || (one.jump && !one.conditional)) {
			written = false;
		} else if (writes(&one, reg)) {
			*ret = one;
			written = true;
		}
	}
	return written && !rt_counted_joined(b, start, end, ret->addr, at);
}

/* Whatever the way there: all that wrote it left what is of one type. */
static bool all_written(struct typing *t, struct rt_elfaddr start, struct rt_elfaddr at, uint8_t reg,
			struct rt_typed *ret)
{
	struct rt_elfaddr writers[RT_WRITERS_MAX];
	struct rt_typed one;
	struct rt_insn insn;
	unsigned count;
	bool entry;

	*ret = (struct rt_typed){ 0 };
	if (!rt_writers_find(&t->p->writers, t->p->b, at, reg, writers, &count, &entry))
		return false;
	/* what is called for has arguments, and nothing else that anybody reads */
	if (entry && is_argument(reg) && !variable_at(t, start, reg, NULL, ret))
		return false;
	for (unsigned i = 0; i < count; i++) {
		if (is_asked(t, writers[i], reg))
			continue;
		if (!rt_plan_decode(t->p->b, writers[i], &insn) || !type_written(t, &insn, reg, &one) ||
		    (ret->type && !agree(ret, &one)))
			return false;
		*ret = one;
	}
	return ret->type != NULL;
}

static bool type_of(struct typing *t, struct rt_elfaddr at, uint8_t reg, struct rt_typed *ret)
{
	struct rt_elfaddr start, end;
	struct rt_insn writer;
	bool known;

	if (variable_at(t, at, reg, NULL, ret))
		return true;
	if (t->depth == DEPTH_MAX || t->looks == LOOKS_MAX || reg >= RT_TRACK_REGS ||
	    !rt_survey_range(&t->p->b->survey, at, &start, &end) || end.v - start.v > FUNCTION_BYTES)
		return false;
	t->looks++;
	t->asked[t->depth++] = (struct asked){ at, reg };
	known = find_writer(t->p->b, start, end, at, reg, &writer) ? type_written(t, &writer, reg, ret)
								   : all_written(t, start, at, reg, ret);
	t->depth--;
	return known;
}

enum rt_pointee rt_pointee_read(struct rt_pointees *p, struct rt_elfaddr at, uint8_t reg, const char *structure)
{
	struct typing t = { .p = p };
	struct rt_typed type;

	if (!type_of(&t, at, reg, &type))
		return RT_POINTEE_UNKNOWN;
	if (type.pointers == 1 && rt_same_struct(type.type, structure))
		return RT_POINTEE_OBJECT;
	return t.frame ? RT_POINTEE_OTHER : RT_POINTEE_UNKNOWN;
}
