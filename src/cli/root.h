/* SPDX-License-Identifier: GPL-2.0-only */
/* Which directory stands for "/" when a command opens the files that it is told: --symfs DIR, --target-ns PID. */
#pragma once

#include "cli/options.h"

/*
 * AT_FDCWD where neither is told; else an fd of that directory, which the caller closes: for rt_fs_open_inside() and
 * rt_image_find_debug(). RT_E_NO_PROCESS, RT_E_UNREADABLE, RT_E_USAGE when both are told.
 */
RT_CHECK struct rt_error *rt_root_open(const struct rt_options *options, int *ret);

/* The root of a process, in its own mount namespace; caller closes. */
RT_CHECK struct rt_error *rt_root_of_process(uint32_t pid, int *ret);

/* err of a file that was opened in there says so ("below DIR: ...", and what its path means); NULL stays NULL. */
RT_CHECK struct rt_error *rt_root_wrap(const struct rt_options *options, struct rt_error *err);
