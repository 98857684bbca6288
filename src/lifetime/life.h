/* SPDX-License-Identifier: GPL-2.0-only */
/* Between event.c, which understands a record, and incarnation.c, which knows what it does to a life. */
#pragma once

#include "lifetime/state.h"

/* An event with all that was looked up for it. Pointers are valid until tables grow. */
struct lt_seen {
	const struct rt_wire_event *e;
	const struct lt_process *process;
	uint32_t type; /* index */
	struct lt_event ev;
	int32_t raw; /* the count as read, also where it is not believed (then ev.count is INT32_MIN) */
};

void lt_life_operation(struct rt_lifetime *lt, struct lt_seen *seen);
struct lt_inc *lt_life_begin(struct rt_lifetime *lt, const struct lt_seen *seen, bool has_new);
void lt_life_end(struct rt_lifetime *lt, struct lt_inc *inc, enum lt_life how, uint64_t time_ns);
void lt_life_incomplete(struct rt_lifetime *lt, struct lt_inc *inc);
/* audit.c: what the counter says now, against what we counted; true: the balance is right now */
bool lt_life_audit(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen);
/* counter.c: the count at birth; an operation, before inc takes it; the end of a life; an event after it */
void lt_counter_birth(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen);
void lt_counter_step(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen);
void lt_counter_end(struct rt_lifetime *lt, const struct lt_inc *inc);
void lt_counter_after(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_seen *seen);
/* counts a dead object in the model of its type, once */
void lt_shape_count(struct rt_lifetime *lt, struct lt_inc *inc);
