/* SPDX-License-Identifier: GPL-2.0-only */
/* The text of a source file, where it can be found. */
#pragma once

#include "cli/listing.h"

struct rt_probe_source {
	char *text;
	RT_VEC(const char *) lines;
	const char *why; /* it is not there; NULL: it is */
	bool newer;      /* than the program: lines may have moved */
};

/*
 * path as debug info says it: below --source-dir as a whole, then by ever shorter ends of it, then where it says, in
 * the root of the file. Never fails: why tells. Free it by rt_probe_source_deinit().
 */
void rt_probe_source_read(struct rt_listing *file, const char *path, struct rt_probe_source *ret);
void rt_probe_source_deinit(struct rt_probe_source *source);
/* Line number (from 1), NULL when there is none. */
const char *rt_probe_source_line(const struct rt_probe_source *source, uint32_t line);
