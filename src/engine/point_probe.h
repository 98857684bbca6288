/* SPDX-License-Identifier: GPL-2.0-only */
/* From the plan's points to entries of the table that the hot paths read (wire/probe.h). */
#pragma once

#include "probe/plan.h"
#include "wire/probe.h"

/* Whether the point's event is the return of its function. */
static inline bool rt_point_at_return(const struct rt_point *p)
{
	return p->kind == RT_POINT_RETURN || p->condition != RT_IF_ALWAYS;
}

/* NULL, or why the point cannot be used: static text. */
const char *rt_point_probe(const struct rt_point *point, struct rt_probe *ret);
