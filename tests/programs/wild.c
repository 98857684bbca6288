/* SPDX-License-Identifier: GPL-2.0-only */
/* Hands pointers to nothing to gets and puts, which know better than to follow them. Exits with 3. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct obj {
	int refs;
};

static int odd(const struct obj *o)
{
	return (uintptr_t)o < 65536 || (intptr_t)o < 0;
}

__attribute__((noinline)) struct obj *obj_new(void)
{
	struct obj *o = malloc(sizeof(*o));

	if (o)
		o->refs = 1;
	return o;
}

__attribute__((noinline)) void obj_get(struct obj *o)
{
	if (!odd(o))
		o->refs++;
}

__attribute__((noinline)) void obj_put(struct obj *o)
{
	if (!odd(o) && --o->refs == 0)
		free(o);
}

int main(void)
{
	for (int i = 0; i < 10; i++) {
		struct obj *o = obj_new();

		obj_put((struct obj *)16);
		obj_put((struct obj *)0xdead000000000000);
		obj_get((struct obj *)8);
		obj_get(o);
		obj_put(o);
		obj_put(o);
	}
	puts("survived");
	return 3;
}
