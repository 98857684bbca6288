/* SPDX-License-Identifier: GPL-2.0-only */
/* Between extra.c, which looks for puts that were never owed, died.c, where the process died of one, and silent.c. */
#pragma once

#include "lifetime/answer.h"

/* who did event number ev (lt_src); of what a helper did twice in a row, who called it twice */
uint32_t lt_extra_doer(const struct lt_answer *a, const struct lt_inc *inc, uint16_t ev);
/* a get by the guilty function, or the creation */
void lt_extra_taken(const struct lt_answer *a, const struct lt_inc *inc, struct lt_ref *ref);
/*
 * The put that a run did twice in a row, or right where it had taken the reference, as it is not done to healthy
 * objects of m (NULL: whatever these do); LT_NO_EVENT: there is none.
 */
uint16_t lt_extra_for_nothing(const struct lt_answer *a, const struct lt_model *m, const struct lt_inc *inc);
/*
 * A reference that is given back right where it was taken was taken for nothing: that put was meant for nobody, and the
 * one that is left over is the owner's, whose reference went with it. Not where healthy objects are treated so: a
 * cleanup stands in the line that takes what it is for. false: there is none.
 */
bool lt_extra_at_once(const struct lt_answer *a, const struct lt_model *m, const struct lt_inc *inc, struct lt_ref *ref,
		      struct lt_blame *b);
/*
 * Operations on the object were not seen, but the counter says what became of it: what one run put twice in one line,
 * or right where it had taken it, was one too many, whatever the others did.
 */
bool lt_shown_by_counter(const struct lt_answer *a, const struct lt_ref *ref);
/* a put that the fatal signal hit inside: the function that puts stands where the event saw it */
bool lt_died_in(const struct lt_answer *a, const struct lt_inc *inc, uint16_t ev);
/* accuses who put objects of the type wrongly, and nobody met them after their death (silent.c) */
void lt_silent(struct lt_answer *a, uint32_t type, const struct lt_model *m);
/*
 * Lives of one type that look like any other but for what some run put there for nothing, the last one of each address;
 * looked for when first asked.
 */
struct lt_pasts {
	struct rt_map by_object; /* (object, pid) -> struct lt_inc * */
	bool found;
};
/* the life at its address before this one; NULL: none that is known of. pasts: of its type */
struct lt_inc *lt_past_of(struct lt_answer *a, const struct lt_inc *inc, struct lt_pasts *pasts);
/* accuses who put what objects of the type a process died of, at most one; false: nobody. pasts: of the type */
bool lt_died(struct lt_answer *a, uint32_t type, struct lt_model *m, struct lt_pasts *pasts);
