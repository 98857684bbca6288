/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * With which function an object waits: do_later(queue, done, obj) is given a function and, behind it, what that will be
 * given. A reference that was taken for this is done()'s to put. Only a pair of arguments that stand next to each other
 * counts, and none that is followed by one more function: that one ends the object (g_idle_add_full()).
 *
 * Who gets an object by its making and goes on with it behind that call has lent it: events of a loop are given the
 * loop.
 */
#include "insn/noreturn.h"
#include "symbol/parts.h"
#include "symbol/values.h"

enum { BEFORE_MAX = 16, BRANCHES = 12, BEHIND_MAX = 512, ARGUMENT_NR = 6 };

/* What calls were given: a function, and a value with it. */
struct pair {
	uint64_t function;
	uint32_t value;
};

struct search {
	const struct rt_symtab *symtab;
	struct pair before[BEFORE_MAX]; /* by calls before the one that was asked about, the latest */
	unsigned earlier;
	uint32_t given, returned; /* values; 0: none yet */
	uint64_t found;
	bool by_given; /* it goes with what the call was given */
	bool several;  /* more than one function was found */
	bool lent;     /* what the call returned is used behind the one that was given it with a function */
};

static uint32_t argument(const struct rt_values *v, unsigned n)
{
	return n <= ARGUMENT_NR ? v->reg[rt_reg_argument(n)] : n == ARGUMENT_NR + 1 ? rt_values_top(v) : 0;
}

/* address of the function of this module that argument n is; RT_VALUES_ELSEWHERE: maybe one of another; 0: none */
static uint64_t function_of(const struct search *s, const struct rt_values *v, unsigned n)
{
	uint64_t address = n <= ARGUMENT_NR ? rt_values_address(v, argument(v, n)) : 0;
	const struct rt_symbol *symbol;

	if (!address || address == RT_VALUES_ELSEWHERE)
		return address;
	symbol = rt_symtab_at(s->symtab, (struct rt_elfaddr){ address });
	if (!symbol || symbol->addr.v != address || !symbol->function)
		return 0;
	return symbol->plt ? RT_VALUES_ELSEWHERE : address;
}

static struct pair pair_of(const struct search *s, const struct rt_values *v)
{
	for (unsigned n = 1; n <= ARGUMENT_NR; n++) {
		const uint64_t function = function_of(s, v, n), end = function_of(s, v, n + 2);

		/* the same one once more is what a register was left with */
		if (function && function != RT_VALUES_ELSEWHERE && !function_of(s, v, n + 1) &&
		    (!end || end == function))
			return (struct pair){ function, argument(v, n + 1) };
	}
	return (struct pair){ 0 };
}

/* whether it is what the call returned that goes with the function */
static bool match(struct search *s, const struct pair *pair)
{
	if (!pair->function || !pair->value || (pair->value != s->given && pair->value != s->returned))
		return false;
	s->several |= s->found && s->found != pair->function;
	s->found = pair->function;
	s->by_given |= pair->value == s->given;
	return pair->value == s->returned;
}

/* the instruction looks into the object that the call returned, or passes it on */
static bool uses(const struct search *s, const struct rt_values *v, const struct rt_insn *insn)
{
	const uint8_t base = insn->mem.base;

	if (insn->has_mem && (insn->mem.reads || insn->mem.writes) && base < RT_VALUES_REGS &&
	    v->reg[base] == s->returned)
		return true;
	for (unsigned n = 1; insn->call && n <= ARGUMENT_NR; n++)
		if (argument(v, n) == s->returned)
			return true;
	return false;
}

static void seen(const struct rt_values *v, const struct rt_insn *insn, void *arg)
{
	struct search *s = arg;

	if (insn->call)
		s->before[s->earlier++ % BEFORE_MAX] = pair_of(s, v);
}

/* a place where the way goes on, and what is known there */
struct branch {
	struct rt_elfaddr at;
	struct rt_values values;
	bool passed; /* what the call returned went with the function, before */
};

struct branches {
	struct branch list[BRANCHES];
	unsigned nr;
	struct rt_elfaddr known[BRANCHES]; /* each is gone once */
	unsigned knowns;
};

static void add_branch(struct branches *b, struct rt_elfaddr at, const struct branch *from)
{
	for (unsigned i = 0; i < b->knowns; i++)
		if (b->known[i].v == at.v)
			return;
	if (b->knowns == BRANCHES)
		return;
	b->known[b->knowns++] = at;
	b->list[b->nr] = *from;
	b->list[b->nr++].at = at;
}

/* Follows one way to its end; further ways are put down. */
static void follow(struct search *s, const struct rt_values_code *c, struct branches *ways, struct branch *way)
{
	struct rt_values *v = &way->values;
	struct rt_elfaddr at = way->at;
	struct rt_insn insn;

	for (unsigned n = 0; n < BEHIND_MAX && at.v >= c->start.v && at.v < c->end.v; n++) {
		if (!rt_values_decode(c, at, &insn) || insn.ret)
			return;
		s->lent |= way->passed && uses(s, v, &insn);
		if (insn.call || insn.jump) {
			const struct pair pair = pair_of(s, v);
			const bool out = insn.jump && !insn.conditional &&
					 (!insn.has_target || insn.target.v < c->start.v || insn.target.v >= c->end.v);

			way->passed |= (insn.call || out) && match(s, &pair);
			if (out || (insn.call && rt_noreturn(c->image, s->symtab, c->decoder, &insn)))
				return;
		}
		rt_values_step(v, c, &insn);
		if (insn.conditional && insn.has_target)
			add_branch(ways, insn.target, way);
		at.v = insn.jump && !insn.conditional ? insn.target.v : at.v + insn.length;
	}
}

uint64_t rt_chain_callback(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
			   struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr after, bool *ret_given)
{
	struct rt_values_code c = { .image = image, .leaves = symtab, .decoder = decoder, .start = start, .end = end };
	struct search s = { .symtab = symtab };
	struct branches ways = { .nr = 0 };
	struct branch way = { .at = after };
	struct rt_insn call;

	*ret_given = false;
	if (!symtab || !rt_values_before(&c, after, &way.values, &call, seen, &s))
		return 0;
	s.given = way.values.reg[RT_REG_RDI];
	for (unsigned i = 0; i < s.earlier && i < BEFORE_MAX; i++)
		match(&s, &s.before[i]);
	/* the call was given what is in a variable, not where that is; later ones may be given that */
	rt_values_call(&way.values, &c, &call);
	s.returned = way.values.reg[RT_REG_RAX];
	follow(&s, &c, &ways, &way);
	while (ways.nr && !s.several) {
		way = ways.list[--ways.nr];
		follow(&s, &c, &ways, &way);
	}
	*ret_given = s.by_given;
	return s.several || s.lent ? 0 : s.found;
}
