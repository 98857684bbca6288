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

#define RT_AGENT_POOL_NAME "reftrace-agent"  /* of the file in memory */
#define RT_AGENT_POOL (4ull << 30)           /* bytes; of which only those are memory that were used */
#define RT_AGENT_POOL_COUNTING (16ull << 30) /* in counting mode: a process has a table of objects, too */
#define RT_AGENT_CHUNK (2ull << 20)          /* what a process or a thread gets of it */

enum {
	RT_AGENT_POINTS = 8192,
	RT_AGENT_SITES = 8192,
	RT_AGENT_SITE_POINTS = 6,
	RT_AGENT_MAPPINGS = 32768,
	RT_AGENT_ROWS = 2 << 20,
	RT_AGENT_RETURNS = 4096, /* return addresses that can be replaced; thunks of the agent */
	RT_AGENT_THREADS = 1024, /* of one process */
	RT_AGENT_SPARES = 1,
	RT_AGENT_RING = 8192,      /* events of a thread */
	RT_AGENT_STACKS = 8192,    /* pieces of 64 bytes of the ring of stacks of a process */
	RT_AGENT_KNOWN = 32768,    /* stacks of a process that were sent */
	RT_AGENT_KNOWN_FEW = 1024, /* of these the first ones: most processes touch no page more */
	RT_AGENT_KNOWN_WAYS = 8,   /* that one is looked for in, there and in all of them */
	RT_AGENT_PENDING = 8192,   /* calls of a process whose return is waited for */
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
	RT_AGENT_SLOTS = 1 << 20,    /* bits of a process */
	RT_AGENT_OBJECTS = 1 << 15,  /* entries of a process */
	RT_AGENT_OBJECT_WAYS = 8,    /* that one object may have */
	RT_AGENT_OBJECT_NONE = 0,    /* a free entry */
	/* in the last of the ways: there were more objects than ways, all that is freed is told */
	RT_AGENT_OBJECT_ANY = 0xffff,
	/* counting mode */
	RT_AGENT_PLACES = 32768,  /* of a process: stacks with a point */
	RT_AGENT_PLACE_WAYS = 16, /* that one is looked for in */
	RT_AGENT_TALLY_BITS = 16, /* objects of a process, as a power of two, if nothing else is asked for */
	RT_AGENT_TALLY_LEAST = 6, /* and at least, */
	RT_AGENT_TALLY_MOST = 20, /* and at most */
	RT_AGENT_TALLY_WAYS = 16, /* an object is in one of so many places */
	RT_AGENT_FRONT_BITS = 9,  /* sites whose last walk is tried first, as a power of two */
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

/* The same in counting mode. */
struct rt_agent_plain_count {
	int64_t object;
	uint64_t change; /* of the state of the object's entry: RT_AGENT_TALLY_CHANGE(), or RT_AGENT_TALLY_ODD */
	uint64_t mark;   /* RT_AGENT_TALLY_MARK() */
	uint64_t pad;
};

/* One armed instruction: what its stub passes to the agent. */
struct rt_agent_site {
	uint64_t address;                     /* in the process */
	uint32_t point[RT_AGENT_SITE_POINTS]; /* ids; 0: no more */
	union {
		struct rt_agent_plain plain;       /* where the stub calls rt_agent_head.plain */
		struct rt_agent_plain_count count; /* rt_agent_head.plain_count */
	};
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
	uint32_t counting;    /* not 0: nothing is told of single operations */
	uint64_t clock_ns;    /* CLOCK_MONOTONIC, when the tool looked last */
	uint64_t pad[5];
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

/*
 * Counting mode: what bpf/tally.h keeps, for a process. An object has an entry as long as its references do not come
 * to 0; its state decides, and is changed in one step, so that nobody waits for anybody. What a place did to it is
 * counted by the thread that came from there first with a plain addition, since no other one writes that number; by
 * others in a word beside it.
 */
#define RT_AGENT_TALLY_FREE 0u
#define RT_AGENT_TALLY_BUSY 1u /* begins or ends */
#define RT_AGENT_TALLY_LIVE 3u
#define RT_AGENT_TALLY_KIND(state) ((uint32_t)(state)&3)
#define RT_AGENT_TALLY_NEWS(state) ((uint32_t)(state) >> 2 & 255) /* 255: or more */
#define RT_AGENT_TALLY_ONE_NEW 4u
#define RT_AGENT_TALLY_LIFE 0xfffffc03ull /* is another one in any other life at this entry */
#define RT_AGENT_TALLY_NEXT 0x400u        /* life */
/* What of an object and its type tells where its entry is: the bits from 32 on, and its tag. */
#define RT_AGENT_TALLY_MARK(type) ((uint64_t)(type) << 48)
#define RT_AGENT_TALLY_HASH(object, mark) (((object) + (mark)) * 0x9e3779b97f4a7c15ull)
#define RT_AGENT_TALLY_BALANCE(state) ((int32_t)((state) >> 32))
#define RT_AGENT_TALLY_CHANGE(delta) ((uint64_t)(uint32_t)(delta) << 32)
/* What makes or ends an object, or is done to one that has to be known: an entry of any kind would not be live after
 * it. */
#define RT_AGENT_TALLY_ODD 1u

struct rt_agent_tally_part {
	uint64_t place; /* number of the place, and above it the thread that counts in `own`; 0: free */
	uint32_t own, others;
};
#define RT_AGENT_PART_MAKE(place, thread) ((uint64_t)(thread) << 32 | (place))

struct rt_agent_tally {
	uint64_t object;
	uint64_t state;
	uint64_t first_ns, last_ns; /* by rt_agent_shared.clock_ns */
	uint32_t type;
	uint32_t gets, puts; /* from places that there was no room for */
	uint32_t pad[5];
	struct rt_agent_tally_part part[RT_TALLY_SITES]; /* filled from the first one on */
	uint64_t pad1[8];                                /* its place is a shift */
};

/* Of a process. Behind it come its entries, and then their tags: both a power of two. */
struct rt_agent_tallies {
	uint32_t mask;   /* of numbers of entries */
	uint32_t places; /* numbers that were given out; it may be more than there are */
	uint64_t pad[7];
	uint64_t place[RT_AGENT_PLACES];      /* [number], stack << 32 | point; number 0 is none */
	uint32_t number[2 * RT_AGENT_PLACES]; /* by their hash */
};

static inline __attribute__((always_inline)) struct rt_agent_tally *rt_agent_tally_entries(struct rt_agent_tallies *t)
{
	return (struct rt_agent_tally *)(void *)(t + 1);
}

/* mask: that of t, which the program can write over */
static inline __attribute__((always_inline)) uint32_t *rt_agent_tally_tags(struct rt_agent_tallies *t, uint32_t mask)
{
	return (uint32_t *)(void *)(rt_agent_tally_entries(t) + mask + 1);
}

static inline uint64_t rt_agent_tallies_size(uint32_t bits)
{
	return sizeof(struct rt_agent_tallies) +
	       (sizeof(uint32_t) + sizeof(struct rt_agent_tally)) * (uint64_t)(1ull << bits);
}

/* What a thread did at each place, to any object. */
struct rt_agent_sums {
	uint64_t all[RT_AGENT_PLACES];
	uint64_t stray[RT_AGENT_PLACES]; /* RT_SITE_STRAY */
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
	uint64_t tallies; /* in counting mode: address of struct rt_agent_tallies */
	uint64_t looks;   /* not 0: what is freed with pointers to objects is told, so that `slots` are kept */
	uint64_t pad0[3];
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
	/* a bit for each word of memory, or for several, in which a pointer to an object was stored */
	uint64_t slots[RT_AGENT_SLOTS / 64];
	/* objects of which it is told who frees them, by rt_agent_object_tag() */
	uint16_t objects[RT_AGENT_OBJECTS];
};

/* The bit in rt_agent_process.slots of a word. */
static inline __attribute__((always_inline)) uint32_t rt_agent_slot(uint64_t address)
{
	return (uint32_t)(address / 8) & (RT_AGENT_SLOTS - 1);
}

/*
 * The first of the RT_AGENT_OBJECT_WAYS entries of rt_agent_process.objects in which one stands for the object: near to
 * those of its neighbours, so that few objects touch few pages.
 */
static inline __attribute__((always_inline)) uint32_t rt_agent_object(uint64_t address)
{
	const uint64_t unit = address / 16, group = unit + (unit >> 20) * UINT64_C(0x9e3779b1);

	return (uint32_t)(group * RT_AGENT_OBJECT_WAYS) & (RT_AGENT_OBJECTS - 1);
}

/* What stands there. */
static inline __attribute__((always_inline)) uint16_t rt_agent_object_tag(uint64_t address)
{
	const uint16_t tag = (uint16_t)(address / 16 * UINT64_C(0x9e3779b97f4a7c15) >> 48);

	return tag == RT_AGENT_OBJECT_NONE || tag == RT_AGENT_OBJECT_ANY ? 1 : tag;
}

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
	uint32_t id;     /* of the stack, in counting mode of the place; 0: none is here */
	uint16_t nr, hangs, chained;
	uint16_t part; /* in counting mode: bytes from the first part of an object to the one that was this place's */
	uint64_t value[RT_AGENT_MEMO_READ];
	uint16_t at[RT_AGENT_MEMO_READ + 1]; /* where, in units of eight bytes from sp */
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
	uint64_t part;    /* RT_AGENT_PART_MAKE() of no place */
	uint64_t pad1[5];
	uint64_t read;
	uint64_t pad2[7];
	union {
		struct rt_wire_event ring[RT_AGENT_RING];
		struct rt_agent_sums sums; /* counting mode */
	};
	struct rt_probe_count count[RT_AGENT_POINTS];
	struct rt_agent_memo memo[1 << RT_AGENT_MEMO_BITS];
	struct rt_agent_forks forks[1 << RT_AGENT_FORKS_BITS];
	struct rt_agent_rule rule[RT_AGENT_RULES];
	struct rt_wire_frame frame[RT_STACK_MAX]; /* of a stack that is long, while it is walked */
	uint32_t front[1 << RT_AGENT_FRONT_BITS]; /* bytes from the first memo */
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
	uint32_t plain_count;     /* in place of plain, in counting mode */
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
_Static_assert(sizeof(struct rt_agent_plain_count) == sizeof(struct rt_agent_plain), "plain");
_Static_assert(sizeof(struct rt_agent_tally) == 512, "tally");
_Static_assert(sizeof(struct rt_agent_tallies) % 64 == 0 && RT_AGENT_TALLY_LEAST >= 4, "tallies");
_Static_assert(sizeof(struct rt_agent_sums) == sizeof(struct rt_wire_event) * RT_AGENT_RING, "sums");
