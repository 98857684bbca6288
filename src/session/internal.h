/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the session share: the table of processes and threads, the
 * modules that were found, and the way of a record to the owner's sink.
 *
 * One thread does everything: the kernel accepts ptrace requests only from the
 * thread that attached. A "stop" is a ptrace stop: the tracee stands until we
 * let it go on.
 */
#pragma once

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>

#include "base/clock.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/proc.h"
#include "maps/maps.h"
#include "session/session.h"

/* ---- guardian.c: a child that puts things right when we are killed ---- */

#define RT_GUARD_SLOTS 16384

struct rt_guardian {
	pid_t pid;      /* 0: none */
	int pipe;       /* write end; its closing is our death */
	uint32_t *tgid; /* shared page: followed processes, RT_GUARD_SLOTS slots, 0 = free; the top bit
			   says that the user stopped it, so that it must stay stopped */
	size_t hint;
};
#define RT_GUARD_STOPPED_BY_USER (1u << 31)

RT_CHECK struct rt_error *rt_guardian_start(struct rt_guardian *guardian);
/* Remembers pid; returns its slot, RT_GUARD_SLOTS when all are taken. */
size_t rt_guardian_add(struct rt_guardian *guardian, uint32_t tgid);
void rt_guardian_mark(struct rt_guardian *guardian, size_t slot, bool stopped_by_user);
void rt_guardian_remove(struct rt_guardian *guardian, size_t slot);
/* Sends it home without work. */
void rt_guardian_stop(struct rt_guardian *guardian);

/* ---- process.c: who is followed ---- */

struct rt_thread {
	uint32_t tid;
	struct rt_process *process; /* NULL: stopped before its parent's event told who it is */
	bool stopped;               /* in a stop that waits for us */
	bool listening;             /* in a group stop: PTRACE_LISTEN */
	bool saved;                 /* `status` was kept for later */
	bool exiting;               /* at or behind its exit event */
	bool exit_held;             /* stopped at its exit event until the others are there */
	bool let_go;                /* a child that is not to be followed */
	bool look;                  /* was asked to stop: it waits at the dynamic linker's hook */
	int status;                 /* of the stop that waits */
	int signal;                 /* the last one that it was let have */
	uint64_t since_ns;          /* when it stopped without a process */
};

/* One module as it is mapped: a line of /proc/PID/maps. */
struct rt_session_map {
	uint64_t start, end, offset;
	uint32_t module; /* struct rt_module.id */
	bool executable;
};

struct rt_process {
	uint32_t tgid;
	uint32_t gen; /* exec generation */
	RT_VEC(struct rt_thread *) threads;
	RT_VEC(struct rt_session_map) maps; /* by address */
	RT_VEC(uint32_t) armed;             /* module ids whose points are armed here */
	RT_VEC(uint32_t) hooked;            /* and those whose unwinders were looked for */
	uint32_t main_module;               /* 0 = not known */
	uint32_t loader;                    /* module id of the dynamic linker, 0 = none */
	uint64_t debug_state;               /* run-time address of r_debug.r_state, 0 = unknown */
	size_t guard_slot;
	bool attached;     /* by -p, or forked from such a one */
	bool shares_mm;    /* a vfork child before its exec */
	bool looked;       /* its mappings were read at least once */
	bool loaded;       /* its initial modules are mapped: plan and arm */
	bool stop_armed;   /* the dynamic linker's hook is armed */
	bool calls_armed;  /* its system calls are watched */
	bool freed_armed;  /* what its C library frees is looked through */
	bool foreign;      /* image of another machine: not traced */
	bool bystander;    /* it will have nothing to trace: no engine is brought into it */
	bool let_go;       /* it must not be traced at all (refusal.c): the thread that called exec is let go */
	const char *unfit; /* static: whose runtime an engine's code would be in the way of, NULL: nobody's */
	bool dying;        /* its exit has begun: waiting for every thread's exit event */
	bool census_done;  /* its memory was looked through */
	int exit_status;   /* of dying: as of wait(2) */
	bool left;         /* main has returned, and for the stream it has ended: nothing is armed any more */
	uint64_t exit_at;  /* run-time address of exit() where it is armed; 1: there is none; 0: not looked for */
	uint64_t dying_ns;
	uint64_t cpu_ns;    /* CPU time that was counted, where that matters (governor.c) */
	uint64_t code_told; /* digest of the mappings that the engine was told of, 0: none */
};

