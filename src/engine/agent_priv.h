/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Engine U: the agent (agent/, wire/agent.h) inside the program. The tool puts it there while the process stands in a
 * ptrace stop, by system calls made in its name, and writes a jump over each probed instruction; the agent only tells.
 * Nothing of it needs a privilege that ptrace does not.
 *
 *   agent.c        the ops table and the processes
 *   agent_pool.c   memory that a program, its forked children and we share
 *   agent_inject.c the agent's code and that memory in a new program
 *   agent_patch.c  jumps and the stubs that they lead to
 *   agent_semaphore.c  counters of markers
 *   agent_code.c   unwind rows
 *   agent_thread.c which thread is which
 *   agent_drain.c  rings -> stream, by time
 *   agent_tally.c  counting mode
 *   agent_clock.c  time stamp counter -> CLOCK_MONOTONIC
 *   stopped.c      system calls and memory of a stopped process
 */
#pragma once

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "engine/agent_held.h"
#include "engine/counted.h"
#include "engine/engine.h"
#include "engine/point_count.h"
#include "engine/stopped.h"
#include "insn/insn.h"
#include "wire/agent.h"

enum {
	RT_AGENT_SHARED_CHUNKS = (sizeof(struct rt_agent_shared) + RT_AGENT_CHUNK - 1) / RT_AGENT_CHUNK,
	RT_AGENT_CHUNKS = RT_AGENT_POOL_COUNTING / RT_AGENT_CHUNK, /* at most */
	RT_AGENT_AREA = 64 << 10,                                  /* bytes of stubs in one piece */
	RT_AGENT_OWNER = 4096,
	RT_AGENT_MOMENTS = 64,
	RT_AGENT_NUMBERS = 1 << (32 - RT_SEQ_BITS),
};

/* A program (one exec) and its forked children: one pool, at one address in all of them. */
struct rt_agent_pool {
	uint32_t users;
	bool ends; /* its last user leaves it */
	int fd;
	uint64_t bytes;
	uint8_t *base;          /* mapped here */
	pthread_mutex_t *owner; /* locked by us as long as we live; the program can read it */
	uint64_t at;            /* and there */
	uint64_t code;          /* where the agent's code is in the processes */
	uint8_t used[RT_AGENT_CHUNKS];
	uint32_t row_end, mapping_end, generation;
	uint32_t site_end;  /* entries of rt_agent_shared.site */
	struct rt_map rows; /* module -> 1 + index of placed */
	RT_VEC(struct rt_agent_placed) placed;
};

/* Where the rows of a module are. */
struct rt_agent_placed {
	uint64_t base;
	uint32_t row, row_nr;
};

struct rt_agent_member {
	uint32_t tid;
	uint64_t key, offset; /* of struct rt_agent_thread in the pool */
	bool gone;
	/* time stamp counter */
	uint64_t idle;  /* when it was last seen in no hook, or to tell: it tells of nothing older */
	uint64_t since; /* when it was first seen in the hook that it has been in since idle; 0: it is in none */
	bool out;       /* of that hook, by longjmp() */
	struct rt_agent_held held; /* taken out of its ring before it was their turn, to give it room */
};

/* One jump over code. */
struct rt_agent_jump {
	uint64_t address;
	uint8_t moved; /* bytes from address on that its stub stands for: nobody comes by there any more */
	uint8_t original[5], jump[5];
};

/* Memory for stubs. */
struct rt_agent_area {
	uint64_t start, used;
};

/* Room for the mappings of one process in the table of them; two, used by turns. */
struct rt_agent_span {
	uint32_t first, room;
};

struct rt_agent_task {
	uint32_t pid, wire_pid;
	struct rt_agent_pool *pool; /* NULL: nothing is in it, why says why */
	const char *why;
	bool lodger;                /* lives in the memory of who made it, until it calls exec */
	uint64_t offset;            /* of struct rt_agent_process in the pool */
	uint64_t tallies;           /* of struct rt_agent_tallies there; 0: none */
	struct rt_agent_sums *sums; /* of threads that have ended; NULL: none */
	RT_VEC(struct rt_agent_member) members;
	uint64_t spare[RT_AGENT_SPARES]; /* offsets of struct rt_agent_thread that a thread may take, or has taken */
	RT_VEC(struct rt_agent_jump) jumps;
	RT_VEC(struct rt_agent_area) areas;
	RT_VEC(struct rt_semaphore_place) semaphores; /* that were raised */
	struct rt_map armed;                          /* point -> its address */
	struct rt_agent_span span[2];
	uint64_t last_ns; /* CLOCK_MONOTONIC, of the last event that was handed on */
	unsigned turn;
	bool stop_armed;
};

