/* SPDX-License-Identifier: GPL-2.0-only */
/* Which slot keeps which reference (slot.c). */
#pragma once

#include "lifetime/state.h"

/*
 * Takes note of the pointer that ev stores into its slot, or takes out of it. false: what ev takes out was
 * stored for another life at the same address, and left there; or out of memory.
 */
bool lt_slot_note(struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *ev);
/* store puts a pointer to what is no object, not yet maybe, into its slot; pid: of its thread. */
void lt_slot_early(struct rt_lifetime *lt, uint32_t pid, uint64_t object, const struct lt_event *store);
/*
 * The object is first told of by taken, which takes a reference: where the same run stored the pointer just before, as
 * in x->p = p; p_get(p), that is the begin of the life.
 */
void lt_slots_begin(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *taken);
/*
 * The object was just told of by the return of what made it, with one reference, which is the caller's: the slots in
 * which its thread stored the pointer before stand for none.
 */
void lt_slots_born(struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t tid);
/* e takes a reference that is handed out through a T ** which is no variable of the stack: that is its slot. */
bool lt_slot_takes(const struct lt_event *e);
/*
 * Gives the gets and puts of a life the slots that their references were kept in, as far as that was seen, by its
 * stores before event number end. Behind it LT_SLOT_EVENTS events must be there, or the life be over.
 */
void lt_slots_settle(const struct rt_lifetime *lt, struct lt_inc *inc, uint32_t end);

/* The object never had more than the reference that it was made with, and all that happened to it is known. */
bool lt_has_one(const struct lt_inc *inc);
/*
 * When event number i comes, no other slot has the pointer than the one that number `stored` put it into, as far as is
 * known since the object was handed out last.
 */
bool lt_slot_only(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t stored, uint32_t i);
/* e stores a pointer to the object in a slot; takes it out of one, or what holds it is freed. Slots are not on the
 * stack. */
bool lt_slot_fills(const struct rt_lifetime *lt, const struct lt_event *e);
bool lt_slot_empties(const struct rt_lifetime *lt, const struct lt_event *e);
/*
 * Event number i takes a pointer to the object out of a slot (overwrites it, or frees the block that it lies in),
 * nobody puts a reference for that, and none is known to have stored the pointer without one. After lt_slots_settle().
 */
bool lt_slot_dropped(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i);
/* It does, but the pointer was stored there without a reference. */
bool lt_slot_borrowed(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i);
/* A reference is known to have been taken for the pointer that the slot of event number i had before. */
bool lt_slot_owned(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t i);
/*
 * The event that emptied the slot of just the reference that event number ev took, where nobody put anything for it;
 * LT_NO_EVENT: none did, or which slot it was taken for is not known. After lt_slots_settle().
 */
uint32_t lt_slot_lost(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t ev);
/*
 * How many references are still in the slots that they were taken for, as far as that was seen, the object not being
 * handed out since: else it may be that one's who got it. After lt_slots_settle().
 */
int64_t lt_slots_kept(const struct rt_lifetime *lt, const struct lt_inc *inc);
