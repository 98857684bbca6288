/* SPDX-License-Identifier: GPL-2.0-only */
/* Places in source as the listings of probe are told them, and the functions and files that they mean. */
#pragma once

#include "cli/listing.h"

/* FUNC, FUNC@SRC, FUNC:N-M, SRC:N-M, SRC, 0xADDR. */
struct rt_probe_place {
	const char *text;
	const char *name;   /* function or source file; in the arena of the file */
	const char *source; /* behind the @; NULL */
	uint32_t first, last;
	bool ranged; /* first and last are told */
	bool at_address;
	uint64_t address;
};

RT_CHECK struct rt_error *rt_probe_place_parse(struct rt_listing *file, const char *text, struct rt_probe_place *ret);

/* One of several things that a place means: lines of a function, or of a file. */
struct rt_probe_range {
	const char *function; /* as it is shown; NULL: a whole file was named */
	const char *path;     /* of the source, from debug info, plain */
	uint32_t base;        /* line that counts as 0 of the function; 0: lines are those of the file */
	uint32_t first, last; /* lines of the file; last UINT32_MAX: to its end */
	uint32_t bodies, inlined;
};

/*
 * All that the place means, in the order of debug info. RT_E_NO_FUNCTION, RT_E_DEBUG_INFO when there is nothing to ask,
 * RT_E_USAGE. *ret is freed by the caller.
 */
RT_CHECK struct rt_error *rt_probe_place_find(struct rt_listing *file, const struct rt_probe_place *place,
					      struct rt_probe_range **ret, size_t *ret_count);

/* Whether a function of debug info is meant by name: its name, linkage name, or demangled with or without parameters.
 */
bool rt_probe_is_named(const char *name, const char *linkage, const char *wanted);