/* Who writes events has a number, and each event one that follows its last; the next who gets it goes on there. */
struct rt_agent_numbers {
	uint32_t seq[RT_AGENT_NUMBERS];
	uint8_t used[RT_AGENT_NUMBERS];
	uint32_t last;
};

/* Unwind rows of a module, kept for the programs to come. */
struct rt_agent_rows {
	uint64_t base;
	struct rt_unwind_row *row; /* owned */
	uint32_t row_nr;
};

/* What both clocks showed at the same moment. */
struct rt_agent_moment {
	uint64_t tsc, ns;
};

/* The last moments, by time; and the two between which it was asked last. */
struct rt_agent_clock {
	struct rt_agent_moment moment[RT_AGENT_MOMENTS]; /* [n % RT_AGENT_MOMENTS] */
	uint64_t nr;
	struct rt_agent_moment first, from, to;
	double slope, between; /* ns per tick: from the first moment on; between those two */
};

struct rt_agent {
	struct rt_engine base;
	struct rt_engine_options options;
	RT_VEC(struct rt_agent_task *) tasks;
	struct rt_map rows; /* module -> index of kept */
	RT_VEC(struct rt_agent_rows) kept;
	struct rt_agent_clock clock;
	struct rt_decoder *decoder;
	struct rt_semaphores *semaphores;       /* NULL: none was raised */
	struct rt_probe probe[RT_AGENT_POINTS]; /* of all points, for pools to come */
	uint32_t last_point;
	uint64_t records[RT_AGENT_POINTS];
	struct rt_point_count *gone; /* [RT_AGENT_POINTS] counts of threads that have ended */
	uint64_t struck;             /* threads that ended in a hook */
	uint64_t strangers;
	uint64_t timed[2]; /* as in struct rt_agent_thread, of those that have ended */
	double cycles[2];
	struct rt_agent_numbers numbers;
	struct rt_agent_held_pool held_pool;
	struct rt_counted counted;
	/* CLOCK_MONOTONIC; what is older was handed on, and nothing later but of processes that have ended */
	uint64_t told_until;
	bool disarmed, stopped;
};

/* The agent's code: begins with struct rt_agent_head. */
extern const uint8_t rt_agent_blob[];
extern const size_t rt_agent_blob_bytes;
static inline const struct rt_agent_head *rt_agent_blob_head(void)
{
	return (const void *)rt_agent_blob;
}

struct rt_agent_task *rt_agent_task(const struct rt_agent *a, uint32_t pid);
static inline struct rt_agent_shared *rt_agent_shared(const struct rt_agent_pool *pool)
{
	return (void *)pool->base;
}
static inline struct rt_agent_process *rt_agent_process(const struct rt_agent_task *task)
{
	return (void *)(task->pool->base + task->offset);
}
static inline struct rt_agent_thread *rt_agent_thread(const struct rt_agent_task *task, uint64_t offset)
{
	return (void *)(task->pool->base + offset);
}

/* ---- agent_pool.c ---- */

/* A pool of that size over two empty files in memory: fd is taken over, owner_fd is for the lock and can be closed. */
RT_CHECK struct rt_error *rt_agent_pool_create(int fd, int owner_fd, uint64_t bytes, struct rt_agent_pool **ret);
/* Whether a chunk in use begins at offset, which may come from the program. */
bool rt_agent_pool_has(const struct rt_agent_pool *pool, uint64_t offset);
void rt_agent_pool_leave(struct rt_agent_pool *pool);
/* Copies bytes to `to` in the pool; many at once are cheaper so than by a copy: that is interrupted for each page. */
void rt_agent_pool_write(struct rt_agent_pool *pool, void *to, const void *from, size_t size);
/* So many zeroed chunks in a row; 0: the pool has none. They are given back in the same number. */
uint64_t rt_agent_pool_take(struct rt_agent_pool *pool, uint32_t chunks);
void rt_agent_pool_give(struct rt_agent_pool *pool, uint64_t offset, uint32_t chunks);

/* ---- agent_inject.c ---- */

