/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A process that stands in a ptrace stop of ours (PTRACE_O_TRACESYSGOOD): its memory, and system calls in its name.
 * What it was about to do it does afterwards; signals wait meanwhile.
 *
 * We may be killed at any moment. What a thread does in our name is therefore followed by rt_sigreturn(2), on a frame
 * that says what it was about to do: a thread that nobody holds any more puts itself right.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/error.h"
#include "engine/sigframe.h"

struct rt_stopped {
	uint32_t pid, tid;
	int memory;       /* /proc/PID/mem, read and write; -1: none */
	uint64_t gate;    /* address of a syscall instruction */
	uint64_t written; /* the gate is ours, and to be taken away: its address */
	bool heals;       /* it is followed by rt_sigreturn(2) */
	bool begun, gone; /* gone: it was killed; its end is still to be waited for */
	bool stop_again;  /* somebody stopped it meanwhile */
	bool restarts;    /* a system call that was interrupted: regs stand before it */
	uint64_t mask;
	struct user_regs_struct regs;
	struct rt_sigframe *frame; /* on its stack; NULL: there is none, nobody puts it right but us */
	uint8_t *below;            /* what was there */
};

/* Opens the memory of pid, of which thread tid stands (0: memory alone will do). RT_E_NO_PROCESS, RT_E_PRIVILEGE. */
RT_CHECK struct rt_error *rt_stopped_open(struct rt_stopped *r, uint32_t pid, uint32_t tid);
/* Ends what rt_stopped_call() began: registers and signals are as they were. */
void rt_stopped_close(struct rt_stopped *r);

/* Any of its memory, also what it may not write itself. false: not there, or the process is gone. */
bool rt_stopped_read(const struct rt_stopped *r, uint64_t at, void *data, size_t size);
bool rt_stopped_write(const struct rt_stopped *r, uint64_t at, const void *data, size_t size);

/*
 * A system call with up to six arguments; *ret as the kernel returns it (-errno). RT_E_NO_PROCESS when it died in it,
 * RT_E_UNSUPPORTED without a place to make one. Never for a process with seccomp filters: it might die of it.
 */
RT_CHECK struct rt_error *rt_stopped_call(struct rt_stopped *r, long number, const uint64_t args[6], int64_t *ret);
/*
 * Runs code of its own at `at`, which ends with a call of rt_sigreturn(2) and makes no other, with rdi and rsi as told.
 * RT_E_NO_PROCESS when it died, RT_E_UNSUPPORTED when it was not done: it faults.
 */
RT_CHECK struct rt_error *rt_stopped_do(struct rt_stopped *r, uint64_t at, uint64_t rdi, uint64_t rsi);
/*
 * Thread tid of the process, which stands, too, goes on at pc, which is as good as where it stood: in front of the same
 * instruction, behind the same one. false: it is gone.
 */
bool rt_stopped_send(struct rt_stopped *r, uint32_t tid, uint64_t pc);
/* Where its stack ends and below which nothing of it is: for arguments. Errors as of rt_stopped_call(). */
RT_CHECK struct rt_error *rt_stopped_stack(struct rt_stopped *r, uint64_t *ret);
