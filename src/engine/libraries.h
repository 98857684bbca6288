/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a program will load before its first line runs: found as the dynamic linker finds it (ld.so(8)), without running
 * anything. A superset may come out, where the linker's choice depends on the processor.
 */
#pragma once

#include "base/error.h"
#include "base/vec.h"

struct rt_libraries_options {
	const char *library_path; /* LD_LIBRARY_PATH of the program; NULL: none */
	const char *preload;      /* LD_PRELOAD; NULL: none */
	/* What it may ask for while it runs; one that is not there is not loaded. */
	const char *const *opened;
	size_t opened_count;
};

/* Paths, owned. */
struct rt_libraries {
	RT_VEC(char *) paths;
	/* Others may be loaded: one was not found, or a file says by itself where its libraries are (DT_RUNPATH). */
	bool unsure;
};

/*
 * Appends the real path of the program and of each library that it needs, in the order of loading; each once. What
 * cannot be found or read is left out. Only memory can run out.
 */
RT_CHECK struct rt_error *rt_libraries_of(const char *program, const struct rt_libraries_options *options,
					  struct rt_libraries *ret);

/*
 * The file that starts when a command is run: by PATH where it has no slash. For a script the interpreter's, too
 * ("#!/usr/bin/env python3" gives all three). Appended as in rt_libraries_of(), with their libraries. Nothing is found:
 * nothing is appended.
 */
RT_CHECK struct rt_error *rt_libraries_of_command(const char *command, const struct rt_libraries_options *options,
						  struct rt_libraries *ret);
void rt_libraries_deinit(struct rt_libraries *libraries);
