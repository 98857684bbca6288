/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Views of lifetimes: the whole life of chosen objects; the balance tree of those that were
 * never released. Pure: what the analysis kept in, bytes to a sink out.
 */
#pragma once

#include "base/sink.h"
#include "lifetime/lifetime.h"
#include "profile/balance.h"

struct rt_view_options {
	unsigned width; /* columns, 0 = 80 */
	bool color;     /* escape codes allowed */
	bool stacks;    /* objects: the whole stack of each event */
	bool inverted;  /* tree: the innermost function first */
};

/* Where the stream came from. */
struct rt_view_head {
	const char *const *command; /* NULL-terminated, NULL = unknown */
};

/* "command: ..." and an empty line; nothing when it is not known. */
void rt_view_command(const struct rt_view_head *head, struct rt_sink *sink);

/* Every life of verdict->watched. */
RT_CHECK struct rt_error *rt_object_text(const struct rt_view_head *head, const struct rt_verdict *verdict,
					 const struct rt_view_options *options, struct rt_sink *sink);
/* Schema "reftrace-object-1" (docs/object.schema.json). Stacks are always there. */
RT_CHECK struct rt_error *rt_object_json(const struct rt_view_head *head, const struct rt_verdict *verdict,
					 struct rt_sink *sink);

/* A tree, and of which objects it tells. */
struct rt_view_tree {
	const struct rt_balance_type *tree;
	uint64_t objects, of; /* in the tree, of how many of the type */
	bool all;             /* whatever became of them: not only those that were never released */
};

RT_CHECK struct rt_error *rt_tree_text(const struct rt_view_head *head, const struct rt_verdict *verdict,
				       const struct rt_view_tree *trees, size_t count,
				       const struct rt_view_options *options, struct rt_sink *sink);
/* Schema "reftrace-tree-1" (docs/tree.schema.json): nodes in the order of the text, with their depth. */
RT_CHECK struct rt_error *rt_tree_json(const struct rt_view_head *head, const struct rt_verdict *verdict,
				       const struct rt_view_tree *trees, size_t count,
				       const struct rt_view_options *options, struct rt_sink *sink);
