/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A small server with one planted fault: each request carries a reference-counted
 * object; one path forgets to give its reference back. `leak N` serves N requests.
 */
#include <stdio.h>
#include <stdlib.h>

struct obj {
	int refs;
	int number;
	char payload[88];
};

__attribute__((noinline)) static struct obj *obj_new(int number)
{
	struct obj *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	o->refs = 1;
	o->number = number;
	return o;
}

__attribute__((noinline)) static struct obj *obj_get(struct obj *o)
{
	o->refs++;
	return o;
}

__attribute__((noinline)) static void obj_put(struct obj *o)
{
	if (--o->refs == 0)
		free(o);
}

__attribute__((noinline)) static int parse_header(struct obj *o)
{
	obj_get(o);
	if (o->number % 5 == 4)
		return -1; /* the planted fault: no put on this path */
	o->payload[0] = 'h';
	obj_put(o);
	return 0;
}

__attribute__((noinline)) static void handle_request(struct obj *o)
{
	obj_get(o);
	if (parse_header(o) == 0)
		o->payload[1] = 'b';
	obj_put(o);
}

int main(int argc, char **argv)
{
	int requests = argc > 1 ? (int)strtoul(argv[1], NULL, 10) : 100;

	for (int i = 0; i < requests; i++) {
		struct obj *o = obj_new(i);

		handle_request(o);
		obj_put(o);
	}
	printf("served %d requests\n", requests);
	return 0;
}
