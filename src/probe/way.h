/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A look through a function's code in the order of its addresses, with what the registers hold at each instruction: as
 * the one before it leaves them, or, where that does not go on, as the first jump that leads there brings them. What
 * only jumps from further down lead to comes after that: compilers enter a loop at its condition, below its body. So
 * does what was passed without an object, where a jump brings one: two calls, and one store of what either returned.
 * What is found so is a place worth a look, no proof. Private to probe/.
 */
#pragma once

#include "probe/build.h"

/* What is known at one instruction. */
struct rt_way_state {
	struct rt_elfaddr at;
	struct rt_track objects, fresh; /* pointers to objects of a type; to memory that was just allocated */
};

struct rt_way {
	const struct rt_symtab *symtab;
	struct rt_elfaddr start, end; /* of the function; end is behind it */
	struct rt_way_state now;
	bool over;                            /* no way that was followed leads on */
	bool again;                           /* all addresses were passed once: jumps back are followed */
	RT_VEC(struct rt_way_state) branches; /* first come, but those with an object before others */
	RT_VEC(uint8_t) seen; /* for each byte: an instruction was reached there, by what state; level() */
};

/* At the entry of a function, with an object in this register; RT_REG_NONE: in none. A zeroed way, or a used one. */
void rt_way_begin(struct rt_way *way, const struct rt_symtab *symtab, const struct rt_symbol *function, uint8_t object);
/* There is an instruction to look at, at now.at: the next one, or one that is only reached from further down. */
bool rt_way_goes_on(struct rt_way *way);
/* A way leads to now.at, for the first time, or the first time with an object, and now tells what it brings. */
bool rt_way_reaches(struct rt_way *way);
/* Past insn, which lies at now.at. false: out of memory */
bool rt_way_pass(struct rt_way *way, const struct rt_insn *insn);
void rt_way_deinit(struct rt_way *way);
