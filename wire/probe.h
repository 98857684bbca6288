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
	RT_PROBE_SITE = 1 << 0,    /* armed inside a function: frame 0 is the instruction itself */
	RT_PROBE_SLOT = 1 << 1,    /* aux is the address that the last load read (T **) */
	RT_PROBE_RETURN = 1 << 2,  /* the event is the return of the function that is entered here (agent) */
	RT_PROBE_SIZE = 1 << 3,    /* of a system call: register index says how many bytes the object has */
	RT_PROBE_TO = 1 << 4,      /* or which is the last one that is meant */
	RT_PROBE_MATCH = 1 << 5,   /* of a system call: only where register scale holds counter_offset */
	RT_PROBE_MESSAGE = 1 << 7, /* of a system call: descriptors that came with messages; reg says where those are */
	RT_PROBE_SAMPLED = 1 << 6, /* only where the object's life is in the sample */
};

/* What becomes of the slots in a block (agent): they are told with what they hold, or all that is over. */
enum rt_probe_look { RT_LOOK_NONE = 0, RT_LOOK_TELL = 1, RT_LOOK_FORGET = 2 };

/* What a free() will tell of (agent). */
enum rt_probe_marks {
	RT_MARKS_SLOT = 1 << 0,   /* aux is where a pointer to the object is stored here, or was just before */
	RT_MARKS_OBJECT = 1 << 1, /* the object itself */
};

/* Where the object of a return point comes from. */
enum rt_probe_result {
	RT_PROBE_AT_ENTRY = 0, /* as read at entry */
	RT_PROBE_RESULT = 1,   /* the result register */
	RT_PROBE_RESULT_PTR = 2,
	RT_PROBE_OUT = 3, /* loaded at return from the address that was found at entry */
};

/* Of a result, for which alone the operation counts. */
enum rt_condition { RT_IF_ALWAYS, RT_IF_NONZERO, RT_IF_ZERO, RT_IF_POSITIVE, RT_IF_NEGATIVE, RT_IF_NOT_NEGATIVE };

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
	uint8_t condition;    /* enum rt_condition on the result */
	uint8_t result_size;  /* bytes of the result that the condition looks at */
	uint8_t index, scale; /* scale != 0: this register times scale is added to reg + reg_offset; RT_PROBE_MESSAGE:
				 index is the bytes from one message to the next, 0: there is one */
	int8_t width;         /* bytes of the object's value: 1, 2, 4, negative: signed; 0: 8 */
	int8_t counter_bias;  /* added to what was read: the armed instruction lies behind the change */
	uint32_t type;        /* of the object */
	int32_t start;        /* references that its new gives */
	uint8_t stored;       /* not 0: the object is in this register (its number + 1), and stored where it would be */
	uint8_t look;         /* enum rt_probe_look: the register has a block that is freed, or given another size */
	uint8_t marks;        /* enum rt_probe_marks */
	uint8_t pad0[1];
	uint32_t class_at; /* aux is the word that many bytes less 1 behind the object: it tells its class; 0: not */
	uint32_t pad[4];   /* one cache line: its place is a shift */
};

/* A value that is narrower than a register or a read: width as in struct rt_probe. */
static inline __attribute__((always_inline)) uint64_t rt_probe_narrow(uint64_t v, int8_t width)
{
	switch (width) {
	case 1:
		return (uint8_t)v;
	case 2:
		return (uint16_t)v;
	case 4:
		return (uint32_t)v;
	case -1:
		return (uint64_t)(int8_t)v;
	case -2:
		return (uint64_t)(int16_t)v;
	case -4:
		return (uint64_t)(int32_t)v;
	}
	return v;
}

/* Not 0: with this result the operation counts. */
static inline __attribute__((always_inline)) int rt_probe_holds(const struct rt_probe *p, uint64_t result)
{
	int64_t v = (int64_t)result;

	if (p->result_size == 1)
		v = (int8_t)result;
	else if (p->result_size == 2)
		v = (int16_t)result;
	else if (p->result_size == 4)
		v = (int32_t)result;
	switch (p->condition) {
	case RT_IF_NONZERO:
		return v != 0;
	case RT_IF_ZERO:
		return v == 0;
	case RT_IF_POSITIVE:
		return v > 0;
	case RT_IF_NEGATIVE:
		return v < 0;
	case RT_IF_NOT_NEGATIVE:
		return v >= 0;
	}
	return 1;
}

/*
 * Of a return point, not 0: its counter is read at the return, beside the event's time. The other is read at entry:
 * what is given back there may be somebody else's memory by the time of the return.
 */
