/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who used what he had given away himself: the run of a function that put the object, and then used or put it when it
 * was dead; or that gave back the reference that it had taken, and in a call of which the dead object was used. It has
 * no other one that it could have had in mind. What others had put before may well be the fault where it put what it
 * had from somebody else.
 */
#include "lifetime/answer.h"

/* Event o took a reference in a call of the run that did e, which handed it up to just that run. */
static bool was_handed_to(const struct lt_answer *a, const struct lt_event *o, const struct lt_event *e)
{
	unsigned taker, own;

	return lt_event_takes(o) && lt_come_together(a->lt, o, e, &taker, &own) && !own && taker &&
	       taker < lt_site(a->lt, a->lt->uses.data[o->use].site)->nr;
}

/* the run that did event e has given back, of the references that it took itself, or was handed up, all, and no others
 */
static bool gave_its_own(const struct lt_answer *a, const struct lt_inc *inc, const struct lt_event *e)
{
	uint32_t function = lt_event_function(a->lt, e);
	int left = 0, taken = 0;

	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *o = &inc->ledger[i];

		if ((o->flags & LT_EV_POST) ||
		    ((o->act != e->act || lt_event_function(a->lt, o) != function) && !was_handed_to(a, o, e)))
			continue;
		left += o->op == RT_OP_NEW ? 1 : o->delta;
		taken += lt_event_takes(o);
	}
	return taken && !left;
}

uint32_t lt_own_use(const struct lt_answer *a, const struct lt_inc *inc, uint16_t bad)
{
	const struct lt_event *use = &inc->ledger[bad];
	uint32_t function = lt_event_function(a->lt, use);
	unsigned out, in;

	for (uint32_t i = bad; i-- > 0;) {
		const struct lt_event *e = &inc->ledger[i];

		if (e->delta < 0 && e->act && e->act == use->act && lt_event_function(a->lt, e) == function)
			return lt_event_src(a->lt, use);
	}
	for (uint32_t i = bad; i-- > 0;) {
		const struct lt_event *e = &inc->ledger[i];

		/* the last one that it was put by, while it lived */
		if (e->delta >= 0)
			continue;
		if (e->tid != use->tid || !e->act || !gave_its_own(a, inc, e) ||
		    !lt_come_together(a->lt, e, use, &out, &in) || out)
			break;
		return lt_src_around(a->lt, use, in);
	}
	return 0;
}
