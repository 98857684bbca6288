/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What two verdicts have of each other's findings, across builds: a finding is the same where kind, type, class and the
 * guilty function (with its file's last part) are; the sites at which its references were taken are matched by function
 * and then by line, in their order, with whatever shift fits best. Addresses, build-ids and folders mean nothing here.
 */
#pragma once

#include "base/arena.h"
#include "report/report.h"

enum rt_change { RT_NEW, RT_GROWN, RT_GONE, RT_SHRUNK, RT_SAME, RT_CHANGES };

/* Where references were taken; 0 references: not there. */
struct rt_diff_site {
	const char *function; /* "[libfoo.so]" where it has no name */
	struct rt_frame old_frame, new_frame;
	uint64_t old_references, new_references;
	enum rt_change change;
};

struct rt_diff_row {
	enum rt_change change;
	bool suspect;                               /* in neither verdict more than a suspicion */
	const struct rt_finding *old_one, *new_one; /* NULL: not there; with several, the first */
	uint64_t old_objects, new_objects;
	struct rt_diff_site *sites;
	size_t site_count;
};

/* Objects of a type that are alive and not accused. */
struct rt_diff_alive {
	const char *type, *klass;
	uint64_t old_objects, new_objects;
};

struct rt_diff {
	struct rt_arena arena;
	struct rt_diff_row *rows; /* by change, then by how many objects */
	size_t count;
	size_t changes[RT_CHANGES]; /* rows that are no suspicion */
	struct rt_diff_alive *alive;
	size_t alive_count;
};

/* Which findings are compared. */
struct rt_diff_filter {
	const char *const *types; /* type_count of them; 0: all */
	size_t type_count;
	const char *id; /* only the finding of this id; NULL: all */
};

/* Strings are the verdicts', which outlive *ret. Deinit it also after a failure. */
RT_CHECK struct rt_error *rt_diff_make(const struct rt_verdict *before, const struct rt_verdict *after,
				       const struct rt_diff_filter *filter, struct rt_diff *ret);
void rt_diff_deinit(struct rt_diff *diff);

/* One side of it. */
struct rt_diff_side {
	const char *path;
	const char *const *command; /* NULL-terminated; NULL: not known */
	const struct rt_verdict *verdict;
};

struct rt_diff_head {
	struct rt_diff_side before, after;
	int exit_status;
};

/* "new", "grown", "gone", "shrunk", "same". */
const char *rt_change_word(enum rt_change change);
RT_CHECK struct rt_error *rt_diff_text(const struct rt_diff *diff, const struct rt_diff_head *head,
				       const struct rt_text_options *options, struct rt_sink *sink);
/* Schema "reftrace-diff-1" (docs/diff.schema.json). */
RT_CHECK struct rt_error *rt_diff_json(const struct rt_diff *diff, const struct rt_diff_head *head,
				       struct rt_sink *sink);
