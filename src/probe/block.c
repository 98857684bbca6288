/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/block.h"

#include <string.h>

#include "dwarf/listing.h"

enum {
	LOOKS_MAX = 65536,
	STEPS_MAX = 4, /* from one pointer to the next */
	SCOPES_MAX = 16
};

/* Of a struct, by its name; 0: out of memory. */
static size_t number_of(struct rt_blocks *blocks, const char *name)
{
	bool made;
	uint64_t *number = rt_map_put(&blocks->numbers, rt_key_text(name), &made);

	if (!number || (made && !rt_vec_add(&blocks->structs)))
		return 0;
	if (made)
		*number = blocks->structs.len;
	return *number;
}

/* what lies at this place of the struct, or at this address, if of is 0, is a pointer to such a struct */
static bool note_pointer(struct rt_blocks *blocks, size_t of, uint64_t place, const char *pointee)
{
	size_t number = number_of(blocks, pointee);
	uint64_t *to = number ? rt_map_put(&blocks->pointers, rt_key_make(of, place), NULL) : NULL;

	if (to)
		*to = number;
	return to;
}

static bool note_member(struct rt_blocks *blocks, size_t of, const struct rt_block_member *m)
{
	if (!blocks->structs.data[of - 1].first)
		blocks->structs.data[of - 1].first = blocks->members.len + 1;
	return rt_vec_push(&blocks->members, *m) &&
	       (!m->type || rt_map_put(m->table ? &blocks->tables : &blocks->offsets, rt_key_make(m->offset, 0), NULL));
}

static bool see_member(const struct rt_pointer_member *m, void *arg)
{
	struct rt_blocks *blocks = arg;
	const uint64_t *type = m->pointee ? rt_map_get(blocks->type_of, rt_key_text(m->pointee)) : NULL;
	const struct rt_block_member one = { m->structure, m->offset, type ? (uint32_t)*type : 0, m->pointers == 2 };
	size_t of = number_of(blocks, m->structure);

	if (of && m->offset > blocks->structs.data[of - 1].reach)
		blocks->structs.data[of - 1].reach = m->offset;
	if (!of || (m->pointee && m->pointers == 1 && !note_pointer(blocks, of, m->offset, m->pointee)) ||
	    ((type || !m->pointee) && !note_member(blocks, of, &one)))
		blocks->nomem = true;
	return !blocks->nomem;
}

static bool see_global(struct rt_elfaddr addr, const char *pointee, void *arg)
{
	struct rt_blocks *blocks = arg;

	blocks->nomem |= !note_pointer(blocks, 0, addr.v, pointee);
	return !blocks->nomem;
}

struct rt_error *rt_blocks_read(struct rt_blocks *blocks)
{
	RT_TRY(rt_dwarf_pointer_members(blocks->b->module->dwarf, see_member, blocks));
	if (blocks->members.len)
		RT_TRY(rt_dwarf_pointer_globals(blocks->b->module->dwarf, see_global, blocks));
	return blocks->nomem ? rt_error_nomem() : NULL;
}

void rt_blocks_deinit(struct rt_blocks *blocks)
{
	rt_vec_deinit(&blocks->members);
	rt_vec_deinit(&blocks->structs);
	rt_vec_deinit(&blocks->steps);
	rt_map_deinit(&blocks->numbers);
	rt_map_deinit(&blocks->pointers);
	rt_map_deinit(&blocks->offsets);
	rt_map_deinit(&blocks->tables);
}

void rt_blocks_enter(struct rt_blocks *blocks)
{
	memset(blocks->origins, 0, sizeof(blocks->origins));
	blocks->results = 0;
	rt_vec_clear(&blocks->steps);
}

bool rt_blocks_look(struct rt_blocks *blocks)
{
	return ++blocks->looked <= LOOKS_MAX;
}

struct rt_error *rt_blocks_told(const struct rt_blocks *blocks)
{
	return rt_plan_limit(blocks->b, UINT32_MAX, "what variables hold in registers", blocks->looked, LOOKS_MAX);
}

struct variable {
	struct rt_blocks *blocks;
	struct rt_instance in;
	struct rt_elfaddr at;
	uint8_t reg;
	struct rt_block_origin origin; /* of what is in reg */
	size_t number;                 /* of the struct that the variable points to; 0: none yet */
};

