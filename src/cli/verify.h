/* SPDX-License-Identifier: GPL-2.0-only */
/* scan --verify: runs a program and compares what the spec declares with what its counters did. */
#pragma once

#include "cli/options.h"

/*
 * The table goes to standard error or -o FILE, standard output is the program's. *ret: 23 when something is
 * contradicted, else 24 when nothing was seen or events are missing, else 0. The program's own status does not count.
 */
RT_CHECK struct rt_error *rt_verify(const struct rt_options *options, int *ret);
