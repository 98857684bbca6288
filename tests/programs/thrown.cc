/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A constructor that calls back: what it calls throws through it, or throws and catches, looks at its own stack, ends
 * its thread, jumps away. Whoever waits for the constructor's return must not be noticed; what it says of itself on
 * lines "saw ..." is the same with and without a tracer. `careless` forgets some puts. With a second argument it waits
 * for a line inside of a constructor, and throws then.
 */
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdexcept>
#include <sys/wait.h>

#include "truth.h"

struct obj {
	int refs;
	int number;
	char data[40];
};

struct note {
	int refs;
	int number;
};

enum { ROUNDS = 48 };

static bool healthy;
static thread_local struct obj *half_made;
static thread_local int round_nr;
static int destroyed, frames, child_status;
static jmp_buf back;

extern "C" {

NOINLINE struct obj *obj_new(void (*init)(struct obj *o))
{
	struct obj *o = (struct obj *)calloc(1, sizeof(*o));

	if (!o)
		abort();
	o->refs = 1;
	half_made = o;
	init(o);
	half_made = nullptr;
	return o;
}

NOINLINE struct obj *obj_get(struct obj *o)
{
	o->refs++;
	return o;
}

NOINLINE void obj_put(struct obj *o)
{
	if (--o->refs == 0)
		free(o);
}

NOINLINE struct note *note_new(int number)
{
	struct note *n = (struct note *)malloc(sizeof(*n));

	if (!n)
		abort();
	n->refs = 1;
	n->number = number;
	return n;
}

NOINLINE void note_put(struct note *n)
{
	if (--n->refs == 0)
		free(n);
}
}

/* what was not made is nobody's */
static void give_up()
{
	free(half_made);
	half_made = nullptr;
}

static void plain(struct obj *o)
{
	o->number = round_nr;
}

struct guard {
	~guard()
	{
		destroyed++;
	}
};

/* its destructor waits for a constructor while the stack is unwound */
struct worker {
	NOINLINE ~worker()
	{
		struct note *n = note_new(destroyed);

		DID("new");
		note_put(n);
		DID("put");
	}
};

static void throws(struct obj *)
{
	worker w;
	guard g;

	throw std::runtime_error("no object");
}

static void throws_and_catches(struct obj *o)
{
	try {
		guard g;

		throw o;
	} catch (struct obj *) {
		plain(o);
	}
}

static void throws_again(struct obj *o)
{
	try {
		throws(o);
	} catch (const std::exception &) {
		throw;
	}
}

/* makes another object, which fails: that is caught in between */
static NOINLINE void inner(struct obj *o)
{
	struct obj *own = nullptr;

	try {
		own = obj_new(throws_again);
	} catch (const std::exception &) {
		give_up();
	}
	half_made = o;
	plain(own ? own : o);
}

static NOINLINE void looks(struct obj *o)
{
	void *stack[64];

	frames += backtrace(stack, 64);
	plain(o);
}

static void ends_thread(struct obj *)
{
	guard g;

	give_up();
	pthread_exit(nullptr);
}

static void waits(struct obj *)
{
	guard g;

	give_up();
	for (;;)
		pause();
}

static void jumps(struct obj *)
{
	give_up();
	longjmp(back, 1);
}

/* a child has the stack of its parent, and what waits on it */
static void forks(struct obj *o)
{
	pid_t pid = fork();
	int status = -1;

	if (!pid)
		throws(o);
	waitpid(pid, &status, 0);
	child_status = status;
	plain(o);
}

/* whoever traces may go meanwhile */
static void waits_for_word(struct obj *o)
{
	printf("ready %d\n", getpid());
	fflush(stdout);
	getchar();
	throws(o);
}

NOINLINE static void *thread(void *init)
{
	guard g;

	obj_new((void (*)(struct obj *))init);
	return nullptr;
}

NOINLINE static void threads()
{
	pthread_t id;

	if (pthread_create(&id, nullptr, thread, (void *)ends_thread))
		abort();
	pthread_join(id, nullptr);
	if (pthread_create(&id, nullptr, thread, (void *)waits))
		abort();
	pthread_cancel(id);
	pthread_join(id, nullptr);
}

NOINLINE static void careless(struct obj *o)
{
	obj_get(o);
	DID("get");
	if (o->number % 6 == 1 && !healthy) {
		LOST();
		return;
	}
	obj_put(o);
	DID("put");
}

NOINLINE static void make(void (*init)(struct obj *))
{
	struct obj *o;

	try {
		o = obj_new(init);
		DID("new");
		careless(o);
		obj_put(o);
		DID("put");
	} catch (const std::exception &) {
		guard g;

		give_up();
	}
}

NOINLINE static void jump()
{
	if (!setjmp(back))
		obj_new(jumps);
}

NOINLINE static void child()
{
	pid_t self = getpid();

	try {
		make(forks);
	} catch (const std::exception &) {
	}
	if (getpid() != self) {
		destroyed++;
		_exit(0);
	}
}

int main(int argc, char **argv)
{
	void (*const inits[])(struct obj *) = { plain, throws, throws_and_catches, throws_again, inner, looks };

	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < ROUNDS; i++) {
		round_nr = i / 6;
		make(inits[i % 6]);
	}
	round_nr = 0;
	jump();
	child();
	threads();
	if (argc > 2)
		make(waits_for_word);
	printf("saw %d destroyed, %d frames, child %d\n", destroyed, frames, child_status);
	printf("spec type=note new=note_new:ret put=note_put\n");
	truth_print("type=obj new=obj_new:ret get=obj_get put=obj_put", "careless", "leak");
	return 0;
}
