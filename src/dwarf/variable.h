/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions with code, their inlined instances, the lines of their code, and where a variable is at one instruction:
 * what probing at any place needs to know. Nothing is guessed: what is not exactly a chain of loads from a register or
 * from a fixed address is refused with the reason.
 *
 * All strings live as long as the rt_dwarf.
 */
#pragma once

#include "dwarf/dwarf.h"

/* A function's own code, or one place where it is inlined. */
struct rt_instance {
	size_t unit; /* where it is in the tree */
	uint32_t node, fn;
	const char *function, *linkage; /* DW_AT_name, and the mangled name or NULL */
	const char *file;               /* that declares it */
	uint32_t line;
	bool inlined;
	const char *caller; /* function that it is inlined into; NULL when it is not */
	struct rt_elfaddr entry;
	struct rt_elfaddr around; /* where the machine function begins that holds it */
};

/*
 * All instances of the functions that wants() takes: by name, and by qualified name ("ns::T::get") where it asks for
 * that with rt_dwarf_qualified(). *ret is freed by the caller. name, unless NULL: wants() takes only functions of this
 * name or linkage name, and is asked about no others in units that cannot have it (a large file is read much faster).
 */
RT_CHECK struct rt_error *rt_dwarf_instances(struct rt_dwarf *dwarf, const char *name,
					     bool (*wants)(struct rt_dwarf *dwarf, const struct rt_instance *fn,
							   void *arg),
					     void *arg, struct rt_instance **ret, size_t *ret_count);
/* With namespaces and classes; the plain name where there are none. */
const char *rt_dwarf_qualified(struct rt_dwarf *dwarf, const struct rt_instance *fn);
/* The innermost instance around addr; false: none. */
bool rt_dwarf_instance_at(struct rt_dwarf *dwarf, struct rt_elfaddr addr, struct rt_instance *ret);
/* The one that an inlined instance is inlined into; false: it is not, or that is not known. */
bool rt_dwarf_instance_outer(struct rt_dwarf *dwarf, const struct rt_instance *inlined, struct rt_instance *ret);
/* The one that the row's line belongs to: where an instance begins, there may be a row of the call to it. */
struct rt_row;
bool rt_dwarf_instance_of_row(struct rt_dwarf *dwarf, const struct rt_row *row, struct rt_instance *ret);
/* Whether addr is in the instance or in what is inlined into it. */
bool rt_dwarf_instance_holds(struct rt_dwarf *dwarf, const struct rt_instance *instance, struct rt_elfaddr addr);
/* Whether a is inlined into b, over any number of others. */
bool rt_dwarf_instance_within(struct rt_dwarf *dwarf, const struct rt_instance *a, const struct rt_instance *b);

/* One row of a line table: where the code of a line, or of a part of it, begins. */
struct rt_row {
	struct rt_elfaddr addr;
	const char *file;
	uint32_t line;
	bool is_stmt, prologue_end;
};
/*
 * Visits the rows of one unit (SIZE_MAX: of all) whose file wants() takes, by rising address in each unit; stops when
 * visit returns false.
 */
RT_CHECK struct rt_error *rt_dwarf_rows(struct rt_dwarf *dwarf, size_t unit, bool (*wants)(const char *file, void *arg),
					bool (*visit)(const struct rt_row *row, void *arg), void *arg);

/*
 * Where the prologue of the function with code in [entry, end) ends: where compilers mark it; else, as debuggers have
 * it, where its second row begins. v = 0: not known.
 */
struct rt_elfaddr rt_dwarf_prologue_end(struct rt_dwarf *dwarf, size_t unit, struct rt_elfaddr entry,
					struct rt_elfaddr end);

enum rt_location_base { RT_LOCATION_REG, RT_LOCATION_NUMBER, RT_LOCATION_ADDRESS };
enum { RT_LOCATION_DEREFS_MAX = 16 };

/* base, then deref_count times "what lies at it + derefs[i]", then + offset. */
struct rt_location {
	enum rt_location_base base;
	uint8_t reg;     /* DWARF number */
	bool at_entry;   /* what reg held when the machine function was entered */
	uint64_t number; /* or the ELF address */
	unsigned deref_count;
	int64_t derefs[RT_LOCATION_DEREFS_MAX];
	int64_t offset;
	bool is_value; /* that is the value; else the value lies there */
	/* in the frame of the function, said for all of its code: true once the prologue has stored it */
	bool in_frame;
	int64_t cfa_offset; /* in_frame, and cfa_known: from the CFA */
	bool cfa_known;
};

enum rt_datum_kind {
	RT_DATUM_SIGNED,
	RT_DATUM_UNSIGNED, /* bool, too */
	RT_DATUM_POINTER,
	RT_DATUM_FLOAT,
	RT_DATUM_ARRAY,
	RT_DATUM_STRUCT,
	RT_DATUM_OTHER,
};

struct rt_datum {
	const char *name; /* of the variable, or of the last member */
	struct rt_location where;
	struct rt_location variable; /* of the variable that the way starts from */
	enum rt_datum_kind kind;
	uint64_t size;        /* bytes of what holds it; 0: unknown */
	uint32_t bits, shift; /* of a bit field: its bits [shift, shift + bits) of these bytes; else 0 */
	bool is_text;         /* array of char, or pointer to char */
	bool is_param;        /* variable is one */
	const char *type;     /* C spelling */
};

enum rt_trail_kind { RT_TRAIL_ARROW, RT_TRAIL_DOT, RT_TRAIL_INDEX };

/* "->name", ".name" or "[index]" */
struct rt_trail {
	enum rt_trail_kind kind;
	const char *name;
	int64_t index;
};

/* Said of what is in a frame that its function has not made yet, or no longer has. */
extern const char rt_dwarf_no_frame[];

/*
 * What `name` and the way from it mean at addr inside of the instance (NULL: only what is global). NULL on success,
 * else why not, as text of a sentence about it.
 */
const char *rt_dwarf_datum(struct rt_dwarf *dwarf, const struct rt_instance *instance, struct rt_elfaddr addr,
			   const char *name, const struct rt_trail *path, size_t count, struct rt_datum *ret);

/* The type that the name is declared with there, also where it has no place, as rt_datum.type. NULL: there is none. */
const char *rt_dwarf_declared(struct rt_dwarf *dwarf, const struct rt_instance *instance, struct rt_elfaddr addr,
			      const char *name);

/* It is declared as a pointer to a struct, class or union there, by whatever typedefs. */
bool rt_dwarf_declared_structure(struct rt_dwarf *dwarf, const struct rt_instance *instance, struct rt_elfaddr addr,
				 const char *name);

/* Visits the names of the instance's parameters, and with variables true of all that its scopes at addr declare. */
void rt_dwarf_names(struct rt_dwarf *dwarf, const struct rt_instance *instance, struct rt_elfaddr addr, bool variables,
		    void (*visit)(const char *name, void *arg), void *arg);

/* What the function returns. false: nothing (void). */
bool rt_dwarf_returns(struct rt_dwarf *dwarf, const struct rt_instance *instance, struct rt_datum *ret);
