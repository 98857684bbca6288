/* SPDX-License-Identifier: GPL-2.0-only */
/* Entries: silent events that tell that the object is given to a function, which may keep it (given.c) or end it
 * (ended.c). */
#include "lifetime/answer.h"

struct rt_key lt_entry_key(const struct lt_answer *a, const struct lt_inc *inc, const struct lt_event *e)
{
	return rt_key_make(lt_event_point(a->lt, e)->name, inc->type);
}

uint32_t lt_entry_source(const struct lt_answer *a, const struct lt_event *e)
{
	return lt_src_named(a->lt, lt_event_point(a->lt, e));
}
