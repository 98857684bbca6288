/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of symbol/: modules as they are opened, and source files as they are read. */
#pragma once

#include <time.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "dwarf/dwarf.h"
#include "elf/symtab.h"
#include "insn/insn.h"
#include "symbol/chain.h"

struct rt_chain_module {
	uint32_t id;
	const char *path; /* as recorded; interned; "" until its record is seen */
	uint8_t build_id[RT_BUILD_ID_MAX];
	uint8_t build_id_size;
	bool content_hash;
	bool tried;                   /* opening was tried */
	const struct rt_image *image; /* NULL: cannot be used */
	struct rt_image *owned;       /* the image where it is ours */
	struct rt_symtab *symtab;
	struct rt_dwarf *dwarf;
	bool mtime_known, mtime_tried;
	struct timespec mtime; /* of the module's file */
};

/* A source file, split in lines. */
struct rt_chain_source {
	char *text; /* NULL: cannot be read */
	RT_VEC(const char *) lines;
	struct timespec mtime;
};

struct rt_chain_answer {
	size_t first, count; /* in chain->frames */
};

struct rt_chain {
	struct rt_namer namer;
	const struct rt_maps *maps;
	struct rt_chain_options options;
	const struct rt_image *vdso;
	char *symfs; /* owned; without a slash at its end; NULL */
	struct rt_intern strings;
	RT_VEC(struct rt_chain_module) modules;
	struct rt_map module_by_id; /* id -> index of modules + 1 */
	RT_VEC(struct rt_frame) frames;
	RT_VEC(struct rt_chain_answer) answers;
	struct rt_decoder *decoder; /* made when it is needed; NULL: not yet, or there is none */
	bool decoder_tried;
	struct rt_map leaves_by_place; /* (file offset, module) -> rt_chain_leaves(), from there, + 1; or 0 */
	struct rt_map hands_by_place;  /* (file offset, module) -> RT_HANDS_* */
	struct rt_map waits_by_place;  /* (file offset, module) -> address of a function there << 1 | by what was given,
					  or 0 */
	struct rt_map answer_by_place; /* (file offset, module << 1 | is_return) -> index of answers + 1 */
	RT_VEC(char *) notes, hints;
	RT_VEC(struct rt_chain_source) sources;
	struct rt_map source_by_name; /* id of the name -> index of sources + 1 */
	uint64_t source_bytes;
	RT_VEC(struct rt_chain_code) fixed, loaded; /* by start once sorted */
	uint64_t loaded_longest;
	bool fixed_sorted, loaded_sorted;
};

/* The code around pc at that time, or NULL. */
const struct rt_chain_code *rt_chain_find_code(struct rt_chain *chain, uint64_t time_ns, uint64_t pc);
void rt_chain_name_code(struct rt_chain *chain, const struct rt_chain_code *code, uint64_t pc, bool is_return,
			struct rt_frame *ret);

/* Interned; NULL for NULL and without memory. */
const char *rt_chain_text(struct rt_chain *chain, const char *text);

/* The module of this number, made if it is new. NULL: out of memory. */
struct rt_chain_module *rt_chain_module(struct rt_chain *chain, uint32_t id);

/* Opens the module at the first call; what fails is noted once. */
void rt_chain_open(struct rt_chain *chain, struct rt_chain_module *module);
void rt_chain_close(struct rt_chain_module *module);

/*
 * Where the function lies, in the process, that the PLT stub at this address of the module stands for; 0: there is no
 * stub, or it is not known.
 */
uint64_t rt_chain_behind_stub(struct rt_chain *chain, const struct rt_chain_module *module, uint32_t pid,
			      uint64_t time_ns, struct rt_elfaddr target);

/* Registers that a call may change (System V x86-64): bits of enum rt_reg. */
#define RT_CHAIN_CLOBBERED \
	(1u << RT_REG_RAX | 1u << RT_REG_RDX | 1u << RT_REG_RCX | 1u << RT_REG_RSI | 1u << RT_REG_RDI | \
	 1u << RT_REG_R8 | 1u << RT_REG_R9 | 1u << RT_REG_R10 | 1u << RT_REG_R11)

/*
 * blind.c: the function [start, end) of x86-64 passes on an argument of its own that it has not looked into, by the
 * call that returns to `after`; after.v = 0: by a jump out of it.
 */
bool rt_chain_is_blind(const struct rt_image *image, struct rt_decoder *decoder, struct rt_elfaddr start,
		       struct rt_elfaddr end, struct rt_elfaddr after);
/* blind.c: what the function around this address is declared to be given */
enum rt_chain_given {
	RT_CHAIN_GIVEN_UNKNOWN,
	RT_CHAIN_GIVEN_ANYTHING,  /* by its name it frees, a void * whatever that points to */
	RT_CHAIN_GIVEN_STRUCTURE, /* a struct, and no void *: it knows what it frees, also where it looks at nothing */
};
enum rt_chain_given rt_chain_given(struct rt_dwarf *dwarf, struct rt_elfaddr at);
/* RT_HANDS_* of the function [start, end) of x86-64, for the call that returns to `after`. Bounded work. */
uint8_t rt_chain_hands(const struct rt_image *image, struct rt_decoder *decoder, struct rt_elfaddr start,
		       struct rt_elfaddr end, struct rt_elfaddr after);

/*
 * again.c: the function [start, end) of x86-64 surely looks into what it gave as its first argument to the call that
 * returns to `after`, behind that, or gives it to a function that by its name does not end it. symtab may be NULL.
 * Bounded work.
 */
bool rt_chain_goes_on(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		      struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr after);

/*
 * leaves.c: the one jump by which the function [start, end) of x86-64 goes to another one and does not come back; 0:
 * none, several, or not known. Jumps to what by its name only complains are none. decoder is for the image's machine;
 * symtab may be NULL.
 */
struct rt_elfaddr rt_chain_leaves(const struct rt_image *image, const struct rt_symtab *symtab,
				  struct rt_decoder *decoder, struct rt_elfaddr start, struct rt_elfaddr end);
/*
 * skips.c: the branches of the function [start, end) of x86-64 by which it can go from the instruction that `from`
 * tells of past all of these places, each with what it leads to then; by address, at most max. An address tells of the
 * instruction there, or of the call that returns there. None that ask whether the call returned an object at all; 0 as
 * well where that is not known. symtab may be NULL. Bounded work.
 */
size_t rt_chain_skips(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		      struct rt_elfaddr start, struct rt_elfaddr end, uint64_t from, const uint64_t *places, size_t nr,
		      struct rt_elfaddr (*ret)[2], size_t max);
/*
 * callback.c: the function to which the function [start, end) of x86-64 has somebody give what it got from the call
 * that returns to `after`, or gave that as its first argument (*ret_given). 0: none, or more than one. symtab may be
 * NULL. Bounded work.
 */
uint64_t rt_chain_callback(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
			   struct rt_elfaddr start, struct rt_elfaddr end, struct rt_elfaddr after, bool *ret_given);

/* Path on this machine: below symfs where there is one. Caller frees; NULL: out of memory. */
char *rt_chain_path(const struct rt_chain *chain, const char *path);

const char *rt_chain_source_line(struct rt_chain *chain, struct rt_chain_module *module, const char *file,
				 uint32_t line, bool *ret_stale);
