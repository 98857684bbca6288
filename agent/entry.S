/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * How the program comes into the agent and leaves it, with every register and flag as it was. Vector registers are not
 * touched: all of the agent is compiled without them.
 *
 * Registers are kept in the order of their DWARF numbers (struct hit_regs).
 */
	.section .head, "ax"
	.globl rt_agent_head
	.hidden rt_agent_head
rt_agent_head:
	.quad 0, 0, 0, 0
	.long rt_agent_entry - rt_agent_head
	.long rt_agent_plain - rt_agent_head
	.long rt_agent_stop_entry - rt_agent_head
	.long rt_agent_thunks - rt_agent_head
	.long 10
	.long rt_agent_fixups - rt_agent_head
	.long rt_agent_fixups_end - rt_agent_head
	.long rt_agent_end - rt_agent_head
	.long rt_agent_add - rt_agent_head
	.long rt_agent_unwind_entry - rt_agent_head
	.long rt_agent_unwound_entry - rt_agent_head
	.long rt_agent_plain_count - rt_agent_head

	.text
	.macro push_registers
	push %r15
	push %r14
	push %r13
	push %r12
	push %r11
	push %r10
	push %r9
	push %r8
	push %rax /* room for rsp */
	push %rbp
	push %rdi
	push %rsi
	push %rbx
	push %rcx
	push %rdx
	push %rax
	.endm

	.macro pop_registers
	pop %rax
	pop %rdx
	pop %rcx
	pop %rbx
	pop %rsi
	pop %rdi
	pop %rbp
	lea 8(%rsp), %rsp
	pop %r8
	pop %r9
	pop %r10
	pop %r11
	pop %r12
	pop %r13
	pop %r14
	pop %r15
	.endm

/* Calls `function`, and lies about what the stub has done to rsp: it was `above` bytes higher than these registers. */
	.macro call_agent function above
	lea 128 + \above(%rsp), %rax
	mov %rax, 56(%rsp)
	mov %rsp, %rdi
	mov %rsp, %rbp
	and $-16, %rsp
	call \function
	mov %rbp, %rsp
	.endm

	.macro from_stub name function
	.globl \name
	.hidden \name
\name:
	/* stub: lea -128(%rsp), %rsp; push $number; call *this */
	push_registers
	lahf
	seto %al
	mov %eax, %ebx
	mov 136(%rsp), %esi
	call_agent \function 144
	mov %ebx, %eax
	add $0x7f, %al
	sahf
	pop_registers
	ret
	.endm

	from_stub rt_agent_entry rt_agent_hit
	from_stub rt_agent_stop_entry rt_agent_stop
	from_stub rt_agent_unwind_entry rt_agent_unwind
	from_stub rt_agent_unwound_entry rt_agent_unwound

/*
 * The tool has a thread do this, and keeps it from the call. A thread whose tool was killed meanwhile makes it, and goes
 * on with what it was at: its stack pointer leads to what rt_sigreturn(2) takes.
 */
rt_agent_add:
	lock addw %si, (%rdi)
	mov $15, %eax
	syscall
	ud2

/* A hooked function has returned to its thunk, which has pushed its number where the return address was. */
rt_agent_return_entry:
	push_registers
	mov 128(%rsp), %esi
	call_agent rt_agent_returned 8
	mov %rax, 128(%rsp)
	pop_registers
	ret

	.balign 64
	.globl rt_agent_thunks
	.hidden rt_agent_thunks
rt_agent_thunks:
	.set number, 0
	.rept 4096
	pushq $number + 0x1000000 /* never the short form: all thunks have the same length */
	.byte 0xe9
	.long rt_agent_return_entry - . - 4
	.set number, number + 1
	.endr
	.section .note.GNU-stack, "", @progbits
