/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Engine K beyond its ops table (engine.h): what a guardian process and the
 * planner need of it.
 */
#pragma once

#include "base/error.h"

/*
 * Removes uprobe definitions that reftraces left in tracefs which no longer
 * live (pid gone, or taken by another process). root_fd: directory that stands for
 * "/", AT_FDCWD for the real one. No tracefs, nothing to remove: success.
 * *ret_busy: definitions that the kernel does not give up yet, because somebody
 * still has a perf event of theirs open: the dead one, whose files are being
 * closed, or another tool.
 */
RT_CHECK struct rt_error *rt_uprobe_cleanup_stale(int root_fd, size_t *ret_busy);

/*
 * true: no 5-byte nop may be armed. Always true: Linux 6.18 patches such an
 * instruction into a call that kills children forked later and overwrites the
 * red zone, older kernels single-step it, and nothing is lost by taking the next one.
 */
bool rt_uprobe_avoid_nop5(void);