static bool is_same(const struct variable *v, const struct rt_location *where)
{
	if (where->base != RT_LOCATION_REG || where->at_entry || where->deref_count)
		return false;
	if (where->is_value)
		return !where->offset &&
		       (where->reg == v->reg || (v->origin.from == RT_BLOCK_COPY && where->reg == v->origin.reg));
	return v->origin.from == RT_BLOCK_LOADED && where->reg == v->origin.reg && where->offset == v->origin.disp;
}

static void see_variable(const char *name, void *arg)
{
	struct variable *v = arg;
	const struct rt_block_struct *structs = v->blocks->structs.data;
	const char *type, *star;
	char structure[128];
	const uint64_t *number;
	struct rt_datum datum;

	if (rt_dwarf_datum(v->blocks->b->module->dwarf, &v->in, v->at, name, NULL, 0, &datum) != NULL ||
	    datum.kind != RT_DATUM_POINTER || !datum.type || !is_same(v, &datum.where))
		return;
	type = datum.type;
	if (!strncmp(type, "struct ", 7) || !strncmp(type, "class ", 6) || !strncmp(type, "union ", 6))
		type = strchr(type, ' ') + 1;
	star = strstr(type, " *");
	if (!star || star[2] || (size_t)(star - type) >= sizeof(structure))
		return;
	memcpy(structure, type, (size_t)(star - type));
	structure[star - type] = '\0';
	number = rt_map_get(&v->blocks->numbers, rt_key_text(structure));
	/* what a longer one begins with is the other: struct derived *d = (struct derived *)base */
	if (number && (!v->number || structs[*number - 1].reach > structs[v->number - 1].reach))
		v->number = *number;
}

/* number of the struct that reg, which has such an origin, points to at this instruction, by a variable; 0: unknown */
static size_t by_variable(struct rt_blocks *blocks, struct rt_elfaddr at, uint8_t reg,
			  const struct rt_block_origin *origin)
{
	struct variable v = { .blocks = blocks, .at = at, .reg = reg, .origin = *origin };
	struct rt_dwarf *dwarf = blocks->b->module->dwarf;
	struct rt_instance inner;
	bool more = rt_dwarf_instance_at(dwarf, at, &v.in);

	for (unsigned depth = 0; more && !v.number && depth < SCOPES_MAX; depth++) {
		rt_dwarf_names(dwarf, &v.in, at, true, see_variable, &v);
		inner = v.in;
		more = rt_dwarf_instance_outer(dwarf, &inner, &v.in);
	}
	return v.number;
}

/* the same by what was done to find the pointer, where no variable has it */
static size_t struct_at(struct rt_blocks *blocks, struct rt_elfaddr at, uint8_t reg, const struct rt_block_origin *o,
			unsigned steps)
{
	const struct rt_block_step *step = o->step && steps ? &blocks->steps.data[o->step - 1] : NULL;
	size_t number = by_variable(blocks, at, reg, o);
	const uint64_t *to;

	if (number || !step)
		return number;
	if (step->reg != RT_REG_RIP)
		number = struct_at(blocks, step->at, step->reg, &step->origin, steps - 1);
	if (!number && step->added != RT_REG_NONE)
		number = struct_at(blocks, step->at, step->added, &step->added_origin, steps - 1);
	if (step->entry || (!number && step->reg != RT_REG_RIP))
		return number;
	to = rt_map_get(&blocks->pointers, rt_key_make(number, (uint64_t)step->disp));
	return to ? *to : 0;
}

size_t rt_blocks_at(struct rt_blocks *blocks, const struct rt_insn *insn, uint8_t reg)
{
	size_t number = struct_at(blocks, insn->addr, reg, &blocks->origins[reg], STEPS_MAX);

	return number ? blocks->structs.data[number - 1].first : 0;
}

/* ... of what lies disp bytes behind reg, which has such an origin, at this instruction */
static struct rt_key place_behind(struct rt_blocks *blocks, struct rt_elfaddr at, uint8_t reg,
				  const struct rt_block_origin *o, int64_t disp)
{
	const struct rt_block_step *step = o->step ? &blocks->steps.data[o->step - 1] : NULL;
	size_t number;

	if (step && step->entry && step->reg == RT_REG_RIP)
		return rt_key_make(0, (uint64_t)step->disp + (uint64_t)disp);
	number = struct_at(blocks, at, reg, o, STEPS_MAX);
	return number ? rt_key_make(number, (uint64_t)disp) : (struct rt_key){ 0 };
}

struct rt_key rt_blocks_through(struct rt_blocks *blocks, const struct rt_insn *insn)
{
	const struct rt_mem_operand *mem = &insn->mem;
	const struct rt_block_step *step;

