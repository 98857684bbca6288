/* SPDX-License-Identifier: GPL-2.0-only */
/* A file that probes are placed in, and the probe definitions of the command line resolved in it. */
#pragma once

#include "cli/options.h"
#include "engine/probe_events.h"
#include "probe/answer.h"

/* The options of `probe show`, `add` and `export`. */
struct rt_probe_options {
	struct rt_options common; /* first: argp hands it on */
	const char *file;         /* -x */
	const char *vmlinux, *kallsyms, *notes;
	bool running; /* --kernel: the one that runs here */
	bool dry_run, definition, force, partial, all_places;
};

/* One line of uprobe_events, or of kprobe_events. Strings belong to the plan. */
struct rt_probe_line {
	const char *text, *group, *event;
	bool first; /* of its event */
	const struct rt_answer_point *point;
};

struct rt_probe_plan {
	struct rt_arena arena;
	RT_VEC(struct rt_probe_line) lines;
	RT_VEC(const char *) notes; /* one sentence each, clean */
	/* what the strings come from */
	struct rt_image *image;
	struct rt_symtab *symtab;
	struct rt_dwarf *dwarf;
	struct rt_decoder *decoder;
	struct rt_btf *btf;      /* of a kernel; NULL: none */
	struct rt_kernel kernel; /* is_kernel */
	bool is_kernel;
	struct rt_answer *answers;
	struct rt_request *requests;
	size_t count;
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

/* Prints the notes on stderr, unless quiet. */
void rt_probe_plan_notes(const struct rt_probe_plan *plan, const struct rt_options *options);
