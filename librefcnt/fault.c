/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "fault.h"
#include "report.h"
#include "stack.h"
#include "thread.h"

static struct sigaction before;

static void *instruction(const ucontext_t *c)
{
#if defined(__x86_64__)
	return (void *)c->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (void *)c->uc_mcontext.pc;
#else
	return NULL;
#endif
}

/* The instruction is done again when this returns, and its fault is what ends the program, or the next handler's. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	const struct rc_alias *a = info->si_code > 0 ? rc_alias_of(info->si_addr) : NULL;

	if (!rc_thread.tid)
		rc_thread_learn();
	if (a && __atomic_load_n(&a->state, __ATOMIC_ACQUIRE) == RC_ALIAS_DEAD && !rc_thread_is_interrupted()) {
		rc_thread_enter();
		rc_report_alias(a, info->si_addr, "USE AFTER PUT", "which was given back",
				rc_stack_capture_at(instruction(context)));
		rc_thread_leave();
	} else if (rc_cut_off && info->si_code > 0 && rc_alias_has(info->si_addr)) {
		rc_report_note(
			"object at %p: a process that is forked inside of an operation has no objects with alias "
			"handles",
			info->si_addr);
	}
	sigaction(number, &before, NULL);
	if (info->si_code <= 0) /* sent by somebody: it does not come again by itself */
		raise(number);
}

void rc_fault_watch(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigaction(SIGSEGV, &action, &before);
}