struct rt_process *rt_session_process(const struct rt_session *s, uint32_t tgid);
struct rt_thread *rt_session_thread(const struct rt_session *s, uint32_t tid);
/* Makes the entry of a process with its next generation. NULL: out of memory. */
struct rt_process *rt_process_add(struct rt_session *s, uint32_t tgid);
/* Makes the entry of a thread (or gives a processless one its process). NULL: out of memory. */
struct rt_thread *rt_thread_add(struct rt_session *s, struct rt_process *process, uint32_t tid);
void rt_thread_remove(struct rt_session *s, struct rt_thread *thread);
void rt_process_remove(struct rt_session *s, struct rt_process *process);
void rt_process_remove_all(struct rt_session *s);
/* RT_PID_MAKE() of tgid as it is now. */
uint32_t rt_session_wire_pid(const struct rt_session *s, uint32_t tgid);
static inline uint32_t rt_process_wire(const struct rt_process *p)
{
	return RT_PID_MAKE(p->tgid, p->gen);
}
/* A thread of it that stands in a stop that waits for us; 0: none. */
uint32_t rt_process_standing(const struct rt_process *p);
bool rt_process_has_armed(const struct rt_process *p, uint32_t module);
/* Calls visit for every process; the process may be removed in the call. Stops at an error. */
RT_CHECK struct rt_error *rt_process_each(struct rt_session *s,
					  struct rt_error *(*visit)(struct rt_session *s, struct rt_process *p));

/* ---- procfs.c: more questions to /proc than base/proc.h has ---- */

/* CPU time of a process so far, also of one that has just ended; 0: there is none. */
uint64_t rt_proc_cpu_ns(uint32_t pid);
/* Value of one entry of /proc/PID/auxv; 0 when it is not there. */
uint64_t rt_proc_auxv(uint32_t pid, uint64_t key);
/* "NAME=VALUE", each with its zero, of *ret_size bytes; caller frees. NULL: it has ended, or is not to be read. */
char *rt_proc_environment(uint32_t pid, size_t *ret_size);
/* Tids of a process; *ret is owned by the caller. false: gone or out of memory. */
bool rt_proc_tasks(uint32_t pid, uint32_t **ret, size_t *ret_count);
/* true when the thread sits in execve() or execveat(), waiting for its siblings to die. */
bool rt_proc_in_exec(uint32_t pid, uint32_t tid);
/* Up to size bytes of memory; how many were read. */
size_t rt_proc_read(uint32_t pid, uint64_t addr, void *buffer, size_t size);

/* ---- modules.c: files -> images, as they are mapped ---- */

struct rt_module {
	uint32_t id; /* 1.. */
	uint64_t dev, inode, size, ctime_ns;
	char *path; /* as in maps; owned */
	struct rt_image *image;
	struct rt_symtab *symtab;    /* lazily */
	struct rt_dwarf *dwarf;      /* lazily */
	struct rt_unwind_rows *rows; /* lazily */
	bool main;                   /* some process runs it */
	bool scanned, planned;
	bool rows_told;                 /* the engine has its unwind rows */
	bool unnamed;                   /* symbols could not be read */
	bool watched;                   /* a process whose program it is had points, in whatever module */
	struct rt_bystander *bystander; /* of a program; owned; NULL: not asked yet */
	struct rt_opens *opens;         /* owned; NULL: not asked yet */
	uint32_t point;                 /* index of its first point in rt_session.points */
	uint32_t point_nr;              /* how many, in a row */
	uint32_t freed, freed_nr;       /* the points at which blocks are freed, where that is of interest; as above */
	bool freed_planned;
	struct rt_unwinders unwinders; /* once unwinders_known */
	bool unwinders_known;
};

/*
 * Reads the mappings of a stopped (or dying) process; yields MODULE, MAP and UNMAP for
 * what changed. A process that is gone has no mappings: success.
 */
