/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The command table. A command parses its arguments, calls the modules below
 * and prints; it returns the exit status.
 */
#pragma once

#include <argp.h>
#include <stdbool.h>

/* Exit statuses of reftrace's own (reftrace(1), EXIT STATUS). */
enum {
	RT_EXIT_OK = 0,
	RT_EXIT_USAGE = 2,
	RT_EXIT_FINDINGS = 23,
	RT_EXIT_TRUST = 24,
	RT_EXIT_FAILED = 125,
	RT_EXIT_NOT_EXECUTABLE = 126,
	RT_EXIT_NOT_FOUND = 127,
};

struct rt_command {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the command's name */
	const char *arguments;             /* for the overview: "[--] PROG [ARGS...]" */
	const char *summary;
	const struct argp *argp;
};

/* The table ends with a NULL name. */
const struct rt_command *rt_commands(void);
/* NULL: no such command in this build. */
const struct rt_command *rt_command_find(const char *name);
/* A command that other versions have, or will have. */
bool rt_command_reserved(const char *name);

int cmd_run(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_script(int argc, char **argv);
int cmd_annotate(int argc, char **argv);
int cmd_archive(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_object(int argc, char **argv);
int cmd_tree(int argc, char **argv);
int cmd_cache(int argc, char **argv);
int cmd_probe(int argc, char **argv);
int cmd_scan(int argc, char **argv);
int cmd_bpf(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_version(int argc, char **argv);

extern const struct argp rt_run_argp, rt_record_argp, rt_report_argp, rt_annotate_argp, rt_archive_argp, rt_script_argp,
	rt_export_argp, rt_scan_argp, rt_doctor_argp, rt_help_argp, rt_version_argp;
extern const struct argp rt_bpf_argp, rt_cache_argp, rt_diff_argp, rt_object_argp, rt_probe_argp, rt_tree_argp;
