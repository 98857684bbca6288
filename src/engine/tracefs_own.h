/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Definitions of uprobes in tracefs that live as long as one reftrace: its own group, and taking away what others left
 * that were killed (harmless: without their perf events they arm nothing).
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* When the process started, in clock ticks since boot: tells users of one pid apart. false: no such process. */
bool rt_tracefs_start_time(uint32_t pid, uint64_t *ret);

#define RT_TRACEFS_GROUP_MAX 48

/* "reftrace_PID_START": the group of this process. false: /proc does not tell. */
bool rt_tracefs_own_group(char group[RT_TRACEFS_GROUP_MAX]);

/*
 * Removes definitions of reftraces that no longer live (pid gone, or taken by another process). No tracefs, nothing to
 * remove: success. *ret_busy: definitions that the kernel does not give up yet, because somebody still has a perf event
 * of theirs open: the dead one, whose files are being closed, or another tool.
 */
RT_CHECK struct rt_error *rt_tracefs_cleanup_stale(int root_fd, size_t *ret_busy);
