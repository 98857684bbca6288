/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Markers in code that has something in every register, in the flags and in the red zone: whoever looks there has to
 * leave all of it. The object is in rdi at one, in rax at the other.
 */
#include <stdint.h>

#include "truth.h"

enum { REGISTERS = 15, RED_ZONE = 16, FLAGS = 64 };

struct obj {
	atomic_int refs;
};

struct state {
	uint64_t reg[REGISTERS], red_zone[RED_ZONE], flags;
};
struct state before, after;

void pass_take(void);
void pass_give(void);

/* Each register but rsp, in the order of struct state. */
#define EACH_REGISTER "rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15"

__asm__(".macro pass name operand\n"
	"	.globl pass_\\name\n"
	"	.type pass_\\name, @function\n"
	"pass_\\name:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	push before + 248(%rip)\n"
	"	popfq\n"
	"	.set at, 0\n"
	"	.rept 16\n"
	"	mov before + 120 + at(%rip), %rax\n"
	"	mov %rax, -8 - at(%rsp)\n"
	"	.set at, at + 8\n"
	"	.endr\n"
	"	.set at, 0\n"
	"	.irp reg, " EACH_REGISTER "\n"
	"	mov before + at(%rip), %\\reg\n"
	"	.set at, at + 8\n"
	"	.endr\n"
	"990:	nop\n	nop\n	nop\n	nop\n	nop\n"
	"	.set at, 0\n"
	"	.irp reg, " EACH_REGISTER "\n"
	"	mov %\\reg, after + at(%rip)\n"
	"	.set at, at + 8\n"
	"	.endr\n"
	"	.set at, 0\n"
	"	.rept 16\n"
	"	mov -8 - at(%rsp), %rax\n"
	"	mov %rax, after + 120 + at(%rip)\n"
	"	.set at, at + 8\n"
	"	.endr\n"
	"	pushfq\n"
	"	pop after + 248(%rip)\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
	"	ret\n"
	"	.size pass_\\name, . - pass_\\name\n"
	"	.pushsection .note.stapsdt, \"\", \"note\"\n"
	"	.balign 4\n"
	"	.4byte 992f - 991f, 994f - 993f, 3\n"
	"991:	.asciz \"stapsdt\"\n"
	"992:	.balign 4\n"
	"993:	.8byte 990b, _.stapsdt.base, 0\n"
	"	.asciz \"kept\"\n"
	"	.asciz \"\\name\"\n"
	"	.asciz \"8@%\\operand\"\n"
	"994:	.balign 4\n"
	"	.popsection\n"
	".endm\n"
	".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"
	".weak _.stapsdt.base\n"
	".hidden _.stapsdt.base\n"
	"_.stapsdt.base: .space 1\n"
	".size _.stapsdt.base, 1\n"
	".popsection\n"
	".text\n"
	"pass take rdi\n"
	"pass give rax\n");

NOINLINE struct obj *obj_new(void)
{
	struct obj *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	atomic_init(&o->refs, 1);
	return o;
}

NOINLINE void obj_put(struct obj *o)
{
	if (atomic_fetch_sub(&o->refs, 1) == 1)
		free(o);
}

/* CF, PF, AF, ZF, SF and OF */
static uint64_t flags_of(int i)
{
	static const uint64_t bit[] = { 1, 4, 16, 64, 128, 2048 };
	uint64_t flags = 0x202;

	for (int k = 0; k < 6; k++)
		flags |= i >> k & 1 ? bit[k] : 0;
	return flags;
}

NOINLINE static int try(struct obj *o, int i)
{
	void (*const way[])(void) = { pass_take, pass_give };
	static const int at[] = { 6, 0 }; /* rdi, rax */
	int bad = 0;

	for (int k = 0; k < 2; k++) {
		for (int n = 0; n < REGISTERS; n++)
			before.reg[n] = (uint64_t)(n + 1) << 40 | (uint64_t)i << 8 | (uint64_t)k;
		for (int n = 0; n < RED_ZONE; n++)
			before.red_zone[n] = ~(uint64_t)(n + 100 * i);
		before.reg[at[k]] = (uintptr_t)o;
		before.flags = flags_of(i % FLAGS);
		way[k]();
		bad += memcmp(before.reg, after.reg, sizeof(before.reg)) != 0;
		bad += memcmp(before.red_zone, after.red_zone, sizeof(before.red_zone)) != 0;
		bad += ((before.flags ^ after.flags) & 0x8d5) != 0;
	}
	return bad;
}

int main(void)
{
	struct obj *o = obj_new();
	int bad = 0;

	for (int i = 0; i < 20 * FLAGS; i++)
		bad += try(o, i) != 0;
	obj_put(o);
	printf("damaged %d\n", bad);
	truth_print("type=obj new=obj_new:ret get=sdt:kept:take:1 put=obj_put:1 put=sdt:kept:give:1", NULL, NULL);
	return bad ? 1 : 0;
}
