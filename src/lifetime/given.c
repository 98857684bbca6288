/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who was given the reference and lost it. Functions that take a reference over store it, pass it on to another such
 * function, or give it back where they cannot. One whose other runs do one of these, and that this time did none, has
 * no get or put on the object at all, and is guilty all the same.
 */
#include <string.h>

#include "lifetime/answer.h"
#include "lifetime/slot.h"

static const double SHARE = 0.8;

enum { NONE = UINT32_MAX };

static bool is_given(const struct lt_answer *a, const struct lt_event *e)
{
	return e->op == RT_OP_MOVE && lt_point_given(lt_event_point(a->lt, e));
}

/* the pointer goes into a slot there */
static bool is_stored(const struct lt_answer *a, const struct lt_event *e)
{
	return e->op == RT_OP_MOVE && e->slot && lt_point_stores(lt_event_point(a->lt, e));
}

/*
 * To whom the reference that event t took was passed by the run that took it: the first of these functions and the
 * innermost, NONE: to none before that run took or put another one; or there something was put or the pointer was
 * stored, which may be for this one (*ret_done), or taken: who takes references of his own does not take this one over.
 */
static uint32_t passed_to(const struct lt_answer *a, const struct lt_inc *inc, uint32_t t, uint32_t *ret_first,
			  bool *ret_done)
{
	const struct lt_event *taken = &inc->ledger[t];
	uint32_t first = NONE, last = NONE;

	*ret_done = false;
	*ret_first = NONE;
	for (uint32_t i = t + 1; taken->act && i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];
		bool within = first != NONE && lt_inside(a->lt, e, &inc->ledger[first]);

		if (first == NONE && is_given(a, e) && e->act == taken->act) {
			first = last = i;
		} else if (within && (e->delta || is_stored(a, e))) {
			*ret_first = first;
			*ret_done = e->delta <= 0;
			return NONE;
		} else if (within && is_given(a, e)) {
			last = i;
		} else if (!within && e->act == taken->act && e->delta) {
			break;
		}
	}
	*ret_first = first;
	return last;
}

/* what each function did with the references that it was passed: on to others, or put, or stored, or no further */
void lt_given_healthy(struct lt_answer *a, const struct lt_inc *inc)
{
	for (uint32_t t = 0; t < inc->nr; t++) {
		bool done = false;
		uint32_t first = NONE;
		uint32_t last = lt_event_takes(&inc->ledger[t]) ? passed_to(a, inc, t, &first, &done) : NONE;

		if (done)
			lt_count_one(&a->given_on, lt_entry_key(a, inc, &inc->ledger[first]));
		for (uint32_t i = last == NONE ? NONE : first; i != NONE && i <= last; i++) {
			const struct lt_event *e = &inc->ledger[i];

			if (i == last || (is_given(a, e) && lt_inside(a->lt, &inc->ledger[last], e)))
				lt_count_one(i == last ? &a->given_kept : &a->given_on, lt_entry_key(a, inc, e));
		}
	}
}

/* The function that e enters passes on what it is given, or keeps it, and did not. */
static bool stopped_short(const struct lt_answer *a, const struct lt_inc *inc, const struct lt_event *e)
{
	double on = lt_counted(&a->given_on, lt_entry_key(a, inc, e)),
	       kept = lt_counted(&a->given_kept, lt_entry_key(a, inc, e));

	return on > 0 && on >= SHARE * (on + kept);
}

/* the point lies in the code of the function that the entry tells of */
static bool lies_in(const struct lt_answer *a, const struct lt_point *p, const struct lt_point *entry)
{
	const char *in = rt_intern_text(&a->lt->names, p->name), *name = rt_intern_text(&a->lt->names, entry->name);
	size_t n = strlen(name);

	return p->module == entry->module && !strncmp(in, name, n) && in[n] == '+';
}

/*
 * All that the function stores was told at its time: none was of an object that nobody had been given just before. An
 * event that is told at another time would make a culprit of it.
 */
static bool in_order(const struct lt_answer *a, const struct lt_event *entry)
{
	const struct lt_point *point = lt_event_point(a->lt, entry);

	for (size_t i = 0; i < a->lt->points.len; i++) {
		const struct lt_point *p = &a->lt->points.data[i];

		if (p->strays && lt_point_stores(p) && lies_in(a, p, point))
			return false;
	}
	return true;
}

/* the event that gave a reference, taken by the function that took this one, to a function that stopped short; NULL */
static const struct lt_event *short_of(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_inc *inc = ref->inc;
	uint32_t function = lt_site_function(a->lt, ref->site);

	for (uint32_t t = inc->nr; t-- > 0;) {
		const struct lt_event *e = &inc->ledger[t];
		uint32_t first, last;
		bool done;

		if (!lt_event_takes(e) || lt_event_function(a->lt, e) != function)
			continue;
		last = passed_to(a, inc, t, &first, &done);
		if (last != NONE && stopped_short(a, inc, &inc->ledger[last]) && in_order(a, &inc->ledger[last]))
			return &inc->ledger[last];
	}
	return NULL;
}

uint32_t lt_given_to(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_event *g = short_of(a, ref);

	return g ? lt_entry_source(a, g) : 0;
}

/* Event number i empties a slot that nobody was seen to store the pointer in, and its run has not put anything before.
 */
static bool was_stored_unseen(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct lt_event *w = &inc->ledger[i], *last = NULL;

	if (!w->slot || !lt_slot_empties(a->lt, w))
		return false;
	for (uint32_t k = 0; k < i; k++) {
		if (inc->ledger[k].slot == w->slot)
			return false;
		last = inc->ledger[k].delta ? &inc->ledger[k] : last;
	}
	return !last || last->delta > 0 || last->act != w->act;
}

/*
 * Wherever the pointer was stored since the reference was taken, another reference was taken for that. Where it is
 * found in a slot that nobody was seen to store it in, not all of that was seen.
 */
bool lt_stored_for_others(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_inc *inc = ref->inc;
	bool any = false;

	for (uint32_t i = ref->ev + 1u; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];
		uint32_t k = 0;

		if (was_stored_unseen(a, inc, i))
			return false;
		if (!lt_slot_fills(a->lt, e))
			continue;
		while (k < inc->nr && (k == ref->ev || inc->ledger[k].slot != e->slot ||
				       !(inc->ledger[k].flags & LT_EV_KEPT) || !lt_event_takes(&inc->ledger[k])))
			k++;
		if (k == inc->nr)
			return false;
		any = true;
	}
	return any && !(inc->ledger[ref->ev].flags & LT_EV_KEPT);
}
