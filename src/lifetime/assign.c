/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cheapest assignment (the Hungarian method with potentials), n rows to n
 * columns, O(n^3). n is small: what one object has left after the certain pairs.
 */
#include "lifetime/assign.h"

#include <math.h>
#include <string.h>

/* Columns that the path of a row has not come to yet, in their order. */
struct unused {
	unsigned column[LT_ASSIGN_MAX], nr;
};

static void take_out(struct unused *left, unsigned at)
{
	left->nr--;
	memmove(&left->column[at], &left->column[at + 1], (left->nr - at) * sizeof(left->column[0]));
}

void lt_assign(unsigned n, const double *cost, int *ret_column)
{
	double u[LT_ASSIGN_MAX + 1] = { 0 }, v[LT_ASSIGN_MAX + 1] = { 0 }, min[LT_ASSIGN_MAX + 1];
	int row_of[LT_ASSIGN_MAX + 1] = { 0 };
	unsigned way[LT_ASSIGN_MAX + 1] = { 0 }, path[LT_ASSIGN_MAX + 1];

	for (unsigned i = 1; i <= n; i++) {
		struct unused left = { .nr = n };
		unsigned j0 = 0, used = 0;

		row_of[0] = (int)i;
		for (unsigned j = 1; j <= n; j++) {
			min[j] = INFINITY;
			left.column[j - 1] = j;
		}
		do {
			const double *of_row = &cost[((unsigned)row_of[j0] - 1) * n], u0 = u[row_of[j0]];
			double delta = INFINITY;
			unsigned least = 0;

			path[used++] = j0;
			/* what is less nobody can predict: no branches on that */
			for (unsigned k = 0; k < left.nr; k++) {
				unsigned j = left.column[k];
				double c = of_row[j - 1] - u0 - v[j];
				bool less = c < min[j];

				min[j] = less ? c : min[j];
				way[j] = less ? j0 : way[j];
				least = min[j] < delta ? k : least;
				delta = min[j] < delta ? min[j] : delta;
			}
			for (unsigned k = 0; k < used; k++) {
				u[row_of[path[k]]] += delta;
				v[path[k]] -= delta;
			}
			for (unsigned k = 0; k < left.nr; k++)
				min[left.column[k]] -= delta;
			j0 = left.column[least];
			take_out(&left, least);
		} while (row_of[j0]);
		do {
			unsigned j1 = way[j0];

			row_of[j0] = row_of[j1];
			j0 = j1;
		} while (j0);
	}
	for (unsigned j = 1; j <= n; j++)
		ret_column[row_of[j] - 1] = (int)j - 1;
}
