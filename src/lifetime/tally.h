/* SPDX-License-Identifier: GPL-2.0-only */
/* Counting mode: objects that are not balanced, without the order of what was done to them. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "lifetime/lifetime.h"

struct lt_answer;

/* What one place did to each object of a group. */
struct lt_tally_part {
	uint32_t src, point; /* source id; index */
	uint64_t events;
};

struct lt_tally_group {
	uint32_t type; /* index */
	int64_t balance;
	bool made, several;
	uint64_t objects, others, first_address, first_ns, last_ns;
	RT_VEC(struct lt_tally_part) parts; /* sorted */
};

struct lt_tallies {
	bool any;
	uint64_t ungrouped; /* objects beyond the limit of groups */
	RT_VEC(struct lt_tally_group) groups;
	struct rt_map by_hash; /* of a group -> 1 + index */
	struct rt_map in_all;  /* (src, point) -> events */
};

/* false: out of memory */
bool lt_tally_record(struct rt_lifetime *lt, const struct rt_wire_tally *r);
bool lt_tally_site(struct rt_lifetime *lt, const struct rt_wire_site *r);
bool lt_tally_fill(struct lt_answer *a, struct rt_verdict *v);
void lt_tally_free(struct rt_lifetime *lt);
