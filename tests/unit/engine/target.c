/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A little program of gets and puts, compiled and run by test-engine-uprobe.c.
 * It stops itself before its first call, so that it can be probed; argv[1] says
 * what it does, argv[2] how often.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

struct obj {
	long pad;
	int refs;
};

struct obj objects[4] = { { 0, 7 }, { 0, 8 }, { 0, 9 }, { 0, 10 } };
volatile long sink;

/* -O2 without frame pointers puts the operation first: a leaf whose caller most tools lose */
NOINLINE void obj_get(struct obj *o)
{
	o->refs++;
}

NOINLINE void obj_put(struct obj *o)
{
	o->refs--;
	sink++;
}

NOINLINE void obj_drop(struct obj **slot)
{
	sink += (*slot)->refs;
	*slot = NULL;
}

NOINLINE int obj_find(int key, struct obj **out)
{
	*out = key < 4 ? &objects[key] : NULL;
	sink++;
	return key < 4;
}

NOINLINE int obj_try_get(struct obj *o)
{
	sink++;
	return o->refs & 1;
}

NOINLINE struct obj *obj_new(int key)
{
	sink++;
	return key < 0 ? NULL : &objects[key & 3];
}

/* Returns nested n deep; a get in the innermost. */
NOINLINE struct obj *obj_nested(int n)
{
	struct obj *o;

	if (!n) {
		obj_get(&objects[0]);
		return &objects[0];
	}
	o = obj_nested(n - 1);
	sink++;
	return o;
}

/* A tail call at -O2: both return through one return address. */
NOINLINE struct obj *obj_tail(int key)
{
	sink += key;
	return obj_new(key);
}

void locked_get(struct obj *o);
__asm__(".text\n.globl locked_get, pushed_get, hook\n.type locked_get,@function\n.type pushed_get,@function\n"
	".type hook,@function\n"
	"locked_get: lock incl 8(%rdi)\nnop\nret\n.size locked_get,.-locked_get\n"
	"pushed_get: push %rbx\nmov %rdi,%rbx\npush %r12\nnop\nincl 8(%rbx)\npop %r12\npop %rbx\nret\n"
	".size pushed_get,.-pushed_get\n"
	"hook: nop\nret\n.size hook,.-hook\n");
void pushed_get(struct obj *o);
void hook(void);

static void *run_thread(void *arg)
{
	long n = (long)arg;

	for (long i = 0; i < n; i++) {
		obj_get(&objects[i & 3]);
		obj_put(&objects[i & 3]);
	}
	return NULL;
}

/* A chain of frames with frame pointers: deep_15 -> ... -> deep_0 -> obj_get. */
#define DEEP(n, m) \
	__attribute__((noinline, noclone, \
		       optimize("no-omit-frame-pointer", "no-optimize-sibling-calls"))) void deep_##n(struct obj *o) \
	{ \
		char room[ROOM]; \
		memset(room, n, sizeof(room)); \
		deep_##m(o); \
		sink += room[sink & 7]; \
	}
#ifndef ROOM
#define ROOM 32
#endif
__attribute__((noinline, noclone, optimize("no-omit-frame-pointer", "no-optimize-sibling-calls"))) void
deep_0(struct obj *o)
{
	obj_get(o);
	sink++;
}
DEEP(1, 0)
DEEP(2, 1)
DEEP(3, 2)
DEEP(4, 3)
DEEP(5, 4)
DEEP(6, 5)
DEEP(7, 6)
DEEP(8, 7)
DEEP(9, 8)
DEEP(10, 9)
DEEP(11, 10)
DEEP(12, 11)
DEEP(13, 12)
DEEP(14, 13)
DEEP(15, 14)
DEEP(16, 15)
DEEP(17, 16)
DEEP(18, 17)

static jmp_buf away;
NOINLINE struct obj *obj_jump(int key)
{
	sink++;
	if (key)
		longjmp(away, 1);
	return &objects[0];
}

static int do_fork(long n)
{
	int status = 0;
	pid_t pid;

	run_thread((void *)n);
	pid = fork();
	if (!pid) {
		run_thread((void *)n);
		_exit(42);
	}
	waitpid(pid, &status, 0);
	run_thread((void *)n);
	return WIFEXITED(status) && WEXITSTATUS(status) == 42 ? 0 : 1;
}

/* Says its pid by exit of the child; the child stops for the test to arm it. */
static int do_child(long n)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		raise(SIGSTOP);
		run_thread((void *)n);
		_exit(42);
	}
	printf("%d\n", pid);
	fflush(stdout);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == 42 ? 0 : 1;
}

static int run(const char *mode, long n)
{
	struct obj *o = &objects[1];
	pthread_t t[4];

	if (!strcmp(mode, "threads")) {
		for (int i = 0; i < 4; i++)
			pthread_create(&t[i], NULL, run_thread, (void *)n);
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
		return 0;
	}
	if (!strcmp(mode, "fork"))
		return do_fork(n);
	if (!strcmp(mode, "child"))
		return do_child(n);
	for (long i = 0; i < n; i++) {
		if (!strcmp(mode, "calls"))
			run_thread((void *)1);
		else if (!strcmp(mode, "null"))
			obj_try_get(i & 1 ? o : (struct obj *)&objects[0]), obj_new(i & 1 ? 0 : -1);
		else if (!strcmp(mode, "drop"))
			o = &objects[i & 3], obj_drop(&o);
		else if (!strcmp(mode, "find"))
			obj_find(i, &o);
		else if (!strcmp(mode, "new"))
			obj_new(i);
		else if (!strcmp(mode, "nested"))
			obj_nested(10);
		else if (!strcmp(mode, "abyss"))
			obj_nested(100);
		else if (!strcmp(mode, "tail"))
			obj_tail(i);
		else if (!strcmp(mode, "locked"))
			locked_get(o), obj_get(o);
		else if (!strcmp(mode, "pushed"))
			pushed_get(o);
		else if (!strcmp(mode, "deep"))
			deep_18(o);
		else if (!strcmp(mode, "jump") && !setjmp(away))
			obj_jump(i & 1);
		else if (!strcmp(mode, "hook"))
			hook(), obj_get(o);
	}
	return 0;
}

int main(int argc, char **argv)
{
	long n = strtol(argv[2], NULL, 10);

	if (argc < 3)
		return 2;
	raise(SIGSTOP);
	return run(argv[1], n);
}
