/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdlib.h>

#include "base/cleanup.h"
#include "symbol/parts.h"
#include "symbol/values.h"

bool rt_values_decode(const struct rt_values_code *c, struct rt_elfaddr at, struct rt_insn *ret)
{
	return rt_decode(c->decoder, rt_image_at(c->image, at, 16), at, ret) && ret->length;
}

void rt_values_forget(struct rt_values *v)
{
	v->next = v->next ?: 1; /* 0 is no value */
	for (unsigned i = 0; i < RT_VALUES_REGS; i++)
		v->reg[i] = v->next++;
	v->slots = v->places = 0;
}

/* a variable moves a whole register, or is moved into one, or pushed */
static bool is_variable(const struct rt_insn *insn)
{
	return (insn->is_mov || insn->push) && insn->has_mem && !insn->has_imm && insn->width == RT_VALUES_ADDRESS &&
	       (insn->mem.base == RT_REG_RSP || insn->mem.base == RT_REG_RBP) && insn->mem.index == RT_REG_NONE &&
	       !insn->mem.segment;
}

static struct rt_values_slot *find_slot(struct rt_values *v, const struct rt_mem_operand *mem)
{
	for (unsigned i = 0; i < v->slots; i++)
		if (v->slot[i].base == mem->base && v->slot[i].disp == mem->disp)
			return &v->slot[i];
	return NULL;
}

static void set_slot(struct rt_values *v, const struct rt_mem_operand *mem, uint32_t value)
{
	struct rt_values_slot *slot = find_slot(v, mem);

	if (!slot && v->slots < RT_VALUES_SLOTS)
		slot = &v->slot[v->slots++];
	if (slot)
		*slot = (struct rt_values_slot){ mem->disp, mem->base, value };
}

/* variables that are found by a register which has changed are found no more */
static void forget_slots(struct rt_values *v, uint32_t changed)
{
	for (unsigned i = 0; i < v->slots;) {
		if (changed >> v->slot[i].base & 1u)
			v->slot[i] = v->slot[--v->slots];
		else
			i++;
	}
}

/* what is stored anywhere else may be a part of a variable */
static void store(struct rt_values *v, const struct rt_insn *insn)
{
	for (unsigned i = 0; i < v->slots;) {
		const struct rt_values_slot *s = &v->slot[i];

		if (s->base == insn->mem.base && s->disp < insn->mem.disp + insn->mem.size &&
		    insn->mem.disp < s->disp + RT_VALUES_ADDRESS)
			v->slot[i] = v->slot[--v->slots];
		else
			i++;
	}
}

/* variables that a call may change */
static void forget_shown(struct rt_values *v, const struct rt_values_code *c)
{
	for (unsigned i = 0; i < v->slots;) {
		if (v->slot[i].disp >= c->shown[v->slot[i].base])
			v->slot[i] = v->slot[--v->slots];
		else
			i++;
	}
}

uint32_t rt_values_top(const struct rt_values *v)
{
	for (unsigned i = 0; i < v->slots; i++)
		if (v->slot[i].base == RT_REG_RSP && !v->slot[i].disp)
			return v->slot[i].value;
	return 0;
}

uint64_t rt_values_address(const struct rt_values *v, uint32_t value)
{
	for (unsigned i = 0; i < v->places && i < RT_VALUES_PLACES; i++)
		if (v->place[i].value == value)
			return v->place[i].address;
	return 0;
}

/* the register was set to an address in the module, or to what its memory holds: in the table of other modules' */
static void set_place(struct rt_values *v, const struct rt_insn *insn)
{
	const bool near = insn->has_mem && insn->mem.base == RT_REG_RIP && insn->dst_reg < RT_VALUES_REGS;
	uint64_t address = 0;

	if (near && insn->is_lea)
		address = (uint64_t)insn->mem.disp;
	else if (near && insn->is_mov && insn->mem.reads)
		address = RT_VALUES_ELSEWHERE;
	else if (insn->is_mov && insn->has_imm && !insn->has_mem && insn->dst_reg < RT_VALUES_REGS)
		address = (uint64_t)insn->imm;
	if (address)
		v->place[v->places++ % RT_VALUES_PLACES] = (struct rt_values_place){ address, v->reg[insn->dst_reg] };
}

