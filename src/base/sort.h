/* SPDX-License-Identifier: GPL-2.0-only */
/* Sorting by a number in time that grows with the count alone, whatever the input. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct rt_sort_key {
	uint64_t value;
	uint32_t index; /* the caller's: what has this value */
};

/*
 * Sorts keys by value; equal ones stay in their order. spare has room for count, too. Returns keys or spare: where the
 * sorted ones are.
 */
struct rt_sort_key *rt_sort_keys(struct rt_sort_key *keys, struct rt_sort_key *spare, size_t count);
