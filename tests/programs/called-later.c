/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * called-later ok|bad|own: connections wait for an answer. A reference is taken for the function that is called then,
 * and puts it; bad: that one forgets it. own: who makes a connection asks for an answer that has nothing to do with it,
 * and forgets to put the connection himself.
 */
#include <stdlib.h>
#include <string.h>

#define FAR __attribute__((noinline, noclone))

enum { CONNS = 20 };

struct conn {
	int refs;
	int answers;
	long pad[4];
};

struct wait {
	struct wait *next;
	void (*call)(int answer, void *with);
	void *with;
};

static struct wait *waits;
static const char *mode;
static int sum;

FAR struct conn *conn_new(void)
{
	struct conn *c = calloc(1, sizeof(*c));

	c->refs = 1;
	return c;
}

FAR void conn_ref(struct conn *c)
{
	c->refs++;
}

FAR void conn_unref(struct conn *c)
{
	if (!--c->refs)
		free(c);
}

FAR int resolve(const char *name, void (*call)(int answer, void *with), void *with)
{
	struct wait *w = calloc(1, sizeof(*w));

	w->call = call;
	w->with = with;
	w->next = waits;
	waits = w;
	return name[0];
}

FAR void answer_all(void)
{
	for (struct wait *w = waits, *next; w; w = next) {
		next = w->next;
		w->call(sum, w->with);
		free(w);
	}
	waits = NULL;
}

/* takes over a reference */
static FAR void resolved(int answer, void *with)
{
	struct conn *c = with;

	sum += answer & 1;
	c->answers++;
	if (strcmp(mode, "bad"))
		conn_unref(c);
}

static FAR void noted(int answer, void *with)
{
	sum += answer & 1;
	*(int *)with = 1;
}

FAR void connect_to(struct conn *c, const char *name)
{
	conn_ref(c);
	sum += resolve(name, resolved, c);
}

FAR int ask(const char *name)
{
	struct conn *c = conn_new();
	static int flag;

	sum += resolve(name, noted, &flag);
	answer_all();
	if (strcmp(mode, "own"))
		conn_unref(c);
	return flag;
}

int main(int argc, char **argv)
{
	mode = argc > 1 ? argv[1] : "ok";
	for (int i = 0; i < CONNS; i++) {
		struct conn *c = conn_new();

		if (strcmp(mode, "own"))
			connect_to(c, argv[0]);
		else
			sum += ask(argv[0]);
		answer_all();
		conn_unref(c);
	}
	return sum < 0;
}
