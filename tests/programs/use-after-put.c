/* SPDX-License-Identifier: GPL-2.0-only */
/* `write_log` goes on with a connection that its caller has given back already. Dead connections stay readable. */
#include "truth.h"

struct conn {
	int fd;
	unsigned refs;
	bool closed;
	unsigned long sent;
};

static bool healthy;

NOINLINE struct conn *conn_open(int fd)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	c->refs = 1;
	c->fd = fd;
	return c;
}

NOINLINE void conn_hold(struct conn *c)
{
	c->refs++;
}

NOINLINE void conn_rele(struct conn *c)
{
	if (--c->refs == 0)
		c->closed = true;
}

NOINLINE void conn_send(struct conn *c, int bytes)
{
	c->sent += (unsigned long)bytes;
}

NOINLINE void write_log(struct conn *c)
{
	conn_send(c, 3);
	DID("use");
}

NOINLINE void request(struct conn *c)
{
	conn_hold(c);
	DID("get");
	conn_send(c, c->fd);
	DID("use");
	conn_rele(c);
	DID("put");
}

NOINLINE void finish(struct conn *c)
{
	if (healthy || c->fd % 6) {
		write_log(c);
		conn_rele(c);
		DID("put");
	} else {
		conn_rele(c);
		DID("put");
		write_log(c);
		LOST();
	}
}

int main(int argc, char **argv)
{
	healthy = truth_healthy(argc, argv);
	for (int i = 1; i <= 60; i++) {
		struct conn *c = conn_open(i);

		DID("new");
		request(c);
		finish(c);
	}
	truth_print("type=conn new=conn_open get=conn_hold put=conn_rele use=conn_send", "write_log", "use-after-put");
	return 0;
}
