/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/sort.h"

enum { BITS = 8, BUCKETS = 1 << BITS, PASSES = 64 / BITS };

/* From the lowest byte to the highest; a byte that is the same in all, as the high ones of addresses are, costs
 * nothing. */
struct rt_sort_key *rt_sort_keys(struct rt_sort_key *keys, struct rt_sort_key *spare, size_t count)
{
	size_t counts[PASSES][BUCKETS] = { 0 };

	for (size_t i = 0; i < count; i++)
		for (unsigned pass = 0; pass < PASSES; pass++)
			counts[pass][keys[i].value >> pass * BITS & (BUCKETS - 1)]++;
	for (unsigned pass = 0; pass < PASSES && count; pass++) {
		size_t *place = counts[pass], sum = 0;
		struct rt_sort_key *sorted = spare;

		if (place[keys[0].value >> pass * BITS & (BUCKETS - 1)] == count)
			continue;
		for (unsigned i = 0; i < BUCKETS; i++) {
			size_t have = place[i];

			place[i] = sum;
			sum += have;
		}
		for (size_t i = 0; i < count; i++)
			sorted[place[keys[i].value >> pass * BITS & (BUCKETS - 1)]++] = keys[i];
		spare = keys;
		keys = sorted;
	}
	return keys;
}
