/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "list.h"

static struct node *node_new(const char *name)
{
	struct node *n = calloc(1, sizeof(*n));

	if (!n)
		abort();
	n->refs = 1;
	strncpy(n->name, name, sizeof(n->name) - 1);
	return n;
}

int main(int argc, char **argv)
{
	struct node *n = node_new(argv[0]);

	n->next = node_get(n);
	printf("sum %ld\n", node_sum(n, argc + 3));
	node_put(n->next);
	node_put(n);
	return 0;
}
