/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside engine K.
 *
 *   uprobe.c           the ops table: processes, extend, forget, stop, totals
 *   uprobe_unwind.c    return addresses, while the program unwinds its stacks
 *   uprobe_load.c      BPF object: sizes, loading, tables mapped into memory
 *   uprobe_code.c      code of processes -> tables of mappings and unwind rows
 *   uprobe_point.c     plan's points -> table entries; what lies in memory at a point
 *   uprobe_multi.c     attaching by uprobe_multi links
 *   uprobe_tracefs.c   attaching by multi-probe tracefs events; stale definitions
 *   uprobe_call.c      system calls
 *   uprobe_ring.c      draining
 *   uprobe_tally.c     counting mode
 *   uprobe_reaper.c    closing links, which is slow, in threads of its own
 *   uprobe_try.c       what works here, and who is to blame if nothing does
 *   uprobe_cost.c      what a hit costs here
 *   uprobe_selftest.c  a child with known calls, at every start
 *
 * Every link is bound to one process. A process has an entry in the BPF
 * program's table of processes; it is taken out of use by one store (forget),
 * and used again only when the last link that names it is closed.
 */
#pragma once

#include <sys/types.h>

#include "base/map.h"
#include "engine/counted.h"
#include "engine/engine.h"
#include "engine/uprobe.h"
#include "wire/probe.h"

struct reftrace_bpf;

#define RT_UPROBE_PROCESSES 16384
#define RT_UPROBE_SITES (64u << 10)    /* in counting mode: stacks with a point */
#define RT_UPROBE_ROWS (2u << 20)      /* 16 MiB: all modules of all processes; libc has 28 thousand, libLLVM 950 */
#define RT_UPROBE_MAPPINGS (64u << 10) /* 2 MiB */

/* One place to arm. */
struct rt_uprobe_site {
	uint64_t offset;    /* in the file */
	uint64_t address;   /* in the process */
	uint64_t semaphore; /* in the file: a counter of 16 bits that the kernel raises while the site is armed; 0: none
			     */
	uint32_t point;
	bool at_return;
	bool bad; /* refused, and reported */
};

struct rt_uprobe_sites {
	RT_VEC(struct rt_uprobe_site) list;
	struct rt_uprobe_site stop; /* stop.address != 0: stop the process there */
	RT_VEC(struct rt_uprobe_site) unwinders;
};

/* Where the process stops, as returns are waited for, in it. */
struct rt_uprobe_unwinder {
	uint64_t address;
	int kind; /* of struct rt_unwinder */
};

struct rt_uprobe_process {
	uint32_t pid; /* 0 = free, or waiting for its links to close */
	uint32_t salt;
	RT_VEC(int) links;
	struct rt_map armed; /* (point, 0) -> 1 */
	RT_VEC(struct rt_uprobe_unwinder) unwinders;
	uint32_t space; /* index of spaces, 0: its code is not known */
};

/* Entries of the table of mappings that say what code a process has; those that have the same share them. */
struct rt_uprobe_space {
	uint32_t first, count, users;
	struct rt_key key;
};

struct rt_uprobe_module {
	uint64_t base;        /* ELF address that its rows count from */
	uint32_t row, row_nr; /* where they are in the table */
};

struct rt_uprobe_code {
	struct rt_probe_code *mappings; /* [RT_UPROBE_MAPPINGS], mapped */
	struct rt_unwind_row *rows;     /* [RT_UPROBE_ROWS], mapped */
	uint32_t row_end, mapping_end;  /* entries ever used */
	uint32_t generation;
	struct rt_map by_module; /* its number -> index of modules */
	RT_VEC(struct rt_uprobe_module) modules;
	struct rt_map known;                   /* hash of its mappings -> space */
	RT_VEC(struct rt_uprobe_space) spaces; /* spaces[0] is none; without users: free entries */
};

struct rt_uprobe_ring {
	/* events, wire/probe.h */
	struct rt_wire_event *slot; /* [slots], mapped */
	size_t slots;               /* a power of two */
	struct rt_event_ring *counters;
	/* stacks, the kernel's */
	size_t size;
	uint64_t *consumer, *producer; /* mapped */
	uint8_t *data;
	uint64_t buffer[(32 + RT_STACK_MAX * sizeof(struct rt_wire_frame)) / 8];
};

struct rt_tracefs;
struct rt_reaper;

