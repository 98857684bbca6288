/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a verdict to something a person or a program reads. Renderers are pure: verdict in,
 * bytes to a sink out.
 */
#pragma once

#include "base/sink.h"
#include "lifetime/lifetime.h"

struct rt_suppressions;
struct rt_suppressed;

/* What the report says about the run itself. */
struct rt_run_info {
	const char *const *command; /* NULL-terminated; NULL = unknown */
	uint32_t pid;               /* of the first process; 0 = unknown */
	const char *engine;         /* "uprobe", "replay", "text" */
	int program_status;         /* wait status of the first process */
	bool program_ended;         /* program_status is valid */
	int exit_status;            /* reftrace's own exit status */
	unsigned moment;            /* 1..: at this look at the living program; 0: at its end */
	const char *pairs;          /* one line: what was traced and why, NULL = none */
	const char *recording;      /* path of a kept recording, for hints; NULL */
	const char *const *more;    /* more_count paths: the files behind it, of a recording in several */
	size_t more_count;
	double slowdown;            /* 0 = unknown */
	const char *const *unnamed; /* files whose names could not be read, one sentence each */
	size_t unnamed_count;
	const struct rt_suppressions *suppressions; /* NULL = none were given; report/suppress.h */
	const struct rt_suppressed *suppressed;     /* what they took; the verdict is without it */
	size_t suppressed_count;
	bool generate; /* a suppression for each finding */
	bool again;    /* it was launched, has ended, and --narrow would be new: for hints */
};

struct rt_text_options {
	unsigned width;        /* columns, 0 = 80 */
	bool color;            /* escape codes allowed */
	bool quiet;            /* findings only, no head and no hints when clean */
	bool verbose;          /* all findings in full, suspects, all types, points */
	unsigned max_findings; /* in full; 0 = 5 */
};

/* The text report: user-facing, at most 24 lines for one finding, guilty function within the first 5. */
RT_CHECK struct rt_error *rt_report_text(const struct rt_verdict *verdict, const struct rt_run_info *run,
					 const struct rt_text_options *options, struct rt_namer *namer,
					 struct rt_sink *sink);

/* The findings JSON, schema "reftrace-findings-1" (docs/findings.schema.json). */
RT_CHECK struct rt_error *rt_report_json(const struct rt_verdict *verdict, const struct rt_run_info *run,
					 struct rt_sink *sink);
