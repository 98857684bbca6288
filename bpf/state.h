/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Maps and per-hit state of engine K. All maps are made by user space's loader;
 * sizes written here are placeholders that the loader replaces.
 *
 * A uprobe program may be preempted by another thread on the same CPU that
 * runs the same program. So nothing per CPU is taken for granted: counters are
 * added to atomically, and the scratch buffers (a stack copy does not fit on
 * the BPF stack) are claimed one by one.
 */
#pragma once

#include "kernel_types.h"

#include <bpf/bpf_helpers.h>

#include "wire/event.h"
#include "wire/probe.h"
#include "wire/unwind.h"

#define SCRATCH_PER_CPU 4
#define TOPS 64
#define RECENT 256    /* a power of two */
#define RULES 2048    /* a power of two */
#define MEMOS 64      /* a power of two */
#define MEMO_STEPS 32 /* a power of two */

/* Set before loading: the verifier sees them as constants. */
const volatile uint32_t rt_stack_bytes = 4096;
const volatile uint32_t rt_frames = 16;
const volatile uint32_t rt_by_rows = 1; /* 0: a kernel whose verifier does not take rows.h */
const volatile uint32_t rt_points = 1;
const volatile uint32_t rt_slots = 1;        /* a power of two */
const volatile uint32_t rt_slots_free = 0;   /* never taken, see slot_take() */
const volatile uint32_t rt_sample_sets = 0;  /* a power of two; 0: every object is traced */
const volatile uint32_t rt_sample_ranks = 0; /* the rate may change: events say the rank of their objects */

/* Not 0: nothing is sent, what happens is counted by object and by stack. */
uint32_t rt_counting = 0;

/* Of 2^32 (wire/event.h). */
uint32_t rt_sample_rate = 0;

/* Set once the first return point is armed: stacks may hold return trampolines. */
uint32_t rt_returns = 0;

/* Ids of stacks count from 1. */
uint32_t rt_next_stack = 1;

/* A stack that was sent. */
struct recent {
	uint64_t hash;
	uint32_t id; /* 0 = none */
	uint32_t pad;
};

/* The unwind rule of one place. */
struct known_rule {
	uint64_t pc;
	uint32_t generation; /* of the code that pc is an address in; 0 = none */
	uint32_t rule;
};

/* One step of a walk: what it read. Places are offsets from the hit's sp, and so in the copy. */
struct memo_step {
	uint64_t ra;    /* return address */
	uint32_t at;    /* its place */
	uint32_t bp_at; /* place of the rbp that the frame hangs on, MEMO_REGISTER, or MEMO_NONE */
	uint32_t bp;    /* what that rbp was, as an offset from sp */
	uint32_t pad;
};
#define MEMO_NONE 0xffffffff
#define MEMO_REGISTER 0xfffffffe

/* A whole walk: reads the next one the same, it comes to the same stack. */
struct memo {
	uint64_t ip, who, how; /* whose, and by which kind of point */
	uint32_t generation;
	uint32_t id; /* of the stack, 0: none is here */
	uint32_t nr, used;
	struct memo_step step[MEMO_STEPS];
};

struct scratch {
	uint32_t busy;
	uint32_t copied; /* bytes of copy that are valid */
	uint64_t base;   /* user address of copy[0] */
	/* what is sent: head and frames of a struct rt_wire_stack */
	struct rt_wire_head head;
	uint32_t id;
	uint16_t nr;
	uint16_t end;
	struct rt_wire_frame frame[RT_STACK_MAX];
	uint8_t copy[RT_COPY_MAX + 16];
	/* what the map of stacks said last, by hash: nobody else is in here, so that a look costs no call */
	struct recent recent[RECENT];
	/* and what the tables of mappings and rows said: as many as a program's hot places and more */
	struct known_rule rule[RULES];
	struct memo memo[MEMOS];
};

struct cpu {
	uint32_t seq;
	uint32_t span;       /* bytes of stack that the walks of late needed; a guess, and anybody's */
	uint64_t tops[TOPS]; /* tid << 36 | number of the first page above the thread's stack that cannot be read */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct rt_probe);
} points SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct rt_probe_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct rt_probe_count);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct rt_probe_code);
} mappings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct rt_unwind_row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct rt_sample_set);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct rt_tally_key);
	__type(value, struct rt_tally);
} tallies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct rt_site_key);
	__type(value, uint64_t);
} sites SEC(".maps");

