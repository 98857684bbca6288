/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * By which branches a function goes past a place that it mostly comes to: the put of what it took. A branch does where
 * one of its ways still leads to such a place and the other one does not. What is not known, a switch, code that lies
 * elsewhere or a call by a pointer, may lead there: nothing is said of that.
 */
#include <stdlib.h>

#include "insn/noreturn.h"
#include "symbol/parts.h"

enum { INSNS_MAX = 8000, COPIES_MAX = 32, NOWHERE = UINT32_MAX };

/* An instruction, and where it goes on: indexes, NOWHERE where it does not. */
struct step {
	struct rt_elfaddr at, to; /* to: where a direct call or jump leads, 0: it is none */
	uint32_t next, target;
	uint8_t length;
	bool call, jump, conditional;
	bool place;   /* one of the places */
	bool unknown; /* it may do, or lead to, what is done at one */
	bool leads;   /* some way from here comes to one */
	bool may;     /* ... or to what is unknown */
	bool reached; /* some way comes here from where the walk begins, past none */
	bool of_null; /* a branch that asks whether there is an object at all */
};

struct walk {
	const struct rt_image *image;
	const struct rt_symtab *symtab;
	struct rt_decoder *decoder;
	struct rt_elfaddr start, end;
	struct step *steps;
	uint32_t count;
};

static uint32_t step_at(const struct walk *w, uint64_t at)
{
	uint32_t low = 0, high = w->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (w->steps[mid].at.v < at)
			low = mid + 1;
		else
			high = mid;
	}
	return low < w->count && w->steps[low].at.v == at ? low : NOWHERE;
}

static bool decode(const struct walk *w, struct rt_elfaddr at, struct rt_insn *ret)
{
	return at.v < w->end.v && rt_decode(w->decoder, rt_image_at(w->image, at, w->end.v - at.v), at, ret);
}

static bool read_steps(struct walk *w)
{
	struct rt_insn insn;

	for (struct rt_elfaddr at = w->start; at.v < w->end.v; at.v += insn.length) {
		struct step *s = &w->steps[w->count];

		if (w->count == INSNS_MAX || !decode(w, at, &insn))
			return false;
		*s = (struct step){ .at = at, .length = insn.length, .call = insn.call, .target = NOWHERE };
		s->to.v = (insn.call || insn.jump) && insn.has_target ? insn.target.v : 0;
		s->jump = insn.jump;
		s->conditional = insn.jump && insn.conditional;
		s->next = insn.ret || (insn.jump && !insn.conditional) ||
					  (insn.call && rt_noreturn(w->image, w->symtab, w->decoder, &insn))
				  ? NOWHERE
				  : w->count + 1;
		s->unknown = insn.call && insn.indirect;
		w->count++;
	}
	for (uint32_t i = 0; i < w->count; i++) {
		struct step *s = &w->steps[i];

		if (s->next == w->count)
			s->next = NOWHERE;
		if (!s->jump)
			continue;
		/* into another instruction, out of the function or by a pointer: nobody knows */
		s->target = s->to.v ? step_at(w, s->to.v) : NOWHERE;
		s->unknown = s->target == NOWHERE;
	}
	return true;
}

/* The instruction that this address tells of: where it lies, or where it returns to. */
static uint32_t told_by(const struct walk *w, uint64_t address)
{
	for (uint32_t i = 0; i < w->count; i++) {
		const struct step *s = &w->steps[i];

		if (s->call ? address > s->at.v && address <= s->at.v + s->length
			    : address >= s->at.v && address < s->at.v + s->length)
			return i;
	}
	return NOWHERE;
}

/* The places, and what calls the same function. */
static bool mark_places(struct walk *w, const uint64_t *places, size_t nr)
{
	for (size_t k = 0; k < nr; k++) {
		uint32_t i = told_by(w, places[k]);

		if (i == NOWHERE)
			return false;
		w->steps[i].place = true;
		for (uint32_t j = 0; w->steps[i].call && w->steps[i].to.v && j < w->count; j++)
			w->steps[j].place |= w->steps[j].call && w->steps[j].to.v == w->steps[i].to.v;
	}
	return true;
}

static bool leads(const struct walk *w, uint32_t i)
{
	return i != NOWHERE && w->steps[i].leads;
}

static bool may_lead(const struct walk *w, uint32_t i)
{
	return i != NOWHERE && w->steps[i].may;
}

static void follow_back(struct walk *w)
{
	bool more = true;

	while (more) {
		more = false;
		for (uint32_t i = w->count; i-- > 0;) {
			struct step *s = &w->steps[i];
			const struct step was = *s;

			s->leads |= s->place || leads(w, s->next) || leads(w, s->target);
			s->may |= s->leads || s->unknown || may_lead(w, s->next) || may_lead(w, s->target);
			more |= s->leads != was.leads || s->may != was.may;
		}
	}
}

static void follow(struct walk *w, uint32_t from)
{
	bool more = true;

	w->steps[from].reached = true;
	while (more) {
		more = false;
		for (uint32_t i = 0; i < w->count; i++) {
			const uint32_t to[] = { w->steps[i].next, w->steps[i].target };

			for (unsigned k = 0; k < 2 && w->steps[i].reached && !w->steps[i].place; k++) {
				if (to[k] == NOWHERE || w->steps[to[k]].reached)
					continue;
				w->steps[to[k]].reached = more = true;
			}
		}
	}
}

