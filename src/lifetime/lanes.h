/* SPDX-License-Identifier: GPL-2.0-only */
/* Four numbers at once, for comparisons of which nobody can predict how they end. Any thread; no state. */
#pragma once

#include <stdint.h>
#include <string.h>

typedef int32_t lt_lanes __attribute__((vector_size(16)));

enum { LT_LANES = 4 };

static inline lt_lanes lt_lanes_load(const uint32_t *from)
{
	lt_lanes to;

	memcpy(&to, from, sizeof(to));
	return to;
}

static inline lt_lanes lt_lanes_all(uint32_t number)
{
	return (lt_lanes){ (int32_t)number, (int32_t)number, (int32_t)number, (int32_t)number };
}

/* all of them, or-ed */
static inline uint32_t lt_lanes_or(lt_lanes lanes)
{
	uint64_t two[2];

	memcpy(two, &lanes, sizeof(two));
	two[0] |= two[1];
	return (uint32_t)(two[0] | two[0] >> 32);
}

/* all of them, added: no sum of two is more than a lane */
static inline uint32_t lt_lanes_sum(lt_lanes lanes)
{
	uint64_t two[2];

	memcpy(two, &lanes, sizeof(two));
	two[0] += two[1];
	return (uint32_t)(two[0] + (two[0] >> 32));
}

/* bit i: lane i is true, of those that a comparison made */
static inline uint32_t lt_lanes_mask(lt_lanes lanes)
{
	return lt_lanes_or(lanes & (lt_lanes){ 1, 2, 4, 8 });
}
