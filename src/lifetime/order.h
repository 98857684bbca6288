/* SPDX-License-Identifier: GPL-2.0-only */
/* Records in the order of time: what waits, and what that says of the one whose turn it is. One thread. */
#pragma once

#include "lifetime/state.h"

bool lt_order_events(struct rt_lifetime *lt, const struct rt_wire_event *events, size_t n);
bool lt_order_push(struct rt_lifetime *lt, const struct rt_wire_head *r); /* one that is no event */
void lt_order_flush(struct rt_lifetime *lt);
void lt_order_free(struct rt_lifetime *lt);
/* waiting events of the same address and almost the same time as e; valid until the window moves */
unsigned lt_order_pending(const struct rt_lifetime *lt, const struct rt_wire_event *e, const struct rt_wire_event **ret,
			  unsigned max);
void lt_order_done(struct rt_lifetime *lt, const struct rt_wire_event *pending);
/* linear.c: the waiting event that has to go before e, by the exact counts; NULL: e is next */
const struct rt_wire_event *lt_linear_first(struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t type,
					    int64_t balance);
/*
 * What operations of other threads may have added to the counter that e read
 * (at most *ret_more, at least *ret_less), though they come after e in time.
 */
void lt_order_ahead(struct rt_lifetime *lt, const struct rt_wire_event *e, int64_t *ret_less, int64_t *ret_more);
/* what order.c calls when the turn of a record has come (lifetime.c) */
void lt_dispatch(struct rt_lifetime *lt, const struct rt_wire_head *r);
