/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/reach.h"

#include <stdlib.h>

#include "insn/noreturn.h"
#include "probe/counted.h"
#include "probe/table.h"

enum { WAYS_MAX = 4096 /* that are still to be followed */ };

/* A register that is kept on the stack while something is called, in straight code. */
struct spill {
	struct rt_elfaddr stored; /* the instruction that put it there; 0: none did */
	int64_t place;            /* behind rsp */
	struct rt_elfaddr away;   /* behind the call, as long as it was not read back; 0: it is here */
};

struct walk {
	struct rt_plan_build *b;
	struct rt_elfaddr start, end;
	bool *seen; /* for each byte: an instruction that begins there was reached */
	struct rt_elfaddr ways[WAYS_MAX];
	unsigned count;
};

static bool add(struct walk *w, struct rt_elfaddr at)
{
	if (at.v < w->start.v || at.v >= w->end.v || w->seen[at.v - w->start.v])
		return true;
	if (w->count == WAYS_MAX)
		return false;
	w->seen[at.v - w->start.v] = true;
	w->ways[w->count++] = at;
	return true;
}

static bool is_at_stack(const struct rt_insn *insn, uint8_t reg, bool read)
{
	const struct rt_mem_operand *mem = &insn->mem;

	return insn->is_mov && insn->has_mem && mem->base == RT_REG_RSP && mem->index == RT_REG_NONE && !mem->segment &&
	       mem->size == 8 &&
	       (read ? mem->reads && !mem->writes && insn->dst_reg == reg
		     : mem->writes && !insn->has_imm && insn->src_reg == reg);
}

/* The register is stored, something is called, it is read back: that wrote nothing to it. */
static bool comes_back(struct walk *w, const struct spill *s, uint8_t reg, const struct rt_insn *insn)
{
	return s->away.v && is_at_stack(insn, reg, true) && insn->mem.disp == s->place &&
	       !rt_counted_joined(w->b, w->start, w->end, s->stored, insn->addr);
}

/* what is behind insn, when a register was on the stack before it; `at`: where it has to be back */
static void follow_spill(struct spill *s, uint8_t reg, const struct rt_insn *insn, struct rt_elfaddr at)
{
	const bool near =
		insn->has_mem && insn->mem.writes && insn->mem.disp > s->place - 8 && insn->mem.disp < s->place + 8;

	if (is_at_stack(insn, reg, false))
		*s = (struct spill){ .stored = insn->addr, .place = insn->mem.disp };
	else if (insn->call && s->stored.v && !s->away.v && insn->writes & 1u << reg)
		s->away.v = insn->addr.v + insn->length;
	else if (insn->jump || insn->ret || insn->call || insn->addr.v == at.v || near ||
		 insn->writes & (1u << reg | 1u << RT_REG_RSP))
		*s = (struct spill){ 0 };
}

/* from insn on, a way on which the register has been written; false: there is no room for it */
static bool writes(struct walk *w, struct spill *s, uint8_t reg, const struct rt_insn *insn, bool plain,
		   struct rt_elfaddr at)
{
	const struct rt_elfaddr away = s->away, behind = { insn->addr.v + insn->length };

	if (comes_back(w, s, reg, insn)) {
		*s = (struct spill){ 0 };
		return true;
	}
	follow_spill(s, reg, insn, at);
	/* it never came back */
	if (away.v && !s->away.v && !add(w, away))
		return false;
	return !plain || !(insn->writes & 1u << reg) || s->away.v || add(w, behind);
}

/* All ways begin at the entry, or behind what writes one of the registers. */
static bool begin(struct walk *w, struct rt_elfaddr by, struct rt_elfaddr at, uint32_t regs)
{
	struct spill spills[RT_TRACK_REGS] = { 0 };
	struct rt_insn insn;

	if (!add(w, w->start))
		return false;
	for (struct rt_elfaddr now = w->start; now.v < w->end.v; now.v += insn.length) {
		if (!rt_plan_decode(w->b, now, &insn))
			return false;
		for (unsigned r = 0; r < RT_TRACK_REGS; r++) {
			if (regs & 1u << r && !writes(w, &spills[r], (uint8_t)r, &insn, now.v != by.v && !insn.ret, at))
				return false;
		}
	}
	return true;
}

