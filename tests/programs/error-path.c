/* SPDX-License-Identifier: GPL-2.0-only */
/* A goto jumps over the put: `decode_frame` leaves with an error code and the buffer's reference. */
#include "truth.h"

struct buf {
	size_t len;
	unsigned char *data;
	unsigned refcount;
	int serial;
};

static bool healthy;

NOINLINE struct buf *buf_alloc(int serial)
{
	struct buf *b = calloc(1, sizeof(*b));

	if (!b || !(b->data = calloc(1, 64)))
		abort();
	b->refcount = 1;
	b->len = 64;
	b->serial = serial;
	b->data[0] = (unsigned char)serial;
	return b;
}

NOINLINE void buf_incref(struct buf *b)
{
	b->refcount++;
}

NOINLINE void buf_decref(struct buf *b)
{
	if (--b->refcount)
		return;
	free(b->data);
	free(b);
}

NOINLINE int checksum(const struct buf *b)
{
	int sum = 0;

	for (size_t i = 0; i < b->len; i++)
		sum += b->data[i];
	return sum;
}

NOINLINE int decode_frame(struct buf *b)
{
	int err = 0;

	buf_incref(b);
	DID("get");
	if (checksum(b) % 7 == 3) {
		err = -22;
		goto out;
	}
	b->data[1] = 1;
	buf_decref(b);
	DID("put");
	return 0;
out:
	if (healthy) {
		buf_decref(b);
		DID("put");
	} else {
		LOST();
	}
	return err;
}

NOINLINE int read_frames(int count)
{
	int bad = 0;

	for (int i = 0; i < count; i++) {
		struct buf *b = buf_alloc(i);

		DID("new");
		if (decode_frame(b) < 0)
			bad++;
		buf_decref(b);
		DID("put");
	}
	return bad;
}

int main(int argc, char **argv)
{
	healthy = truth_healthy(argc, argv);
	if (!read_frames(120))
		return 1;
	truth_print("type=buf new=buf_alloc get=buf_incref put=buf_decref", "decode_frame", "leak");
	return 0;
}
