/* SPDX-License-Identifier: GPL-2.0-only */
#include <refcnt/refcnt.h>

struct node {
	struct refcnt refs;
};
REFCNT_DECLARE(node, struct node);
static void node_release(struct node *n)
{
	node_dealloc(n);
}
REFCNT_DEFINE(node, struct node, refs, node_release);

#ifdef MAIN
void other(struct node *n);

int main(void)
{
	struct node *n = node_alloc();

	other(n);
	node_put(n);
	return 0;
}
#else
void other(struct node *n);
void other(struct node *n)
{
	struct node *mine = node_get(n);

	if (mine != n)
		__builtin_trap();
}
#endif
