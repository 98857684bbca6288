/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A frame that hangs on rbp, which leads astray the first three times, and then to main: the return address below it is
 * the same each time.
 */
#include <stdio.h>

struct obj {
	int refs;
};

static struct obj shared;

__attribute__((noinline)) void obj_get(struct obj *o)
{
	__atomic_fetch_add(&o->refs, 1, __ATOMIC_RELAXED);
}

__attribute__((noinline)) void obj_put(struct obj *o)
{
	__atomic_fetch_sub(&o->refs, 1, __ATOMIC_RELAXED);
}

/* takes o; with an rbp that is no frame's where is_astray is not 0 */
void hang(struct obj *o, long is_astray);

__asm__(".text\n"
	".globl hang\n"
	".type hang, @function\n"
	"hang:\n"
	".cfi_startproc\n"
	"	push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset 6, -16\n"
	"	mov %rsp, %rbp\n"
	".cfi_def_cfa_register 6\n"
	"	test %rsi, %rsi\n"
	"	jz 1f\n"
	"	mov $4096, %ebp\n"
	"1:	call obj_get\n"
	"	mov %rsp, %rbp\n"
	"	pop %rbp\n"
	".cfi_def_cfa 7, 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size hang, . - hang\n");

int main(void)
{
	for (int i = 0; i < 6; i++) {
		hang(&shared, i < 3);
		obj_put(&shared);
	}
	printf("%d\n", shared.refs);
	return 0;
}
