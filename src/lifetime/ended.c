/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who was to end it. Functions that by their name end something (a destructor, what takes out of a container) are
 * looked at for the objects that they are given, whatever they are declared to take. One that was given a lost object,
 * and in whose run nothing was put, had the last word on it, unless it is known to leave healthy objects alone: then it
 * is given what is not its own. Nor has one that did its part when it was given the object for the first time.
 */
#include "base/words.h"
#include "lifetime/answer.h"
#include "lifetime/stem.h"

static bool is_end(const struct lt_answer *a, const struct lt_event *e)
{
	return e->op == RT_OP_MOVE && lt_point_ends(lt_event_point(a->lt, e));
}

/* a reference was put, or taken, in the run that event number i enters */
static bool counted_within(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	for (uint32_t k = i + 1; k < inc->nr; k++) {
		if (inc->ledger[k].delta && lt_inside(a->lt, &inc->ledger[k], &inc->ledger[i]))
			return true;
	}
	return false;
}

void lt_ends_healthy(struct lt_answer *a, const struct lt_inc *inc)
{
	for (uint32_t i = 0; i < inc->nr; i++) {
		const struct lt_event *e = &inc->ledger[i];

		if (is_end(a, e))
			lt_count_one(counted_within(a, inc, i) ? &a->ended : &a->left_alone, lt_entry_key(a, inc, e));
	}
}

/* what happened to the object behind event number i is none of the run that it enters; a later run may have had it */
static bool is_last_word(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	for (uint32_t k = i + 1; k < inc->nr; k++) {
		if (lt_event_takes(&inc->ledger[k]) || is_end(a, &inc->ledger[k]))
			return false;
	}
	return true;
}

/* who ends something else, by its name, is given the object for that: item_free_list() ends no item */
static bool ends_such(const struct lt_answer *a, const struct lt_inc *inc, const struct lt_event *e)
{
	return lt_stem_ends(rt_intern_text(&a->lt->names, lt_event_point(a->lt, e)->name),
			    a->lt->types.data[inc->type].name);
}

/* another run of the function that event number i enters has put, or taken, references of the object */
static bool did_its_part(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	const struct rt_key key = lt_entry_key(a, inc, &inc->ledger[i]);

	for (uint32_t k = 0; k < i; k++) {
		const struct rt_key other =
			is_end(a, &inc->ledger[k]) ? lt_entry_key(a, inc, &inc->ledger[k]) : (struct rt_key){ 0 };

		if (other.a == key.a && other.b == key.b && counted_within(a, inc, k))
			return true;
	}
	return false;
}

struct lt_ender lt_ender_of(const struct lt_answer *a, const struct lt_ref *ref)
{
	const struct lt_inc *inc = ref->inc;

	for (uint32_t i = inc->nr; i-- > ref->ev + 1u;) {
		const struct lt_event *e = &inc->ledger[i];
		double ended, alone;

		if (!is_end(a, e) || counted_within(a, inc, i) || did_its_part(a, inc, i))
			continue;
		ended = lt_counted(&a->ended, lt_entry_key(a, inc, e));
		alone = lt_counted(&a->left_alone, lt_entry_key(a, inc, e));
		if (alone > ended || (!ended && (!is_last_word(a, inc, i) || !ends_such(a, inc, e))))
			continue;
		return (struct lt_ender){ lt_entry_source(a, e), ended > 0 };
	}
	return (struct lt_ender){ 0 };
}

/* the very run that event number i enters puts the object, and not just what it calls */
static bool run_puts(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i)
{
	unsigned out, in;

	for (uint32_t k = i + 1; k < inc->nr && k <= i + LT_SLOT_EVENTS; k++) {
		const struct lt_event *e = &inc->ledger[k];

		if (e->delta < 0 && lt_come_together(a->lt, e, &inc->ledger[i], &out, &in) && out == 1 && !in)
			return true;
	}
	return false;
}

uint32_t lt_ender_called(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i, unsigned level)
{
	for (uint32_t k = i + 1; k < inc->nr && k <= i + LT_SLOT_EVENTS; k++) {
		const struct lt_event *e = &inc->ledger[k];
		unsigned out, in;

		if (is_end(a, e) && lt_come_together(a->lt, &inc->ledger[i], e, &out, &in) && out == level && !in &&
		    !run_puts(a, inc, k) && lt_counted(&a->left_alone, lt_entry_key(a, inc, e)) <= 0)
			return lt_entry_source(a, e);
	}
	return 0;
}

uint32_t lt_destroyer_before(const struct lt_answer *a, const struct lt_ref *ref, uint32_t freed)
{
	const struct lt_inc *inc = ref->inc;
	const struct lt_event *block = &inc->ledger[freed];

	for (uint32_t i = freed; i-- > ref->ev + 1u;) {
		const struct lt_event *e = &inc->ledger[i];
		unsigned out, in;
		struct rt_key key;

		if (!is_end(a, e) || lt_event_function(a->lt, e) != lt_event_function(a->lt, block) ||
		    !lt_come_together(a->lt, e, block, &out, &in) || out || counted_within(a, inc, i) ||
		    !rt_words_destroy(rt_intern_text(&a->lt->names, lt_event_point(a->lt, e)->name)))
			continue;
		key = lt_entry_key(a, inc, e);
		return lt_counted(&a->left_alone, key) > lt_counted(&a->ended, key) ? 0 : lt_entry_source(a, e);
	}
	return 0;
}
