/* SPDX-License-Identifier: GPL-2.0-only */
/* A file as the listings of probe read it, and what they share: options, notes, the frame of the output. */
#pragma once

#include <time.h>

#include "base/arena.h"
#include "cli/options.h"
#include "dwarf/dwarf.h"
#include "elf/symtab.h"
#include "report/json_writer.h"

struct rt_listing {
	const struct rt_options *options;
	const char *path;
	int root; /* AT_FDCWD or owned */
	struct timespec mtime;
	struct rt_image *image;
	struct rt_symtab *symtab;
	struct rt_dwarf *dwarf;
	struct rt_sink out;
	struct rt_json json;
	struct rt_arena arena;
	RT_VEC(struct rt_listing_note) notes;
};

/* What is missing, and how to get it; both in the arena or static. */
struct rt_listing_note {
	const char *text, *fix; /* fix may be NULL */
};

/* -x FILE, --json and --no-demangle. */
extern const struct argp rt_listing_options;

/* The operand of this number behind the file's name, wherever that was told; NULL: none. */
const char *rt_listing_operand(const struct rt_options *options, size_t number);

/*
 * Opens the file that the options name, with its debug file and debug info, and the output. RT_E_USAGE when there is no
 * name, or more than `most` words behind it. Close it in any case.
 */
RT_CHECK struct rt_error *rt_listing_open(const struct rt_options *options, size_t most, struct rt_listing *ret);
void rt_listing_close(struct rt_listing *file);

/* Adds a note; printf-style, fix may be NULL. */
void rt_listing_note(struct rt_listing *file, const char *fix, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* How to get the debug information of the file. */
const char *rt_listing_debug_fix(struct rt_listing *file);
/* Notes what of symbols and debug information is not there. */
void rt_listing_note_missing(struct rt_listing *file, size_t functions);

/* The start of the JSON: file and build-id; the object stays open. */
void rt_listing_json_begin(struct rt_listing *file);
/* Notes: into the open JSON object, which is closed, or to standard error; then all output is handed out. */
RT_CHECK struct rt_error *rt_listing_end(struct rt_listing *file);

/* Split debug info that was asked for and is missing, as one sentence; NULL: nothing is. */
const char *rt_split_missing(struct rt_arena *arena, const struct rt_dwarf *dwarf);

/* A name as the options want it, clean: demangled, in the arena. */
const char *rt_listing_name(struct rt_listing *file, const char *symbol);

/* What the commands have in common: parse by argp, run, report the failure. */
int rt_listing_run(const struct argp *argp, int argc, char **argv,
		   struct rt_error *(*run)(const struct rt_options *options, struct rt_listing *file), size_t most);
