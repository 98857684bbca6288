/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A process that stands in a ptrace stop of ours (PTRACE_O_TRACESYSGOOD): its memory, and system calls in its name.
 * What it was about to do it does afterwards; signals wait meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/error.h"

struct rt_stopped {
	uint32_t pid, tid;
	int memory;       /* /proc/PID/mem, read and write; -1: none */
	uint64_t gate;    /* address of a syscall instruction */
	bool begun, gone; /* gone: it was killed; its end is still to be waited for */
	bool stop_again;  /* somebody stopped it meanwhile */
	uint64_t mask;
	struct user_regs_struct regs;
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
 * One instruction of its own, of `bytes` bytes at `at`, with rdi and rsi as told; no system call is made.
 * RT_E_NO_PROCESS when it died, RT_E_UNSUPPORTED when it was not done: it faults, or the thread does not stand.
 */
RT_CHECK struct rt_error *rt_stopped_step(struct rt_stopped *r, uint64_t at, unsigned bytes, uint64_t rdi,
					  uint64_t rsi);
/* Where its stack ends and below which nothing of it is: for arguments. */
uint64_t rt_stopped_stack(const struct rt_stopped *r);
