/* SPDX-License-Identifier: GPL-2.0-only */
/* Engine K on tracefs: the directory, and definitions of reftraces that are gone. */
#pragma once

#include "engine/tracefs.h"
#include "engine/uprobe_priv.h"

/* When the process started, in clock ticks since boot: tells users of one pid apart. false: no such process. */
bool rt_tracefs_start_time(uint32_t pid, uint64_t *ret);
