/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What engine U's agent, which runs inside the traced program, shares with the tool that put it there: one file in
 * memory ("pool") for a program and its forked children, and a header at the start of the agent's own code. Lives as
 * long as one run; never in a file. All places are offsets from the start of the pool.
 *
 * The tool plans and writes everything but the rings, counters and memos, which are the agent's.
 */
#pragma once

#include "wire/probe.h"
#include "wire/unwind.h"

#define RT_AGENT_POOL_NAME "reftrace-agent" /* of the file in memory */
#define RT_AGENT_POOL (4ull << 30)          /* bytes; of which only those are memory that were used */
#define RT_AGENT_CHUNK (2ull << 20)         /* what a process or a thread gets of it */

enum {
	RT_AGENT_POINTS = 8192,
	RT_AGENT_SITES = 8192,
	RT_AGENT_SITE_POINTS = 6,
	RT_AGENT_MAPPINGS = 32768,
	RT_AGENT_ROWS = 2 << 20,
	RT_AGENT_RETURNS = 4096, /* return addresses that can be replaced; thunks of the agent */
	RT_AGENT_THREADS = 1024, /* of one process */
	RT_AGENT_SPARES = 1,
	RT_AGENT_RING = 8192,    /* events of a thread */
	RT_AGENT_STACKS = 8192,  /* pieces of 64 bytes of the ring of stacks of a process */
	RT_AGENT_KNOWN = 32768,  /* stacks of a process that were sent */
	RT_AGENT_PENDING = 8192, /* calls of a process whose return is waited for */
	RT_AGENT_PENDING_WAYS = 16,
	RT_AGENT_PENDING_PART = 64, /* of these that are looked through or left out together: a page */
	RT_AGENT_FRAMES = 16,       /* that a stack has at most, if more are not asked for */
	RT_AGENT_MEMO_BITS = 10,    /* walks of a thread that are remembered, as a power of two */
	RT_AGENT_MEMO_WAYS = 8,     /* of these that are tried for one hit */
	RT_AGENT_MEMO_STRIDE = 4,   /* places of a walk are looked at so many at a time */
	RT_AGENT_MEMO_READ = 35,    /* words that one may have read, filled up */
	RT_AGENT_FORKS_BITS = 8,    /* depths of places whose forks are known, as a power of two; in pairs */
	RT_AGENT_FORKS = 12,        /* that are known of one */
	RT_AGENT_FORKS_STRIDE = 4,
	RT_AGENT_RULES = 4096,
	RT_AGENT_TIMED = 64,
	RT_AGENT_SAMPLE_SETS = 4096, /* of a process */
};

/* Of a plain site, whose only point's object is in one register: what it makes of each hit, prepared. */
struct rt_agent_plain {
	int64_t object;  /* how far it is from what the register holds */
	int32_t counter; /* how far behind the object */
	int32_t sp;      /* how far the event's is above that of the hit */
	uint32_t head;   /* of the event: size, kind and op */
	uint32_t tail;   /* and its last four bytes: delta and flags */
	int16_t counter_bias;
	uint16_t counter_size;
	uint32_t class_at; /* as in struct rt_probe */
};

/* One armed instruction: what its stub passes to the agent. */
struct rt_agent_site {
	uint64_t address;                     /* in the process */
	uint32_t point[RT_AGENT_SITE_POINTS]; /* ids; 0: no more */
	struct rt_agent_plain plain;          /* where the stub calls rt_agent_head.plain */
};

/* What a stub says that is no site: the dynamic linker's hook, and enum kind of struct rt_unwinder. */
#define RT_AGENT_SIGHT_STOP 0x70000000u
#define RT_AGENT_SIGHT_UNWIND 0x70000001u
#define RT_AGENT_SIGHT_FORCED 0x70000002u
#define RT_AGENT_SIGHT_UNWOUND 0x70000003u

/* Of a point of a site; never 0. */
#define RT_AGENT_SPOT(site, i) ((uint32_t)(site)*8 + (i))
/* A spot, while the code is that of RT_CODE_MAKE(). */
#define RT_AGENT_FROM(code, spot) ((code) >> 32 << 32 | (spot))

/* The first and the last four bytes of struct rt_wire_event. */
#define RT_AGENT_EVENT_HEAD(op) ((uint32_t)(op) << 24 | RT_WIRE_EVENT << 16 | (uint32_t)sizeof(struct rt_wire_event))
#define RT_AGENT_EVENT_TAIL(delta, flags) ((uint32_t)(flags) << 16 | (uint16_t)(delta))

#define RT_AGENT_SAMPLING (1u << 31)

