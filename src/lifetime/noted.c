/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is noted of stores as they come: whose pointer stands in which slot (stored.c), and what a thread stored last
 * that was no object yet, and may be one now. Which reference a slot keeps is asked later (slot.c).
 */
#include "lifetime/life.h"
#include "lifetime/slot.h"
#include "lifetime/thread.h"

bool lt_slot_note(struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *ev)
{
	const struct lt_stored_in now = { ev->slot, lt_domain(lt, inc->pid, inc->type), (uint32_t)inc->serial };
	struct lt_stored_in *was = lt_stored_get(&lt->stored, lt, ev->slot, inc->pid);
	bool stores = lt_point_stores(lt_event_point(lt, ev)) || lt_slot_takes(ev), own;

	if (!now.domain) {
		lt->nomem = true;
		return false;
	}
	if (stores && was) {
		*was = now;
		return true;
	}
	if (stores && lt->stored.nr < LT_SLOTS) {
		bool added = lt_stored_add(&lt->stored, lt, now);

		lt->nomem |= !added;
		return added;
	}
	/* what a block that was freed had is of interest only where it is known to have been stored there */
	own = was ? was->domain == now.domain && was->serial == now.serial : !lt_point_looks(lt_event_point(lt, ev));
	if (was)
		lt_stored_remove(&lt->stored, lt, was);
	return stores || own;
}

void lt_slot_early(struct rt_lifetime *lt, uint32_t pid, uint64_t object, const struct lt_event *store)
{
	struct lt_thread *t = lt_thread(lt, pid, store->tid);

	if (t)
		t->early[t->early_next++ % LT_EARLY] = (struct lt_early){ object, *store };
}

void lt_slots_begin(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *taken)
{
	const struct lt_thread *t = lt_thread(lt, inc->pid, taken->tid);

	for (unsigned i = 0; t && taken->act && i < LT_EARLY; i++) {
		const struct lt_early *early = &t->early[(t->early_next + i) % LT_EARLY];

		if (early->object != inc->object || early->store.act != taken->act)
			continue;
		inc->slotted |= lt_slot_note(lt, inc, &early->store) && lt_ledger_add_silent(lt, inc, &early->store);
	}
}

void lt_slots_born(struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t tid)
{
	const struct lt_thread *t = lt_thread(lt, inc->pid, tid);

	for (unsigned i = 0; t && i < LT_EARLY; i++) {
		struct lt_stored_in in = { t->early[i].store.slot, 0, 0 }, *was; /* of no life: serials begin with 1 */

		if (t->early[i].object != inc->object)
			continue;
		in.domain = lt_domain(lt, inc->pid, inc->type);
		was = in.domain ? lt_stored_get(&lt->stored, lt, in.slot, inc->pid) : NULL;
		if (was)
			*was = in;
		else if (in.domain && lt->stored.nr < LT_SLOTS)
			lt->nomem |= !lt_stored_add(&lt->stored, lt, in);
	}
}
