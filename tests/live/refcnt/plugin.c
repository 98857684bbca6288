/* SPDX-License-Identifier: GPL-2.0-only */
/* With -DHOST the program that loads the rest, a library that leaks, and closes it before its end. */
#ifdef HOST
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void (*leak)(void);

	if (!plugin)
		return 1;
	*(void **)&leak = dlsym(plugin, "leak");
	leak();
	dlclose(plugin);
	printf("loaded still: %d\n", dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != NULL);
	return 0;
}
#else
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

void leak(void);
void leak(void)
{
	(void)!node_alloc();
}
#endif