RT_CHECK struct rt_error *rt_session_sync(struct rt_session *s, struct rt_process *p);
static inline struct rt_module *rt_session_module(const struct rt_session *s, uint32_t id);
/* What stands for this version of the file at path, in rt_session.files. false: there is none. */
bool rt_session_file(const char *path, struct rt_key *ret);
RT_CHECK struct rt_error *rt_module_symtab(struct rt_module *m, const struct rt_symtab **ret);
RT_CHECK struct rt_error *rt_module_dwarf(struct rt_module *m, struct rt_dwarf **ret);
/* How to unwind its code; without its debug information, which may be large. */
RT_CHECK struct rt_error *rt_module_rows(struct rt_module *m, const struct rt_unwind_rows **ret);
/* The mapping of p that holds addr, or NULL. */
const struct rt_session_map *rt_process_map(const struct rt_process *p, uint64_t addr);
/* Run-time address minus ELF address for this mapping; false when the file says otherwise. */
bool rt_session_map_bias(const struct rt_session *s, const struct rt_session_map *map, uint64_t *ret);
const char *rt_module_basename(const struct rt_module *m);
void rt_modules_deinit(struct rt_session *s);

/* ---- planning.c: modules -> points; arming.c: points -> engine ---- */

/* A spec with its plan. Scanning a program that starts later gives a new batch: a plan's spec must not change. */
struct rt_batch {
	struct rt_spec own; /* empty for the owner's spec */
	struct rt_spec *spec;
	struct rt_plan *plan;
	uint32_t type_base; /* added to the plan's type ids */
	size_t refused_seen, doubts_seen, limits_seen;
	struct rt_map names;     /* hash of an exact function name -> 1 */
	RT_VEC(uint64_t) digest; /* of the TYPE record that is out, per type; 0 = none */
};

/* Plans the modules of p that were never planned, yields TYPE, POINT and LOSS. */
RT_CHECK struct rt_error *rt_session_plan(struct rt_session *s, struct rt_process *p);
/* Plans, once, the points at which m, if it is the C library, frees blocks: for objects of that type
 * (rt_point.type), or others. */
RT_CHECK struct rt_error *rt_session_plan_freed(struct rt_session *s, struct rt_module *m, uint32_t type);
/* Arms in p what its modules have. */
RT_CHECK struct rt_error *rt_session_arm(struct rt_session *s, struct rt_process *p);
/* Arms a place where the process stops (rt_engine_is_stop()). */
RT_CHECK struct rt_error *rt_session_arm_stop(struct rt_session *s, struct rt_process *p, const struct rt_module *m,
					      struct rt_elfaddr at);
/* Arms in a forked child what its parent had. */
RT_CHECK struct rt_error *rt_session_arm_child(struct rt_session *s, struct rt_process *p);
/* Functions that were told and are nowhere, as an error, when the launched program can never lead to them. */
RT_CHECK struct rt_error *rt_session_check_missing(struct rt_session *s, struct rt_process *p);
/* At the end: a LOSS for each function that was told by name, beside others that are there, and was nowhere. */
RT_CHECK struct rt_error *rt_session_note_unseen(struct rt_session *s);
/* As check_missing, at the end of a run in which nothing was armed. */
RT_CHECK struct rt_error *rt_session_check_nothing(struct rt_session *s);
/* code.c: tells the engine what code p has, where points are or will be armed in it and that has changed. */
RT_CHECK struct rt_error *rt_session_tell_code(struct rt_session *s, struct rt_process *p);
/* After an exec: which descriptors are open still. */
RT_CHECK struct rt_error *rt_session_tell_open(struct rt_session *s, const struct rt_process *p);
/* All that is to be done when the mappings of a stopped process may have changed. */
RT_CHECK struct rt_error *rt_session_look(struct rt_session *s, struct rt_process *p);
void rt_batches_deinit(struct rt_session *s);

/* ---- stream.c: records on their way to the owner ---- */

RT_CHECK struct rt_error *rt_session_drain(struct rt_session *s);
RT_CHECK struct rt_error *rt_emit(struct rt_session *s, struct rt_wire_head *head, uint32_t wire_pid, uint32_t tid);
RT_CHECK struct rt_error *rt_emit_task(struct rt_session *s, enum rt_wire_kind kind, uint32_t wire_pid, uint32_t tid,
				       uint32_t other, int32_t value);
