/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gets and puts where a probe has it hard: functions of three bytes with and without room behind them, one whose code
 * is chosen when the program starts. `places MODE`:
 *
 *     ok         once
 *     changed    has changed its code before anybody looks: `obj_hold` takes two references by one call. Prints
 *                "ready PID" and goes on at a line
 *
 * At its end it says how many objects are left, and how often a count was wrong ("left N, wrong N"): none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "truth.h"

struct obj {
	int refs;
};

enum { OBJECTS = 50 };

static long left, wrong;

NOINLINE struct obj *obj_new(void)
{
	struct obj *o = malloc(sizeof(*o));

	if (!o)
		abort();
	*(volatile int *)&o->refs = 1;
	left++;
	return o;
}

void obj_get(struct obj *o);
void obj_hold(struct obj *o);

/* four bytes, and another function at once; three bytes of an instruction that has room for another */
__asm__(".text\n"
	".p2align 4\n"
	".type obj_get, @function\n"
	"obj_get:\n"
	"	incl (%rdi)\n"
	"	ret\n"
	".size obj_get, . - obj_get\n"
	".type obj_other, @function\n"
	"obj_other:\n"
	"	mov %rdi, %rax\n"
	"	ret\n"
	".size obj_other, . - obj_other\n"
	".p2align 4\n"
	".type obj_hold, @function\n"
	"obj_hold:\n"
	"	addl $1, (%rdi)\n"
	"	ret\n"
	".size obj_hold, . - obj_hold\n"
	".p2align 4\n");

NOINLINE void obj_put(struct obj *o)
{
	if (--*(volatile int *)&o->refs == 0) {
		left--;
		free(o);
	}
}

NOINLINE static void drop_plain(struct obj *o)
{
	if (--*(volatile int *)&o->refs == 0) {
		left--;
		free(o);
	}
}

static void *choose(void)
{
	return (void *)drop_plain;
}

void obj_drop(struct obj *o) __attribute__((ifunc("choose")));

/* add $1 becomes add $2 */
static void change(void)
{
	unsigned char *code = (unsigned char *)(void *)obj_hold;
	char *page = (char *)((unsigned long)code & ~4095ul);

	if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
		exit(1);
	code[2] = 2;
	if (mprotect(page, 8192, PROT_READ | PROT_EXEC))
		exit(1);
}

NOINLINE static void use(int holds)
{
	struct obj *o = obj_new();

	DID("new");
	obj_get(o);
	DID("get");
	obj_hold(o);
	DID("get");
	obj_drop(o);
	DID("put");
	wrong += o->refs != holds + 1;
	for (int i = 0; i < holds + 1; i++) {
		obj_put(o);
		DID("put");
	}
}

int main(int argc, char **argv)
{
	int changed = argc > 1 && !strcmp(argv[1], "changed");

	if (changed) {
		change();
		printf("ready %d\n", getpid());
		fflush(stdout);
		getchar();
	}
	for (int i = 0; i < OBJECTS; i++)
		use(changed ? 2 : 1);
	printf("left %ld, wrong %ld\n", left, wrong);
	truth_print("type=obj new=obj_new:ret get=obj_get,obj_hold put=obj_put,drop_plain free=free counter=+0:4", NULL,
		    NULL);
	return 0;
}
