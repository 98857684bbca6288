/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counting mode, for runs of days: no event is sent. An object has an entry as long as its references do not come to 0,
 * with the stacks that took and gave; what is balanced is forgotten at once, so that memory goes with what is open and
 * not with time. What there is no room for is counted as dropped.
 */
#pragma once

#include "state.h"

static __always_inline void count_site(struct hit *h, uint64_t place, uint32_t what)
{
	struct rt_site_key key = { RT_COOKIE_PROCESS(h->cookie), place >> 32, place, what };
	uint64_t *n = bpf_map_lookup_elem(&sites, &key), none = 0;

	if (!n) {
		bpf_map_update_elem(&sites, &key, &none, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&sites, &key);
	}
	if (n)
		add(*n, 1);
	else
		add(h->count->resent, 1);
}

/* One of the places of t that is this stack's. */
static __always_inline void count_place(struct rt_tally *t, uint64_t place)
{
	uint32_t i;

	for (i = 0; i < RT_TALLY_SITES; i++) {
		uint64_t was = *(volatile uint64_t *)&t->site[i];

		if (!was)
			was = __sync_val_compare_and_swap(&t->site[i], 0, place);
		if (was && was != place)
			continue;
		add(t->n[i], 1);
		return;
	}
	add(t->others, 1);
}

static __always_inline struct rt_tally *tally_of(struct rt_tally_key *key)
{
	struct rt_tally *t = bpf_map_lookup_elem(&tallies, key), *zeroes;
	uint32_t first = 0;

	if (t)
		return t;
	zeroes = bpf_map_lookup_elem(&blank, &first);
	if (!zeroes)
		return NULL;
	bpf_map_update_elem(&tallies, key, zeroes, BPF_NOEXIST);
	return bpf_map_lookup_elem(&tallies, key);
}

/* What a hit changes. A constructor inside of a constructor makes one object: its second new counts nothing. */
static __always_inline void tally(struct hit *h)
{
	const struct rt_probe *p = h->probe;
	struct rt_tally_key key = { h->object, RT_COOKIE_PROCESS(h->cookie), p->type };
	int64_t delta = p->delta;
	uint64_t place = (uint64_t)h->stack << 32 | RT_COOKIE_POINT(h->cookie), now;
	struct rt_tally *t;

	if ((p->flags & RT_EV_MAYBE) && !bpf_map_lookup_elem(&tallies, &key)) {
		add(h->count->passed, 1);
		return;
	}
	count_site(h, place, RT_SITE_ALL);
	if (p->op == RT_OP_FREE) {
		add(h->count->passed, 1);
		bpf_map_delete_elem(&tallies, &key);
		return;
	}
	t = tally_of(&key);
	if (t && p->op == RT_OP_NEW && !t->news && t->balance < 0) {
		/* what was done to the dead one here is no part of this life */
		count_site(h, t->site[0], RT_SITE_STRAY);
		bpf_map_delete_elem(&tallies, &key);
		t = tally_of(&key);
	}
	if (!t) {
		add(h->count->ring, 1);
		return;
	}
	add(h->count->passed, 1);
	now = bpf_ktime_get_ns();
	if (!t->first_ns)
		t->first_ns = now;
	t->last_ns = now;
	if (p->op == RT_OP_NEW)
		delta = __sync_fetch_and_add(&t->news, 1) ? 0 : p->start;
	else if (delta > 0)
		add(t->gets, 1);
	else if (delta < 0)
		add(t->puts, 1);
	count_place(t, place);
	if (__sync_fetch_and_add(&t->balance, delta) + delta == 0 && delta < 0)
		bpf_map_delete_elem(&tallies, &key);
}
