/* SPDX-License-Identifier: GPL-2.0-only */
/* Cheapest assignment of n rows to n columns. */
#pragma once

#include <stdbool.h>

enum { LT_ASSIGN_MAX = 48 };

/* cost[row * n + column], finite; n <= LT_ASSIGN_MAX; ret_column[row] is its column */
void lt_assign(unsigned n, const double *cost, int *ret_column);
