/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The second phase (--narrow): where what a run has seen does not single one function out, it is repeated with a closer
 * look at what remained open. Whole stacks and all objects; and functions on the way to these references of which
 * nobody knows what they return are watched when they do: whoever hands a reference up is not the one to give it back.
 */
#pragma once

#include "lifetime/lifetime.h"
#include "probe/spec.h"
#include "session/session.h"

/* What to trace the next time. */
struct rt_narrow {
	struct rt_spec spec; /* no types: the evidence is as good as it gets */
	const char *type;    /* the first one whose evidence is thin; the verdict's */
	size_t thin;         /* findings and suspects of which it is */
	size_t watched;      /* functions that are watched in addition */
};

/* From the first run, which has ended. Release with rt_narrow_deinit(), also after an error. */
RT_CHECK struct rt_error *rt_narrow_plan(const struct rt_verdict *verdict, const struct rt_session *session,
					 struct rt_narrow *ret);
void rt_narrow_deinit(struct rt_narrow *narrow);

/* Whether what was thin in the first run is there, in whatever form, in the second. */
bool rt_narrow_recurred(const struct rt_verdict *first, const struct rt_verdict *second);
