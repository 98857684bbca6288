/* SPDX-License-Identifier: GPL-2.0-only */
/* Makes and drops 100 objects, then a child of its own does so with 50; the child's leak is nothing of its parent's. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct obj {
	int refs, number;
	char name[40];
};

__attribute__((noinline)) struct obj *obj_new(int number)
{
	struct obj *o = calloc(1, sizeof(*o));

	o->refs = 1;
	o->number = number;
	return o;
}

__attribute__((noinline)) void obj_put(struct obj *o)
{
	if (--o->refs == 0) {
		o->number = -1;
		free(o);
	}
}

int main(void)
{
	int status = 1;

	for (int i = 0; i < 100; i++)
		obj_put(obj_new(i));
	if (!fork()) {
		for (int i = 0; i < 50; i++)
			obj_new(i);
		_exit(0);
	}
	wait(&status);
	obj_put(obj_new(100));
	return status;
}
