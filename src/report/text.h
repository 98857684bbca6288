/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside the text report: what its parts share. Lines are at most width
 * columns where their content allows it; paths are shortened, names never.
 */
#pragma once

#include "report/report.h"
#include "report/words.h"

enum rt_paint { RT_PAINT_BAD, RT_PAINT_GOOD, RT_PAINT_STRONG, RT_PAINT_MARK, RT_PAINT_DIM, RT_PAINT_END };

struct rt_text_report {
	const struct rt_verdict *verdict;
	const struct rt_run_info *run;
	struct rt_text_options options; /* with the defaults filled in */
	struct rt_namer *namer;         /* may be NULL: no source lines */
	struct rt_sink *sink;
	struct rt_arena arena;
	unsigned balance_rows; /* how many fit into the 24 lines of a report with one finding */
};

/* Escape code that starts a paint (RT_PAINT_END: ends it); "" without color. */
const char *rt_paint(const struct rt_text_report *report, enum rt_paint paint);

/* "leak.c:29" in at most max columns; "" when the place has no file. Whole path or its last part. */
const char *rt_report_place(struct rt_text_report *report, const struct rt_frame *frame, size_t max);

/* A sentence: whole with -v, else at most one and a half lines. */
const char *rt_report_fit(struct rt_text_report *report, const char *text);

/* A finding in full: head, guilty line, source, balance, history. */
void rt_report_finding(struct rt_text_report *report, const struct rt_finding *finding);

/* A finding in one line, for those beyond options.max_findings and for suspects. */
void rt_report_finding_line(struct rt_text_report *report, const struct rt_finding *finding);

/* Counting mode: objects that are not balanced. */
void rt_report_tallies(struct rt_text_report *report);

/* The lines around the guilty one, with what happened on them. Prints nothing when they cannot be read. */
void rt_report_source(struct rt_text_report *report, const struct rt_finding *finding);

/* Table "balance by caller", "first:" line or ledger, stacks. */
void rt_report_balance(struct rt_text_report *report, const struct rt_finding *finding);
void rt_report_first(struct rt_text_report *report, const struct rt_finding *finding);
void rt_report_ledger(struct rt_text_report *report, const struct rt_finding *finding);
void rt_report_stacks(struct rt_text_report *report, const struct rt_finding *finding);

/* What was suppressed, by which rules, and which rules took nothing. Prints nothing where no rules were given. */
void rt_report_suppressed(struct rt_text_report *report);
/* A suppression for each finding, with options of the run that ask for it. */
void rt_report_generated(struct rt_text_report *report);