/* Zeroes: a new tally does not fit on the stack. Nobody writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct rt_tally);
} blank SEC(".maps");

/*
 * Events go into a ring of our own: an atomic addition and a store, where the
 * kernel's takes a lock and two calls. Stacks, of any size and rare, use the
 * kernel's; a stack is there before the slot of the first event that names it is taken.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct rt_wire_event);
} slots SEC(".maps");

struct rt_event_ring event_ring __attribute__((aligned(64)));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} stack_ring SEC(".maps");

/* Hash of (process, frames) -> stack id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, uint64_t);
	__type(value, uint32_t);
} stacks SEC(".maps");

/* Least recently used ones go first: what longjmp() or a dead thread left behind. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct rt_pending_key);
	__type(value, struct rt_pending);
} pendings SEC(".maps");

/* Thread (pid_tgid) -> entries of return points that it is in. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, uint64_t);
	__type(value, uint32_t);
} nesting SEC(".maps");

/* tracefs path, which knows no cookies: (tgid, ip) -> cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct rt_ip_key);
	__type(value, uint64_t);
} ips SEC(".maps");

enum { DROP_NONE, DROP_RING, DROP_BUSY };

/* One hit, while it is looked at. */
struct hit {
	const struct rt_probe *probe;
	const struct rt_probe_process *process;
	struct rt_probe_count *count;
	struct cpu *cpu;
	uint64_t cookie, pid_tgid;
	uint64_t object, aux, sp;
	uint64_t time_ns; /* 0: the event's is that of its sending */
	uint32_t wire_pid, salt, cpu_id;
	uint32_t counter, stack;
	uint16_t flags;
	uint8_t drop; /* DROP_* */
};

#define add(field, n) __sync_fetch_and_add(&(field), (n))

static __always_inline void count_drop(struct hit *h, uint32_t drop)
{
	if (drop == DROP_BUSY)
		add(h->count->busy, 1);
	else
		add(h->count->ring, 1);
}

/* false: the numbers make no sense. h->wire_pid == 0: the process was let go. */
static __always_inline bool hit_init(struct hit *h, uint64_t cookie)
{
	uint32_t point = RT_COOKIE_POINT(cookie), process = RT_COOKIE_PROCESS(cookie), i;
	struct rt_probe_process *p;

	p = bpf_map_lookup_elem(&processes, &process);
	if (!p || point >= rt_points)
		return false;
	h->process = p;
	h->wire_pid = p->wire_pid;
	h->salt = p->salt;
	h->probe = bpf_map_lookup_elem(&points, &point);
	h->cpu_id = bpf_get_smp_processor_id();
	h->cpu = bpf_map_lookup_elem(&cpus, &h->cpu_id);
	i = h->cpu_id * rt_points + point;
	h->count = bpf_map_lookup_elem(&counts, &i);
	h->pid_tgid = bpf_get_current_pid_tgid();
	h->cookie = cookie;
	return h->probe && h->cpu && h->count;
}

static __always_inline uint32_t next_seq(struct hit *h)
{
	return h->cpu_id << RT_SEQ_BITS | (add(h->cpu->seq, 1) & RT_SEQ_MASK);
}

/*
 * The next free slot, or NULL. Whoever was interrupted between look and addition
 * takes one too many: some always stay free, more than threads can be between the two at once.
 */
static __always_inline struct rt_wire_event *slot_take(void)
{
	uint64_t read = *(volatile uint64_t *)&event_ring.read;
	uint32_t i;

	if (*(volatile uint64_t *)&event_ring.taken - read >= rt_slots - rt_slots_free)
		return NULL;
	i = add(event_ring.taken, 1) & (rt_slots - 1);
	return bpf_map_lookup_elem(&slots, &i);
}

/* What is in e is whole but for its first eight bytes: the reader takes it once they are there. Stores of x86 stay in
 * order. */
static __always_inline void slot_give(struct rt_wire_event *e, uint8_t op, uint32_t seq)
{
	barrier();
	*(volatile uint64_t *)&e->head = sizeof(*e) | RT_WIRE_EVENT << 16 | (uint32_t)op << 24 | (uint64_t)seq << 32;
}

/* A scratch buffer of this CPU that nobody uses, or NULL. */
static __always_inline struct scratch *scratch_take(uint32_t cpu)
{
	struct scratch *s;
	uint32_t i, n;

	for (n = 0; n < SCRATCH_PER_CPU; n++) {
		i = cpu * SCRATCH_PER_CPU + n;
		s = bpf_map_lookup_elem(&scratches, &i);
		if (!s)
			return NULL;
		if (!__sync_lock_test_and_set(&s->busy, 1))
			return s;
	}
	return NULL;
}

static __always_inline void scratch_put(struct scratch *s)
{
	*(volatile uint32_t *)&s->busy = 0;
}
