/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * "Did you mean": names that are a slip of the finger away from what was
 * written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Edits (insert, delete, replace, swap of neighbours) that turn a into b, at
 * most max; max + 1 when there are more or a name is longer than 128 bytes.
 */
unsigned rt_edit_distance(const char *a, const char *b, unsigned max);

/* How many edits are still a slip in a word of this length: 1 for short ones, 3 for long ones. */
unsigned rt_slip_limit(const char *word);

#define RT_NEAR_MAX 3

/* Keeps the RT_NEAR_MAX nearest of the names that were offered. */
struct rt_near {
	const char *wanted;
	const char *names[RT_NEAR_MAX]; /* nearest first; not owned */
	unsigned distance[RT_NEAR_MAX];
	size_t count;
};

/* Offers a name; it must live as long as near. Equal names are kept once. */
void rt_near_offer(struct rt_near *near, const char *name);
