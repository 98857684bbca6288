/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names for frames of real programs: implements struct rt_namer over mapping
 * history and ELF/DWARF of the modules. Order per frame: DWARF scopes (inlined
 * functions included), symbol table, PLT stub names; then only module+offset.
 * C++ names are demangled, without parameters; linkage tells overloads apart.
 *
 * Modules are opened lazily, at the first question, by build-id: first an image
 * handed in by the session, else the recorded path (accepted only if its
 * build-id is the recorded one), else a build-id cache. A module that cannot be opened is noted once.
 */
#pragma once

#include "cache/cache.h"
#include "dwarf/dwarf.h"
#include "elf/image.h"
#include "event/names.h"
#include "maps/maps.h"

struct rt_chain;

struct rt_chain_options {
	const char *symfs;                    /* directory that stands for "/" when modules are opened, or NULL */
	const struct rt_cache *const *caches; /* asked in this order; NULL-terminated, NULL = none; outlive the chain */
	const char *sources; /* folder with copies of source files below their paths, asked first; NULL = none */
	/* asked for a file's debug information where neither disk nor caches have it, once for each; NULL = none */
	struct rt_error *(*fetch)(void *arg, struct rt_image *image);
	void *fetch_arg;
	bool no_source; /* never open source files */
	bool no_demangle;
};

/* maps must outlive the chain; it may go on growing. */
RT_CHECK struct rt_error *rt_chain_create(const struct rt_maps *maps, const struct rt_chain_options *options,
					  struct rt_chain **ret);
void rt_chain_destroy(struct rt_chain *chain);
RT_CLEANUP(struct rt_chain *, rt_chain_destroy);

/* Takes MODULE records (others are ignored). */
RT_CHECK struct rt_error *rt_chain_record(struct rt_chain *chain, const struct rt_wire_head *record);

/* Gives the image for a module id, so that it need not be opened again. The chain does not own it; it must outlive the
 * chain. */
RT_CHECK struct rt_error *rt_chain_give_image(struct rt_chain *chain, uint32_t module, const struct rt_image *image);

/*
 * Gives the image of "[vdso]", which has no file: used for modules of that name that have the same build-id or none. It
 * must outlive the chain.
 */
void rt_chain_give_vdso(struct rt_chain *chain, const struct rt_image *image);

/*
 * The module's image, opened if need be; NULL when it cannot be had. ret_path (may be NULL): where it was seen, "" for
 * an unknown module. Both live as long as the chain.
 */
const struct rt_image *rt_chain_image(struct rt_chain *chain, uint32_t module, const char **ret_path);

/* A thread as it stood, and a copy of its stack. */
struct rt_chain_stack {
	struct rt_dwarf_regs regs; /* RT_DWARF_RA: the instruction itself */
	uint64_t address;          /* of the first byte */
	struct rt_bytes bytes;
};
/*
 * The instruction and its callers (return addresses; where a signal interrupted, one more than the instruction, so
 * that looking one before finds it as well), innermost first; at most max. *ret_end: why there are no more
 * (RT_DWARF_STEPPED: max).
 */
size_t rt_chain_unwind(struct rt_chain *chain, uint32_t pid, uint64_t time_ns, const struct rt_chain_stack *stack,
		       uint64_t *ret, size_t max, enum rt_dwarf_step *ret_end);

/* A source line of code that has no file. */
struct rt_code_line {
	uint64_t address; /* run-time address of its first instruction */
	const char *file;
	uint32_t line;
};

/* Code that no module holds: a kernel function, a function of a BPF program. */
struct rt_chain_code {
	uint64_t start, end;     /* [start, end), run-time addresses */
	uint64_t from_ns, to_ns; /* [from, to); both 0: always there; to UINT64_MAX: not gone yet */
	const char *name, *module;
	const struct rt_code_line *lines; /* by address; not copied, outlives the chain; NULL = none */
	size_t line_count;
};
RT_CHECK struct rt_error *rt_chain_add_code(struct rt_chain *chain, const struct rt_chain_code *code);
/* The code at start that was there at time_ns is gone from then on. */
void rt_chain_end_code(struct rt_chain *chain, uint64_t start, uint64_t time_ns);

/* The naming interface; valid as long as the chain. */
struct rt_namer *rt_chain_namer(struct rt_chain *chain);

/*
 * What could not be read, one line each ("x: build-id differs, ..."). ret points to chain's own array.
 */
size_t rt_chain_notes(const struct rt_chain *chain, const char *const **ret);
/* The same of what is there but says little: stripped files. */
size_t rt_chain_hints(const struct rt_chain *chain, const char *const **ret);
