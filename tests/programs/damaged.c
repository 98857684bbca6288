/* SPDX-License-Identifier: GPL-2.0-only */
/* As few objects as a recording can have: what is made of it is cut at every byte. */
#include <stdio.h>
#include <stdlib.h>

struct thing {
	int count;
};

__attribute__((noinline)) struct thing *thing_new(void)
{
	struct thing *thing = malloc(sizeof(*thing));

	thing->count = 1;
	return thing;
}

__attribute__((noinline)) void thing_get(struct thing *thing)
{
	thing->count++;
}

__attribute__((noinline)) void thing_put(struct thing *thing)
{
	if (!--thing->count)
		free(thing);
}

int main(void)
{
	struct thing *thing = thing_new();

	thing_get(thing);
	thing_put(thing);
	thing_put(thing);
	puts("spec type=thing new=thing_new get=thing_get put=thing_put");
	puts("guilty none");
	return 0;
}
