/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the references of a module come from: what handing.c finds out and overwrite.c, dropped.c and given.c use as
 * well. Private to probe/.
 */
#pragma once

#include "base/map.h"
#include "probe/build.h"

/* Where a reference is taken inline: this register has the object there, or what lies so many bytes behind it. */
struct rt_inline_taker {
	uint64_t address;
	uint32_t type; /* index */
	uint8_t reg;   /* enum rt_reg */
	bool in_memory;
	int64_t offset;
};

/* A stub of a function that a spec names. */
struct rt_told_stub {
	uint64_t address;
	uint32_t type; /* index */
	const struct rt_spec_function *function;
};

struct rt_takers {
	struct rt_plan_build *b;
	struct rt_map type_of; /* a structure's name -> index of the type + 1 */
	struct rt_map at;   /* (address, type + 1) of what hands out a reference to its caller, or the stub of such ->
			       0: as its result; else the argument that says where it is left; and (address, 0) */
	uint64_t low, high; /* all of these addresses lie in [low, high] */
	RT_VEC(struct rt_told_stub) stubs; /* through which this module calls functions of the specs */
	struct rt_map counts;     /* addresses of all that counts references, of any type, or of the stubs of such */
	RT_VEC(uint64_t) inlined; /* and where such is inlined */
	RT_VEC(struct rt_inline_taker) inline_takers; /* by their addresses */
};

/* The first one at this address or behind it; NULL: there is none. */
const struct rt_inline_taker *rt_takers_inline(const struct rt_takers *t, struct rt_elfaddr from);

/* The type that parameter or result p points to through so many levels: index + 1; 0: none. */
uint32_t rt_takers_type(const struct rt_takers *t, const struct rt_param *p, uint8_t pointers);
/* The function is in the spec of the type: what it does is known. */
bool rt_takers_told(const struct rt_takers *t, uint32_t type, const char *name);
/* ... of any type. */
bool rt_takers_told_any(const struct rt_takers *t, const char *name);
/* The arguments of d up to this one are in registers for whole numbers, one each. */
bool rt_takers_in_registers(struct rt_survey *survey, const struct rt_survey_function *d, unsigned arg);

/* A place in memory that holds, or is about to hold, a pointer to an object; at one instruction. */
struct rt_slot {
	uint32_t type; /* index */
	const struct rt_insn *insn;
	uint8_t reg;          /* enum rt_reg; RT_REG_RIP: offset is its ELF address */
	uint8_t index, scale; /* scale 0: none */
	int64_t offset;       /* the slot is at reg + offset + index * scale */
	uint8_t stored;       /* enum rt_reg of the register that is stored there; RT_REG_NONE: no object is */
	bool freed;           /* the block that it lies in is freed */
	bool fresh;           /* in memory that was just allocated: nothing was held there */
	bool filled;          /* it was filled just before insn: what it held before is gone */
	bool maybe;           /* it may hold anything */
	const char *ender;    /* freed: who ends the part that the slot is in, inlined or called before; NULL: nobody */
};
/*
 * slot.c: points that look at what the slot held, and at what is stored there. Nothing is counted there, and what
 * cannot be armed is not missed. name is copied.
 */
RT_CHECK struct rt_error *rt_plan_slot(struct rt_plan_build *b, const struct rt_slot *slot, const char *name);

/* inferred.c: what code implies, where nothing is declared: fills t->b->survey.functions, which has none. */
RT_CHECK struct rt_error *rt_plan_infer(const struct rt_takers *t);
/* overwrite.c: points at the stores that may overwrite the pointer to an object. */
RT_CHECK struct rt_error *rt_plan_overwrites(const struct rt_takers *t);
/* given.c: points at the entries of functions that may keep an object that they are given. */
RT_CHECK struct rt_error *rt_plan_given(const struct rt_takers *t);
/* dropped.c: and where it is freed with the block that holds it, or NULL takes its place. */
RT_CHECK struct rt_error *rt_plan_dropped(const struct rt_takers *t);
