/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a function goes on with what it gave to a call: a put, say, that took its last reference. What is looked at
 * is only what surely runs behind the call, up to where its way parts, and what surely was in a place before it, since
 * the last place that other ways lead to. What is not understood is no proof.
 */
#include <string.h>

#include "base/words.h"
#include "insn/noreturn.h"
#include "symbol/parts.h"
#include "symbol/values.h"

enum { BEHIND_MAX = 64 };

/*
 * The function does something with what it is given, by its name: one that ends it may end here what the first one left
 * of it, the memory; and what is not its first argument may be no more than an address to it, which it prints, or takes
 * off a list.
 */
static bool is_use(const struct rt_symtab *symtab, struct rt_elfaddr target, bool first)
{
	static const char *const prints[] = { "printf", "print", "log", "debug",  "dbg",
					      "trace",  "warn",  "msg", "message" };
	const struct rt_symbol *s = symtab ? rt_symtab_at(symtab, target) : NULL;

	if (!s || s->addr.v != target.v || rt_words_destroy(s->name) || rt_words_free(s->name))
		return false;
	return first || (!rt_words_end(s->name) && !strcasestr(s->name, "printf") &&
			 !rt_words_have(s->name, prints, sizeof(prints) / sizeof(prints[0])));
}

static bool is_given(const struct rt_values *v, uint32_t value)
{
	for (unsigned i = 0; i < RT_VALUES_REGS; i++)
		if ((RT_VALUES_ARGUMENTS >> i & 1u) && v->reg[i] == value)
			return true;
	return false;
}

static bool uses(const struct rt_values_code *c, const struct rt_symtab *symtab, const struct rt_values *v,
		 const struct rt_insn *insn, uint32_t value)
{
	const uint8_t base = insn->mem.base;

	if (insn->has_mem && (insn->mem.reads || insn->mem.writes) && base < RT_VALUES_REGS && v->reg[base] == value)
		return true;
	/* a jump out of the function is a call */
	return (insn->call || (insn->jump && (insn->target.v < c->start.v || insn->target.v >= c->end.v))) &&
	       insn->has_target && is_given(v, value) && is_use(symtab, insn->target, v->reg[RT_REG_RDI] == value);
}

bool rt_chain_goes_on(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		      struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr after)
{
	struct rt_values_code c = { .image = image, .decoder = decoder, .start = start, .end = end };
	struct rt_elfaddr at = after;
	struct rt_insn insn;
	struct rt_values v = { .slots = 0 };
	uint32_t value;

	if (!rt_values_before(&c, after, &v, &insn, NULL, NULL))
		return false;
	value = v.reg[RT_REG_RDI];
	/* the call was given what is in a variable, not where that is; later ones may be given that */
	rt_values_call(&v, &c, &insn);
	for (unsigned n = 0; n < BEHIND_MAX && at.v >= start.v && at.v < end.v && rt_values_decode(&c, at, &insn);
	     n++) {
		if (uses(&c, symtab, &v, &insn, value))
			return true;
		if (insn.ret || (insn.jump && (insn.conditional || !insn.has_target)) ||
		    (insn.call && rt_noreturn(image, symtab, decoder, &insn)))
			break;
		rt_values_step(&v, &c, &insn);
		at.v = insn.jump ? insn.target.v : at.v + insn.length;
	}
	return false;
}
