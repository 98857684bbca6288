/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Semaphores that we raise ourselves: the counters beside SDT markers, in each process, where the kernel does not
 * (--semaphore=write), or where the agent does it from inside.
 *
 * A child of ours, the keeper, has the books and does the writing. It ends when we close its socket or die, and lowers
 * whatever is raised then, so that a tool that is killed leaves no counter behind; who kills the keeper, too, leaves
 * them raised, which costs a program its way past a marker and nothing else. It holds each process's memory by a file
 * descriptor: that stays the memory of before an exec, and never becomes that of another process with the same number.
 *
 * Written is by how much, never how many: others raise the same counters. A write is a read before and is not atomic
 * beside those of others at the same moment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

/* Who raises the semaphores of markers. */
enum rt_semaphore_way {
	RT_SEMAPHORE_AUTO,   /* the engine's own way */
	RT_SEMAPHORE_KERNEL, /* with the breakpoint (ref_ctr) */
	RT_SEMAPHORE_WRITE,  /* we, in each process */
	RT_SEMAPHORE_NONE,   /* nobody: the marker is seen while somebody else asks for it */
};

/* One counter in one process; several markers may have the same. */
struct rt_semaphore_place {
	uint32_t pid;
	uint32_t tag;     /* the caller's: handed to rt_semaphores_missing() */
	uint64_t code;    /* run-time address of the marker: what is mapped there is the file */
	uint64_t counter; /* of the counter, 16 bits */
	uint64_t offset;  /* where the file holds it */
};

enum rt_semaphore_state {
	RT_SEMAPHORE_RAISED,  /* it is, by us; once for all markers that share it */
	RT_SEMAPHORE_NOT_YET, /* the file is not wholly mapped, or the counter not writable yet */
	RT_SEMAPHORE_GONE,    /* the process is, or its memory may not be opened */
	RT_SEMAPHORE_READY,   /* it is not, and can be */
};

/* What is to be known before: for people. */
#define RT_SEMAPHORE_WRITE_NOTE \
	"semaphores are raised by reftrace itself (--semaphore=write), in each process once it has mapped the file; " \
	"not " \
	"atomically beside others that write them; if reftrace is killed, its child reftrace-keeper lowers them, and " \
	"if " \
	"that is killed as well, they stay raised"

struct rt_semaphores;

/* Starts the keeper. One thread uses what *ret is. RT_E_SYSTEM. */
RT_CHECK struct rt_error *rt_semaphores_create(struct rt_semaphores **ret);

/*
 * Raises a counter. One that cannot be yet is raised by a later settle(), as soon as it can. A counter that is 0 though
 * we had raised it is in a file that was mapped anew, and raised again. Only memory, or the keeper, can fail.
 */
RT_CHECK struct rt_error *rt_semaphores_raise(struct rt_semaphores *s, const struct rt_semaphore_place *place);
RT_CHECK struct rt_error *rt_semaphores_settle(struct rt_semaphores *s);

/*
 * For who adds by itself, in one instruction of the process: how the counter is; then, that it was just raised, so that
 * it is lowered should we be killed; or lowered.
 */
RT_CHECK struct rt_error *rt_semaphores_look(struct rt_semaphores *s, const struct rt_semaphore_place *place,
					     enum rt_semaphore_state *ret);
RT_CHECK struct rt_error *rt_semaphores_note(struct rt_semaphores *s, const struct rt_semaphore_place *place,
					     bool raised);

/* child has a copy of parent's memory, or still shares it (vfork): its counters are raised as the parent's are. */
RT_CHECK struct rt_error *rt_semaphores_fork(struct rt_semaphores *s, uint32_t parent, uint32_t child);
/* child has a copy of parent's memory, and is nobody that we follow: its counters are lowered. */
RT_CHECK struct rt_error *rt_semaphores_leave(struct rt_semaphores *s, uint32_t parent, uint32_t child);
/* The memory that pid had is gone (exec, exit): nothing is lowered. */
RT_CHECK struct rt_error *rt_semaphores_forget(struct rt_semaphores *s, uint32_t pid);

/* Places that are waited for still; tells each once. */
void rt_semaphores_missing(const struct rt_semaphores *s,
			   void (*tell)(const struct rt_semaphore_place *place, void *arg), void *arg);

/* Lowers all that is raised, and waits for it. */
void rt_semaphores_destroy(struct rt_semaphores *s);
RT_CLEANUP(struct rt_semaphores *, rt_semaphores_destroy);
