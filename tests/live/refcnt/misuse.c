/* SPDX-License-Identifier: GPL-2.0-only */
/* One misuse a run, the same source in each mode: `misuse NAME`. What the program itself sees of it goes to stdout. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <refcnt/refcnt.h>

#define NOINLINE __attribute__((noinline))
#define END() __asm__ volatile("" ::: "memory") /* no tail call: the function stays in its callees' stacks */

#define CONN_FIELDS(field, array) field(conn, int, number) field(conn, struct conn *, next) array(conn, char, name, 24)

struct conn;
REFCNT_STRUCT(conn, CONN_FIELDS);

static int released;

static void conn_release(struct conn *c)
{
	released++;
	conn_dealloc(c);
}
REFCNT_STRUCT_DEFINE(conn, conn_release);

static struct conn *volatile global;

static struct refcnt *counter(struct conn *c)
{
#if REFCNT_MODE == REFCNT_CHECKED
	return &c->refcnt_object->refcnt_refs;
#else
	return &conn_home(c)->refcnt_refs;
#endif
}

NOINLINE static struct conn *make(void)
{
	struct conn *c = conn_alloc();

	if (!c)
		abort();
	conn_set_number(c, 7);
	return c;
}

NOINLINE static struct conn *take(struct conn *c)
{
	struct conn *mine = conn_get(c);

	END();
	return mine;
}

NOINLINE static void give(struct conn *c)
{
	conn_put(c);
	END();
}

NOINLINE static void forget(struct conn *c)
{
	struct conn *mine = take(c);

	conn_set_number(mine, 8);
}

/* Of what was on the stack nothing is left: LeakSanitizer takes any old copy of a pointer for a reference. */
NOINLINE static void wipe(void)
{
	char below[1 << 16];

	explicit_bzero(below, sizeof(below));
}

NOINLINE static void leak(void)
{
	struct conn *c = make();

	forget(c);
	give(c);
}

NOINLINE static void extra_put(void)
{
	struct conn *c = make(), *d = take(c);

	give(d);
	give(c);
	give(c);
}

NOINLINE static int look(struct conn *c)
{
	int number = conn_number(c);

	END();
	return number;
}

/* while others keep the object alive */
NOINLINE static void use_after_put(void)
{
	struct conn *c = make(), *d = take(c);

	give(d);
	printf("number %d\n", look(d));
	give(c);
}

NOINLINE static void get_on_zero(void)
{
	struct conn *c = make();

	give(c);
	(void)!take(c);
}

NOINLINE static void overflow(void)
{
	struct conn *c = make(), *d, *e;

	counter(c)->refcnt_count = REFCNT_MAX;
	d = take(c);
	printf("count %#x\n", conn_count(c));
	e = take(c);
	give(d);
	give(e);
	printf("count %#x, released %d\n", conn_count(c), released);
}

NOINLINE static void foreign(void)
{
#if REFCNT_MODE == REFCNT_CHECKED
	static struct conn_object object;
	static struct conn c = { &object };
#else
	static struct conn c;
#endif

	give(&c);
}

NOINLINE static void put_after_free(void)
{
	struct conn *c = make();

	conn_dealloc(c);
	give(c);
}

/* by the address that all holders have in common: nobody's reference, where references have handles */
NOINLINE static void put_at_home(void)
{
	struct conn *c = make();

	give(conn_home(c));
	give(c);
	printf("released %d\n", released);
}

NOINLINE static void in_fork(void)
{
	struct conn *volatile c = make(), *volatile d = take(c);
	int status;

	if (!fork()) {
		forget(c);
		wipe();
		exit(0);
	}
	wait(&status);
	/* what the child wrote is its own */
	printf("child %d, number %d, count %u\n", status, conn_number(c), conn_count(c));
	give(d);
	give(c);
}

static void on_alarm(int number)
{
	exit(0);
}

/* anywhere in an operation */
NOINLINE static void exit_in_handler(void)
{
	struct itimerval soon = { .it_value = { .tv_usec = 1 + getpid() % 1000 } };
	struct conn *c = make();

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (;;)
		give(take(c));
}

static void *hold(void *c)
{
	global = take(c);
	END();
	return NULL;
}

NOINLINE static void thread_dies(void)
{
	struct conn *c = make();
	pthread_t thread;

	pthread_create(&thread, NULL, hold, c);
	pthread_join(thread, NULL);
	give(c);
}

/* no misuse: what release builds leave to the kernel */
static struct conn *kept;

static void tidy(void)
{
	if (!kept)
		return;
	conn_put(kept);
	printf("tidy, released %d\n", released);
}
REFCNT_TEARDOWN(tidy);

NOINLINE static void teardown(void)
{
	kept = make();
}

static void on_holder(const struct refcnt_holder *holder, void *arg)
{
	printf("holder: first %d, exact %d, handle %d, frames %d\n", holder->is_first, holder->is_exact,
	       holder->handle &&
		       holder->handle == (holder->is_first ? ((struct conn **)arg)[0] : ((struct conn **)arg)[1]),
	       holder->n_frames > 0);
}

/* no misuse: asked who holds the object, by either reference */
NOINLINE static void holders(void)
{
	struct conn *c = make(), *d = take(c), *both[] = { c, d };

	printf("holders %ld\n", refcnt_holders(d, on_holder, both));
	refcnt_print_holders(c);
	give(d);
	give(c);
}

/* no misuse: an object that is gone is not found */
NOINLINE static void not_zero(void)
{
#if REFCNT_MODE != REFCNT_CHECKED && REFCNT_MODE != REFCNT_ALIAS
	static struct conn c;
	struct conn *d;

	d = conn_get_not_zero(conn_init(&c));
	printf("got %d\n", d == &c);
#endif
}

static const struct {
	const char *name;
	void (*fn)(void);
} misuses[] = {
	{ "leak", leak },
	{ "extra-put", extra_put },
	{ "use-after-put", use_after_put },
	{ "get-on-zero", get_on_zero },
	{ "overflow", overflow },
	{ "foreign", foreign },
	{ "put-after-free", put_after_free },
	{ "put-at-home", put_at_home },
	{ "fork", in_fork },
	{ "exit-in-handler", exit_in_handler },
	{ "thread-dies", thread_dies },
	{ "teardown", teardown },
	{ "holders", holders },
	{ "not-zero", not_zero },
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc > 1 && i < sizeof(misuses) / sizeof(*misuses); i++)
		if (!strcmp(argv[1], misuses[i].name))
			misuses[i].fn();
	wipe();
	return 0;
}