/* the value that is moved, or pushed, where it is known */
static uint32_t moved(struct rt_values *v, const struct rt_insn *insn)
{
	const struct rt_values_slot *slot = is_variable(insn) ? find_slot(v, &insn->mem) : NULL;
	const uint8_t from = insn->push ? insn->dst_reg : insn->src_reg;

	if (insn->has_mem && (insn->push || insn->dst_reg < RT_VALUES_REGS))
		return slot ? slot->value : v->next++;
	if ((insn->is_mov && !insn->has_imm && insn->width == RT_VALUES_ADDRESS) || insn->push)
		return from < RT_VALUES_REGS ? v->reg[from] : v->next++;
	return v->next++;
}

void rt_values_call(struct rt_values *v, const struct rt_values_code *c, const struct rt_insn *call)
{
	const struct rt_symbol *s = c->leaves && call->has_target ? rt_symtab_at(c->leaves, call->target) : NULL;
	const uint32_t changed = s && !s->plt ? 1u << RT_REG_RAX : RT_CHAIN_CLOBBERED;

	for (unsigned i = 0; i < RT_VALUES_REGS; i++)
		if (changed >> i & 1u)
			v->reg[i] = v->next++;
}

void rt_values_step(struct rt_values *v, const struct rt_values_code *c, const struct rt_insn *insn)
{
	const uint32_t value = moved(v, insn);
	const bool variable = is_variable(insn) && insn->is_mov;
	const bool known = variable && find_slot(v, &insn->mem);

	if (insn->has_mem && insn->mem.writes)
		store(v, insn);
	if (variable && insn->mem.writes && insn->src_reg < RT_VALUES_REGS)
		set_slot(v, &insn->mem, value);
	if (insn->call) {
		forget_shown(v, c);
		rt_values_call(v, c, insn);
		return;
	}
	forget_slots(v, insn->writes);
	for (unsigned i = 0; i < RT_VALUES_REGS; i++)
		if (insn->writes >> i & 1u)
			v->reg[i] = insn->is_mov && i == insn->dst_reg ? value : v->next++;
	if (variable && !known && insn->dst_reg < RT_VALUES_REGS && insn->dst_reg != insn->mem.base)
		set_slot(v, &insn->mem, value);
	if (insn->push)
		set_slot(v, &(struct rt_mem_operand){ .base = RT_REG_RSP, .index = RT_REG_NONE }, value);
	set_place(v, insn);
}

static int by_address(const void *x, const void *y)
{
	const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return (a > b) - (a < b);
}

/* where jumps lead to, sorted, and c->shown; false: not known of all */
static bool survey(struct rt_values_code *c, uint64_t *targets, size_t *ret_n)
{
	struct rt_elfaddr at = c->start;
	struct rt_insn insn;

	*ret_n = 0;
	c->shown[RT_REG_RSP] = c->shown[RT_REG_RBP] = INT64_MAX;
	for (unsigned n = 0; at.v < c->end.v; n++, at.v += insn.length) {
		if (n == RT_VALUES_INSNS || !rt_values_decode(c, at, &insn))
			return false;
		if (insn.jump && insn.has_target)
			targets[(*ret_n)++] = insn.target.v;
		if (insn.is_lea && (insn.mem.base == RT_REG_RSP || insn.mem.base == RT_REG_RBP) &&
		    insn.mem.disp < c->shown[insn.mem.base])
			c->shown[insn.mem.base] = insn.mem.disp;
	}
	qsort(targets, *ret_n, sizeof(*targets), by_address);
	return true;
}

bool rt_values_before(struct rt_values_code *c, struct rt_elfaddr after, struct rt_values *v, struct rt_insn *ret_call,
		      void (*seen)(const struct rt_values *v, const struct rt_insn *insn, void *arg), void *arg)
{
	_cleanup_free_ uint64_t *targets = calloc(RT_VALUES_INSNS, sizeof(*targets));
	struct rt_elfaddr at = c->start;
	size_t n = 0, next = 0;
	struct rt_insn insn;

	rt_values_forget(v);
	if (!targets || !survey(c, targets, &n))
		return false;
	while (at.v < after.v && rt_values_decode(c, at, &insn)) {
		while (next < n && targets[next] < at.v)
			next++;
		if (next < n && targets[next] == at.v)
			rt_values_forget(v);
		if (seen)
			seen(v, &insn, arg);
		if (at.v + insn.length == after.v) {
			*ret_call = insn;
			return insn.call;
		}
		rt_values_step(v, c, &insn);
		/* whoever comes behind came another way */
		if (insn.ret || (insn.jump && !insn.conditional))
			rt_values_forget(v);
		at.v += insn.length;
	}
	return false;
}
