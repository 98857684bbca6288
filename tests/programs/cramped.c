/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Some gets and puts have no room for a jump: a branch leads into their first bytes. Threads and forked children do
 * both kinds, one object per thread; each process prints "operations N", its own.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, CHILDREN = 3, ROUNDS = 2000 };

struct obj {
	int refs;
};

#define NOINLINE __attribute__((noinline))

NOINLINE struct obj *obj_new(void)
{
	struct obj *o = malloc(sizeof(*o));

	*(volatile int *)&o->refs = 1;
	return o;
}

NOINLINE void obj_get(struct obj *o)
{
	*(volatile int *)&o->refs += 1;
}

NOINLINE void obj_free(struct obj *o)
{
	free(o);
}

void obj_take(struct obj *o);
int obj_drop(struct obj *o);

/* obj_drop(): whether it was the last; both are reached by a branch into the second instruction as well */
__asm__(".text\n"
	".type obj_take, @function\n"
	"obj_take:\n"
	"	xor %eax, %eax\n"
	"1:	incl (%rdi)\n"
	"	test %eax, %eax\n"
	"	jne 1b\n"
	"	ret\n"
	".size obj_take, . - obj_take\n"
	".type obj_drop, @function\n"
	"obj_drop:\n"
	"	xor %edx, %edx\n"
	"1:	decl (%rdi)\n"
	"	sete %al\n"
	"	movzbl %al, %eax\n"
	"	test %edx, %edx\n"
	"	jne 1b\n"
	"	ret\n"
	".size obj_drop, . - obj_drop\n");

static void *work(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct obj *o = obj_new();

		obj_get(o);
		obj_take(o);
		obj_drop(o);
		obj_drop(o);
		if (obj_drop(o))
			obj_free(o);
	}
	return arg;
}

static void work_all(void)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, NULL))
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	printf("operations %d\n", THREADS * ROUNDS * 7);
	fflush(stdout);
}

int main(void)
{
	for (int i = 0; i < CHILDREN; i++) {
		if (fork())
			continue;
		work_all();
		_exit(0);
	}
	work_all();
	while (wait(NULL) > 0)
		;
	return 0;
}
