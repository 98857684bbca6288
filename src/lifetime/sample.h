/* SPDX-License-Identifier: GPL-2.0-only */
/* Where not all lives are traced: which ones are, as the stream says it. */
#pragma once

#include "lifetime/lifetime.h"

struct lt_point;

struct lt_sample {
	bool on, governed;
	uint32_t rate, lowest; /* of 2^32; 0 = all */
	unsigned rank,
		highest; /* where it is governed: least rank of what is traced now; the largest such one so far */
	uint64_t passed; /* hits of which nothing was told */
	uint64_t left;   /* lives that were traced, and then not any more */
	struct rt_wire_sample last;
};

/* The rate is another one; hits of which nothing was told; something was left out; all that is known of it */
void lt_sample_record(struct rt_lifetime *lt, const struct rt_wire_sample *r);
void lt_sample_passed(struct rt_lifetime *lt, struct lt_point *point, uint64_t hits);
bool lt_sample_partial(const struct rt_lifetime *lt);
void lt_sample_fill(const struct rt_lifetime *lt, struct rt_sampling *ret);