	if (insn->has_mem) {
		if (mem->segment || mem->index != RT_REG_NONE)
			return (struct rt_key){ 0 };
		if (mem->base == RT_REG_RIP)
			return rt_key_make(0, (uint64_t)mem->disp);
		return mem->base < RT_TRACK_REGS
			       ? place_behind(blocks, insn->addr, mem->base, &blocks->origins[mem->base], mem->disp)
			       : (struct rt_key){ 0 };
	}
	step = insn->dst_reg < RT_TRACK_REGS && blocks->origins[insn->dst_reg].step
		       ? &blocks->steps.data[blocks->origins[insn->dst_reg].step - 1]
		       : NULL;
	if (!step || step->entry || step->added != RT_REG_NONE)
		return (struct rt_key){ 0 };
	if (step->reg == RT_REG_RIP)
		return rt_key_make(0, (uint64_t)step->disp);
	return place_behind(blocks, step->at, step->reg, &step->origin, step->disp);
}

uint64_t rt_blocks_number(struct rt_blocks *blocks, const char *structure)
{
	return number_of(blocks, structure);
}

int64_t rt_blocks_disp(const struct rt_blocks *blocks, const struct rt_mem_operand *mem)
{
	const struct rt_block_origin *o = mem->index < RT_TRACK_REGS ? &blocks->origins[mem->index] : NULL;
	int64_t disp;

	if (!o || o->from != RT_BLOCK_BEHIND || __builtin_mul_overflow(o->disp, mem->scale, &disp) ||
	    __builtin_add_overflow(disp, mem->disp, &disp))
		return mem->disp;
	return disp;
}

bool rt_blocks_may_hold(const struct rt_blocks *blocks, uint8_t reg)
{
	const size_t number = reg < RT_TRACK_REGS ? blocks->origins[reg].step : 0;
	const struct rt_block_step *step = number ? &blocks->steps.data[number - 1] : NULL;

	return step && !step->entry && step->reg != RT_REG_RIP && step->disp >= 0 &&
	       rt_map_get(&blocks->offsets, rt_key_make((uint64_t)step->disp, 0));
}

bool rt_blocks_is_result(const struct rt_blocks *blocks, uint8_t reg)
{
	return reg < RT_TRACK_REGS && blocks->results >> reg & 1;
}

bool rt_blocks_is_of(const struct rt_blocks *blocks, size_t first, size_t i)
{
	const struct rt_block_member *m = blocks->members.data;

	return first && i <= blocks->members.len && m[i - 1].structure == m[first - 1].structure;
}

/*
 * Index + 1 of the type to pointers to which insn finds the address: it reads a member that has the address of a table,
 * or works out that of a member, which is one or the first of an array. 0: neither is known.
 */
static uint32_t table_at(struct rt_blocks *blocks, const struct rt_insn *insn)
{
	const struct rt_map *offsets = insn->is_lea ? &blocks->offsets : &blocks->tables;
	size_t first;

	if (insn->mem.disp < 0 || !rt_map_get(offsets, rt_key_make((uint64_t)insn->mem.disp, 0)) ||
	    !rt_blocks_look(blocks))
		return 0;
	first = rt_blocks_at(blocks, insn, insn->mem.base);
	for (size_t i = first; rt_blocks_is_of(blocks, first, i); i++) {
		const struct rt_block_member *m = &blocks->members.data[i - 1];

		if (m->table != insn->is_lea && m->offset == (uint64_t)insn->mem.disp)
			return m->type;
	}
	return 0;
}

/* by what insn does, from reg, or from `added`, if that is a register; 0: out of memory */
static size_t step_by(struct rt_blocks *blocks, const struct rt_insn *insn, uint8_t reg, uint8_t added)
{
	struct rt_block_step step = { .at = insn->addr, .reg = reg, .added = added };

	step.entry = !insn->has_mem || insn->is_lea;
	step.disp = step.entry && reg != RT_REG_RIP ? 0 : insn->mem.disp;
	if (reg != RT_REG_RIP)
		step.origin = blocks->origins[reg];
	if (added != RT_REG_NONE)
		step.added_origin = blocks->origins[added];
	if (rt_vec_push(&blocks->steps, step))
		return blocks->steps.len;
	blocks->nomem = true;
	return 0;
}

/* its operand is a number of bytes behind what a register points to */
static bool has_place(const struct rt_insn *insn)
{
	return !insn->mem.segment && insn->mem.index == RT_REG_NONE && insn->mem.base < RT_TRACK_REGS;
}