/* Rewrites of these are told by a new generation (RT_CODE_MAKE()). */
struct rt_agent_shared {
	uint32_t sampling;    /* 0: every object is traced; else RT_AGENT_SAMPLING and RT_SAMPLE_* */
	uint32_t sample_rate; /* of 2^32 */
	uint32_t frames;      /* of a stack, at most; up to RT_STACK_MAX */
	uint32_t pad0;
	uint64_t pad[6];
	struct rt_probe probe[RT_AGENT_POINTS];
	struct rt_agent_site site[RT_AGENT_SITES];
	uint64_t return_address[RT_AGENT_RETURNS]; /* 0 = free; stays what it is: thunk i goes there */
	struct rt_probe_code mapping[RT_AGENT_MAPPINGS];
	struct rt_unwind_row row[RT_AGENT_ROWS];
};

/* A call whose return is waited for. Bounded open addressing by slot: any of RT_AGENT_PENDING_WAYS places. */
struct rt_agent_pending {
	uint64_t slot; /* address of the return address; 0 = free */
	uint64_t object, aux;
	uint32_t count, stack, point;
	uint16_t flags;
	uint16_t level;     /* tail calls share the slot: 0 is the outermost */
	uint32_t inherited; /* not 0: entered before fork(), by the parent */
	uint32_t thread;    /* rt_agent_thread.number */
	uint32_t lifted;    /* RT_AGENT_SIGHT_* that has put its own return address into the slot, or 0 */
	uint32_t pad;
	uint64_t ra; /* where it was lifted: that address */
};

struct rt_agent_known {
	uint64_t hash; /* 0 = free */
	uint64_t id;   /* 0 = somebody is sending it */
};

struct rt_agent_thread_key {
	uint64_t key;    /* thread pointer | 1; 0 = never used, 2 = used before */
	uint64_t thread; /* offset of struct rt_agent_thread */
};

struct rt_agent_process {
	uint32_t wire_pid;
	uint32_t next_stack;
	uint64_t code;    /* RT_CODE_MAKE() over rt_agent_shared.mapping; 0 = not known */
	uint64_t r_state; /* address of r_debug.r_state; 0 = stop at each call of the dynamic linker's hook */
	uint64_t pad0[5];
	/* one thread asks to be stopped: the dynamic linker's hook */
	uint64_t stop_asked; /* counts up */
	uint64_t stop_done;  /* as far as was answered */
	uint64_t strangers;  /* events of threads that nothing was left for */
	uint32_t stop_tid;   /* which one */
	uint32_t astray;     /* not 0: who waits for a return is not always the thread that entered */
	/* a bit for each part of `pending` that ever had a call: the others' pages need not be there */
	uint64_t pending_parts[RT_AGENT_PENDING / RT_AGENT_PENDING_PART / 64];
	uint64_t pad1[2];
	uint64_t stacks_taken; /* pieces of the ring of stacks */
	uint64_t pad2[7];
	uint64_t stacks_read;
	uint64_t pad5[7];
	uint64_t spare[RT_AGENT_SPARES]; /* offsets of free struct rt_agent_thread; 0 = taken */
	uint64_t pad4[7];
	struct rt_agent_thread_key thread[RT_AGENT_THREADS];
	struct rt_agent_known known[RT_AGENT_KNOWN];
	struct rt_agent_pending pending[RT_AGENT_PENDING];
	struct rt_sample_set sample[RT_AGENT_SAMPLE_SETS];
	uint64_t stacks[RT_AGENT_STACKS][8];
};

/* The first place of `pending` from i on that may have a call; RT_AGENT_PENDING: there are no more. */
static inline uint32_t rt_agent_pending_next(const struct rt_agent_process *p, uint32_t i)
{
	while (i < RT_AGENT_PENDING) {
		uint32_t part = i / RT_AGENT_PENDING_PART;

		if (__atomic_load_n(&p->pending_parts[part / 64], __ATOMIC_ACQUIRE) >> part % 64 & 1)
			break;
		i = (part + 1) * RT_AGENT_PENDING_PART;
	}
	return i;
}

#define RT_AGENT_EACH_PENDING(i, p) \
	for (uint32_t i = rt_agent_pending_next(p, 0); i < RT_AGENT_PENDING; i = rt_agent_pending_next(p, i + 1))

/* A word of the stack: where it lies, in units of eight bytes from sp, and what it is, which has 48 bits. */
#define RT_AGENT_READ_MAKE(at, value) ((uint64_t)(value) << 16 | (at))
#define RT_AGENT_READ_AT(read) ((uint16_t)(read))
#define RT_AGENT_READ_VALUE(read) ((read) >> 16)

/*
 * Where the ways to a spot part, with the stack at one depth: places at which some of them have one return address, and
 * others have others. What others may have there need not be any: only what is near to an address that was seen counts.
 */
struct rt_agent_forks {
	uint64_t sp;
	uint32_t spot; /* 0: none are here */
	uint32_t nr;
	uint64_t near[RT_AGENT_FORKS]; /* RT_AGENT_READ_MAKE() of that one */
};
#define RT_AGENT_NEAR (1u << 24) /* what differs from it by less is near */

