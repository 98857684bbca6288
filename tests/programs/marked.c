/* SPDX-License-Identifier: GPL-2.0-only */
/* The program marks its own operations: no other name tells that dial, conn_hold and hang_up count, nor where that is.
 */
#include "../../include/refcnt/mark.h"
#include "truth.h"

#define INLINE static inline __attribute__((always_inline))

struct conn {
	struct conn *next;
	int users; /* nobody's idea of a counter's name */
	int number;
};

static bool healthy;

NOINLINE struct conn *dial(int number)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	c->number = number;
	c->users = 1;
	REFCNT_MARK_NEW(conn, c);
	return c;
}

INLINE struct conn *conn_hold(struct conn *c)
{
	c->users++;
	REFCNT_MARK_GET(conn, c);
	return c;
}

NOINLINE void hang_up(struct conn *c)
{
	REFCNT_MARK_PUT(conn, c);
	if (--c->users)
		return;
	REFCNT_MARK_FREE(conn, c);
	free(c);
}

NOINLINE int send_reply(struct conn *c)
{
	conn_hold(c);
	DID("get");
	if (c->number % 8 == 6 && !healthy) {
		LOST();
		return -1;
	}
	hang_up(c);
	DID("put");
	return 0;
}

NOINLINE int serve(struct conn *c)
{
	int err;

	conn_hold(c);
	DID("get");
	err = send_reply(c);
	hang_up(c);
	DID("put");
	return err;
}

int main(int argc, char **argv)
{
	int errors = 0;

	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < 64; i++) {
		struct conn *c = dial(i);

		DID("new");
		errors += serve(c) != 0;
		hang_up(c);
		DID("put");
	}
	truth_print("type=conn new=sdt:refcnt:new get=sdt:refcnt:get put=sdt:refcnt:put", "send_reply", "leak");
	return errors > 64;
}