RT_CHECK struct rt_error *rt_emit_map(struct rt_session *s, enum rt_wire_kind kind, uint32_t wire_pid,
				      const struct rt_session_map *map);
RT_CHECK struct rt_error *rt_emit_loss(struct rt_session *s, enum rt_loss cause, uint32_t wire_pid, uint32_t point,
				       const char *format, ...) __attribute__((format(printf, 5, 6)));
void rt_stream_init(struct rt_session *s);

/* ---- class.c: what objects tell of their class ---- */

/* Tells what the words mean that these events are the first to have. */
RT_CHECK struct rt_error *rt_class_events(struct rt_session *s, const struct rt_wire_event *events, size_t n);

/* ---- governor.c: which lives are traced ---- */

/* What there was in some time. */
struct rt_governed {
	uint64_t hits, records, returns, steps; /* records: hits with an event, sent or lost */
	uint64_t cpu_ns;                        /* of the processes, hooks included */
};

struct rt_governor {
	unsigned rank; /* of 2^rank lives one is traced, where the rate is governed */
	unsigned calm; /* looks in a row at which there was much to spare */
	uint64_t look_ns, cpu_ns;
	struct rt_governed before;
	struct rt_engine_cost price;
};

/* Says in the stream what is sampled. */
RT_CHECK struct rt_error *rt_governor_begin(struct rt_session *s);
/* Every now and then: looks at the cost, and changes the rate. */
RT_CHECK struct rt_error *rt_governor_look(struct rt_session *s);
/* Counts the CPU time of p; also at its end, before it is gone. */
void rt_governor_process(struct rt_session *s, struct rt_process *p);
/* Says what it came to. */
RT_CHECK struct rt_error *rt_governor_end(struct rt_session *s);

/* ---- sources.c: what records beside the engine ---- */

RT_CHECK struct rt_error *rt_sources_start(struct rt_session *s, const uint32_t *pids, size_t count, bool launched);
RT_CHECK struct rt_error *rt_sources_drain(struct rt_session *s);
/* Stops those that were started; the owner's sink still takes records. Every source is stopped, also after an error. */
RT_CHECK struct rt_error *rt_sources_stop(struct rt_session *s);
/* Adds what may be polled; returns the new count, at most room. */
size_t rt_sources_poll(const struct rt_session *s, struct pollfd *fds, size_t count, size_t room);

/* ---- observe.c: a run of side sources alone ---- */

RT_CHECK struct rt_error *rt_session_observe(struct rt_session *s, int signal_fd);

/* ---- session.c: for both kinds of run ---- */

enum { RT_SESSION_POLL_MAX = 16 };

RT_CHECK struct rt_error *rt_session_on_time(struct rt_session *s);
void rt_session_on_interrupts(struct rt_session *s);
/* Sleeps at most wait_us microseconds; SIGCHLD, an interrupt or a side source ends it. */
RT_CHECK struct rt_error *rt_session_sleep(struct rt_session *s, int signal_fd, uint32_t wait_us);

/* ---- unwind_check.c ---- */

struct rt_unwind_check {
	struct rt_map verdicts; /* (module, ELF address) -> what the caller's CFI says */
	struct rt_decoder *decoder;
	uint64_t checked, cut;
};

/* Cuts stack (a copy that may be changed) behind its last proven frame. */
void rt_unwind_check(struct rt_session *s, const struct rt_process *p, struct rt_wire_stack *stack);
void rt_unwind_check_deinit(struct rt_unwind_check *check);

/* ---- target.c: launch and credentials; attach.c ---- */

RT_CHECK struct rt_error *rt_session_launch(struct rt_session *s);
/* Why the launched child that has exited did not become the program. */
RT_CHECK struct rt_error *rt_session_exec_error(struct rt_session *s);
RT_CHECK struct rt_error *rt_session_attach(struct rt_session *s);
/* Stops every thread and lets it go for good. Leaves no stopped thread and no stop that the engine asked for. */
void rt_session_detach_all(struct rt_session *s);
/* Stops every thread of every process; threads that do not stop within 2 s are left as they are. */
RT_CHECK struct rt_error *rt_session_stop_all(struct rt_session *s);
/* The same for the threads of one process; what stops elsewhere is kept as well. */
RT_CHECK struct rt_error *rt_session_stop(struct rt_session *s, uint32_t tgid);
/* Handles the stops that were kept meanwhile: everybody goes on. */
RT_CHECK struct rt_error *rt_session_go_on(struct rt_session *s);
unsigned long rt_session_ptrace_flags(const struct rt_session *s);

