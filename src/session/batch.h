/* SPDX-License-Identifier: GPL-2.0-only */
/* Between batch.c (specs and scans) and planning.c (their use on modules). */
#pragma once

#include "session/internal.h"

/* A batch over spec, or over *own, which is taken over. */
RT_CHECK struct rt_error *rt_batch_add(struct rt_session *s, struct rt_spec *spec, struct rt_spec *own);

/* true when the module may have functions of the batch; its symbols must have been read. */
bool rt_batch_matters(const struct rt_batch *b, const struct rt_module *m);

/* Looks for families in modules that were never scanned: into the owner's spec, or a batch of their own. */
RT_CHECK struct rt_error *rt_batch_scan(struct rt_session *s, const uint32_t *modules, size_t count);

/* The planner's view of a module; reads its symbols. */
RT_CHECK struct rt_error *rt_plan_module_of(struct rt_module *m, struct rt_plan_module *ret);
