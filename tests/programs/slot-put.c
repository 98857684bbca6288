/* SPDX-License-Identifier: GPL-2.0-only */
/* The put takes T ** and clears the slot, as in FFmpeg. `filter` returns without clearing its own. */
#include "truth.h"

struct frame {
	int pts;
	int refs;
	char data[72];
};

static bool healthy;

NOINLINE struct frame *frame_alloc(int pts)
{
	struct frame *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->refs = 1;
	f->pts = pts;
	return f;
}

NOINLINE struct frame *frame_ref(struct frame *f)
{
	f->refs++;
	return f;
}

NOINLINE void frame_unref(struct frame **slot)
{
	struct frame *f = *slot;

	*slot = NULL;
	if (f && --f->refs == 0)
		free(f);
}

NOINLINE int filter(struct frame *in)
{
	struct frame *own = frame_ref(in);

	DID("get");
	own->data[0] = 'f';
	if (own->pts % 11 == 4 && !healthy) {
		LOST();
		return -1;
	}
	frame_unref(&own);
	DID("put");
	return 0;
}

int main(int argc, char **argv)
{
	int bad = 0;

	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < 99; i++) {
		struct frame *f = frame_alloc(i);

		DID("new");
		bad += filter(f);
		frame_unref(&f);
		DID("put");
	}
	truth_print("type=frame new=frame_alloc get=frame_ref put=frame_unref:*1", "filter", "leak");
	return bad > 0;
}
