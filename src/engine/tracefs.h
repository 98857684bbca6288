/* SPDX-License-Identifier: GPL-2.0-only */
/* The directory of tracefs. */
#pragma once

#include "base/error.h"

/* Opens tracefs; with mount, mounts it if it is nowhere. RT_E_NOT_FOUND, RT_E_PRIVILEGE, RT_E_KERNEL. */
RT_CHECK struct rt_error *rt_tracefs_open(int root_fd, bool mount, int *ret);

/* The kernel refused something of tracefs, or the whole: why, by our capabilities. */
RT_CHECK struct rt_error *rt_tracefs_denied(int errnum, const char *what);

/* One line to uprobe_events of the folder (rt_tracefs_open()). 0 or an errno. */
int rt_tracefs_write(int dir, const char *line);
