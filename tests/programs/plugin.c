/* SPDX-License-Identifier: GPL-2.0-only */
/* A plugin with a type of its own: `plug_process` forgets a put. Loaded by dlopen.c and counts.c. */
#include "truth.h"

struct plug {
	int refs;
	int input;
	char state[40];
};

int plug_run(int objects, bool healthy);

NOINLINE struct plug *plug_new(int input)
{
	struct plug *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->refs = 1;
	p->input = input;
	return p;
}

NOINLINE struct plug *plug_ref(struct plug *p)
{
	p->refs++;
	return p;
}

NOINLINE void plug_unref(struct plug *p)
{
	if (--p->refs == 0)
		free(p);
}

NOINLINE static int plug_process(struct plug *p, bool healthy)
{
	plug_ref(p);
	DID("get");
	if (p->input % 5 == 3 && !healthy) {
		LOST();
		return -1;
	}
	p->state[0] = 's';
	plug_unref(p);
	DID("put");
	return 0;
}

/* The entry point that the host looks up. */
int plug_run(int objects, bool healthy)
{
	int bad = 0;

	for (int i = 0; i < objects; i++) {
		struct plug *p = plug_new(i);

		DID("new");
		bad -= plug_process(p, healthy);
		plug_unref(p);
		DID("put");
	}
	return bad;
}
