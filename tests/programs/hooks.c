/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gets and puts where code inside the program has it hard: in signal handlers on a stack of their own, in coroutines,
 * behind longjmp() out of a constructor, in children of every kind, in threads that come and go. A coroutine forgets
 * some puts.
 */
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "truth.h"

struct obj {
	int refs;
	int number;
};

static bool healthy;
static jmp_buf back;
static struct obj *shared;
static volatile sig_atomic_t ticks;

NOINLINE struct obj *obj_new(int number)
{
	struct obj *o;
	void *frames[4];

	if (number < 0)
		longjmp(back, 1);
	o = calloc(1, sizeof(*o));
	if (!o)
		abort();
	/* who looks at its own stack in here must survive it */
	if (number % 16 == 7)
		o->number = backtrace(frames, 4) < 0;
	o->refs = 1;
	o->number += number;
	return o;
}

NOINLINE struct obj *obj_get(struct obj *o)
{
	if (o)
		__atomic_fetch_add(&o->refs, 1, __ATOMIC_RELAXED);
	return o;
}

NOINLINE void obj_put(struct obj *o)
{
	if (o && __atomic_sub_fetch(&o->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(o);
}

NOINLINE void on_tick(int sig)
{
	obj_get(shared);
	DID("get");
	obj_put(shared);
	DID("put");
	ticks++;
}

NOINLINE void tick(void)
{
	static char stack[64 << 10];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = on_tick, .sa_flags = SA_ONSTACK | SA_RESTART };
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0 } };
	struct obj *mine = obj_new(2);
	unsigned long gets = 0;

	DID("new");

	sigaltstack(&alternate, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	/* the handler comes into hooks, too: of another object, whose count it does not change in the middle of
	 * anything */
	while (ticks < 50) {
		obj_get(mine);
		gets++;
		obj_put(mine);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	obj_put(mine);
	DID("put");
	for (unsigned long i = 0; i < gets; i++) {
		DID("get");
		DID("put");
	}
}

NOINLINE void jump(int i)
{
	if (!setjmp(back))
		(void)obj_new(-1 - i);
}

NOINLINE void *thread(void *arg)
{
	struct obj *o = obj_new((int)(intptr_t)arg);

	DID("new");
	obj_get(o);
	DID("get");
	obj_put(o);
	DID("put");
	obj_put(o);
	DID("put");
	return NULL;
}

static ucontext_t main_context, co_context;
static int co_number;

NOINLINE void coroutine(void)
{
	for (;;) {
		struct obj *o = obj_new(co_number);

		DID("new");
		obj_get(o);
		DID("get");
		swapcontext(&co_context, &main_context);
		obj_put(o);
		DID("put");
		if (healthy || co_number % 4) {
			obj_put(o);
			DID("put");
		} else {
			LOST();
		}
		swapcontext(&co_context, &main_context);
	}
}

NOINLINE void coroutines(void)
{
	static char stack[64 << 10];

	getcontext(&co_context);
	co_context.uc_stack = (stack_t){ .ss_sp = stack, .ss_size = sizeof(stack) };
	makecontext(&co_context, coroutine, 0);
	for (co_number = 0; co_number < 40; co_number++) {
		swapcontext(&main_context, &co_context);
		swapcontext(&main_context, &co_context);
	}
}

NOINLINE void child(int i)
{
	struct obj *o = obj_new(i);

	DID("new");
	obj_put(o);
	DID("put");
	obj_get(shared);
	DID("get");
	obj_put(shared);
	DID("put");
}

NOINLINE void children(void)
{
	char *words[] = { "true", NULL }, *none[] = { NULL };
	pid_t pid;

	for (int i = 0; i < 5; i++) {
		pid = fork();
		if (!pid) {
			child(i);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		pid = vfork();
		if (!pid) {
			execv("/bin/true", words);
			_exit(1);
		}
		waitpid(pid, NULL, 0);
		if (!posix_spawn(&pid, "/bin/true", NULL, NULL, words, none))
			waitpid(pid, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	healthy = truth_healthy(argc, argv);
	shared = obj_new(0);
	DID("new");
	for (int i = 0; i < 20; i++)
		jump(i);
	for (int i = 0; i < 60; i++) {
		pthread_t id[2];

		for (int k = 0; k < 2; k++)
			if (pthread_create(&id[k], NULL, thread, (void *)(intptr_t)i))
				abort();
		for (int k = 0; k < 2; k++)
			pthread_join(id[k], NULL);
	}
	children();
	coroutines();
	obj_put(NULL);
	obj_get(NULL);
	obj_put(shared);
	DID("put");
	shared = obj_new(1);
	DID("new");
	tick();
	obj_put(shared);
	DID("put");
	truth_print("type=obj new=obj_new:ret get=obj_get put=obj_put", "coroutine", "leak");
	return 0;
}