/* Who the program runs as. */
struct rt_identity {
	bool change;
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* owned */
	int group_count;
	char *user, *home, *shell; /* owned */
};
RT_CHECK struct rt_error *rt_identity_find(const struct rt_session_options *options, struct rt_identity *ret);
/* The environment of the program: NULL-terminated, one owned block of owned strings. */
RT_CHECK struct rt_error *rt_identity_environment(const struct rt_identity *id, const char *const *extra, char ***ret);
void rt_environment_free(char **env);
void rt_identity_deinit(struct rt_identity *id);
/* In a child: waits for the word of its parent. false: that is gone. */
bool rt_target_await(int go);
/*
 * In a child: takes identity, environment and signal mask, and becomes the program. What keeps it from that is written
 * to report, as an errno; its status is what a shell would give.
 */
_Noreturn void rt_target_start(const struct rt_identity *id, char **env, const sigset_t *mask,
			       const char *const *command, int report);

/* ---- refusal.c: programs that must not be traced, or not in this way ---- */

/*
 * Looks at what p has become. An error: it has not run yet, and must not. Else p->unfit, and p->let_go, which is told
 * in the stream.
 */
RT_CHECK struct rt_error *rt_session_examine(struct rt_session *s, struct rt_process *p);

/* ---- bystander.c: processes with nothing to trace ---- */

/* At the first stop of p as a program: whether its files tell that it will have no points. Sets p->bystander. */
RT_CHECK struct rt_error *rt_session_find_bystander(struct rt_session *s, struct rt_process *p);
/* At its end: whether that came true; else it is told in the stream. */
RT_CHECK struct rt_error *rt_session_check_bystander(struct rt_session *s, struct rt_process *p);
void rt_bystander_forget(struct rt_module *m);

/* ---- tracee.c: what ptrace tells ---- */

/* Handles one wait status. */
RT_CHECK struct rt_error *rt_tracee_status(struct rt_session *s, uint32_t tid, int status);
/* Handles the status that was kept while the thread was not to go on. */
RT_CHECK struct rt_error *rt_tracee_replay(struct rt_session *s, struct rt_thread *t);
/* Everything that wait() has, without waiting. */
RT_CHECK struct rt_error *rt_tracee_reap(struct rt_session *s);
/* Looks after what waits for too long (every 100 ms). */
RT_CHECK struct rt_error *rt_tracee_overdue(struct rt_session *s);
void rt_thread_continue(struct rt_thread *t, int signal);
/* Asks the thread of p that waits for us at the dynamic linker's hook, if there is one, to stop. */
RT_CHECK struct rt_error *rt_tracee_look(struct rt_session *s, struct rt_process *p);
/* true: wait() has, or will have, something to tell of it. Once its end was told it is nobody's. */
bool rt_tracee_is_ours(uint32_t tid);
/* Whom a thread has made that stands at this PTRACE_EVENT_* of a birth. false: it was killed there. */
bool rt_tracee_child(uint32_t tid, int event, uint32_t *ret);
/* A signal stop that the engine asked for (the dynamic linker's hook). */
bool rt_tracee_is_engine_stop(uint32_t tid, int status);

/* ---- look.c: the census of a process ---- */

/* Looks through the memory of p; its stopped threads are roots. */
RT_CHECK struct rt_error *rt_session_census(struct rt_session *s, struct rt_process *p);

/* ---- moment.c: a look at what lives ---- */

/* Looks when that was asked for, or the interval is over. */
RT_CHECK struct rt_error *rt_session_on_moment(struct rt_session *s);
/* With at_main_return: arms exit() in p, once its modules are there. */
RT_CHECK struct rt_error *rt_session_arm_exit(struct rt_session *s, struct rt_process *p);
/* The engine stopped t where p calls exit(); *ret_status: the wait status that this leads to. */
bool rt_session_is_exit(const struct rt_process *p, const struct rt_thread *t, int *ret_status);
/* Ends the process of t, which stands in exit(), for the stream, and lets it go on. t may be gone afterwards. */
RT_CHECK struct rt_error *rt_session_main_returned(struct rt_session *s, struct rt_thread *t, int status);

