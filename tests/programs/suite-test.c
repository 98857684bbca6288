/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One test of a suite: NUMBER of them are compiled from this, each with a main of its own over the same library code.
 * `suite-test N COUNT LEAKY`: test N works on COUNT objects; where N is LEAKY, its step keeps each of them, so that
 * nothing in its own process shows how it is done right.
 */
#include "truth.h"

struct buf {
	char data[40];
	int refs;
};

NOINLINE static struct buf *buf_new(void)
{
	struct buf *b = calloc(1, sizeof(*b));

	if (!b)
		abort();
	b->refs = 1;
	return b;
}

NOINLINE static struct buf *buf_ref(struct buf *b)
{
	b->refs++;
	return b;
}

NOINLINE static void buf_unref(struct buf *b)
{
	if (--b->refs == 0)
		free(b);
}

static int number, leaky;

NOINLINE static void encode(struct buf *b)
{
	buf_ref(b);
	DID("get");
	b->data[0] ^= 1;
	buf_unref(b);
	DID("put");
}

NOINLINE static int store(struct buf *b)
{
	buf_ref(b);
	DID("get");
	if (number == leaky) {
		LOST();
		return -1;
	}
	b->data[1]++;
	buf_unref(b);
	DID("put");
	return 0;
}

NOINLINE static void step(struct buf *b)
{
	encode(b);
	if (number % 3 != 1 || number == leaky)
		store(b);
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 10;

	number = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
	leaky = argc > 3 ? (int)strtol(argv[3], NULL, 10) : -1;
	for (int i = 0; i < count; i++) {
		struct buf *b = buf_new();

		DID("new");
		step(b);
		buf_unref(b);
		DID("put");
	}
	truth_print("type=buf new=buf_new get=buf_ref put=buf_unref", "store", "leak");
	return 0;
}
