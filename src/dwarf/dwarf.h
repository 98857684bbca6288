/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Debug information of one module, through libdw: source lines, inlined
 * functions, function signatures, struct members, and where the frame is
 * (CFI). Opened over an image; uses the image's debug companion for DWARF when
 * the image has none. Answers are false or empty without debug info.
 *
 * Not thread-safe: one user at a time.
 */
#pragma once

#include <string.h>

#include "elf/image.h"

struct rt_dwarf;

/* Always succeeds on a sound image; rt_dwarf_present() tells whether there is DWARF. image must outlive it. */
RT_CHECK struct rt_error *rt_dwarf_create(const struct rt_image *image, struct rt_dwarf **ret);
void rt_dwarf_destroy(struct rt_dwarf *dwarf);
RT_CLEANUP(struct rt_dwarf *, rt_dwarf_destroy);
bool rt_dwarf_present(const struct rt_dwarf *dwarf);

/*
 * Split debug info (-gsplit-dwarf): most of it is in .dwo files or one .dwp package, looked for in the package beside
 * the file, where the compiler wrote it, and beside the file. What was asked for and not found, each unit once; *ret
 * points to dwarf's own array. ret_units (may be NULL): how many units are split.
 */
struct rt_dwarf_missing {
	const char *path; /* as the file tells it */
	const char *why;
};
size_t rt_dwarf_missing(const struct rt_dwarf *dwarf, const struct rt_dwarf_missing **ret, size_t *ret_units);

/* File and line of the code at addr. Strings live as long as dwarf. */
struct rt_source_line {
	const char *file; /* absolute where the compilation directory is known */
	uint32_t line, column;
	bool is_stmt;
};
bool rt_dwarf_line(struct rt_dwarf *dwarf, struct rt_elfaddr addr, struct rt_source_line *ret);

/*
 * The functions that contain addr, innermost (most inlined) first, the real
 * function last. Each with the file and line that is executing in it: for the
 * innermost that of addr, for the others that of the call to the next inner one.
 */
struct rt_scope {
	const char *function; /* DW_AT_name */
	const char *linkage;  /* DW_AT_linkage_name, or NULL */
	const char *returns;  /* C spelling of the return type: "struct obj *"; NULL = void or unknown; and more, as in
			       rt_frame */
	const char *file;
	uint32_t line;
	bool inlined;
	struct rt_elfaddr entry; /* low pc of the function or inlined instance */
};
size_t rt_dwarf_scopes(struct rt_dwarf *dwarf, struct rt_elfaddr addr, struct rt_scope *ret, size_t max);

/* A function as declared: name, and the type of each parameter. */
struct rt_param {
	const char *name;    /* or NULL */
	const char *type;    /* C spelling without qualifiers and typedefs: "struct obj *"; interned: equal text, equal
				pointer */
	const char *pointee; /* bare tag or typedef name of what a pointer points to ("obj"), NULL when it is no pointer
				to a struct */
	uint8_t pointers;    /* levels: 1 for T *, 2 for T ** */
};
/* a mere pointer: what it points to the declaration does not say */
static inline bool rt_param_is_anything(const struct rt_param *p)
{
	return p->type && !strcmp(p->type, "void *");
}

struct rt_signature {
	const char *function; /* DW_AT_name */
	const char *linkage;  /* or NULL */
	bool external;        /* visible outside its file */
	bool has_body;        /* has code of its own at addr; the rest of a split function (name.part.0) is none */
	bool has_inlined;     /* is inlined somewhere: see rt_dwarf_inlined() */
	struct rt_elfaddr addr;
	struct rt_param returns; /* type NULL: void */
	struct rt_param *params;
	size_t param_count;
	const char *file;
	uint32_t line;
};
/*
 * Calls visit for every function of the module, once per (name, file); stops
 * early when visit returns false. The signature is valid during the call only;
 * its strings live as long as dwarf.
 */
RT_CHECK struct rt_error *rt_dwarf_functions(struct rt_dwarf *dwarf,
					     bool (*visit)(const struct rt_signature *sig, void *arg), void *arg);

/*
 * Calls visit for the declarations of the C functions that wanted accepts the names of, which other modules may have;
 * each may be declared in many units. Stops early when visit returns false. The signature is as above.
 */
RT_CHECK struct rt_error *rt_dwarf_imports(struct rt_dwarf *dwarf, bool (*wanted)(const char *name, void *arg),
					   bool (*visit)(const struct rt_signature *sig, void *arg), void *arg);

/*
 * An inlined instance of a function: where it starts executing, and where
 * parameter number `param` (from 1) is at that place.
 */