/* Where the object is: registers, and variables on the stack. */
struct copies {
	uint32_t regs;
	struct {
		uint8_t base;
		int64_t disp;
	} slots[COPIES_MAX];
	unsigned slots_nr;
};

static bool is_variable(const struct rt_insn *insn)
{
	const uint8_t base = insn->mem.base;

	return insn->has_mem && insn->mem.index == RT_REG_NONE && !insn->mem.segment &&
	       (base == RT_REG_RSP || base == RT_REG_RBP);
}

static bool holds(const struct copies *c, const struct rt_insn *insn)
{
	for (unsigned i = 0; is_variable(insn) && i < c->slots_nr; i++) {
		if (c->slots[i].base == insn->mem.base && c->slots[i].disp == insn->mem.disp)
			return true;
	}
	return false;
}

static bool in_copy(const struct copies *c, uint8_t reg)
{
	return reg < 32 && (c->regs >> reg & 1u);
}

static void copy(struct copies *c, const struct rt_insn *insn)
{
	if (!insn->is_mov || insn->has_imm)
		return;
	if (!insn->has_mem && in_copy(c, insn->src_reg) && insn->dst_reg < 32)
		c->regs |= 1u << insn->dst_reg;
	else if (insn->has_mem && insn->mem.writes && in_copy(c, insn->src_reg) && is_variable(insn) &&
		 c->slots_nr < COPIES_MAX) {
		c->slots[c->slots_nr].base = insn->mem.base;
		c->slots[c->slots_nr++].disp = insn->mem.disp;
	} else if (insn->has_mem && insn->mem.reads && !insn->mem.writes && insn->dst_reg < 32 && holds(c, insn)) {
		c->regs |= 1u << insn->dst_reg;
	}
}

/* Registers that have what the call is given as its first argument, which is the object as well. */
static uint32_t given(const struct walk *w, uint32_t call)
{
	uint32_t regs = 0;
	struct rt_insn insn;

	for (uint32_t i = call; i-- > 0 && decode(w, w->steps[i].at, &insn) && !insn.jump && !insn.call;) {
		if (!insn.is_mov || insn.has_mem || insn.has_imm || insn.dst_reg >= 32 || insn.src_reg >= 32)
			continue;
		if (insn.dst_reg == RT_REG_RDI)
			regs |= 1u << insn.src_reg;
		else if (insn.src_reg == RT_REG_RDI)
			regs |= 1u << insn.dst_reg;
	}
	return regs & ~RT_CHAIN_CLOBBERED;
}

/*
 * Who has no object has none to put. What the call returned goes to other registers and variables before anything else
 * happens; whoever asks for those asks whether there is one. A register may hold another thing later: then a branch is
 * left out that should not be.
 */
static void mark_null(struct walk *w, uint32_t call)
{
	struct copies c = { .regs = given(w, call) | 1u << RT_REG_RAX };
	struct rt_insn insn, last = { .length = 0 };

	for (uint32_t i = call + 1; i < w->count && decode(w, w->steps[i].at, &insn) && !insn.jump && !insn.call; i++)
		copy(&c, &insn);
	/* what is called later returns something else */
	for (uint32_t i = call + 1; i < w->count && decode(w, w->steps[i].at, &insn); i++) {
		if (insn.call)
			c.regs &= ~RT_CHAIN_CLOBBERED;
		if (w->steps[i].conditional && last.is_test_or_cmp)
			w->steps[i].of_null =
				(last.has_mem ? last.has_imm && !last.imm && holds(&c, &last)
					      : in_copy(&c, last.dst_reg) &&
							(last.has_imm ? !last.imm : last.src_reg == last.dst_reg));
		if (insn.is_mov && insn.has_mem && insn.mem.reads && !insn.mem.writes && insn.dst_reg < 32) {
			c.regs &= ~(1u << insn.dst_reg);
			copy(&c, &insn);
		}
		last = insn;
	}
}

static size_t find(const struct walk *w, struct rt_elfaddr (*ret)[2], size_t max)
{
	size_t n = 0;

	for (uint32_t i = 0; i < w->count && n < max; i++) {
		const struct step *s = &w->steps[i];
		uint32_t past;

		if (!s->conditional || !s->reached || s->of_null || s->next == NOWHERE || s->target == NOWHERE)
			continue;
		past = may_lead(w, s->next) ? s->target : s->next;
		if (may_lead(w, past) || !leads(w, past == s->next ? s->target : s->next))
			continue;
		ret[n][0] = s->at;
		ret[n++][1] = w->steps[past].at;
	}
	return n;
}

size_t rt_chain_skips(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		      struct rt_elfaddr start, struct rt_elfaddr end, uint64_t from, const uint64_t *places, size_t nr,
		      struct rt_elfaddr (*ret)[2], size_t max)
{
	struct walk w = { .image = image, .symtab = symtab, .decoder = decoder, .start = start, .end = end };
	uint32_t call;
	size_t n = 0;

	w.steps = calloc(INSNS_MAX, sizeof(*w.steps));
	if (w.steps && read_steps(&w) && mark_places(&w, places, nr)) {
		call = told_by(&w, from);
		if (call != NOWHERE && w.steps[call].next != NOWHERE) {
			follow_back(&w);
			follow(&w, w.steps[call].next);
			mark_null(&w, call);
			n = find(&w, ret, max);
		}
	}
	free(w.steps);
	return n;
}