/* no branch leads into (since, to]: what is in registers there was put into them since then */
static bool is_straight(struct rt_plan_build *b, struct rt_elfaddr start, struct rt_elfaddr end,
			struct rt_elfaddr since, struct rt_elfaddr to)
{
	struct rt_insn insn;

	for (; start.v < end.v; start.v += insn.length) {
		if (!rt_plan_decode(b, start, &insn) ||
		    (insn.jump && insn.has_target && insn.target.v > since.v && insn.target.v <= to.v))
			return false;
	}
	return true;
}

static bool find_table(struct rt_plan_build *b, struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr jump,
		       struct rt_table *ret)
{
	struct rt_tables tables = { 0 };
	struct rt_insn insn;
	bool known = false;

	for (struct rt_elfaddr at = start; at.v <= jump.v; at.v += insn.length) {
		if (!rt_plan_decode(b, at, &insn))
			return false;
		known = rt_tables_pass(&tables, rt_image_at(b->module->image, at, insn.length), &insn, ret);
	}
	return known && is_straight(b, start, end, ret->since, jump);
}

bool rt_reach_table(struct rt_plan_build *b, struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr jump,
		    struct rt_table *ret)
{
	struct rt_table table = { 0 };
	bool first;
	uint64_t *place = rt_map_put(&b->jumped, rt_key_make(jump.v, 0), &first);

	if (!place)
		return false;
	if (first && find_table(b, start, end, jump, &table) && rt_vec_push(&b->tables, table))
		*place = b->tables.len;
	if (!*place)
		return false;
	*ret = b->tables.data[*place - 1];
	return true;
}

struct leading {
	struct walk *w;
	bool room;
};

/* the function may have a cold part elsewhere */
static bool lead(struct rt_elfaddr target, void *arg)
{
	struct leading *l = arg;

	if (!rt_image_is_code(l->w->b->module->image, target))
		return false;
	l->room &= add(l->w, target);
	return true;
}

/* the jump leads where its table says; false: not known */
static bool follow_table(struct walk *w, struct rt_elfaddr jump)
{
	struct leading l = { .w = w, .room = true };
	struct rt_table table;

	return rt_reach_table(w->b, w->start, w->end, jump, &table) &&
	       rt_table_read(w->b->module->image, &table, lead, &l) == table.entries && l.room;
}

static bool never_returns(const struct walk *w, const struct rt_insn *insn)
{
	const struct rt_plan_module *m = w->b->module;

	return rt_noreturn(m->image, m->symtab, w->b->decoder, insn);
}

enum found { ONLY_BY, PAST, UNKNOWN };

static enum found follow(struct walk *w, struct rt_elfaddr by, struct rt_elfaddr at)
{
	bool known = true;
	struct rt_insn insn;

	while (w->count) {
		struct rt_elfaddr now = w->ways[--w->count];

		if (now.v == by.v)
			continue;
		if (now.v == at.v)
			return PAST;
		if (!rt_plan_decode(w->b, now, &insn)) {
			known = false;
			continue;
		}
		if (insn.ret || (insn.call && never_returns(w, &insn)))
			continue;
		if (insn.jump)
			known &= insn.has_target ? add(w, insn.target) : follow_table(w, now);
		if (!(insn.jump && !insn.conditional))
			known &= add(w, (struct rt_elfaddr){ now.v + insn.length });
	}
	return known ? ONLY_BY : UNKNOWN;
}

bool rt_reach_only_by(struct rt_plan_build *b, struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr by,
		      struct rt_elfaddr at, uint32_t regs)
{
	struct walk w = { .b = b, .start = start, .end = end };
	bool only;

	w.seen = end.v > start.v ? calloc(end.v - start.v, sizeof(*w.seen)) : NULL;
	only = w.seen && begin(&w, by, at, regs) && follow(&w, by, at) == ONLY_BY;
	free(w.seen);
	return only;
}

bool rt_reach_past(struct rt_plan_build *b, struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr by,
		   struct rt_elfaddr at)
{
	struct walk w = { .b = b, .start = start, .end = end };
	bool past;

	w.seen = end.v > start.v ? calloc(end.v - start.v, sizeof(*w.seen)) : NULL;
	past = w.seen && add(&w, start) && follow(&w, by, at) == PAST;
	free(w.seen);
	return past;
}
