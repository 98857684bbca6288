/* SPDX-License-Identifier: GPL-2.0-only */
/* The files of --suppressions. */
#pragma once

#include "cli/options.h"
#include "report/suppress.h"

/* Appends the rules of all files. A file that is not there, or not understood, is an error: nothing is hidden, or left
 * to see, by accident. */
RT_CHECK struct rt_error *rt_suppressions_read(const struct rt_options *options, struct rt_suppressions *ret);
