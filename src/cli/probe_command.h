/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The commands under `probe`, each in a file of its own. Each takes argv without its own name (argv[0] stays "probe"),
 * reads its options by rt_options_parse(), and returns the exit status.
 */
#pragma once

#include <argp.h>

int rt_probe_add(int argc, char **argv);
int rt_probe_del(int argc, char **argv);
int rt_probe_export(int argc, char **argv);
int rt_probe_funcs(int argc, char **argv);
int rt_probe_lines(int argc, char **argv);
int rt_probe_list(int argc, char **argv);
int rt_probe_markers(int argc, char **argv);
int rt_probe_show(int argc, char **argv);
int rt_probe_vars(int argc, char **argv);

/* Their own options, for the help of all of them. */
extern const struct argp rt_probe_add_options, rt_probe_export_options, rt_probe_list_options, rt_probe_markers_options,
	rt_probe_lines_options, rt_probe_vars_options;
