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
 */
RT_CHECK struct rt_error *rt_uprobe_cleanup_stale(int root_fd);

/*
 * true: no 5-byte nop may be armed. Always true: Linux 6.18 patches such an
 * instruction into a call that kills children forked later and overwrites the
 * red zone, older kernels single-step it, and nothing is lost by taking the next one.
 */
bool rt_uprobe_avoid_nop5(void);