struct rt_inlined {
	struct rt_elfaddr entry; /* first instruction of the instance, or where the parameter is first known */
	struct rt_elfaddr start; /* first instruction of the instance. entry lies at most 32 bytes behind it, in the
				    same range of the instance; when they differ the caller must check that the code
				    between is straight (dwarf/ decodes no instructions) */
	bool located;            /* the parameter's value is in a register or simple place here */
	uint8_t reg;             /* enum rt_reg (DWARF number) */
	uint8_t deref;           /* 0: value = reg + offset; 1: value = *(reg + offset) */
	int64_t offset;
	const char *why_not; /* located == false: static text */
	const char *caller;  /* function that contains it */
	const char *file;
	uint32_t line; /* of the call */
	size_t unit;   /* where it is in the tree, for rt_dwarf_inlined_ranges() */
	uint32_t node;
};
/* All concrete inlined instances of the function of this DW_AT_name. *ret is freed by the caller. */
RT_CHECK struct rt_error *rt_dwarf_inlined(struct rt_dwarf *dwarf, const char *function, unsigned param,
					   struct rt_inlined **ret, size_t *ret_count);

/*
 * Calls visit with the name of each instance that is inlined into the innermost function, or instance, around addr, and
 * not into another one within; until visit returns false. Names live as long as dwarf.
 */
RT_CHECK struct rt_error *rt_dwarf_inlined_into(struct rt_dwarf *dwarf, struct rt_elfaddr addr,
						bool (*visit)(const char *name, void *arg), void *arg);

/* Each [start, end) of an instance's own code: compilers move parts of it, and copy it. */
void rt_dwarf_inlined_ranges(struct rt_dwarf *dwarf, const struct rt_inlined *instance,
			     void (*visit)(struct rt_elfaddr start, struct rt_elfaddr end, void *arg), void *arg);

/*
 * The same parameter at another instruction of the instance: sets reg, deref and offset. false: not told there, or not
 * that simply.
 */
bool rt_dwarf_inlined_at(struct rt_dwarf *dwarf, struct rt_inlined *instance, unsigned param, struct rt_elfaddr addr);

/* Member of struct (tag or typedef name), nested by dots: "refs.counter". false: unknown. */
struct rt_member {
	uint64_t offset; /* bytes from the start of the struct */
	uint32_t size;   /* bytes */
	const char *type;
	bool says_reference; /* rt_dwarf_counter(): the name says references or users, not just a count */
	uint8_t level;       /* rt_dwarf_counter(): it is in so many structs that are members themselves */
};
bool rt_dwarf_member(struct rt_dwarf *dwarf, const char *structure, const char *member, struct rt_member *ret);
/*
 * The member of a struct that looks like its reference counter: an integer or
 * atomic (or a struct of one) called ref, refs, refcnt, ref_count, refcount,
 * nref, count, usage..., best name first. false: none or the struct is unknown.
 */
bool rt_dwarf_counter(struct rt_dwarf *dwarf, const char *structure, struct rt_member *ret);
/* A member of a struct, or of a struct or union within it by value, that is a pointer. */
struct rt_pointer_member {
	const char *structure; /* tag, or typedef name where it has none */
	const char *pointee;   /* as in struct rt_param; NULL: void * */
	uint64_t offset;       /* bytes from the start of structure */
	uint8_t pointers;      /* levels: 1 for T *, 2 for T ** */
};
/* Elements of an array in a struct are members like others, where it has no more than that: large ones are indexes. */
enum { RT_ELEMENTS_MAX = 8 };
/*
 * Calls visit for each member of each named struct that is a pointer to a struct, or to a pointer to one, or to
 * anything (but of a union), those of one struct one after the other; stops early when visit returns false.
 */
RT_CHECK struct rt_error *rt_dwarf_pointer_members(struct rt_dwarf *dwarf,
						   bool (*visit)(const struct rt_pointer_member *member, void *arg),
						   void *arg);
/*
 * Calls visit for each variable with one address in the module, of the program or of a file but not of a function, that
 * is a pointer to a struct: pointee as in struct rt_param; stops early when visit returns false. Variables of threads
 * are none of these.
 */
RT_CHECK struct rt_error *
rt_dwarf_pointer_globals(struct rt_dwarf *dwarf, bool (*visit)(struct rt_elfaddr addr, const char *pointee, void *arg),
			 void *arg);
