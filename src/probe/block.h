/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Of which struct the block is that a register points to: as the variable says that lies in the register, or as its
 * address was found, in a member of a struct that is known so, in a global variable, or at an entry of the array that
 * either points to. A look through code in the order of its addresses; what is found is worth a look, no proof.
 * Private to probe/.
 */
#pragma once

#include "probe/build.h"
#include "probe/track.h"

/* A member of a struct that may hold a pointer to an object. Those of one struct lie one behind the other. */
struct rt_block_member {
	const char *structure; /* interned by dwarf/ */
	uint64_t offset;
	uint32_t type; /* index + 1; 0: anything */
	bool table;    /* it points to such pointers */
};

struct rt_block_struct {
	size_t first;   /* index + 1 of its members; 0: it has none */
	uint64_t reach; /* it is longer than so many bytes */
};

/* Where a register got what it holds from, as far as straight code tells. */
enum rt_block_source {
	RT_BLOCK_UNKNOWN,
	RT_BLOCK_COPY,   /* of reg */
	RT_BLOCK_LOADED, /* from reg + disp */
	RT_BLOCK_TABLE,  /* it is the address of pointers to the type of index disp */
	RT_BLOCK_BEHIND, /* something, and disp more */
};

struct rt_block_origin {
	enum rt_block_source from;
	uint8_t reg;
	int64_t disp;
	size_t step; /* index + 1 of how its address was found, which holds when reg has been written since; 0: unknown
		      */
};

/* One instruction that finds a pointer by another one. */
struct rt_block_step {
	struct rt_elfaddr at;
	uint8_t reg;   /* the other one; RT_REG_RIP: there is none, it lies at disp */
	uint8_t added; /* it is an entry of the array that reg points to, or this one, which the other is added to; or
			  RT_REG_NONE */
	bool entry;    /* the same struct, further on in an array; else what lies disp bytes behind reg */
	int64_t disp;  /* of an entry: 0, but with RT_REG_RIP the address itself */
	struct rt_block_origin origin, added_origin; /* of what is in reg and added there */
};

struct rt_blocks {
	struct rt_plan_build *b;
	const struct rt_map *type_of; /* a struct's name -> index + 1 of the type */
	RT_VEC(struct rt_block_member) members;
	RT_VEC(struct rt_block_struct) structs;
	struct rt_map numbers;  /* a struct's name -> its number */
	struct rt_map pointers; /* struct and offset, or 0 and an address -> number of the struct that it points to */
	struct rt_map offsets;  /* of members that hold one of the types */
	struct rt_map tables;   /* offsets of members that point to tables of these */
	unsigned looked;        /* by rt_blocks_look(), or in vain */
	RT_VEC(struct rt_block_step) steps; /* in the function */
	struct rt_block_origin origins[RT_TRACK_REGS];
	uint32_t results; /* registers that hold what a call returned, by their bits */
	bool nomem;
};

/*
 * What the structs of b->module have that may hold pointers to objects. blocks: all zeroes but for b and type_of, which
 * stay the caller's and are there as long as it is used.
 */
RT_CHECK struct rt_error *rt_blocks_read(struct rt_blocks *blocks);
void rt_blocks_deinit(struct rt_blocks *blocks);

/* What comes is another function's code. */
void rt_blocks_enter(struct rt_blocks *blocks);
/* Past insn. Out of memory: blocks->nomem. */
void rt_blocks_follow(struct rt_blocks *blocks, const struct rt_insn *insn);
/* Takes one of the looks that a module is worth, before rt_blocks_at(); false: none is left. */
bool rt_blocks_look(struct rt_blocks *blocks);
/* After all code: that there were too few of these becomes one of the plan's limits. */
RT_CHECK struct rt_error *rt_blocks_told(const struct rt_blocks *blocks);
/* Index + 1 of the first member of the struct that reg points to at insn; 0: it is not known, or has none. */
size_t rt_blocks_at(struct rt_blocks *blocks, const struct rt_insn *insn, uint8_t reg);
/*
 * How far behind the register that an operand begins with it lies, as far as that is known: compilers make x->all[i] of
 * ((void **)x)[i + 7], and add the 7 before.
 */
int64_t rt_blocks_disp(const struct rt_blocks *blocks, const struct rt_mem_operand *mem);
/* What reg holds was read from where a member with an object may lie. */
bool rt_blocks_may_hold(const struct rt_blocks *blocks, uint8_t reg);
/* What reg holds was returned by a call. */
bool rt_blocks_is_result(const struct rt_blocks *blocks, uint8_t reg);
/*
 * Where the pointer lies that insn calls, or jumps through: so many bytes (the second half of the key) into the struct
 * of this number (the first half), or, where that is 0, at this address. All zeroes: that is not known.
 */
struct rt_key rt_blocks_through(struct rt_blocks *blocks, const struct rt_insn *insn);
/* Number of the struct of this name, the first half of such a key; 0: out of memory. */
uint64_t rt_blocks_number(struct rt_blocks *blocks, const char *structure);
/* Member number i, an index + 1, is one of the struct of number first. */
bool rt_blocks_is_of(const struct rt_blocks *blocks, size_t first, size_t i);
