/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cheapest assignment (the Hungarian method with potentials), n rows to n
 * columns, O(n^3). n is small: what one object has left after the certain pairs.
 */
#include "lifetime/assign.h"

#include <math.h>

void lt_assign(unsigned n, const double *cost, int *ret_column)
{
	double u[LT_ASSIGN_MAX + 1] = { 0 }, v[LT_ASSIGN_MAX + 1] = { 0 }, min[LT_ASSIGN_MAX + 1];
	int row_of[LT_ASSIGN_MAX + 1] = { 0 }, way[LT_ASSIGN_MAX + 1] = { 0 };
	bool used[LT_ASSIGN_MAX + 1];

	for (unsigned i = 1; i <= n; i++) {
		unsigned j0 = 0;

		row_of[0] = (int)i;
		for (unsigned j = 0; j <= n; j++) {
			min[j] = INFINITY;
			used[j] = false;
		}
		do {
			unsigned i0 = (unsigned)row_of[j0], j1 = 0;
			double delta = INFINITY;

			used[j0] = true;
			for (unsigned j = 1; j <= n; j++) {
				double c;

				if (used[j])
					continue;
				c = cost[(i0 - 1) * n + j - 1] - u[i0] - v[j];
				if (c < min[j]) {
					min[j] = c;
					way[j] = (int)j0;
				}
				if (min[j] < delta) {
					delta = min[j];
					j1 = j;
				}
			}
			for (unsigned j = 0; j <= n; j++) {
				if (used[j]) {
					u[row_of[j]] += delta;
					v[j] -= delta;
				} else {
					min[j] -= delta;
				}
			}
			j0 = j1;
		} while (row_of[j0]);
		do {
			unsigned j1 = (unsigned)way[j0];

			row_of[j0] = row_of[j1];
			j0 = j1;
		} while (j0);
	}
	for (unsigned j = 1; j <= n; j++)
		ret_column[row_of[j] - 1] = (int)j - 1;
}
