/* SPDX-License-Identifier: GPL-2.0-only */
/* Which slot keeps which reference (slot.c). */
#pragma once

#include "lifetime/answer.h"

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
