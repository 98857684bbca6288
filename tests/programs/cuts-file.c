/* SPDX-License-Identifier: GPL-2.0-only */
/* Makes the file that it is told shorter, and only then takes and gives references. */
#include "truth.h"

struct obj {
	int refs;
};

NOINLINE static struct obj *obj_new(void)
{
	struct obj *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	o->refs = 1;
	return o;
}

NOINLINE static struct obj *obj_get(struct obj *o)
{
	o->refs++;
	return o;
}

NOINLINE static void obj_put(struct obj *o)
{
	if (--o->refs == 0)
		free(o);
}

NOINLINE static void use(struct obj *o, int n)
{
	obj_get(o);
	DID("get");
	if (n % 5 == 0) {
		LOST();
		return;
	}
	obj_put(o);
	DID("put");
}

int main(int argc, char **argv)
{
	if (argc > 2 && truncate(argv[1], atol(argv[2])))
		return 1;
	for (int i = 0; i < 100; i++) {
		struct obj *o = obj_new();

		DID("new");
		use(o, i);
		obj_put(o);
		DID("put");
	}
	truth_print("type=obj new=obj_new get=obj_get put=obj_put", "use", "leak");
	return 0;
}
