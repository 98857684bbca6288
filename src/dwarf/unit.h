/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside of dwarf/: the units of a module and what was read of them so far.
 *
 * Opening a module reads only the address ranges of its units. A unit's tree is
 * walked once, at the first question that needs it, into a flat list of nodes
 * (functions with code and inlined instances) with an index by address; names
 * are read when they are asked for. Each DIE is visited at most once per walk,
 * in rising order of its place, so that damaged references cannot make a loop.
 */
#pragma once

#include <dwarf.h>
#include <elfutils/libdw.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "dwarf/dwarf.h"
#include "dwarf/entry.h"
#include "dwarf/skim.h"

#define RT_DWARF_DEPTH_MAX 128        /* nesting of DIEs that is followed */
#define RT_DWARF_RANGES_MAX 100000    /* ranges of one DIE */
#define RT_DWARF_SPANS_MAX (8u << 20) /* ranges of all DIEs of one module */
#define RT_DWARF_SEGMENTS_MAX 64
#define RT_DWARF_HOPS_MAX 32 /* references followed in a row */

struct rt_span {
	uint64_t lo, hi; /* [lo, hi) */
	uint64_t reach;  /* largest hi of this and all spans before it */
	uint32_t value;
};

/* Intervals that may nest and overlap; sorted by lo once they are complete. */
struct rt_spans {
	RT_VEC(struct rt_span) v;
};

bool rt_spans_add(struct rt_spans *spans, uint64_t lo, uint64_t hi, uint32_t value);
void rt_spans_sort(struct rt_spans *spans);
/*
 * Walks the spans that hold addr, from the one that starts last: begin with
 * *pos = SIZE_MAX; false when there are no more.
 */
bool rt_spans_next(const struct rt_spans *spans, uint64_t addr, size_t *pos, uint32_t *ret);

/* A function of the source: all concrete instances share it. */
struct rt_fn {
	Dwarf_Die die; /* the abstract instance, or the function itself where there is none */
	uint64_t addr;
	uint32_t body; /* node with code: index + 1 of the unit body_unit */
	uint32_t body_unit;
	bool has_inlined, resolved;
	bool external;
	uint32_t line;
	const char *name, *linkage, *file;
};

/* A function with code, or an inlined instance. */
struct rt_node {
	Dwarf_Die die;
	uint32_t parent; /* index + 1 of the node that contains it, 0 = none */
	uint32_t fn;     /* index of dwarf->fns */
	uint16_t depth;  /* 0 for outermost */
	bool inlined, named;
	bool split; /* valid once named: see rt_node_name() */
	uint32_t call_line;
	uint64_t entry;
	const char *function, *linkage, *returns, *call_file;
};

struct rt_fde {
	uint64_t start, end;
	size_t at; /* of its entry in the section */
	bool lsda;
};

/* The FDEs of one section. */
struct rt_fdes {
	struct rt_frame_section section;
	RT_VEC(struct rt_fde) list; /* sorted by start */
};

/* The debug sections of one ELF file. */
struct rt_dwarf_source {
	Dwarf *dw;
	Elf *elf;   /* over copy; NULL when the image's own handle serves */
	char *copy; /* of the file, when it has compressed sections: libelf writes to its headers */
};

struct rt_unit {
	Dwarf_Die die;  /* for lines and ranges */
	Dwarf_Die tree; /* where its functions are: differs from die in split DWARF once rt_unit_load() found it */
	bool code;      /* a unit that may have code (not a type or partial unit) */
	bool skeleton;  /* the rest is in another file */
	bool loaded, walked;
	struct rt_dwarf_source split; /* what tree lies in */
	RT_VEC(struct rt_node) nodes;
	struct rt_spans spans; /* value: index of nodes */
};

struct rt_dwarf {
	const struct rt_image *image;
	struct rt_dwarf_source own, companion;
	Dwarf *dw;                    /* the one that has units; NULL: no debug info */
	struct rt_bytes info, abbrev; /* sections of dw; only where has_bytes: they can be read as they are */
	bool has_bytes;
	bool mapped; /* info is in the file: its pages can be had again. Of memory they would be lost */
	struct rt_skim skim;
	struct rt_unwind_rows *rows; /* owned; NULL: nobody has asked */
	RT_VEC(struct rt_span) code; /* executable segments */
	struct rt_intern strings;
	RT_VEC(struct rt_unit) units;
	struct rt_spans spans; /* value: index of units */
	RT_VEC(struct rt_fn) fns;
	struct rt_map fn_by_die; /* address of the DIE -> index of fns + 1 */
	size_t span_count;
	bool all_walked, types_read, fdes_read, parts_read, rows_tried;
	struct rt_map types;                      /* (name id, 0 tag or 1 typedef) -> index of type_dies + 1 */
	RT_VEC(Dwarf_Die) type_dies, global_dies; /* globals: variables of units, not of functions */
	struct rt_fdes fdes[2];                   /* of .eh_frame, of .debug_frame */
	RT_VEC(uint64_t) parts;                   /* addresses of split-off parts of functions, sorted */
	struct rt_image *package;                 /* .dwp; owned, NULL: none */
	struct rt_dwarf_source package_source;
	bool package_tried;
	struct rt_map skeleton_by_cu; /* unit of split debug info -> index of units + 1 */
	RT_VEC(struct rt_dwarf_missing) missing;
};

