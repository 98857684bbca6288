/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/making.h"

#include <string.h>

#include "probe/track.h"

enum { MAKING_INSNS = 2000, MAKING_DEPTH = 1, FIRST_COUNT_MAX = 16 };

static bool ends_with(const char *name, const char *tail)
{
	size_t n = strlen(name), m = strlen(tail);

	return n >= m && strcmp(name + n - m, tail) == 0;
}

bool rt_making_allocates(const char *name)
{
	return strstr(name, "alloc") || strncmp(name, "_Znw", 4) == 0;
}

static bool is_deallocator(const char *name)
{
	return ends_with(name, "free") || ends_with(name, "free1") || strncmp(name, "_ZdlPv", 6) == 0;
}

/* The function that a direct call or jump leads to; NULL: unknown, or a place inside from. */
static const struct rt_symbol *callee_of(const struct rt_making *m, const struct rt_insn *insn,
					 const struct rt_symbol *from)
{
	const struct rt_symbol *to, *own;

	if (!(insn->call || insn->jump) || !insn->has_target)
		return NULL;
	to = rt_symtab_at(m->symtab, insn->target);
	if (!to || to->addr.v != insn->target.v || to->addr.v == from->addr.v)
		return NULL;
	own = to->plt ? rt_symtab_find(m->symtab, to->name) : NULL;
	return own && own->addr.v ? own : to;
}

static bool gives_object(const struct rt_track *track)
{
	const struct rt_value *v = &track->regs[RT_REG_RDI];

	return v->kind == RT_VALUE_OBJECT && !v->n;
}

/* Does the instruction write a small constant over the counter, maybe together with its neighbours? */
static bool writes_first_count(const struct rt_making *m, const struct rt_track *track, const struct rt_insn *insn)
{
	const struct rt_mem_operand *mem = &insn->mem;
	const struct rt_value *base;
	uint64_t value, mask = m->counter_size < 8 ? (UINT64_C(1) << 8 * m->counter_size) - 1 : UINT64_MAX;
	int64_t at, inside;

	if (!insn->is_mov || !insn->has_mem || !mem->writes || mem->segment || mem->index != RT_REG_NONE ||
	    mem->base >= RT_TRACK_REGS)
		return false;
	base = &track->regs[mem->base];
	if (base->kind != RT_VALUE_OBJECT || __builtin_add_overflow(base->n, mem->disp, &at) ||
	    __builtin_sub_overflow((int64_t)m->counter, at, &inside) || inside < 0 || mem->size > 8 ||
	    inside + m->counter_size > mem->size)
		return false;
	if (insn->has_imm)
		value = (uint64_t)insn->imm;
	else if (insn->src_reg < RT_TRACK_REGS && track->regs[insn->src_reg].kind == RT_VALUE_CONST)
		value = (uint64_t)track->regs[insn->src_reg].n;
	else
		return false;
	return (value >> 8 * inside & mask) <= FIRST_COUNT_MAX;
}

/* Does it count the first reference up, in memory that was cleared? Atomic counters begin so, by a function for all. */
static bool counts_first(const struct rt_making *m, const struct rt_track *track)
{
	for (unsigned i = 0; i < track->change_count; i++) {
		const struct rt_change *c = &track->changes[i];

		if (c->known && c->delta == 1 && c->offset == m->counter && c->size == m->counter_size)
			return true;
	}
	return false;
}

struct look {
	bool allocated; /* an object is followed */
	bool starts, ends;
};

static void walk(const struct rt_making *m, const struct rt_symbol *function, uint8_t object, unsigned depth,
		 struct look *look)
{
	struct rt_elfaddr at = function->addr, end = { at.v + function->size };
	struct rt_track track;

	rt_track_init(&track, object);
	for (unsigned n = 0; n < MAKING_INSNS && at.v < end.v; n++) {
		const struct rt_symbol *callee;
		struct rt_insn insn;
		bool allocates = false;

		if (!rt_decode(m->decoder, rt_image_at(m->image, at, 16), at, &insn))
			return;
		look->starts |= look->allocated && writes_first_count(m, &track, &insn);
		callee = callee_of(m, &insn, function);
		if (callee) {
			allocates = insn.call && rt_making_allocates(callee->name);
			look->ends |= gives_object(&track) && is_deallocator(callee->name);
			if (!allocates && !callee->plt && depth < MAKING_DEPTH && gives_object(&track))
				walk(m, callee, RT_REG_RDI, depth + 1, look);
		}
		rt_track_step(&track, &insn);
		look->starts |= look->allocated && counts_first(m, &track);
		track.change_count = 0;
		if (allocates) {
			track.regs[RT_REG_RAX] = (struct rt_value){ .kind = RT_VALUE_OBJECT };
			look->allocated = true;
		}
		at.v += insn.length;
	}
}

bool rt_making_starts(const struct rt_making *m, const struct rt_symbol *function)
{
	struct look look = { .starts = false };

	walk(m, function, RT_REG_NONE, 0, &look);
	return look.starts;
}

bool rt_making_ends(const struct rt_making *m, const struct rt_symbol *function)
{
	struct look look = { .starts = false };

	walk(m, function, RT_REG_RDI, 0, &look);
	return look.ends;
}
