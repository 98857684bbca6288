/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Long lives have more references and puts without a partner than can be matched at once. Those that are as always, by
 * the model, are paired before, the oldest first: what is at fault is among the rest.
 */
#include "lifetime/answer.h"

static const double OFTEN = 0.5;

/* the put, unit i, is what mostly ends references that are taken as unit k was */
static bool ends_such(const struct lt_model *m, const struct lt_units *units, unsigned i, unsigned k)
{
	double share;
	uint32_t usual = lt_model_usual(m, units->u[k].site, &share);

	return usual && share >= OFTEN && lt_site_function(m->lt, usual) == lt_site_function(m->lt, units->u[i].site);
}

bool lt_pair_usual(const struct lt_model *m, struct lt_units *units)
{
	bool any = false;

	for (unsigned i = 0; i < units->nr && units->left > LT_UNITS; i++) {
		unsigned k = 0;

		if (units->u[i].opens || units->u[i].mate >= 0)
			continue;
		while (k < i && !(units->u[k].opens && units->u[k].mate < 0 && ends_such(m, units, i, k)))
			k++;
		if (k == i)
			continue;
		units->u[i].mate = (int16_t)k;
		units->u[k].mate = (int16_t)i;
		units->left -= 2;
		any = true;
	}
	return any;
}
