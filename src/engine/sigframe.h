/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What rt_sigreturn(2) of x86-64 takes a thread's registers, signal mask and vector registers from, to be written to
 * its stack: a thread that calls it goes on as if nothing had been. Layout: arch/x86/include/asm/sigframe.h and
 * uapi/asm/sigcontext.h of the kernel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

enum {
	RT_SIGFRAME_MAX = 12 << 10,
	RT_SIGFRAME_PC = 168, /* where the instruction pointer is in bytes */
};

struct rt_sigframe {
	uint64_t start; /* address of bytes */
	size_t size;    /* of bytes; 0: there is none */
	uint8_t bytes[RT_SIGFRAME_MAX];
};

/*
 * Makes one that ends below `top`. xstate: what PTRACE_GETREGSET says of NT_X86_XSTATE. Called with start as the stack
 * pointer. false: the processor has states that are not known how to be told.
 */
bool rt_sigframe_make(const struct user_regs_struct *regs, uint64_t mask, const uint8_t *xstate, size_t xstate_size,
		      uint64_t top, struct rt_sigframe *ret);
