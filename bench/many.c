/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Many objects that live at the same time.
 *
 *     many OBJECTS REFERENCES     makes them, takes so many references to each (the first is that of who made it), and
 *                                 gives all back
 */
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

struct obj {
	unsigned refs;
};

struct obj *obj_new(void);
struct obj *obj_get(struct obj *o);
void obj_put(struct obj *o);

NOINLINE struct obj *obj_new(void)
{
	struct obj *o = malloc(sizeof(*o));

	if (!o)
		abort();
	o->refs = 1;
	return o;
}

NOINLINE struct obj *obj_get(struct obj *o)
{
	o->refs++;
	return o;
}

NOINLINE void obj_put(struct obj *o)
{
	if (!--o->refs)
		free(o);
}

int main(int argc, char **argv)
{
	long objects = argc > 1 ? strtol(argv[1], NULL, 10) : 0, references = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
	struct obj **all = calloc((size_t)objects + 1, sizeof(*all));

	if (!all)
		return 1;
	for (long i = 0; i < objects; i++)
		all[i] = obj_new();
	for (long k = 1; k < references; k++)
		for (long i = 0; i < objects; i++)
			obj_get(all[i]);
	for (long k = 0; k < references; k++)
		for (long i = 0; i < objects; i++)
			obj_put(all[i]);
	free(all);
	return 0;
}