struct rt_uprobe {
	struct rt_engine base;
	struct rt_engine_options options;
	enum rt_attach_path path;
	bool session;                     /* uprobe sessions work */
	struct rt_semaphores *semaphores; /* NULL: none was raised by us */
	bool by_rows;                     /* the kernel takes the walk by unwind rows; else frame pointers have to do */
	bool stopped;
	struct reftrace_bpf *bpf;
	uint32_t cpus, points; /* sizes of the tables */
	uint32_t last_point;   /* highest point in use */
	struct rt_probe *probes;
	struct rt_probe_process *process_table;
	struct rt_probe_count *counts;
	struct rt_probe_call *calls; /* by number */
	int call_links[2];           /* of the raw tracepoints; -1: not yet */
	struct rt_uprobe_code code;
	uint64_t *records;                   /* events handed on, for each point */
	uint64_t *left;                      /* of each point: calls that an exception has left */
	bool *steps;                         /* of each point: the kernel steps over the armed instruction */
	struct rt_uprobe_process *processes; /* [RT_UPROBE_PROCESSES] */
	uint32_t process_end;                /* entries ever used */
	uint32_t salt;
	RT_VEC(uint32_t) free_processes;
	struct rt_map by_pid; /* pid -> entry */
	struct rt_map armed;  /* (device and inode, offset) -> 1: breakpoints that are ours, or inherited from ours */
	uint64_t returns_missed; /* known after stop */
	struct rt_uprobe_ring ring;
	struct rt_counted counted;
	struct rt_engine_cost cost; /* event_ns 0: not measured yet */
	struct rt_reaper *reaper;
	struct rt_tracefs *tracefs; /* NULL on the multi path */
};

/* Where failures of single points go. */
struct rt_uprobe_report {
	void (*failed)(const struct rt_arm_failure *failure, void *arg);
	void *arg;
};

void rt_uprobe_fail(const struct rt_uprobe_report *report, struct rt_uprobe_site *site, int errnum, const char *why);

/* uprobe_load.c */
RT_CHECK struct rt_error *rt_uprobe_load(struct rt_uprobe *u);
void rt_uprobe_unload(struct rt_uprobe *u);
/* Whether stacks may hold return trampolines from now on. */
void rt_uprobe_expect_returns(struct rt_uprobe *u, bool expect);
/* From now on nothing is sent: counting mode. */
void rt_uprobe_count(struct rt_uprobe *u);
/* The rate of the sample, from now on. */
void rt_uprobe_sample(struct rt_uprobe *u, uint32_t rate);
/* Programs by purpose, as fds; -1 where not loaded. */
int rt_uprobe_prog_entry(const struct rt_uprobe *u);
int rt_uprobe_prog_enter(const struct rt_uprobe *u);
int rt_uprobe_prog_leave(const struct rt_uprobe *u);
int rt_uprobe_prog_session(const struct rt_uprobe *u);
int rt_uprobe_prog_stop(const struct rt_uprobe *u);
int rt_uprobe_prog_unwind(const struct rt_uprobe *u);
int rt_uprobe_prog_call_enter(const struct rt_uprobe *u);
int rt_uprobe_prog_call_leave(const struct rt_uprobe *u);
int rt_uprobe_map_callers(const struct rt_uprobe *u);
int rt_uprobe_map_tallies(const struct rt_uprobe *u);
int rt_uprobe_map_sites(const struct rt_uprobe *u);
int rt_uprobe_map_ips(const struct rt_uprobe *u);
int rt_uprobe_map_pendings(const struct rt_uprobe *u);
int rt_uprobe_map_nesting(const struct rt_uprobe *u);

/* uprobe.c: entry of pid in the table of processes, made if new. wire_pid 0: pid. */
RT_CHECK struct rt_error *rt_uprobe_process(struct rt_uprobe *u, uint32_t pid, uint32_t wire_pid, uint32_t *ret);

/* uprobe_code.c */
RT_CHECK struct rt_error *rt_uprobe_code(struct rt_uprobe *u, uint32_t entry, const struct rt_engine_code *list,
					 size_t count);
void rt_uprobe_code_forget(struct rt_uprobe *u, uint32_t entry);
void rt_uprobe_code_deinit(struct rt_uprobe_code *code);

/* uprobe_point.c: fills the table entry; NULL, or why the point cannot be used. */
const char *rt_uprobe_point_set(struct rt_uprobe *u, const struct rt_point *point);
/* Why the kernel does not arm this one site, by the errno; static text. NULL: it is nothing about the site. */
const char *rt_uprobe_site_refused(const struct rt_uprobe_site *site, int errnum);
/* Reports sites whose memory holds a breakpoint that is not ours. */
void rt_uprobe_check_before(struct rt_uprobe *u, const struct rt_arm *arm, struct rt_uprobe_sites *sites,
			    const struct rt_uprobe_report *report);
/* Reports sites whose memory, where it is mapped, holds no breakpoint now. */
void rt_uprobe_check_after(struct rt_uprobe *u, const struct rt_arm *arm, struct rt_uprobe_sites *sites,
			   const struct rt_uprobe_report *report);

