/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A look through a function's code in the order of its addresses, with what the registers hold at each instruction: as
 * the one before it leaves them, or, where that does not go on, as the first jump that leads there brings them. What is
 * found so is a place worth a look, no proof. Private to probe/.
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
	struct rt_way_state now;
	bool over;                            /* no way that was followed leads on */
	RT_VEC(struct rt_way_state) branches; /* forward, first come */
};

/* At the entry of a function, with an object in this register; RT_REG_NONE: in none. A zeroed way, or a used one. */
void rt_way_begin(struct rt_way *way, const struct rt_symtab *symtab, struct rt_elfaddr start, uint8_t object);
/* A way leads to now.at, and now tells what it brings. */
bool rt_way_reaches(struct rt_way *way);
/* Past insn, which lies at now.at. false: out of memory */
bool rt_way_pass(struct rt_way *way, const struct rt_insn *insn);
void rt_way_deinit(struct rt_way *way);
