/* SPDX-License-Identifier: GPL-2.0-only */
/* From a finished pipeline to what the user sees, and the exit status. */
#pragma once

#include "cli/options.h"
#include "cli/pipeline.h"
#include "cli/samples.h"
#include "report/report.h"
#include "report/suppress.h"

/*
 * Exit status of a run (reftrace(1), EXIT STATUS): with --error-exitcode
 * findings come first, then a broken trust, then the program's own status; else
 * the program's own, and 24 where that would be 0 and trust broke.
 */
int rt_exit_status(const struct rt_verdict *verdict, const struct rt_options *options, bool program_ended,
		   int program_status);

/* Where a report goes, and what it says about the exit. */
struct rt_output {
	int fd;                              /* without -o FILE */
	int file_fd;                         /* of -o, or -1 */
	int json_fd;                         /* of --json=FILE, or -1 */
	bool own_run;                        /* the program ran under us: its status becomes ours */
	struct rt_suppressions suppressions; /* of --suppressions */
	unsigned reports;                    /* written so far: several with --at */
	int failed;                          /* exit status of a failure that was reported already; 0 = none */
};

/* Opens -o and --json=FILE, and reads --suppressions, before anything is traced: a long run must not end in "cannot
 * write". */
RT_CHECK struct rt_error *rt_output_open(const struct rt_options *options, int fd, struct rt_output *ret);
void rt_output_close(struct rt_output *output);

/*
 * Makes the verdict and writes the reports: to -o FILE, else to output->fd; --json=FILE as
 * well. What breaks trust is said on standard error, too. Fills run->exit_status, and *ret with the same.
 */
RT_CHECK struct rt_error *rt_output_report(const struct rt_options *options, struct rt_output *output,
					   struct rt_pipeline *pipeline, struct rt_run_info *run, int *ret);

/* Writes the tables of samples, to the same places. */
RT_CHECK struct rt_error *rt_output_samples(const struct rt_options *options, const struct rt_output *output,
					    struct rt_samples *samples, const struct rt_profile_head *head);

/* Columns of the terminal behind fd; 0 when it is none. */
unsigned rt_output_width(int fd);

/* Escape codes allowed on fd? By --color, NO_COLOR, CLICOLOR_FORCE, TERM and isatty(). */
bool rt_output_color(enum rt_color color, int fd);
