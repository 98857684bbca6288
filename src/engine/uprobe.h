/* SPDX-License-Identifier: GPL-2.0-only */
/* Engine K beyond its ops table (engine.h): what the planner needs of it. */
#pragma once

#include <stdbool.h>

/*
 * true: no 5-byte nop may be armed. Always true: Linux 6.18 patches such an
 * instruction into a call that kills children forked later and overwrites the
 * red zone, older kernels single-step it, and nothing is lost by taking the next one.
 */
bool rt_uprobe_avoid_nop5(void);