/* ---- frames.c ---- */

/*
 * Where the live stack of a thread that stands in exit() starts: above the frames of exit() itself, which lie
 * over dead frames of the program and still hold their values. 0: not in exit(), or not to be told.
 */
uint64_t rt_exit_stack(struct rt_session *s, const struct rt_process *p, const struct rt_thread *t);
/* Tells where a thread stands at its exit event; code: what its process ends with, as of wait(2). Best effort. */
RT_CHECK struct rt_error *rt_session_stands(struct rt_session *s, const struct rt_thread *t, int code);
/* A thread in a stop: has it told of a get or put that it may not have done yet? */
bool rt_stands_inside(struct rt_session *s, const struct rt_process *p, const struct rt_thread *t);

struct rt_session {
	struct rt_session_options options;
	struct rt_session_hooks hooks;
	const struct rt_engine_ops *ops;
	struct rt_engine *engine;
	struct rt_guardian guardian;

	struct rt_event_sink engine_sink; /* engine -> stream.c -> hooks.sink */
	uint64_t engine_records;          /* how many came so far */
	uint32_t last_tgid, last_wire;    /* of the record before: events come in bursts */

	RT_VEC(struct rt_module *) modules; /* modules.data[id - 1] */
	uint32_t code_epoch;                /* the engine's, when it was told of code */
	bool attaching;                     /* the processes that are taken in have been running, and stand */
	struct rt_map files;                /* (file, version) -> module id; 0 = looked at, no module */
	struct rt_map unmapped; /* the same of files that nobody has mapped -> may have points (bystander.c) */
	RT_VEC(struct rt_batch *) batches;
	RT_VEC(struct rt_point) points; /* points.data[id - 1]: copies with ids that are unique in the session */
	uint32_t type_nr;
	bool classed;              /* some points tell classes */
	struct rt_map class_words; /* (word, pid and type) -> nothing: looked at */
	bool calls_planned;
	uint32_t call, call_nr; /* the points of system calls: index of the first one in points, how many in a row */
	uint64_t armed_points, armed_failed;
	bool untraced; /* there was a process that the engine could not be brought into */
	char *pairs;
	char *unsure; /* a family that only names speak for: not traced; NULL: there was none */

	struct rt_map threads;     /* tid -> struct rt_thread * */
	struct rt_map processes;   /* tgid -> struct rt_process * */
	struct rt_map generations; /* tgid -> generation of the last one */
	struct rt_unwind_check unwind;
	struct rt_governor governor;

	uint32_t root;     /* pid of the first process */
	bool root_started; /* exec succeeded */
	bool root_running; /* past its first stop: code of the program may have run */
	bool root_let_go;  /* it runs on, untraced: only its end is waited for */
	bool root_ended, root_known;
	int root_status;
	int exec_pipe;     /* the launched child writes the errno of a failed exec; -1 */
	sigset_t old_mask; /* the program starts with what we were started with */
	struct sigaction old_chld;
	struct {
		bool known;
		int resource;
		struct rlimit limit;
	} old_limits[2];

	bool collecting; /* stops are kept, not handled */
	bool finish;     /* leave the loop */
	int wake_fd;     /* eventfd: rt_session_interrupt() */
	size_t sources_started;
	volatile sig_atomic_t interrupts, interrupt_signal, interrupt_terminal;
	int interrupts_seen;
	int forward_signal; /* to be sent to the root unless the terminal does it */
	uint64_t forward_ns;
	int tty_signal; /* last signal that the kernel (the terminal) sent to the root */
	uint64_t tty_ns;
	uint64_t deadline_ns, tick_ns;
	uint64_t haste_ns; /* until then a process that has just begun is likely to ask; 0: none is */
	volatile sig_atomic_t moments;
	int moments_seen;
	uint64_t moment_ns; /* when the interval is over */
};

static inline struct rt_module *rt_session_module(const struct rt_session *s, uint32_t id)
{
	return id && id <= s->modules.len ? s->modules.data[id - 1] : NULL;
}