/*
 * What a walk has read: return addresses, and those rbp that frames hang on. Where frames hang on each other, what they
 * hang on follows from their return addresses: the first `chained` words are of such ones, and the word below each is
 * the address of the word below the next one. The others are filled up to a multiple of RT_AGENT_MEMO_STRIDE.
 */
struct rt_agent_memo {
	uint64_t sp, bp; /* what they were; bp: where hangs is not 0 */
	uint64_t from;   /* RT_AGENT_FROM() of the walk */
	uint32_t key;    /* by which it is looked for */
	uint32_t id;     /* of the stack; 0: none is here */
	uint16_t nr, hangs, chained, pad;
	uint64_t read[RT_AGENT_MEMO_READ];
} __attribute__((aligned(64)));

struct rt_agent_rule {
	uint64_t pc;
	uint32_t generation; /* 0 = none */
	uint32_t rule;
};

struct rt_agent_thread {
	uint32_t tid;       /* 0 = the thread has not said it yet */
	uint32_t number;    /* of the producer: top bits of seq */
	uint64_t owner;     /* key of the thread */
	uint64_t entered;   /* 0: in no hook; 2: in one that a signal's handler came into with another */
	uint32_t seq;       /* of the first event; the others follow, and one is left out where some were dropped */
	uint32_t impatient; /* the reader did not come: full rings are not waited for until it has */
	uint64_t read_seen; /* `read`, when the thread looked last: what the reader writes is asked for when need be */
	/* of one hook in RT_AGENT_TIMED: how many told of an event, and of none; cycles of the time stamp counter */
	uint32_t timed[2];
	uint64_t cycles[2];
	uint64_t taken;   /* events since the beginning */
	uint32_t turn;    /* hooks since one was timed */
	uint32_t waiting; /* calls whose return is waited for, or more */
	uint64_t pad1[6];
	uint64_t read;
	uint64_t pad2[7];
	struct rt_wire_event ring[RT_AGENT_RING];
	struct rt_probe_count count[RT_AGENT_POINTS];
	struct rt_agent_memo memo[1 << RT_AGENT_MEMO_BITS];
	struct rt_agent_forks forks[1 << RT_AGENT_FORKS_BITS];
	struct rt_agent_rule rule[RT_AGENT_RULES];
	struct rt_wire_frame frame[RT_STACK_MAX]; /* of a stack that is long, while it is walked */
};

/* rt_agent_head.off: no hook begins any more, and those that run end; or nothing is told at all */
enum { RT_AGENT_LEAVING = 1, RT_AGENT_SILENT = 2 };

/* First bytes of the agent's code. Offsets from there. */
struct rt_agent_head {
	uint64_t process; /* address of struct rt_agent_process; private to each process */
	uint64_t pool;    /* address of struct rt_agent_shared */
	/*
	 * Address of a robust lock that the tool holds, in a page that the program cannot write: the kernel marks it
	 * when the tool dies (RT_AGENT_OWNER_DIED).
	 */
	uint64_t owner;
	uint64_t off;              /* RT_AGENT_LEAVING, RT_AGENT_SILENT */
	uint32_t hit, plain, stop; /* what stubs call; plain: of a plain site */
	uint32_t thunk;            /* the first return thunk */
	uint32_t thunk_bytes;
	uint32_t fixup, fixup_end; /* struct rt_agent_fixup */
	uint32_t bytes;
	uint32_t add;             /* adds si to the 16 bits at rdi, atomically, and calls rt_sigreturn(2) */
	uint32_t unwind, unwound; /* what stubs call, too */
	uint32_t pad;
};
#define RT_AGENT_OWNER_DIED 0x40000000u /* FUTEX_OWNER_DIED */

/* A load of the agent that may fault, and where it goes on then: each as an offset from its own place here. */
struct rt_agent_fixup {
	int32_t load, resume;
};

_Static_assert(sizeof(struct rt_agent_site) == 64 && RT_AGENT_SITE_POINTS <= 8, "site");
_Static_assert(__builtin_offsetof(struct rt_wire_event, delta) == sizeof(struct rt_wire_event) - 4, "tail");
_Static_assert(sizeof(struct rt_agent_pending) == 64, "pending");
_Static_assert(sizeof(struct rt_agent_process) <= RT_AGENT_CHUNK, "process");
_Static_assert(sizeof(struct rt_agent_thread) <= RT_AGENT_CHUNK, "thread");
_Static_assert(__builtin_offsetof(struct rt_agent_thread, taken) == 64, "taken");
_Static_assert(__builtin_offsetof(struct rt_agent_thread, read) == 128, "read");
_Static_assert(__builtin_offsetof(struct rt_agent_thread, ring) == 192, "ring");
_Static_assert(sizeof(struct rt_agent_head) == 80, "head");
