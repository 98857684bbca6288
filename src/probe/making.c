/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/making.h"

#include <string.h>
#include <strings.h>

#include "probe/track.h"

enum { MAKING_INSNS = 2000, MAKING_DEPTH = 1, FIRST_COUNT_MAX = 16, EPILOGUE_INSNS = 12, BRANCHES = 4 };

static bool ends_with(const char *name, const char *tail)
{
	size_t n = strlen(name), m = strlen(tail);

	return n >= m && strcasecmp(name + n - m, tail) == 0;
}

bool rt_making_allocates(const char *name)
{
	return strcasestr(name, "alloc") || strcasestr(name, "memdup") || strncmp(name, "_Znw", 4) == 0;
}

static bool is_deallocator(const char *name)
{
	return ends_with(name, "free") || ends_with(name, "free1") || strncmp(name, "_ZdlPv", 6) == 0;
}

/* Given the address of a pointer, they free what that points to, and clear it. */
static bool is_slot_deallocator(const char *name)
{
	return ends_with(name, "freep") || ends_with(name, "zfree");
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

/* In the register of the first argument is what is followed. */
static bool gives_object(const struct rt_track *track)
{
	const struct rt_value *v = &track->regs[RT_REG_RDI];

	return v->kind == RT_VALUE_OBJECT && !v->n;
}

/* Does the instruction write a small constant over the counter, maybe together with its neighbours? */
static bool writes_first_count(const struct rt_making *m, uint64_t least, const struct rt_track *track,
			       const struct rt_insn *insn)
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
	value = value >> 8 * inside & mask;
	return value >= least && value <= FIRST_COUNT_MAX;
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

/* They return their first argument. */
static bool fills_memory(const char *name)
{
	return !strcmp(name, "memset") || !strcmp(name, "memcpy") || !strcmp(name, "memmove");
}

struct look {
	bool allocated; /* an object is followed */
	bool given;     /* by the caller: a 0 is then no count, but memory that is cleared */
	bool starts, ends;
	bool returns;         /* a place in it */
	unsigned top;         /* the depth of the function whose return counts */
	uint32_t globals;     /* registers that hold the address of a variable of the module, or what such leads to */
	struct rt_track slot; /* where the caller wants the object, as an object of its own */
	bool stored;          /* it is there */
};

/* Is the memory operand what the caller's slot is? */
static bool in_slot(const struct look *look, const struct rt_insn *insn)
{
	const struct rt_mem_operand *mem = &insn->mem;
	const struct rt_value *base = mem->base < RT_TRACK_REGS ? &look->slot.regs[mem->base] : NULL;

	return insn->is_mov && insn->has_mem && base && base->kind == RT_VALUE_OBJECT && base->n + mem->disp == 0 &&
	       mem->index == RT_REG_NONE && !mem->segment && mem->size == 8;
}

/* The object goes into the slot; or it is read there, after that. Steps both. */
static void step(struct look *look, struct rt_track *track, const struct rt_insn *insn)
{
	bool slot = in_slot(look, insn);
	const struct rt_value *source = insn->src_reg < RT_TRACK_REGS ? &track->regs[insn->src_reg] : NULL;
	bool fills =
		slot && insn->mem.writes && !insn->has_imm && source && source->kind == RT_VALUE_OBJECT && !source->n;

	rt_track_step(track, insn);
	rt_track_step(&look->slot, insn);
	look->slot.change_count = 0;
	look->stored |= fills;
	if (slot && look->stored && insn->mem.reads && insn->dst_reg < RT_TRACK_REGS)
		track->regs[insn->dst_reg] = (struct rt_value){ .kind = RT_VALUE_OBJECT };
}

/* What a pointer that is a variable of the module leads to: a program's own choice of malloc() and free(). */
static bool is_chosen(const struct look *look, const struct rt_insn *insn)
{
	if (!(insn->call || insn->jump) || insn->has_target)
		return false;
	if (insn->has_mem)
		return insn->mem.base == RT_REG_RIP ||
		       (insn->mem.base < RT_TRACK_REGS && (look->globals & 1u << insn->mem.base));
	return insn->dst_reg < RT_TRACK_REGS && (look->globals & 1u << insn->dst_reg);
}

static void step_globals(struct look *look, const struct rt_insn *insn)
{
	bool loads = (insn->is_lea || (insn->is_mov && insn->mem.reads && insn->mem.size == 8)) && insn->has_mem &&
		     insn->dst_reg < RT_TRACK_REGS &&
		     (insn->mem.base == RT_REG_RIP ||
		      (insn->mem.base < RT_TRACK_REGS && (look->globals & 1u << insn->mem.base)));

	look->globals &= ~insn->writes;
	if (loads)
		look->globals |= 1u << insn->dst_reg;
}

static void walk(const struct rt_making *m, const struct rt_symbol *function, uint8_t object, unsigned depth,
		 struct look *look);

/* Does callee return the argument that is the object, or a place in it? "return add_source(loop, source)" */
static bool returns_given(const struct rt_making *m, const struct rt_symbol *callee, const struct rt_track *track,
			  unsigned depth)
{
	for (unsigned n = 1; rt_reg_argument(n) != RT_REG_NONE; n++) {
		const struct rt_value *v = &track->regs[rt_reg_argument(n)];
		struct look look = { .top = depth };

		if (v->kind != RT_VALUE_OBJECT || v->n)
			continue;
		walk(m, callee, (uint8_t)rt_reg_argument(n), depth, &look);
		return look.returns;
	}
	return false;
}

/* A call, or a jump out of function. Returns what comes back, where that is an object. */
static struct rt_value see_call(const struct rt_making *m, struct look *look, const struct rt_symbol *function,
				const struct rt_track *track, const struct rt_insn *insn, unsigned depth)
{
	const struct rt_symbol *callee = callee_of(m, insn, function);
	bool chosen = is_chosen(look, insn), allocates = callee ? rt_making_allocates(callee->name) : chosen;

	look->ends |= gives_object(track) && (chosen || (callee && is_deallocator(callee->name)));
	look->ends |= look->stored && gives_object(&look->slot) && callee && is_slot_deallocator(callee->name);
	if (allocates) {
		look->allocated = true;
		return (struct rt_value){ .kind = RT_VALUE_OBJECT };
	}
	if (callee && fills_memory(callee->name))
		return track->regs[RT_REG_RDI];
	if (callee && !callee->plt && depth < MAKING_DEPTH && gives_object(track)) {
		struct rt_track slot = look->slot;

		walk(m, callee, RT_REG_RDI, depth + 1, look);
		look->slot = slot;
	}
	if (callee && !callee->plt && depth < MAKING_DEPTH && returns_given(m, callee, track, depth + 1))
		return (struct rt_value){ .kind = RT_VALUE_OBJECT };
	return (struct rt_value){ .kind = RT_VALUE_UNKNOWN };
}

/* A few instructions from at on, where track is what is known, the function ends, and returns an object. */
static bool leads_out(const struct rt_making *m, struct rt_elfaddr at, struct rt_track track)
{
	for (unsigned n = 0; n < EPILOGUE_INSNS; n++) {
		struct rt_insn insn;

		if (!rt_decode(m->decoder, rt_image_at(m->image, at, 16), at, &insn) || insn.call || insn.jump)
			return false;
		if (insn.ret)
			return track.regs[RT_REG_RAX].kind == RT_VALUE_OBJECT;
		if (!insn.pop)
			rt_track_step(&track, &insn);
		at.v += insn.length;
	}
	return false;
}

/* Is what function returns here an object, or a place in one? */
static bool returns_object(const struct rt_making *m, const struct rt_track *track, const struct rt_insn *insn,
			   const struct rt_value *result)
{
	if (insn->jump && result->kind == RT_VALUE_OBJECT)
		return true;
	if (insn->jump && !insn->conditional && insn->has_target)
		return leads_out(m, insn->target, *track);
	return insn->ret && track->regs[RT_REG_RAX].kind == RT_VALUE_OBJECT;
}

/* What was known where branches forward were taken; the latest. */
struct branches {
	struct {
		uint64_t target;
		struct rt_track track, slot;
	} taken[BRANCHES];
	unsigned count;
};

static void note_branch(struct branches *b, const struct rt_insn *insn, struct rt_elfaddr at,
			const struct rt_track *track, const struct look *look)
{
	if (!insn->jump || !insn->conditional || !insn->has_target || insn->target.v <= at.v)
		return;
	b->taken[b->count % BRANCHES].target = insn->target.v;
	b->taken[b->count % BRANCHES].track = *track;
	b->taken[b->count++ % BRANCHES].slot = look->slot;
}

/* Nothing comes to at from above: who comes there came by a branch, if any of them is known. */
static void take_branch(const struct branches *b, struct rt_elfaddr at, struct rt_track *track, struct look *look)
{
	for (unsigned i = 0; i < BRANCHES && i < b->count; i++) {
		if (b->taken[i].target != at.v)
			continue;
		*track = b->taken[i].track;
		look->slot = b->taken[i].slot;
	}
}

static void walk(const struct rt_making *m, const struct rt_symbol *function, uint8_t object, unsigned depth,
		 struct look *look)
{
	struct branches branches;
	struct rt_elfaddr at = function->addr, end = { at.v + function->size };
	struct rt_track track;

	branches.count = 0; /* the rest need not be cleared for each call that is looked into */
	rt_track_init(&track, object);
	if (depth) /* registers are others' there */
		rt_track_init(&look->slot, RT_REG_NONE);
	for (unsigned n = 0; n < MAKING_INSNS && at.v < end.v; n++) {
		struct rt_value result;
		struct rt_insn insn;

		if (!rt_decode(m->decoder, rt_image_at(m->image, at, 16), at, &insn))
			return;
		look->starts |= look->allocated && writes_first_count(m, look->given, &track, &insn);
		result = see_call(m, look, function, &track, &insn, depth);
		look->returns |= depth == look->top && returns_object(m, &track, &insn, &result);
		/* the end of a function in its middle: what follows comes from before it */
		if (!insn.pop)
			step(look, &track, &insn);
		step_globals(look, &insn);
		look->starts |= look->allocated && counts_first(m, &track);
		track.change_count = 0;
		if (insn.call && result.kind == RT_VALUE_OBJECT)
			track.regs[RT_REG_RAX] = result;
		/* where the function is given the object: one that makes it has more branches than are kept */
		if (look->top)
			note_branch(&branches, &insn, at, &track, look);
		at.v += insn.length;
		if (look->top && (insn.ret || (insn.jump && !insn.conditional)))
			take_branch(&branches, at, &track, look);
	}
}

bool rt_making_starts(const struct rt_making *m, const struct rt_symbol *function)
{
	struct look look = { .starts = false };

	walk(m, function, RT_REG_NONE, 0, &look);
	return look.starts;
}

bool rt_making_inits(const struct rt_making *m, const struct rt_symbol *function)
{
	struct look look = { .allocated = true, .given = true };

	walk(m, function, RT_REG_RDI, 0, &look);
	return look.starts && !look.ends;
}

bool rt_making_returns(const struct rt_making *m, const struct rt_symbol *function)
{
	struct look look = { .starts = false };

	walk(m, function, RT_REG_NONE, 0, &look);
	return look.returns;
}

static struct look leave(const struct rt_making *m, const struct rt_symbol *function, uint8_t slot)
{
	struct look look = { .starts = false };

	rt_track_init(&look.slot, slot);
	walk(m, function, RT_REG_NONE, 0, &look);
	return look;
}

bool rt_making_leaves(const struct rt_making *m, const struct rt_symbol *function, uint8_t slot)
{
	return leave(m, function, slot).stored;
}

bool rt_making_stores(const struct rt_making *m, const struct rt_symbol *function, uint8_t slot)
{
	struct look look = leave(m, function, slot);

	return look.starts && look.stored;
}

bool rt_making_ends(const struct rt_making *m, const struct rt_symbol *function)
{
	struct look look = { .starts = false };

	walk(m, function, RT_REG_RDI, 0, &look);
	return look.ends;
}

bool rt_making_ends_slot(const struct rt_making *m, const struct rt_symbol *function)
{
	struct look look = { .stored = true };

	rt_track_init(&look.slot, RT_REG_RDI);
	walk(m, function, RT_REG_NONE, 0, &look);
	return look.ends;
}
