/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the event names share. */
#pragma once

#include <errno.h>

#include "engine/event_name.h"

/* Fills desc from "PATH:WHAT"; text is the whole name, for messages. The type is the PMU's: set when it is opened. */
RT_CHECK struct rt_error *rt_event_uprobe(const char *text, const char *place, bool at_return,
					  struct rt_event_desc *desc);
/* Appends the tracepoints that group:name (either may be a glob) stands for. */
RT_CHECK struct rt_error *rt_event_tracepoints(const char *group, const char *name, int tracefs, int errnum,
					       struct rt_event_list *list);
