/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions that pass on what they are given as it is, without a look into what it points to: all that they know of it
 * is what their caller knows. By their code, in the order of its addresses: what stands there before the call. Or by
 * their declaration: what frees a void * may look how large the block is, and no more.
 */
#include <string.h>

#include "base/words.h"
#include "dwarf/variable.h"
#include "symbol/parts.h"

enum { INSNS_MAX = 400, REGS = 16, ADDRESS_BYTES = 8, SPILLS = 16, OTHER = REGS };

#define ARGUMENTS \
	(1u << RT_REG_RDI | 1u << RT_REG_RSI | 1u << RT_REG_RDX | 1u << RT_REG_RCX | 1u << RT_REG_R8 | 1u << RT_REG_R9)

struct spill {
	int64_t disp; /* from rbp */
	uint8_t from;
};

/* from: the register that had the value when the function was entered; OTHER: none had it */
struct blind {
	uint8_t from[REGS];
	struct spill spills[SPILLS];
	unsigned spilled;
	uint32_t looked; /* bits of such registers */
};

static bool is_spill(const struct rt_insn *insn)
{
	return insn->is_mov && insn->has_mem && insn->width == ADDRESS_BYTES && insn->mem.base == RT_REG_RBP &&
	       insn->mem.index == RT_REG_NONE && !insn->mem.segment;
}

static void spill(struct blind *b, int64_t disp, uint8_t from)
{
	unsigned i = 0;

	while (i < b->spilled && b->spills[i].disp != disp)
		i++;
	if (i == SPILLS)
		return;
	b->spilled += i == b->spilled;
	b->spills[i] = (struct spill){ disp, from };
}

static uint8_t spilled(const struct blind *b, int64_t disp)
{
	for (unsigned i = 0; i < b->spilled; i++)
		if (b->spills[i].disp == disp)
			return b->spills[i].from;
	return OTHER;
}

static void look(struct blind *b, uint8_t reg)
{
	if (reg < REGS && b->from[reg] < REGS)
		b->looked |= 1u << b->from[reg];
}

static void step(struct blind *b, const struct rt_insn *insn)
{
	uint32_t writes = insn->call ? RT_CHAIN_CLOBBERED : insn->writes;
	uint8_t moved = OTHER;

	if (insn->has_mem && (insn->mem.reads || insn->mem.writes)) {
		look(b, insn->mem.base);
		look(b, insn->mem.index);
	}
	/* who is called may look */
	for (unsigned r = 0; insn->call && r < REGS; r++) {
		if (ARGUMENTS >> r & 1u)
			look(b, (uint8_t)r);
	}
	if (is_spill(insn) && insn->mem.writes)
		spill(b, insn->mem.disp, insn->src_reg < REGS ? b->from[insn->src_reg] : OTHER);
	else if (is_spill(insn) && insn->mem.reads)
		moved = spilled(b, insn->mem.disp);
	else if (insn->is_mov && !insn->has_mem && !insn->has_imm && insn->width == ADDRESS_BYTES &&
		 insn->src_reg < REGS)
		moved = b->from[insn->src_reg];
	for (unsigned r = 0; r < REGS; r++) {
		if (writes >> r & 1u)
			b->from[r] = r == insn->dst_reg ? moved : OTHER;
	}
}

static bool passes_on(const struct blind *b)
{
	uint8_t from = b->from[RT_REG_RDI];

	return from < REGS && ARGUMENTS >> from & 1u && !(b->looked >> from & 1u);
}

bool rt_chain_is_blind(const struct rt_image *image, struct rt_decoder *decoder, struct rt_elfaddr start,
		       struct rt_elfaddr end, struct rt_elfaddr after)
{
	const struct rt_elfaddr first = start;
	struct blind b = { .spilled = 0 };
	struct rt_insn insn;

	for (unsigned r = 0; r < REGS; r++)
		b.from[r] = (uint8_t)r;
	for (unsigned n = 0; n < INSNS_MAX && start.v < end.v; n++, start.v += insn.length) {
		bool leaves;

		if (!rt_decode(decoder, rt_image_at(image, start, 16), start, &insn) || !insn.length)
			return false;
		leaves = after.v ? insn.call && start.v + insn.length == after.v
				 : insn.jump && !insn.conditional &&
					   (!insn.has_target || insn.target.v < first.v || insn.target.v >= end.v);
		if (leaves)
			return passes_on(&b);
		step(&b, &insn);
	}
	return false;
}

struct given {
	struct rt_dwarf *dwarf;
	const struct rt_instance *function;
	struct rt_elfaddr at;
	bool anything, something, structure; /* pointers to: void, other things, structures */
};

static void see_parameter(const char *name, void *arg)
{
	struct given *g = arg;
	const char *type = rt_dwarf_declared(g->dwarf, g->function, g->at, name);

	if (type && (!strcmp(type, "void *") || !strcmp(type, "const void *")))
		g->anything = true;
	else if (type && strchr(type, '*'))
		g->something = true;
	g->structure |= rt_dwarf_declared_structure(g->dwarf, g->function, g->at, name);
}

enum rt_chain_given rt_chain_given(struct rt_dwarf *dwarf, struct rt_elfaddr at)
{
	struct rt_instance function, inner;
	struct given g = { .dwarf = dwarf, .function = &function, .at = at };

	if (!rt_dwarf_instance_at(dwarf, at, &function))
		return RT_CHAIN_GIVEN_UNKNOWN;
	for (inner = function; rt_dwarf_instance_outer(dwarf, &inner, &function); inner = function)
		;
	function = inner;
	if (!function.function)
		return RT_CHAIN_GIVEN_UNKNOWN;
	rt_dwarf_names(dwarf, &function, at, false, see_parameter, &g);
	if (g.anything && !g.something && rt_words_free(function.function))
		return RT_CHAIN_GIVEN_ANYTHING;
	return g.structure && !g.anything ? RT_CHAIN_GIVEN_STRUCTURE : RT_CHAIN_GIVEN_UNKNOWN;
}
