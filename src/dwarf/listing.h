/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the debug information of a module has, to be shown: functions, the lines that they take, source files, and the
 * variables in scope at a place. Strings live as long as the rt_dwarf.
 */
#pragma once

#include "dwarf/variable.h"

/* A piece of code that debug info calls a function; or a function that is only inlined, and has none. */
struct rt_function {
	const char *name;    /* DW_AT_name */
	const char *linkage; /* DW_AT_linkage_name, or NULL */
	const char *file;    /* of the declaration; NULL: unknown */
	uint32_t line;
	uint32_t inlined; /* instances of it in the whole module */
	bool has_body;
	struct rt_elfaddr addr;
	uint64_t size; /* bytes of the range that begins at addr */
};
/*
 * Calls visit once for each piece of code (clones such as name.part.0 are pieces of their own), and once for each
 * (name, file) that is nothing but inlined; until visit returns false. Strings live as long as dwarf.
 */
RT_CHECK struct rt_error *
rt_dwarf_each_function(struct rt_dwarf *dwarf, bool (*visit)(const struct rt_function *function, void *arg), void *arg);

/* Which lines of its file a function takes, as far as debug info tells: to its last statement. */
struct rt_extent {
	const char *name, *linkage, *file;
	uint32_t first, last; /* [first, last] */
	uint32_t bodies, inlined;
};
/* Of every function that match accepts, once per (name, file). *ret is freed by the caller. */
RT_CHECK struct rt_error *rt_dwarf_extents(struct rt_dwarf *dwarf,
					   bool (*match)(const char *name, const char *linkage, void *arg), void *arg,
					   struct rt_extent **ret, size_t *ret_count);

/* How a variable can be had at an address. */
enum rt_where {
	RT_WHERE_READABLE,         /* in a register, in memory, or computed from them */
	RT_WHERE_CONSTANT,         /* debug info knows the value */
	RT_WHERE_ENTRY_VALUE,      /* only by what a register held when the function was called */
	RT_WHERE_PIECES,           /* in several places, some of which may be gone */
	RT_WHERE_IMPLICIT_POINTER, /* a pointer to what was optimised away */
	RT_WHERE_ELSEWHERE,        /* not here, but at other addresses of its scope */
	RT_WHERE_PROLOGUE,         /* its place on the stack is not written yet */
	RT_WHERE_GONE,             /* optimised away */
	RT_WHERE_DECLARED,         /* only declared: it is in another unit or module */
	RT_WHERE_UNKNOWN,          /* its location cannot be understood: text says what */
};

struct rt_range {
	struct rt_elfaddr start, end; /* [start, end) */
};

struct rt_variable {
	const char *name;
	const char *type; /* C spelling; NULL: unknown */
	const char *file; /* of the declaration, or NULL */
	uint32_t line;
	bool parameter;
	bool external;    /* of the unit, not of the function */
	bool shadowed;    /* another one of this name is in an inner block */
	uint16_t depth;   /* of the block, 0: the function itself */
	uint8_t where;    /* enum rt_where */
	const char *text; /* "in rdi", "at [rsp+0x10]", "value rdi+8"; NULL where there is nothing to say */
	const struct rt_range *ranges; /* RT_WHERE_ELSEWHERE: where it is known; valid during the call */
	size_t range_count;
};

/* Where an inlined instance is called; false: unknown, or none. */
bool rt_dwarf_instance_call(struct rt_dwarf *dwarf, const struct rt_instance *instance, const char **ret_file,
			    uint32_t *ret_line);
/*
 * Calls visit for the variables in scope at addr, which lies in the instance: those of the function and of the blocks
 * around addr, outermost first; with externs also those of the unit. *ret_hidden: how many more are in blocks that
 * debug info gives no addresses. *ret_prologue: where the prologue of the function ends, 0 = addr is behind it.
 */
RT_CHECK struct rt_error *rt_dwarf_variables(struct rt_dwarf *dwarf, const struct rt_instance *instance,
					     struct rt_elfaddr addr, bool externs,
					     bool (*visit)(const struct rt_variable *v, void *arg), void *arg,
					     size_t *ret_hidden, struct rt_elfaddr *ret_prologue);

/* The source files that the line tables name, each once; until visit returns false. */
RT_CHECK struct rt_error *rt_dwarf_each_file(struct rt_dwarf *dwarf, bool (*visit)(const char *file, void *arg),
					     void *arg);
