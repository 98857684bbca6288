/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What yields events. uprobe (K): BPF programs behind uprobes. agent (U): code of ours inside the program; both
 * together (mixed). replay and text are plain sources (event/stream.h).
 *
 * The session drives an engine: it stops a process where new code became
 * known, arms points in it, lets it run, and drains records.
 */
#pragma once

#include "dwarf/rows.h"
#include "engine/semaphore.h"
#include "event/stream.h"
#include "probe/plan.h"
#include "probe/unwinder.h"

enum rt_attach_path { RT_ATTACH_AUTO, RT_ATTACH_MULTI, RT_ATTACH_TRACEFS };

struct rt_engine;

/* Which objects are traced, of points that are sampled (struct rt_wire_sample). */
struct rt_engine_sample {
	bool on;
	bool governed; /* the rate will change */
	uint32_t rate; /* of 2^32, to begin with; 0 = all */
};

/* Calibrated costs of a hit in CPU time of the target. */
struct rt_engine_cost {
	uint32_t event_ns;  /* with its event */
	uint32_t passed_ns; /* at an object that is not in the sample */
	uint32_t return_ns; /* more than that, where it is the return of a function */
	uint32_t step_ns;   /* more than that, where the kernel has to step over the armed instruction */
};

struct rt_engine_options {
	enum rt_attach_path attach;
	size_t ring_bytes;    /* 0 = default; rounded up to a power of two */
	unsigned stack_bytes; /* how much stack is copied: 0 = default */
	unsigned frames;      /* at most RT_STACK_MAX; 0 = 16 */
	bool calls;           /* there will be points at system calls */
	struct rt_engine_sample sample;
	bool counting; /* no events: TALLY and SITE records at the end (not rt_engine_mixed) */
	int root_fd;   /* directory that stands for "/", AT_FDCWD */
	enum rt_semaphore_way semaphore;
};

/* Why one point of a request is not armed. */
struct rt_arm_failure {
	uint32_t point;
	int errnum;      /* 0: see why */
	const char *why; /* static or engine-owned text */
};

/* Where to arm: one module in one process that is stopped. */
struct rt_arm {
	uint32_t pid;            /* plain pid */
	uint32_t wire_pid;       /* RT_PID_MAKE(): what records of this process carry from now on; 0 = plain pid */
	uint32_t tid;            /* a thread of it that stands in a ptrace stop of the caller's; 0: none */
	const uint32_t *threads; /* all of it, where they have been running its code; NULL: nobody has */
	size_t thread_count;
	const char *unfit; /* a runtime in it that lays out all of its memory: no place for an engine's code; or NULL */
	const char *path;  /* opens the very file that is mapped: /proc/PID/map_files/..., /proc/PID/exe, or a path
			      checked by the caller */
	const struct rt_point *const *points; /* all of one module, or all of system calls: then path is NULL */
	size_t point_count;
	uint64_t bias;                       /* runtime address - ELF address, for engines without cookies */
	struct rt_elfaddr stop_at;           /* v != 0: also stop the process here (the dynamic linker's hook) */
	struct rt_foff stop_offset;          /* file offset of stop_at */
	const struct rt_unwinder *unwinders; /* where it has to make way, as there are points at returns */
	size_t unwinder_count;
};

/* An executable mapping of a process. */
struct rt_engine_code {
	uint64_t start, end; /* [start, end) in the process */
	uint64_t bias;       /* runtime address - ELF address */
	uint32_t module;     /* the same number means the same rows for as long as the engine lives */
	const struct rt_unwind_rows
		*rows; /* read when a module is told of for the first time, and not kept; NULL: none */
};

struct rt_engine_stats {
	uint64_t records, hits, dropped, faults, stack_resent, returns_missed;
	uint64_t steps;   /* hits at which the kernel stepped over the armed instruction */
	uint64_t returns; /* calls whose return was waited for */
	uint64_t passed;  /* hits at objects that are not in the sample */
	bool balanced;    /* hits == records + drops for every point */
};

