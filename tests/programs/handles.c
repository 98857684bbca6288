/* SPDX-License-Identifier: GPL-2.0-only */
/* References are handles, and the put takes a handle's slot, as in FFmpeg: one that is empty has no object to put. */
#include "truth.h"

struct buffer {
	int refs;
	char data[60];
};

struct handle {
	struct buffer *buffer;
};

NOINLINE struct handle *buffer_ref(struct buffer *b)
{
	struct handle *h = malloc(sizeof(*h));

	if (!h)
		abort();
	b->refs++;
	h->buffer = b;
	return h;
}

NOINLINE struct handle *buffer_new(void)
{
	struct handle *h = malloc(sizeof(*h));
	struct buffer *b = calloc(1, sizeof(*b));

	if (!h || !b)
		abort();
	b->refs = 1;
	h->buffer = b;
	return h;
}

NOINLINE void buffer_unref(struct handle **slot)
{
	struct handle *h = *slot;

	*slot = NULL;
	if (!h)
		return;
	if (--h->buffer->refs == 0)
		free(h->buffer);
	free(h);
}

int main(void)
{
	for (int i = 0; i < 20; i++) {
		struct handle *one = buffer_new(), *two = NULL;

		DID("new");
		if (i % 4 == 0) {
			two = buffer_ref(one->buffer);
			DID("get");
		}
		buffer_unref(&two);
		buffer_unref(&one);
		DID("put");
	}
	truth_print("type=buffer new=buffer_new:*ret get=buffer_ref:*ret put=buffer_unref:**1", "none", "none");
	return 0;
}