static inline __attribute__((always_inline)) int rt_probe_counts_late(const struct rt_probe *p)
{
	return p->result != RT_PROBE_AT_ENTRY || p->delta > 0;
}

/*
 * Sampling by whole lives. A life is in the sample or not by a hash of its type, its address and how many lives have
 * ended at that address before, as far as that was seen (RT_OP_FREE). An object whose birth nobody saw, or whose
 * address has no room in the table, is told by what is known of the address: nothing has ended there. So no operation
 * on a life is ever told without all the others.
 *
 * An address has an entry once something ended there. What is done to it between that end and the next birth is
 * either done to a dead object, or by the constructor of the next one before it returns: it is told if either is in the
 * sample. What a constructor did whose object is not is taken back by its new, with RT_EV_OUTSIDE.
 */
#define RT_SAMPLE_WAYS 8

/* One of a power of two. 0: free. A word holds RT_LIFE_* and, in the bits above, what of the key is kept. */
struct rt_sample_set {
	uint64_t word[RT_SAMPLE_WAYS];
};

#define RT_LIFE_ENDED 0xffull     /* lives that have ended here, modulo 256 */
#define RT_LIFE_DEAD (1ull << 8)  /* no birth since */
#define RT_LIFE_BEGUN (1ull << 9) /* but somebody took a reference: a constructor, most likely */
#define RT_LIFE_TOLD (1ull << 10) /* and was told, because the dead one is in the sample */
#define RT_LIFE_USED (1ull << 11) /* not 0 */
#define RT_LIFE_STATE ((1ull << 12) - 1)

static inline __attribute__((always_inline)) uint64_t rt_sample_mix(uint64_t v)
{
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
	v = (v ^ v >> 27) * 0x94d049bb133111ebull;
	return v ^ v >> 31;
}

/* Of an address: low bits choose its set. salt: differs between processes that share a table. */
static inline __attribute__((always_inline)) uint64_t rt_sample_key(uint32_t salt, uint32_t type, uint64_t object)
{
	return rt_sample_mix(object ^ (uint64_t)type << 48 ^ (uint64_t)salt * 0x9e3779b97f4a7c15ull);
}

/* Of a life: evenly spread. */
static inline __attribute__((always_inline)) uint32_t rt_sample_hash(uint32_t type, uint64_t object, uint64_t ended)
{
	return (uint32_t)(rt_sample_mix(object ^ (uint64_t)type << 48 ^ (ended & RT_LIFE_ENDED) << 56) >> 32);
}

/* rate: of 2^32; 0 = all */
static inline __attribute__((always_inline)) int rt_sample_has(uint32_t hash, uint32_t rate)
{
	return !rate || hash < rate;
}

/* How many zeros a hash begins with, as RT_RANK_OF() tells it. */
static inline __attribute__((always_inline)) uint16_t rt_sample_rank(uint32_t hash)
{
	uint32_t rank = 0;

	_Static_assert(RT_RANK_MAX == 15, "8 + 4 + 2 + 1");
	for (uint32_t step = 8; step; step /= 2) {
		if (hash >> (32 - step))
			continue;
		rank += step;
		hash <<= step;
	}
	return (uint16_t)(rank << RT_RANK_SHIFT);
}

/* The entry of this key, or -1. */
static inline __attribute__((always_inline)) int rt_sample_find(const struct rt_sample_set *set, uint64_t key)
{
	for (int i = 0; i < RT_SAMPLE_WAYS; i++) {
		uint64_t word = *(const volatile uint64_t *)&set->word[i];

		if (word && !((word ^ key) & ~RT_LIFE_STATE))
			return i;
	}
	return -1;
}

/* Takes a free place. 0: it was none. */
static inline __attribute__((always_inline)) int rt_sample_take(uint64_t *word, uint64_t value)
{
	return !*(volatile uint64_t *)word && !__sync_val_compare_and_swap(word, 0, value);
}

/*
 * Something ends at an address at which nothing has ended yet. Where the set is full, no more is known of it later.
 * No loop: clang lets one fall into its own head, which the verifiers up to Linux 6.1 refuse.
 */
static inline __attribute__((always_inline)) void rt_sample_enter(struct rt_sample_set *set, uint64_t key)
{
	uint64_t value = (key & ~RT_LIFE_STATE) | RT_LIFE_USED | RT_LIFE_DEAD, *w = set->word;

	_Static_assert(RT_SAMPLE_WAYS == 8, "each of them below");
	(void)(rt_sample_take(w, value) || rt_sample_take(w + 1, value) || rt_sample_take(w + 2, value) ||
	       rt_sample_take(w + 3, value) || rt_sample_take(w + 4, value) || rt_sample_take(w + 5, value) ||
	       rt_sample_take(w + 6, value) || rt_sample_take(w + 7, value));
}