/* Interned copy; NULL for NULL and without memory. */
const char *rt_dwarf_text(struct rt_dwarf *dwarf, const char *text);
/* Interned path, made absolute by the compilation directory of the unit that die lies in. */
const char *rt_dwarf_path(struct rt_dwarf *dwarf, Dwarf_Die *die, const char *path);
/*
 * Adds the ranges of die with value. Linkers leave functions that they dropped at address 0 or so: only ranges in code
 * count. Sets *ret_any where there is one. false: no memory
 */
bool rt_dwarf_add_ranges(struct rt_dwarf *dwarf, Dwarf_Die *die, struct rt_spans *spans, uint32_t value, bool *ret_any);
/* Whether addr lies in code of the image. */
bool rt_dwarf_in_code(const struct rt_dwarf *dwarf, uint64_t addr);

/* Opens the sections of an image for rt_source_section(); with rt_source_begin() for libdw, too. */
RT_CHECK struct rt_error *rt_source_open(const struct rt_image *image, struct rt_dwarf_source *source);
RT_CHECK struct rt_error *rt_source_begin(const struct rt_image *image, struct rt_dwarf_source *source);
void rt_source_end(struct rt_dwarf_source *source);
/* Decompressed bytes of a section, valid as long as source. false: it has none. */
bool rt_source_section(const struct rt_image *image, const struct rt_dwarf_source *source, const char *name,
		       struct rt_bytes *ret);

/* Finds the rest of a skeleton unit at the first call; where it is missing that is noted, and success. */
RT_CHECK struct rt_error *rt_unit_load(struct rt_dwarf *dwarf, struct rt_unit *unit);
/*
 * Bytes of info that are not needed soon: their pages go, and come again when they are read. All at the end, they would
 * be as much memory as the file is large; and for one byte the kernel may map 2 MiB of what it has in memory anyway.
 */
void rt_dwarf_give_back(const struct rt_dwarf *dwarf, struct rt_bytes bytes);

/* The unit whose files and lines hold for a unit of split debug info; false: cu is none. */
bool rt_unit_of_split(struct rt_dwarf *dwarf, struct Dwarf_CU *cu, Dwarf_Die *ret);

/* Reads the tree of a unit, or of all units. Doing it again costs nothing. */
RT_CHECK struct rt_error *rt_unit_walk(struct rt_dwarf *dwarf, struct rt_unit *unit);
RT_CHECK struct rt_error *rt_dwarf_walk_all(struct rt_dwarf *dwarf);
/* Reads at least the trees of the units that may have a function of this name or linkage name. */
RT_CHECK struct rt_error *rt_dwarf_walk_named(struct rt_dwarf *dwarf, const char *name);

/* String of an attribute of die or of what it refers to (abstract origin, specification); not interned. */
const char *rt_die_string(Dwarf_Die *die, unsigned attribute);
/* The DIE that a reference attribute of die itself names. */
bool rt_die_ref(Dwarf_Die *die, unsigned attribute, Dwarf_Die *ret);
/* Number in a constant attribute, own or inherited. */
bool rt_die_number(Dwarf_Die *die, unsigned attribute, uint64_t *ret);
/* The next sibling, which must lie behind die; false at the end. */
bool rt_die_next(Dwarf_Die *die);
/* The address where the code of a function or instance starts. */
bool rt_die_entry(const struct rt_dwarf *dwarf, Dwarf_Die *die, uint64_t *ret);
/* Interned file name of a DW_AT_call_file or the like; NULL when there is none. */
const char *rt_die_file(struct rt_dwarf *dwarf, Dwarf_Die *die, unsigned attribute);
/* Interned DW_AT_linkage_name, NULL when it is the name. */
const char *rt_die_linkage(struct rt_dwarf *dwarf, Dwarf_Die *die);

/*
 * Reads names and call site of a node. GCC splits a function and may inline
 * both parts: the second is an instance in an instance of the same function, as
 * called from the function's own first line. It is no call: node->split.
 */
void rt_node_name(struct rt_dwarf *dwarf, struct rt_unit *unit, struct rt_node *node);

/* The innermost node of a walked unit that holds addr; NULL: none. */
struct rt_node *rt_unit_innermost(struct rt_unit *unit, uint64_t addr);

/* Whether the function that starts at addr is only the rest of one that was split. */
bool rt_dwarf_is_part(struct rt_dwarf *dwarf, uint64_t addr);

/* Reads name, file ... of a function. */
void rt_fn_resolve(struct rt_dwarf *dwarf, struct rt_fn *fn);

/* Spelling of a type; type NULL is void. ret->name is left alone. */
void rt_type_spell(struct rt_dwarf *dwarf, Dwarf_Die *type, struct rt_param *ret);
/* The type of die (own or inherited DW_AT_type); false for void. */
bool rt_die_type(Dwarf_Die *die, Dwarf_Die *ret);
/* Type behind typedefs and qualifiers. false: void, or too many. */
bool rt_type_peel(Dwarf_Die *type, Dwarf_Die *ret);
