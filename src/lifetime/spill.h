/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to lifetime/. One thread. */
#pragma once

#include "lifetime/state.h"

/* The ledger of inc loses e: it is counted. Out of memory: lt->nomem */
void lt_spill(struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *e);
/* What the ledger of inc has lost, the one behind `one`, or the first (NULL); NULL: that was all. */
const struct lt_spilled *lt_spill_next(const struct rt_lifetime *lt, const struct lt_inc *inc,
				       const struct lt_spilled *one);
void lt_spill_free(struct rt_lifetime *lt);
