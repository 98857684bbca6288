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
			/* what is used and what is less nobody can predict: no branches on that */
			for (unsigned j = 1; j <= n; j++) {
				double c = cost[(i0 - 1) * n + j - 1] - u[i0] - v[j];
				bool less = !used[j] & (c < min[j]), least;

				min[j] = less ? c : min[j];
				way[j] = less ? (int)j0 : way[j];
				least = !used[j] & (min[j] < delta);
				delta = least ? min[j] : delta;
				j1 = least ? j : j1;
			}
			for (unsigned j = 0; j <= n; j++) {
				u[row_of[j]] += used[j] ? delta : 0;
				v[j] -= used[j] ? delta : 0;
				min[j] -= used[j] ? 0 : delta;
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
