/* SPDX-License-Identifier: GPL-2.0-only */
/* A file that probes are placed in, and the probe definitions of the command line resolved in it. */
#pragma once

#include <sys/stat.h>

#include "cli/options.h"
#include "engine/probe_events.h"
#include "probe/answer.h"
#include "probe/cached.h"

/* The options of `probe show`, `add` and `export`. */
struct rt_probe_options {
	struct rt_options common; /* first: argp hands it on */
	const char *file;         /* -x */
	const char *vmlinux, *kallsyms, *notes;
	bool running; /* --kernel: the one that runs here */
	bool dry_run, definition, force, partial, all_places;
	bool cache; /* --cache */
	struct rt_cached_allow allow;
};

/* One line of uprobe_events, or of kprobe_events. Strings belong to the plan. */
struct rt_probe_line {
	const char *text, *group, *event;
	const char *wanted;                  /* what the cache calls the event; NULL: it is not from there */
	bool first;                          /* of its event */
	const struct rt_answer_point *point; /* NULL: it is from the build-id cache */
	size_t request;                      /* index */
};

struct rt_probe_plan {
	struct rt_arena arena;
	RT_VEC(struct rt_probe_line) lines;
	RT_VEC(const char *) notes;    /* one sentence each, clean */
	RT_VEC(const char *) warnings; /* the same; said even to those who want none */
	/* what the strings come from */
	struct rt_image *image;
	struct rt_symtab *symtab;
	struct rt_dwarf *dwarf;
	struct rt_decoder *decoder;
	bool is_read;            /* the three above: see rt_probe_plan_read() */
	struct rt_btf *btf;      /* of a kernel; NULL: none */
	struct rt_kernel kernel; /* is_kernel */
	bool is_kernel;
	struct rt_answer *answers;
	struct rt_request *requests;
	size_t count;
	struct rt_cache *cache; /* NULL: not needed yet, or there is none */
	int fd;                 /* of the file */
	struct stat opened;     /* as it was then */
	char *path;             /* as the kernel shall open it; with another root, as it is called there */
	int root;               /* AT_FDCWD, or what stands for / */
	RT_VEC(char *) sources; /* name, text, ... */
};

/*
 * Resolves all operands of options in its file or kernel. taken: events that exist already (NULL: not known); a name
 * that was told and is taken is RT_E_USAGE without --force, a name of ours gets a number behind it. *ret is to be freed
 * by rt_probe_plan_deinit() in any case.
 */
RT_CHECK struct rt_error *rt_probe_plan_make(const struct rt_probe_options *options,
					     const struct rt_probe_events *taken, struct rt_probe_plan *ret);
void rt_probe_plan_deinit(struct rt_probe_plan *plan);

/*
 * A name for an event that no other has, in *ret: wanted, or with a number behind it. told: the user named it, and
 * without force it is RT_E_USAGE when the kernel has it.
 */
RT_CHECK struct rt_error *rt_probe_plan_name(struct rt_probe_plan *plan, const struct rt_probe_events *taken, bool told,
					     bool force, const char *group, const char *wanted, const char **ret);
/* "probe_libc" of /usr/lib/libc.so.6, as perf has it. */
const char *rt_probe_plan_group(struct rt_probe_plan *plan);
/* Reads the symbols and debug information of the plan's file, unless that was done: only the cache can do without. */
RT_CHECK struct rt_error *rt_probe_plan_read(struct rt_probe_plan *plan, const struct rt_probe_options *options);
/* What the answers to requests are found in. Valid as long as the plan. */
struct rt_answer_module rt_probe_plan_module(struct rt_probe_plan *plan, const struct rt_probe_options *options);

/* Does the plan's path still lead to the file that was looked at, as it was then? RT_E_BUILD_ID. */
RT_CHECK struct rt_error *rt_probe_plan_check(const struct rt_probe_plan *plan);

/* Prints the notes on stderr, unless quiet, and the warnings. */
void rt_probe_plan_notes(const struct rt_probe_plan *plan, const struct rt_options *options);