/* uprobe_multi.c */
enum { RT_ATTACH_TYPE_MULTI = 48, RT_ATTACH_TYPE_SESSION = 57 };
struct rt_multi_request {
	int prog;
	uint32_t type, pid; /* RT_ATTACH_TYPE_* */
	bool returns;       /* arm the return */
	const char *path;
	const uint64_t *offsets, *cookies;
	const uint64_t *semaphores; /* offsets in the file, 0: none; or NULL */
	size_t count;
};
/* A link fd, or a negative errno. */
int rt_multi_link(const struct rt_multi_request *request);
RT_CHECK struct rt_error *rt_multi_arm(struct rt_uprobe *u, uint32_t entry, const struct rt_arm *arm,
				       struct rt_uprobe_sites *sites, const struct rt_uprobe_report *report);

/* uprobe_tracefs.c */
RT_CHECK struct rt_error *rt_tracefs_create(int root_fd, struct rt_tracefs **ret);
RT_CHECK struct rt_error *rt_tracefs_arm(struct rt_uprobe *u, uint32_t entry, const struct rt_arm *arm,
					 struct rt_uprobe_sites *sites, const struct rt_uprobe_report *report);
/* Forgets the (tgid, ip) pairs of a process that has no links any more. */
void rt_tracefs_forget(struct rt_uprobe *u, uint32_t pid);
/* Removes our definitions (all perf events must be closed). */
void rt_tracefs_destroy(struct rt_tracefs *t);

/*
 * uprobe_unwind.c: a forked child waits for the returns that its parent waits for. Whether tid, which the engine has
 * stopped, stands where a stack is unwound: its return addresses are put right then. And those of all processes, which
 * stand and run on without us.
 */
RT_CHECK struct rt_error *rt_uprobe_inherit(struct rt_uprobe *u, uint32_t parent, uint32_t pid, uint32_t wire_pid);
bool rt_uprobe_unwinds(struct rt_uprobe *u, uint32_t pid, uint32_t tid);
void rt_uprobe_unwind_all(struct rt_uprobe *u);

/* uprobe_call.c: points at system calls, in one process */
RT_CHECK struct rt_error *rt_uprobe_call_arm(struct rt_uprobe *u, uint32_t entry, const struct rt_arm *arm,
					     const struct rt_uprobe_report *report);
void rt_uprobe_call_forget(struct rt_uprobe *u, uint32_t pid);
void rt_uprobe_call_stop(struct rt_uprobe *u);

/* uprobe_tally.c: takes what was counted of a process out of the tables, into `counted`. */
RT_CHECK struct rt_error *rt_uprobe_tally_take(struct rt_uprobe *u, uint32_t entry, uint32_t wire_pid);

/* uprobe_ring.c */
RT_CHECK struct rt_error *rt_ring_open(struct rt_uprobe_ring *ring, int map_fd);
void rt_ring_close(struct rt_uprobe_ring *ring);
RT_CHECK struct rt_error *rt_ring_drain(struct rt_uprobe *u, struct rt_event_sink *sink);

/* uprobe_reaper.c */
RT_CHECK struct rt_error *rt_reaper_create(struct rt_reaper **ret);
/* Closes fds in the background; key comes back from rt_reaper_done() when the last fd given with it is closed. */
void rt_reaper_close(struct rt_reaper *r, const int *fds, size_t count, uint32_t key);
/* A key whose fds are all closed; false: none now. */
bool rt_reaper_done(struct rt_reaper *r, uint32_t *ret_key);
/* Waits until everything given so far is closed. */
void rt_reaper_wait(struct rt_reaper *r);
void rt_reaper_destroy(struct rt_reaper *r);

/* uprobe_try.c: the error for a refused bpf(2), perf_event_open(2) or tracefs write. */
RT_CHECK struct rt_error *rt_uprobe_denied(enum rt_attach_path path, int errnum, const char *what);
RT_CHECK struct rt_error *rt_uprobe_try(const struct rt_engine_options *options);

/* uprobe_selftest.c */
RT_CHECK struct rt_error *rt_uprobe_selftest(struct rt_uprobe *u);
/* Where the function that the self-test probes lies in our own program (/proc/self/exe). */
struct rt_uprobe_own {
	uint64_t bias, address, offset; /* address: as the ELF file says it */
};
RT_CHECK struct rt_error *rt_uprobe_own_site(struct rt_uprobe_own *ret);
/* It begins with `push %rbp`, which the kernel emulates; it steps over what follows. */
enum { RT_UPROBE_OWN_PUSH = 1 };
/* Calls that function. */
void rt_uprobe_call(uint64_t object);
/* Entries [first, last] of the table of points, which a test used, are nobody's; no other was used so far. */
void rt_uprobe_forget_test(struct rt_uprobe *u, uint32_t first, uint32_t last);

/* uprobe_cost.c: measured at the first time, before anything else is armed. */
RT_CHECK struct rt_error *rt_uprobe_cost(struct rt_uprobe *u, struct rt_engine_cost *ret);

/* uprobe.c: extend() for callers that know the module's file and sites. */
RT_CHECK struct rt_error *rt_uprobe_extend(struct rt_uprobe *u, const struct rt_arm *arm,
					   const struct rt_uprobe_report *report);