/* A pointer to functions of one kind: a member of a struct, or a variable with one address in the module, or in one. */
struct rt_function_pointer {
	const char *structure; /* tag, or typedef name where it has none; NULL: it is, or lies in, a variable */
	uint64_t place;        /* bytes from the start of structure; without one, its ELF address */
	unsigned argument;     /* which of the functions' arguments is the mere pointer, from 1 on */
};
/*
 * Calls visit for the pointers to functions of which wanted accepts the name, the member's or the variable's, and that
 * take one mere pointer, and before it nothing but whole numbers and pointers. Structs within structs are looked
 * through, arrays are not. Stops early when visit returns false.
 */
RT_CHECK struct rt_error *rt_dwarf_function_pointers(struct rt_dwarf *dwarf,
						     bool (*wanted)(const char *name, void *arg),
						     bool (*visit)(const struct rt_function_pointer *p, void *arg),
						     void *arg);
/*
 * Calls visit for each named struct that begins with another one, by value: a pointer to it points to that one, too.
 * Names are tags, or typedef names where there are none; stops early when visit returns false.
 */
RT_CHECK struct rt_error *rt_dwarf_heads(struct rt_dwarf *dwarf,
					 bool (*visit)(const char *structure, const char *head, void *arg), void *arg);
/* Whether byte offset of a struct lies in a part of it, by value, that is a struct of this name (of tags or typedefs).
 */
bool rt_dwarf_nested(struct rt_dwarf *dwarf, const char *structure, uint64_t offset, const char *part);
/* Tag of the structure that the typedef of this name stands for, which may be known by its name alone; NULL: none. */
const char *rt_dwarf_tag(struct rt_dwarf *dwarf, const char *name);
/* sizeof a struct, 0 = unknown. */
uint64_t rt_dwarf_struct_size(struct rt_dwarf *dwarf, const char *structure);

/*
 * Where the frame of the code at addr is: CFA = reg + offset, from .eh_frame or
 * .debug_frame. rbp_saved: the caller's rbp is at CFA + rbp_offset; rbp_same:
 * rbp still holds it. return address is at CFA - 8. false: no row, or one that says something else.
 */
struct rt_unwind_rows;
struct rt_cfi_row {
	uint8_t cfa_reg; /* enum rt_reg: RSP or RBP */
	int64_t cfa_offset;
	bool rbp_saved, rbp_same;
	int64_t rbp_offset;
	bool ra_undefined; /* outermost frame: nothing else is told of it */
};
bool rt_dwarf_cfi(struct rt_dwarf *dwarf, struct rt_elfaddr addr, struct rt_cfi_row *ret);
/* The same from rows alone (dwarf/rows.h): for who needs nothing else of the debug information. */
bool rt_rows_cfi(const struct rt_unwind_rows *rows, struct rt_elfaddr addr, struct rt_cfi_row *ret);
enum {
	RT_DWARF_REGS = 17 /* of x86-64 by their DWARF numbers; 16: the return address */,
	RT_DWARF_RBP = 6,
	RT_DWARF_RSP = 7,
	RT_DWARF_RA = 16
};

/* Registers of a thread in one of its frames. */
struct rt_dwarf_regs {
	uint64_t value[RT_DWARF_REGS];
	uint32_t known; /* bit per register */
};

/* Memory of the thread as far as it was kept; false: not there. */
struct rt_dwarf_memory {
	bool (*read)(const struct rt_dwarf_memory *self, uint64_t address, uint64_t *ret);
};

enum rt_dwarf_step {
	RT_DWARF_STEPPED,
	RT_DWARF_OUTERMOST, /* nobody called this code */
	RT_DWARF_NO_ROW,    /* no unwind information for it, or one of a kind that is not known here */
	RT_DWARF_NO_MEMORY, /* what is needed was not kept */
};
/*
 * From the code at addr to its caller: *regs become those of the caller (RT_DWARF_RA: where it goes on). Any row of
 * .eh_frame and .debug_frame, expressions too. *ret_signal: addr is a signal's trampoline, its caller was interrupted
 * rather than called. Only x86-64.
 */
enum rt_dwarf_step rt_dwarf_step(struct rt_dwarf *dwarf, struct rt_elfaddr addr, const struct rt_dwarf_memory *memory,
				 struct rt_dwarf_regs *regs, bool *ret_signal);
/* The first FDE that begins at from (not 0) or behind it: [start, end). false: there is none. */
bool rt_dwarf_next_fde(struct rt_dwarf *dwarf, struct rt_elfaddr from, struct rt_elfaddr *ret_start,
		       struct rt_elfaddr *ret_end);
/* The FDE around addr: [start, end), and whether it has exception landing pads. false: none. */
bool rt_dwarf_fde(struct rt_dwarf *dwarf, struct rt_elfaddr addr, struct rt_elfaddr *ret_start,
		  struct rt_elfaddr *ret_end, bool *ret_lsda);
