/* SPDX-License-Identifier: GPL-2.0-only */
/* `packet_replace` lets a slot drop one packet and take another. `receive` keeps the creation reference of some. */
#include "truth.h"

struct packet {
	int number;
	int refs;
	char data[32];
};

struct port {
	struct packet *last;
};

static bool healthy;

NOINLINE struct packet *packet_new(int number)
{
	struct packet *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->refs = 1;
	p->number = number;
	return p;
}

NOINLINE void packet_put(struct packet *p)
{
	if (--p->refs == 0)
		free(p);
}

NOINLINE void packet_replace(struct packet **slot, struct packet *with)
{
	struct packet *old = *slot;

	if (with)
		with->refs++;
	*slot = with;
	if (old && --old->refs == 0)
		free(old);
}

NOINLINE void receive(struct port *port, int number)
{
	struct packet *p = packet_new(number);

	DID("new");
	/* a swap takes a reference to one, and gives back that to the other */
	if (port->last)
		DID("put");
	packet_replace(&port->last, p);
	DID("get");
	if (number % 12 == 5 && !healthy) {
		LOST();
		return;
	}
	packet_put(p);
	DID("put");
}

NOINLINE void close_port(struct port *port)
{
	packet_replace(&port->last, NULL);
	DID("put");
}

int main(int argc, char **argv)
{
	struct port port = { 0 };

	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < 60; i++)
		receive(&port, i);
	close_port(&port);
	truth_print("type=packet new=packet_new put=packet_put swap=packet_replace:*1", "receive", "leak");
	return 0;
}