/* What a hit is to the sample. */
enum rt_sample_answer { RT_SAMPLE_PASS, RT_SAMPLE_TELL, RT_SAMPLE_TELL_OUTSIDE };

/*
 * What becomes of an operation on an object, and what it changes. *ret_hash: of the life that it is told of. Threads
 * that come to one entry at once work on one object: what they change of it is the same.
 */
static inline __attribute__((always_inline)) enum rt_sample_answer rt_sample(struct rt_sample_set *set, uint64_t key,
									     const struct rt_probe *p, uint64_t object,
									     uint32_t rate, uint32_t *ret_hash)
{
	int at = rt_sample_find(set, key);
	uint64_t was = at < 0 ? RT_LIFE_USED : *(volatile uint64_t *)&set->word[at & (RT_SAMPLE_WAYS - 1)];
	uint32_t this = rt_sample_hash(p->type, object, was), next;
	int here = rt_sample_has(this, rate), tell = here;
	uint64_t now = was;

	*ret_hash = this;
	if (at < 0) {
		if (p->op == RT_OP_FREE)
			rt_sample_enter(set, key);
		return here ? RT_SAMPLE_TELL : RT_SAMPLE_PASS;
	}
	if (was & RT_LIFE_DEAD) {
		next = rt_sample_hash(p->type, object, was + 1);
		if (p->op == RT_OP_NEW) {
			now = (was & ~(RT_LIFE_STATE & ~RT_LIFE_USED)) | ((was + 1) & RT_LIFE_ENDED);
			*ret_hash = next;
			tell = rt_sample_has(next, rate);
			if (!tell && was & RT_LIFE_TOLD) {
				*(volatile uint64_t *)&set->word[at & (RT_SAMPLE_WAYS - 1)] = now;
				return RT_SAMPLE_TELL_OUTSIDE;
			}
		} else if (p->op == RT_OP_FREE) {
			if (was & RT_LIFE_BEGUN) {
				/* it began and ended unseen */
				tell = here || rt_sample_has(next, rate);
				if (!here)
					*ret_hash = next;
				now = (was & ~(RT_LIFE_STATE & ~RT_LIFE_USED)) | ((was + 1) & RT_LIFE_ENDED) |
				      RT_LIFE_DEAD;
			}
		} else if (was & RT_LIFE_BEGUN || p->delta > 0) {
			if (!here && rt_sample_has(next, rate)) {
				tell = 1;
				*ret_hash = next;
			}
			now = was | RT_LIFE_BEGUN | (here ? RT_LIFE_TOLD : 0);
		}
	} else if (p->op == RT_OP_FREE) {
		now = was | RT_LIFE_DEAD;
	}
	if (now != was)
		*(volatile uint64_t *)&set->word[at & (RT_SAMPLE_WAYS - 1)] = now;
	return tell ? RT_SAMPLE_TELL : RT_SAMPLE_PASS;
}

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
	uint64_t hits;    /* times that the operation was seen: events + drops + unmet + passed */
	uint64_t unmet;   /* object was 0, or the condition on the result did not hold: legal, not sent */
	uint64_t passed;  /* the object is not in the sample: not sent */
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
	uint64_t lifted; /* not 0: the slot has ra again, for an unwinder, and had this; with RT_PENDING_FORCED */
};
#define RT_PENDING_FORCED 1 /* the unwinder will end the thread; trampolines start a page */

/* Counting mode: what was done to one object since its birth, or since it was last balanced. */
#define RT_TALLY_SITES 24
struct rt_tally_key {
	uint64_t object;
	uint32_t process; /* entry of the table of processes */
	uint32_t type;
};
struct rt_tally {
	uint64_t first_ns, last_ns;
	int64_t balance;
	uint32_t news, gets, puts, others; /* others: from stacks that there was no room for */
	uint64_t site[RT_TALLY_SITES];     /* stack << 32 | point; 0: free */
	uint32_t n[RT_TALLY_SITES];
};

/* And from one stack to any object. */
struct rt_site_key {
	uint32_t process, stack, point, what; /* RT_SITE_* */
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

_Static_assert(sizeof(struct rt_probe) == 64, "one cache line");
_Static_assert(sizeof(struct rt_sample_set) == 64, "one cache line");
_Static_assert(sizeof(struct rt_probe_process) == 16, "process");
_Static_assert(sizeof(struct rt_probe_code) == 32, "code");
_Static_assert(sizeof(struct rt_probe_count) == 64, "one cache line");