/* what an instruction that reads or works out an address makes of the register that it writes */
static struct rt_block_origin found(struct rt_blocks *blocks, const struct rt_insn *insn)
{
	const struct rt_mem_operand *mem = &insn->mem;
	struct rt_block_origin o = { RT_BLOCK_UNKNOWN, RT_REG_NONE, 0, 0 };
	uint32_t table;

	if (mem->segment || (mem->base >= RT_TRACK_REGS && mem->base != RT_REG_RIP))
		return o;
	/* part of a struct is no entry of an array; a variable is what it is */
	if (!insn->is_lea || mem->base == RT_REG_RIP || (mem->index < RT_TRACK_REGS && !mem->disp))
		o.step = step_by(blocks, insn, mem->base,
				 mem->index < RT_TRACK_REGS && mem->scale == 1 ? mem->index : RT_REG_NONE);
	if (insn->is_add || !has_place(insn))
		return o;
	table = table_at(blocks, insn);
	if (table)
		return (struct rt_block_origin){ RT_BLOCK_TABLE, RT_TRACK_REGS, table, 0 };
	o.from = insn->is_lea ? RT_BLOCK_BEHIND : RT_BLOCK_LOADED;
	o.reg = insn->is_lea ? RT_REG_NONE : mem->base;
	o.disp = mem->disp;
	return o;
}

static struct rt_block_origin origin_of(struct rt_blocks *blocks, const struct rt_insn *insn)
{
	const bool whole = insn->width == 8 && !insn->has_imm && insn->dst_reg < RT_TRACK_REGS;
	const bool by_regs = !insn->has_mem && insn->src_reg < RT_TRACK_REGS;
	const bool reads = insn->has_mem && insn->mem.reads && !insn->mem.writes;

	if (insn->is_mov && whole && by_regs)
		return blocks->origins[insn->src_reg].from == RT_BLOCK_LOADED ||
				       blocks->origins[insn->src_reg].from == RT_BLOCK_TABLE
			       ? blocks->origins[insn->src_reg]
			       : (struct rt_block_origin){ RT_BLOCK_COPY, insn->src_reg, 0,
							   blocks->origins[insn->src_reg].step };
	if (insn->is_add && insn->width == 8 && insn->has_imm && !insn->has_mem && insn->dst_reg < RT_TRACK_REGS)
		return (struct rt_block_origin){ RT_BLOCK_BEHIND, RT_REG_NONE, insn->imm, 0 };
	if (insn->is_add && whole && by_regs)
		return (struct rt_block_origin){ RT_BLOCK_UNKNOWN, RT_REG_NONE, 0,
						 step_by(blocks, insn, insn->dst_reg, insn->src_reg) };
	if ((insn->is_lea && insn->dst_reg < RT_TRACK_REGS) || ((insn->is_mov || insn->is_add) && whole && reads))
		return found(blocks, insn);
	return (struct rt_block_origin){ RT_BLOCK_UNKNOWN, RT_REG_NONE, 0, 0 };
}

static uint32_t results_behind(const struct rt_blocks *blocks, const struct rt_insn *insn)
{
	const bool copies = insn->is_mov && insn->width == 8 && !insn->has_imm && !insn->has_mem &&
			    insn->dst_reg < RT_TRACK_REGS && rt_blocks_is_result(blocks, insn->src_reg);

	return (blocks->results & ~insn->writes) | (copies ? 1u << insn->dst_reg : 0) |
	       (insn->call ? 1u << RT_REG_RAX : 0);
}

void rt_blocks_follow(struct rt_blocks *blocks, const struct rt_insn *insn)
{
	struct rt_block_origin now = origin_of(blocks, insn);

	blocks->results = results_behind(blocks, insn);
	if (insn->ret || (insn->jump && !insn->conditional)) {
		memset(blocks->origins, 0, sizeof(blocks->origins));
		blocks->results = 0;
	}
	for (unsigned r = 0; r < RT_TRACK_REGS; r++) {
		struct rt_block_origin *o = &blocks->origins[r];

		if (insn->writes & 1u << r)
			*o = (struct rt_block_origin){ RT_BLOCK_UNKNOWN, RT_REG_NONE, 0, 0 };
		else if (o->reg < RT_TRACK_REGS && insn->writes & 1u << o->reg)
			o->from = RT_BLOCK_UNKNOWN;
	}
	if (!now.from && !now.step)
		return;
	/* what was copied over is another register's now */
	if (now.reg == insn->dst_reg)
		now.from = RT_BLOCK_UNKNOWN;
	blocks->origins[insn->dst_reg] = now;
}
