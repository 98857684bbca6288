/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The balance tree: who took how many references and who gave them back, by call
 * path. A subtree whose sum is 0 has done its duty; what stays leads to the culprit.
 * Pure: stacks with their sums in, one tree for each type out. Memory grows with
 * distinct call paths, up to a limit.
 */
#pragma once

#include "base/error.h"
#include "event/names.h"

struct rt_balance_trees;

/* inverted: the innermost function first, its callers below; else the outermost first. */
RT_CHECK struct rt_error *rt_balance_create(bool inverted, struct rt_balance_trees **ret);
void rt_balance_destroy(struct rt_balance_trees *trees);
RT_CLEANUP(struct rt_balance_trees *, rt_balance_destroy);

/* What was done from one stack. Everything is copied. */
struct rt_balance_path {
	const char *type;
	const char *api; /* what was called at frames[0]; NULL = references that were there at first sight */
	const struct rt_frame *frames; /* innermost first; count 0: the stack is not known */
	size_t count;
	uint64_t events;
	uint64_t gets, puts; /* references taken and given back */
};
RT_CHECK struct rt_error *rt_balance_add(struct rt_balance_trees *trees, const struct rt_balance_path *path);

/* One function on one call path, or a call of get or put in it (api). Strings live as long as the trees. */
struct rt_balance_node {
	const char *function; /* NULL = unknown: then module and address tell */
	const char *file, *module;
	uint64_t address;
	uint32_t line;   /* of the call, where it is the same for all that is below; 0 = several, or unknown */
	const char *api; /* a leaf: the get or put that was called at line; NULL = a function */
	uint64_t events;
	uint64_t gets, puts; /* with all that is below */
	struct rt_balance_node *children;
	size_t child_count;
	size_t balanced; /* children that are hidden because each gave back what it took; the own calls count as one */
};

struct rt_balance_type {
	const char *type;
	uint64_t events, gets, puts;
	uint64_t at_first_sight; /* in gets: references that were there before the first event */
	struct rt_balance_node *nodes;
	size_t node_count;
	size_t balanced;
	uint64_t cut; /* events whose deeper frames were left out: too many distinct call paths */
};

/*
 * The trees as they are now, by balance, largest first; nodes too. all: nothing is hidden. Owned by trees, valid
 * until the next call.
 */
RT_CHECK struct rt_error *rt_balance_types(struct rt_balance_trees *trees, bool all, const struct rt_balance_type **ret,
					   size_t *ret_count);
