/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <stdlib.h>

#include "list.h"

struct pair {
	long a, b;
};

long node_total;

static int drop(struct node *n)
{
	return __atomic_sub_fetch(&n->refs, 1, __ATOMIC_SEQ_CST);
}

void node_put(struct node *n)
{
	int left;

	if (!n)
		return;
	left = drop(n);
	if (left == 0) {
		printf("gone %s\n", n->name);
		free(n);
	}
}

__attribute__((noinline)) long node_sum(struct node *n, int times)
{
	struct pair p = { times, times + 1 };
	int unused = times * 7;
	long sum = 0;

	for (int i = 0; i < times; i++) {
		struct node *held = node_get(n);

		sum += held->name[i & 15] + p.a;
		node_put(held);
	}
	node_total += sum;
	return sum + p.b;
}

extern __typeof__(node_sum) node_add __attribute__((alias("node_sum")));
