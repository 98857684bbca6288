/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What engine K's user space and its BPF programs share: the table of probe
 * points, processes and counters. Lives as long as one run; never in a file.
 */
#pragma once

#include "wire/event.h"

/*
 * A hit names its point and its process by one number: the cookie of a
 * uprobe_multi link, or what (tgid, ip) is mapped to on the tracefs path.
 */
#define RT_COOKIE_MAKE(point, process) (((uint64_t)(process) << 32) | (uint32_t)(point))
#define RT_COOKIE_POINT(c) ((uint32_t)(c))
#define RT_COOKIE_PROCESS(c) ((uint32_t)((c) >> 32))

/* How many loads may lie between the register and the object. */
#define RT_PROBE_DEREF_MAX 3

enum {
	RT_PROBE_SITE = 1 << 0,   /* armed inside a function: frame 0 is the instruction itself */
	RT_PROBE_SLOT = 1 << 1,   /* aux is the address that the last load read (T **) */
	RT_PROBE_SIZE = 1 << 3,   /* of a system call: register index says how many bytes the object has */
	RT_PROBE_TO = 1 << 4,     /* or which is the last one that is meant */
	RT_PROBE_MATCH = 1 << 5,  /* of a system call: only where register scale holds counter_offset */
	RT_PROBE_RETURN = 1 << 2, /* the event is the return of the function that is entered here (agent) */
};

/* Where the object of a return point comes from. */
enum rt_probe_result {
	RT_PROBE_AT_ENTRY = 0, /* as read at entry */
	RT_PROBE_RESULT = 1,   /* the result register */
	RT_PROBE_RESULT_PTR = 2,
	RT_PROBE_OUT = 3, /* loaded at return from the address that was found at entry */
};

/* One probe point, as the hot path needs it. */
struct rt_probe {
	int64_t reg_offset;
	int32_t counter_offset; /* from the object, valid if counter_size != 0; of a system call: RT_PROBE_OUT lies
				   so far behind the argument */
	int32_t cfa_delta;      /* CFA = sp + cfa_delta, 0 = unknown */
	int16_t delta;
	uint16_t flags;       /* RT_EV_* that every event of this point carries */
	uint8_t op;           /* enum rt_op */
	uint8_t reg;          /* DWARF number, 0..16; any other: 0 */
	uint8_t deref;        /* 0..RT_PROBE_DEREF_MAX */
	uint8_t counter_size; /* 0 = not read, 1, 2, 4, 8 */
	uint8_t kind;         /* RT_PROBE_* */
	uint8_t result;       /* enum rt_probe_result */
	uint8_t condition;    /* enum rt_condition (src/probe/spec.h) on the result */
	uint8_t result_size;  /* bytes of the result that the condition looks at */
	uint8_t index, scale; /* scale != 0: this register times scale is added to reg + reg_offset */
	int8_t width;         /* bytes of the object's value: 1, 2, 4, negative: signed; 0: 8 */
	int8_t counter_bias;  /* added to what was read: the armed instruction lies behind the change */
};

/* One process; index 0 is never used. */
struct rt_probe_process {
	uint32_t wire_pid; /* 0 = let go: hits are neither counted nor sent */
	uint32_t salt;     /* differs between any two users of this entry: stacks are sent once for each */
	uint64_t code;     /* RT_CODE_MAKE(): its code, for walking stacks; 0: not known, frame pointers have to do */
};

/*
 * The code of a process: entries [first, first + count) of the table of mappings, by address. Whoever walks looks again
 * afterwards: is the number another, those entries may have been somebody else's meanwhile. A generation comes once.
 */
#define RT_CODE_FIRST_BITS 20
#define RT_CODE_COUNT_BITS 12
#define RT_CODE_MAKE(generation, first, count) \
	((uint64_t)(generation) << 32 | (uint64_t)(count) << RT_CODE_FIRST_BITS | (uint64_t)(first))
#define RT_CODE_FIRST(code) ((uint32_t)(code) & ((1u << RT_CODE_FIRST_BITS) - 1))
#define RT_CODE_COUNT(code) ((uint32_t)(code) >> RT_CODE_FIRST_BITS)
#define RT_CODE_GENERATION(code) ((uint32_t)((code) >> 32))

/* One executable mapping. */
struct rt_probe_code {
	uint64_t start, end;  /* [start, end) in the process */
	uint64_t base;        /* where pc 0 of its rows would be there */
	uint32_t row, row_nr; /* entries [row, row + row_nr) of the table of rows (wire/unwind.h); none: not known */
};

/* The points of one system call; 0: there are no more. */
#define RT_PROBE_CALL_POINTS 4
struct rt_probe_call {
	uint32_t point[RT_PROBE_CALL_POINTS];
};

/* Per CPU and point: counters[cpu * points + id]. */
struct rt_probe_count {
	uint64_t hits;    /* times that the operation was seen: events + drops + nulls + unmet */
	uint64_t nulls;   /* object was 0: legal, not sent */
	uint64_t unmet;   /* the condition on the result did not hold: not sent */
	uint64_t ring;    /* dropped: ring full */
	uint64_t busy;    /* dropped: every scratch buffer of the CPU was in use */
	uint64_t faults;  /* object or counter could not be read (sent all the same) */
	uint64_t entries; /* return points: entries that wait, or waited, for their return */
	uint64_t resent;  /* stack sent again: the table of stacks is full */
};

/* Key of the entry that waits for its return. level counts tail calls that share the slot. */
struct rt_pending_key {
	uint64_t pid_tgid;
	uint64_t slot; /* address of the return address */
	uint64_t level;
};

struct rt_pending {
	uint64_t ra; /* what the slot held before the kernel put its trampoline there */
	uint64_t cookie;
	uint64_t object, aux;
	uint32_t count, stack;
	uint16_t flags;  /* RT_EV_* found at entry */
	uint8_t levels;  /* at level 0: how many more levels there are */
	uint8_t drop;    /* not 0: its stack could not be sent */
	uint32_t nested; /* how many such entries the thread was in, this one included */
};

/* Linux hooks no return deeper than this. */
#define RT_PENDING_MAX 64

/*
 * The ring of events: slots of one struct rt_wire_event each, in the order in which they were taken. A slot is empty
 * as long as its first eight bytes are 0; they are written last, and cleared by who has read it. Either counter has a
 * cache line for itself.
 */
struct rt_event_ring {
	uint64_t taken; /* slots taken since the beginning */
	uint64_t pad1[7];
	uint64_t read; /* slots read and cleared */
	uint64_t pad2[7];
};

struct rt_ip_key {
	uint64_t ip;
	uint32_t tgid;
	uint32_t at_return; /* an ENTRY and a RETURN point may share an instruction */
};

#define RT_COPY_MAX 8192 /* bytes of stack that one read may take */

_Static_assert(sizeof(struct rt_probe) == 32, "probe");
_Static_assert(sizeof(struct rt_probe_process) == 16, "process");
_Static_assert(sizeof(struct rt_probe_code) == 32, "code");
_Static_assert(sizeof(struct rt_probe_count) == 64, "one cache line");
