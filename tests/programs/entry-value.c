/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gets that are inlined where the object is still in a register, was saved in another one, lies in the frame, or is
 * only known by what a register held when the function was entered (counted elsewhere, and not needed any more).
 */
#include <stdio.h>
#include <stdlib.h>

struct obj {
	int refs;
	long n;
};

volatile long total;

__attribute__((noinline, noclone)) long work(long n)
{
	total += n;
	return total;
}

static inline __attribute__((always_inline)) void obj_get(struct obj *o, long n)
{
	total ^= n;
	__asm__ volatile("nop");
}

__attribute__((noinline, noclone)) long direct(struct obj *o, long n)
{
	obj_get(o, n);
	return o->n + work(n);
}

__attribute__((noinline, noclone)) long saved(struct obj *o, long n)
{
	long r = work(n);

	obj_get(o, r);
	return o->n + r;
}

__attribute__((noinline, noclone)) long derived(struct obj *o, long n)
{
	long *field = &o->n, r = work(n) + *field;

	obj_get(o, r);
	*field += r;
	return r;
}

__attribute__((noinline, noclone)) long lost(struct obj *o, long n)
{
	long r = work(n);

	obj_get(o, r);
	return r;
}

__attribute__((noinline, noclone)) void obj_put(struct obj *o)
{
	o->n--;
}

int main(void)
{
	static long (*const gets[])(struct obj * o, long n) = { direct, saved, derived, lost };
	static const char *const names[] = { "direct", "saved", "derived", "lost" };

	for (int i = 0; i < 12; i++) {
		struct obj *o = calloc(1, sizeof(*o));

		printf("get %s %p\n", names[i % 4], (void *)o);
		gets[i % 4](o, i);
		obj_put(o);
	}
	return 0;
}