struct rt_engine_ops {
	const char *name;
	uint8_t room;     /* bytes that it writes over at a point (struct rt_plan_options); 0: a breakpoint */
	bool breakpoints; /* with room: it can do without where there is none */
	/* Tries whether this engine works here and now; an error says why not and what would fix it. */
	struct rt_error *(*probe)(const struct rt_engine_options *options);
	struct rt_error *(*open)(const struct rt_engine_options *options, struct rt_engine **ret);
	/* Arms points in a process; failures that concern single points go to failed(), the rest is armed. */
	struct rt_error *(*extend)(struct rt_engine *engine, const struct rt_arm *arm,
				   void (*failed)(const struct rt_arm_failure *failure, void *arg), void *arg);
	/*
	 * Tells all code of a stopped process (pid, wire_pid and tid of arm), by address; what was told before holds no
	 * more. To be told before points are armed: a stack that leads through other code ends there. NULL: the engine
	 * has no use for it. RT_E_LIMIT: the rest was taken.
	 */
	struct rt_error *(*code)(struct rt_engine *engine, const struct rt_arm *arm, const struct rt_engine_code *list,
				 size_t count);
	/*
	 * NULL for an engine that has no use for them. fork: the child has all that its parent had, and does not run
	 * yet; RT_E_LIMIT: it is not traced. thread: it stands, before it runs for the first time and whenever it does
	 * later; or it ends and runs no more. fault: whether the fault that tid stands at (SIGSEGV or SIGBUS) was the
	 * engine's own and is mended: the signal is to be forgotten.
	 */
	struct rt_error *(*fork)(struct rt_engine *engine, uint32_t parent, uint32_t pid, uint32_t wire_pid);
	/* the child is not followed, and does not run yet: what came with its parent's memory has no effect there */
	struct rt_error *(*leave)(struct rt_engine *engine, uint32_t parent, uint32_t pid);
	struct rt_error *(*thread)(struct rt_engine *engine, uint32_t pid, uint32_t tid, bool ends);
	bool (*fault)(struct rt_engine *engine, uint32_t pid, uint32_t tid);
	/* Whether a thread at pc is on the engine's way to or from a point. */
	bool (*is_in)(struct rt_engine *engine, uint32_t pid, uint64_t pc);
	/*
	 * For an engine whose replaced return addresses the tracer puts right. tid stands in a stop that the engine
	 * asked for (rt_engine_is_stop()); true: it was at one of rt_arm.unwinders, and that is done.
	 */
	bool (*unwinds)(struct rt_engine *engine, uint32_t pid, uint32_t tid);
	/*
	 * For an engine that stops nothing itself. asks: whether thread *ret_tid of pid waits at a stop_at; answer: it
	 * was looked at while it stood, and may go on.
	 */
	bool (*asks)(struct rt_engine *engine, uint32_t pid, uint32_t *ret_tid);
	void (*answer)(struct rt_engine *engine, uint32_t pid);
	/* From now on lives are traced by this rate; options.sample.governed. What comes while it is changed may go by
	 * either. */
	void (*sample)(struct rt_engine *engine, uint32_t rate);
	/* Measured when it is asked for. */
	struct rt_error *(*cost)(struct rt_engine *engine, struct rt_engine_cost *ret);
	/* Hands every record that is waiting to sink; never blocks. */
	struct rt_error *(*drain)(struct rt_engine *engine, struct rt_event_sink *sink);
	/* Drops what is armed in pid (it exited, exec'ed or is let go). Does not wait for the kernel. */
	void (*forget)(struct rt_engine *engine, uint32_t pid);
	/* Waits until it is gone, before a process runs on without a tracer. NULL: forget() leaves nothing. */
	void (*settle)(struct rt_engine *engine);
	/*
	 * For an engine that has code in the processes: takes it out of their way while they stand. They are let go
	 * then, so that who is in the middle of it comes to its end, and stop() is called. NULL: stop() needs none.
	 */
	void (*disarm)(struct rt_engine *engine);
	/* Disarms everything, drains the rest, emits HITS and LOSS records. */
	struct rt_error *(*stop)(struct rt_engine *engine, struct rt_event_sink *sink);
	void (*stats)(struct rt_engine *engine, struct rt_engine_stats *ret);
	/* Frees everything; disarms if stop() was not called. */
	void (*close)(struct rt_engine *engine);
};

/* Common head of every engine's own struct. */
struct rt_engine {
	const struct rt_engine_ops *ops;
	uint32_t code_epoch; /* when it changes, code() is to be called again for all, with all rows */
};

/* Engine K. In builds without BPF its probe() and open() return RT_E_UNSUPPORTED. */
extern const struct rt_engine_ops rt_engine_uprobe;

/* Engine U: no privilege beyond ptrace(2). x86-64. */
extern const struct rt_engine_ops rt_engine_agent;

/* Engine U, and engine K for what U cannot take. Needs what both need. */
extern const struct rt_engine_ops rt_engine_mixed;

/* true when si_code of a SIGSTOP at a ptrace signal stop shows that the engine sent it (stop_at). */
static inline bool rt_engine_is_stop(int si_code)
{
	return si_code == 0x80; /* SI_KERNEL: no process can send that */
}
