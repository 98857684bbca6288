/* SPDX-License-Identifier: GPL-2.0-only */
/* What the library is asked: `features NAME`. Healthy unless NAME says otherwise. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <refcnt/refcnt.h>

#define NOINLINE __attribute__((noinline))
#define END() __asm__ volatile("" ::: "memory")

struct conn {
	struct refcnt refs;
	int number;
	struct conn *self;
	char large[];
};

REFCNT_DECLARE(conn, struct conn);
static int released;

static void conn_release(struct conn *c)
{
	released++;
	conn_dealloc(c);
}
REFCNT_DEFINE(conn, struct conn, refs, conn_release);

struct plain {
	struct refcnt refs;
};
REFCNT_DECLARE(plain, struct plain);
static void plain_release(struct plain *p)
{
	plain_dealloc(p);
}
REFCNT_DEFINE(plain, struct plain, refs, plain_release);

static struct conn *kept;

static void tidy(void)
{
	printf("tidy\n");
	conn_put_at(&kept);
}
REFCNT_TEARDOWN(tidy);

NOINLINE static struct conn *make(void)
{
	struct conn *c = conn_alloc();

	if (!c)
		abort();
	c->number = 1;
	return c;
}

NOINLINE static struct conn *take(struct conn *c)
{
	struct conn *mine = conn_get(c);

	END();
	return mine;
}

NOINLINE static void scoped(struct conn *c)
{
	REFCNT_SCOPED(conn) struct conn *mine = conn_get(c), *none = NULL;

	printf("count %u, none %p\n", conn_count(mine), (void *)none);
}

NOINLINE static void teardown(void)
{
	kept = make();
	scoped(kept);
}

static void see(const struct refcnt_holder *h, void *arg)
{
	printf("holder: first %d, exact %d, handle %d, dir %s, frames %s\n", h->is_first, h->is_exact,
	       h->handle != NULL, h->dir ? h->dir : "-", h->n_frames > 1 ? "some" : "none");
}

NOINLINE static void holders(void)
{
	struct conn *c = make(), *d = take(c), *e = take(c);

	conn_put(e);
	printf("holders %ld\n", refcnt_holders(c, see, NULL));
	refcnt_print_holders(d);
	conn_put(d);
	conn_put(c);
	printf("unknown %ld\n", refcnt_holders(&released, see, NULL));
}

static struct refcnt_dir cache = REFCNT_DIR("the cache"), queue = REFCNT_DIR("the queue");

NOINLINE static void tracker(void)
{
	struct refcnt_tracker in_cache = { 0 }, in_queue = { 0 }, empty = { 0 };
	struct conn *c = make(), *d = conn_get_tracked(c, &cache, &in_cache),
		    *e = conn_get_tracked(c, &queue, &in_queue);

	printf("cache %ld\n", refcnt_tracker_report(&cache));
	conn_put_tracked(e, &in_queue);
	printf("queue %ld\n", refcnt_tracker_report(&queue));
	conn_put_tracked(e, &in_queue); /* once too often */
	conn_put_tracked(c, &empty);    /* never taken */
	conn_put_tracked(d, &in_cache);
	conn_put(c);
	printf("released %d\n", released);
}

NOINLINE static void classes(void)
{
	struct plain *p = plain_alloc();

	(void)!take(make());
	(void)!plain_get(p);
}

/* more objects than there is memory for */
NOINLINE static void many(void)
{
	static struct conn *all[40000];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 40000; i++)
			all[i] = make();
		for (int i = 0; i < 40000; i++)
			conn_put(all[i]);
	}
	printf("released %d\n", released);
	(void)!take(make());
}

/* more operations on one object than are kept */
NOINLINE static void busy(void)
{
	static struct conn *held[10000];
	struct conn *c = make();

	for (int i = 0; i < 10000; i++)
		conn_put(take(c));
	for (int i = 0; i < 10000; i++)
		held[i] = take(c);
	printf("count %u\n", conn_count(c));
	for (int i = 0; i < 10000; i++)
		conn_put(held[i]);
	printf("count %u\n", conn_count(c));
	conn_put(c);
	printf("released %d\n", released);
}

/* references that have no alias any more: used by the one address of the object, and nothing is wrong about it */
NOINLINE static void aliases(void)
{
	static struct conn *held[40000];
	struct conn *c = make();
	int same = 0;

	for (int i = 0; i < 40000; i++) {
		held[i] = conn_get(c);
		held[i]->number++;
	}
	for (int i = 0; i < 40000; i++)
		same += held[i] == conn_home(c);
	printf("number %d, some without %d, count %u\n", c->number, same > 0, conn_count(c));
	for (int i = 0; i < 40000; i++)
		conn_put(held[i]);
	conn_put(c);
	printf("released %d\n", released);
}

/* addresses come round: what was given back long ago is forgotten, never an object that lives */
NOINLINE static void around(void)
{
	struct conn *c = make(), *d = take(c);

	d->number = 5;
	for (int i = 0; i < 100; i++)
		conn_put(take(c));
	printf("number %d %d\n", c->number, d->number);
	conn_put(d);
	conn_put(c);
}

/* identity, and pointers in the object to itself */
NOINLINE static void identity(void)
{
	struct conn *c = make(), *d = take(c);

	c->self = conn_home(c);
	c->number = 3;
	printf("equal %d, same %d, number %d, home %d\n", c == d, refcnt_same(conn, c, d), d->self->number,
	       conn_home(c) == conn_home(d));
	conn_put(c);
	/* as long as the object lives, whoever put */
	printf("number %d\n", d->self->number);
	conn_put(d);
}

NOINLINE static void asked(void)
{
	struct conn *c = take(make());

	kill(getpid(), SIGUSR2);
	printf("asked\n");
	fflush(stdout);
	getchar(); /* until the report was seen */
	conn_put(c);
	conn_put(c);
}

static void *in_thread(void *c)
{
	conn_put(c);
	return NULL;
}

NOINLINE static void other_thread(void)
{
	struct conn *c = make();
	pthread_t thread;

	pthread_create(&thread, NULL, in_thread, take(c));
	pthread_join(thread, NULL);
	conn_put(c);
}

static void on_fault(int number)
{
	static const char text[] = "mine\n";

	(void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
	_exit(5);
}

/* who had the signal before gets it afterwards; a system call makes no fault of what was given back */
NOINLINE static void chained(void)
{
	struct conn *c, *d;
	ssize_t written;

	signal(SIGSEGV, on_fault);
	c = make();
	d = take(c);
	conn_put(d);
	written = write(STDOUT_FILENO, d, 1);
	printf("%zd %d\n", written, errno == EFAULT);
	printf("%d\n", d->number);
}

NOINLINE static void again(void)
{
	static struct plain p;

	(void)!plain_init(&p);
	(void)!plain_init(&p);
	plain_put_at(&(struct plain *){ NULL });
}

static const struct {
	const char *name;
	void (*fn)(void);
} features[] = {
	{ "teardown", teardown },         { "holders", holders }, { "tracker", tracker },
	{ "classes", classes },           { "many", many },       { "busy", busy },
	{ "aliases", aliases },           { "around", around },   { "identity", identity },
	{ "other-thread", other_thread }, { "asked", asked },     { "again", again },
	{ "chained", chained },
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc > 1 && i < sizeof(features) / sizeof(*features); i++)
		if (!strcmp(argv[1], features[i].name))
			features[i].fn();
	return 0;
}