/* Puts the agent into task, of which thread tid stands. What the process does not allow: task->why, and no error. */
RT_CHECK struct rt_error *rt_agent_inject(struct rt_agent *a, struct rt_agent_task *task, uint32_t tid);

/* ---- agent_patch.c ---- */

/* Whether a jump takes the place of any of the bytes from address on: a breakpoint there would not be hit. */
bool rt_agent_is_jumped(const struct rt_agent_task *task, uint64_t address, size_t bytes);
/* How far behind address the code goes on that no jump has written over; 0: none has there. */
size_t rt_agent_behind_jump(const struct rt_agent_task *task, uint64_t address);
/* Arms points of arm in a process that has the agent. */
RT_CHECK struct rt_error *rt_agent_patch(struct rt_agent *a, struct rt_agent_task *task, const struct rt_arm *arm,
					 void (*failed)(const struct rt_arm_failure *failure, void *arg), void *arg);
/* Takes the jumps away; the stubs stay for who is in them. */
void rt_agent_unpatch(struct rt_agent_task *task);

/* ---- agent_semaphore.c ---- */

/* Raises a counter, in a process of which r->tid stands. *ret_why: it cannot be, static text. */
RT_CHECK struct rt_error *rt_agent_raise(struct rt_agent *a, struct rt_agent_task *task, struct rt_stopped *r,
					 const struct rt_semaphore_place *place, const char **ret_why);
RT_CHECK struct rt_error *rt_agent_semaphores_fork(struct rt_agent *a, const struct rt_agent_task *from,
						   struct rt_agent_task *task);
/* Lowers what was raised; where no thread stands, that is left to the keeper. */
void rt_agent_lower(struct rt_agent *a, struct rt_agent_task *task);

/* ---- agent_code.c ---- */

RT_CHECK struct rt_error *rt_agent_tell_code(struct rt_agent *a, struct rt_agent_task *task,
					     const struct rt_engine_code *list, size_t count);

/* ---- agent_thread.c ---- */

/* The thread tid of task stands: it has, or gets, its memory under the thread pointer that it has now. */
RT_CHECK struct rt_error *rt_agent_thread_stands(struct rt_agent *a, struct rt_agent_task *task, uint32_t tid);
void rt_agent_thread_ends(struct rt_agent_task *task, uint32_t tid);
/* A chunk as memory of a thread; 0: none is left. */
uint64_t rt_agent_thread_make(struct rt_agent *a, struct rt_agent_pool *pool, uint32_t tid);
/* Threads that made themselves known, spares for the next; memory of the ended ones goes back when it is read. */
RT_CHECK struct rt_error *rt_agent_threads_look(struct rt_agent *a, struct rt_agent_task *task);
/* Sums up what the threads counted, and gives up their memory. */
void rt_agent_threads_leave(struct rt_agent *a, struct rt_agent_task *task);

/* ---- agent_tally.c: counting mode, else nothing ---- */

/* The table of a process. false: there is no memory for it. */
bool rt_agent_tallies_make(struct rt_agent *a, struct rt_agent_task *task);
/* A thread writes no more, for now: what it has counted is taken over by its task. */
void rt_agent_tallies_thread(struct rt_agent *a, struct rt_agent_task *task, struct rt_agent_thread *t);
/* What a process has counted, of which no thread runs any more: kept as records. The table is given up. */
RT_CHECK struct rt_error *rt_agent_tallies_take(struct rt_agent *a, struct rt_agent_task *task);

/* ---- agent_drain.c, agent_clock.c ---- */

RT_CHECK struct rt_error *rt_agent_drain(struct rt_agent *a, struct rt_event_sink *sink);
/* Whether anybody may still write in its rings. */
bool rt_agent_goes_on(const struct rt_agent_task *task);
uint64_t rt_agent_tsc(void);
void rt_agent_clock_init(struct rt_agent_clock *clock);
/* Notes a moment: what happened before it is told exactly. */
void rt_agent_clock_set(struct rt_agent_clock *clock);
/* The time of the next event of a process: never before that of its last one, which *last_ns keeps. */
uint64_t rt_agent_clock_ns(struct rt_agent_clock *clock, uint64_t tsc, uint64_t *last_ns);
/* The time that it was at tsc; 0 for what was before the kernel's clock began. */
uint64_t rt_agent_clock_at(struct rt_agent_clock *clock, uint64_t tsc);
