/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a function jumps to another one as its last act, which leaves it no frame: of what is inlined into it, it was
 * the function that this jump is in that called the other. By the order of its addresses; a switch looks like a jump by
 * a pointer, so a function with either is not told of.
 */
#include "base/words.h"
#include "symbol/parts.h"

enum { INSNS_MAX = 4000 };

/* By its name it only says that something is wrong: no other function is gone to in that way. */
static bool complains(const struct rt_symtab *symtab, struct rt_elfaddr target)
{
	static const char *const words[] = { "warning", "fail", "assert", "abort", "panic" };
	const struct rt_symbol *to = symtab ? rt_symtab_at(symtab, target) : NULL;

	return to && to->addr.v == target.v && rt_words_have(to->name, words, sizeof(words) / sizeof(words[0]));
}

struct rt_elfaddr rt_chain_leaves(const struct rt_image *image, const struct rt_symtab *symtab,
				  struct rt_decoder *decoder, struct rt_elfaddr start, struct rt_elfaddr end)
{
	const struct rt_elfaddr none = { 0 };
	struct rt_elfaddr found = none, at = start;

	for (unsigned n = 0; at.v < end.v; n++) {
		const struct rt_bytes code = rt_image_at(image, at, end.v - at.v);
		struct rt_insn insn;

		if (n == INSNS_MAX || !code.size || !rt_decode(decoder, code, at, &insn))
			return none;
		if (insn.jump && (insn.indirect || insn.target.v < start.v || insn.target.v >= end.v)) {
			bool aside = insn.has_target && complains(symtab, insn.target);

			if (!aside && (found.v || insn.indirect || insn.conditional))
				return none;
			found = aside ? found : at;
		}
		at.v += insn.length;
	}
	return found;
}
