/* SPDX-License-Identifier: GPL-2.0-only */
/* A counted list whose get is only ever inlined: what the listings of probe are shown. */
#pragma once

struct node {
	int refs;
	char name[16];
	struct node *next;
};

static inline __attribute__((always_inline)) struct node *node_get(struct node *n)
{
	int before = 0;

	if (n)
		before = __atomic_fetch_add(&n->refs, 1, __ATOMIC_SEQ_CST);
	if (before < 0)
		__builtin_trap();
	return n;
}

void node_put(struct node *n);
long node_sum(struct node *n, int times);
