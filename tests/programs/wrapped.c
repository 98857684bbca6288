/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Puts that jump to a put, call one, or do nothing; and a get that is given the place where something has a pointer to
 * the object.
 */
#include "truth.h"

struct value {
	int refs;
};

struct box {
	long number;
	struct value *value;
};

static volatile int calls;

NOINLINE struct value *value_new(void)
{
	struct value *v = calloc(1, sizeof(*v));

	if (!v)
		abort();
	v->refs = 1;
	return v;
}

NOINLINE void value_get(struct value *v)
{
	v->refs++;
}

NOINLINE void value_put(struct value *v)
{
	if (--v->refs == 0)
		free(v);
}

NOINLINE void box_get(struct box *b)
{
	value_get(b->value);
	calls++;
}

/* its last instruction is a jump */
NOINLINE void value_release(struct value *v)
{
	value_put(v);
}

NOINLINE void value_drop(struct value *v)
{
	value_put(v);
	calls++;
}

NOINLINE void value_idle(struct value *v)
{
	calls += v->refs;
}

int main(void)
{
	for (int i = 0; i < 20; i++) {
		struct value *v = value_new();
		struct box box = { i, v };

		box_get(&box);
		value_get(v);
		value_get(v);
		value_get(v);
		value_idle(v);
		value_put(v);
		value_release(v);
		value_drop(v);
		value_put(v);
		value_put(v);
	}
	return 0;
}
