/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the event names share. */
#pragma once

#include <errno.h>

#include "engine/event_name.h"

/* Fills type and config of a cache event; false: it is none. */
bool rt_event_cache(const char *name, struct rt_event_desc *desc);
/* Does text start like PMU/...? */
bool rt_event_is_pmu(const char *text);
/*
 * Fills desc from "PMU/TERMS/MODIFIERS"; pmus: fd of sysfs' folder of PMUs, -1 = none. *ret_modifiers points into text.
 * desc->name is set where a term says it. RT_E_UNSUPPORTED without such a PMU.
 */
RT_CHECK struct rt_error *rt_event_pmu(const char *text, int pmus, struct rt_event_desc *desc,
				       const char **ret_modifiers);
/* Fills desc from "PATH:WHAT"; text is the whole name, for messages. The type is the PMU's: set when it is opened. */
RT_CHECK struct rt_error *rt_event_uprobe(const char *text, const char *place, bool at_return,
					  struct rt_event_desc *desc);
/* Does the name stand for others (fnmatch(3))? */
bool rt_event_is_glob(const char *text);
/* Appends the tracepoints that group:name (either may be a glob) stands for. */
RT_CHECK struct rt_error *rt_event_tracepoints(const char *group, const char *name, int tracefs, int errnum,
					       struct rt_event_list *list);
/* The error where tracefs cannot be looked into. */
RT_CHECK struct rt_error *rt_event_no_tracefs(const char *name, int errnum);
