/* SPDX-License-Identifier: GPL-2.0-only */
#include "insn/noreturn.h"

#include <string.h>

enum { CODE_BYTES = 1024 /* of a function that ends the program: it reports first */ };

static bool is_named(const char *name)
{
	static const char *const names[] = { "abort",
					     "exit",
					     "_exit",
					     "__assert_fail",
					     "__assert",
					     "__chk_fail",
					     "__stack_chk_fail",
					     "__fortify_fail",
					     "longjmp",
					     "_Unwind_Resume",
					     "__assert_perror_fail" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

struct code {
	const struct rt_image *image;
	const struct rt_symtab *symtab;
	struct rt_decoder *decoder;
};

static bool lies_in(const struct rt_symbol *symbol, struct rt_elfaddr at)
{
	return at.v >= symbol->addr.v && at.v < symbol->addr.v + symbol->size;
}

/* What compilers put elsewhere, as it is seldom reached: "crash.cold" of crash(). */
static const struct rt_symbol *cold_part(const struct code *c, const struct rt_symbol *symbol, struct rt_elfaddr at)
{
	const struct rt_symbol *to = rt_symtab_at(c->symtab, at);
	size_t n = strlen(symbol->name);

	return to && to->size <= CODE_BYTES && !strncmp(to->name, symbol->name, n) && !strncmp(to->name + n, ".cold", 5)
		       ? to
		       : NULL;
}

/*
 * Its code has no end but in calls: compilers leave out what would come behind one that does not return. It may go on
 * in a part elsewhere, and that comes back to whole.
 */
static bool has_no_end(const struct code *c, const struct rt_symbol *symbol, const struct rt_symbol *whole)
{
	struct rt_elfaddr at = symbol->addr, end = { at.v + symbol->size };
	const struct rt_symbol *part;
	struct rt_insn insn;
	bool calls = false;

	for (; at.v < end.v; at.v += insn.length) {
		if (!rt_decode(c->decoder, rt_image_at(c->image, at, 16), at, &insn) || insn.ret)
			return false;
		calls |= insn.call;
		if (!insn.jump || (insn.has_target && (lies_in(symbol, insn.target) || lies_in(whole, insn.target))))
			continue;
		part = insn.has_target && symbol == whole ? cold_part(c, whole, insn.target) : NULL;
		if (!part || !has_no_end(c, part, whole))
			return false;
		calls = true;
	}
	return calls;
}

bool rt_noreturn(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		 const struct rt_insn *insn)
{
	const struct code c = { image, symtab, decoder };
	const struct rt_symbol *to = symtab && insn->has_target ? rt_symtab_at(symtab, insn->target) : NULL;

	if (!to || to->addr.v != insn->target.v)
		return false;
	return is_named(to->name) || (!to->ifunc && to->size && to->size <= CODE_BYTES && has_no_end(&c, to, to));
}
