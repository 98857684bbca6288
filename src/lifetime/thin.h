/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to lifetime/. */
#pragma once

#include "lifetime/model.h"

/* A long life as it is matched. */
struct lt_thinned {
	struct lt_units units;
	uint32_t weight[LT_UNITS]; /* for how many references or puts the n-th one without a partner stands */
};

/*
 * Leaves at most LT_UNITS of the units without a partner, where there are more, or where the ledger has lost some: what
 * m says to belong together goes, and of what is left some stand for all. As far as that says what is open at the end;
 * else they stay too many. weight: as above; 1 where all are there.
 */
void lt_thin(const struct lt_model *m, const struct lt_inc *inc, struct lt_units *units, uint32_t weight[LT_UNITS]);
