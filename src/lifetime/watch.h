/* SPDX-License-Identifier: GPL-2.0-only */
/* Lives that are kept whole, for who asks for the history of one object. One thread. */
#pragma once

#include "lifetime/state.h"

void lt_watch_begin(struct rt_lifetime *lt, struct lt_inc *inc);
void lt_watch_event(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev);
/* the first event of the ledger is new, or its site is another one */
void lt_watch_birth(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev);
/* the site of old, in the ledger, becomes that of outer */
void lt_watch_site(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *old,
		   const struct lt_event *outer);
/* inc will be used again: what is known of it now is what stays */
void lt_watch_forget(struct rt_lifetime *lt, struct lt_inc *inc);
void lt_watch_deinit(struct rt_lifetime *lt);
