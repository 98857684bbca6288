/* SPDX-License-Identifier: GPL-2.0-only */
/* Engine K on tracefs: the directory, and definitions of reftraces that are gone. */
#pragma once

#include "engine/uprobe_priv.h"

/* Opens tracefs; with mount, mounts it if it is nowhere. RT_E_NOT_FOUND, RT_E_PRIVILEGE, RT_E_KERNEL. */
RT_CHECK struct rt_error *rt_tracefs_open(int root_fd, bool mount, int *ret);

/* When the process started, in clock ticks since boot: tells users of one pid apart. false: no such process. */
bool rt_tracefs_start_time(uint32_t pid, uint64_t *ret);
