/* SPDX-License-Identifier: GPL-2.0-only */
/* One life of one object, with its ledger, as the analysis works with it; packed.h has the form in which most wait. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LT_LINE = 64,  /* bytes of a cache line */
	LT_RECENT = 8, /* events of a life that are looked back through; a power of two */
};

struct rt_lifetime;

/* One event of a life. */
struct lt_event {
	uint64_t time_ns, slot, sp;
	uint32_t tid, use; /* use: index */
	uint32_t act, up;  /* activations of the site's functions, 0 = not proven */
	int32_t count;     /* as read; INT32_MIN = not read */
	int16_t delta;     /* what it does to the number of references */
	uint8_t op;
	uint8_t flags; /* LT_EV_* */
};

enum {
	LT_EV_POST = 1 << 0,     /* the object was dead */
	LT_EV_TRANSFER = 1 << 1, /* closes one reference and opens one */
	LT_EV_CLOSES = 1 << 2,   /* a free that gives the last reference back */
	LT_EV_GAP = 1 << 3,      /* events before this one are not kept, or were not seen */
	LT_EV_SWAPPED = 1 << 4,  /* made from a swap */
	LT_EV_HIDDEN = 1 << 5,
	LT_EV_RETURN = 1 << 6,
	LT_EV_KEPT = 1 << 7, /* slot is where the reference was seen to be kept (slot.c) */
};

enum lt_life { LT_LIVE, LT_DEAD, LT_LOST };

/* Who did the last operations of a life: ledger[i] at i % LT_RECENT. The ledger itself is mostly not in the cache. */
struct lt_recent {
	uint32_t tid[LT_RECENT];
	uint8_t op[LT_RECENT];
};

/* What the full ledger of a life has lost of one use (spill.h). */
struct lt_spilled {
	uint32_t use, next; /* next: index + 1 of another one of the same life; 0: none */
	bool opens;         /* references that were taken; else those that were put */
	uint64_t n;
};

struct lt_spill {
	struct rt_map first; /* type and serial of a life -> index + 1 in all */
	RT_VEC(struct lt_spilled) all;
};

/* One life of one object. What each event needs are the first two cache lines; the rest is for births, ends and doubt.
 */
struct lt_inc {
	_Alignas(LT_LINE) uint64_t object;
	uint32_t pid, type; /* index of the type */
	int64_t balance;    /* references now, as far as known */
	/* counter.c: what was read, believed or not */
	int64_t due;   /* what the next one should be */
	int32_t born;  /* at birth, INT32_MIN = not read */
	int16_t moved; /* since the last one that was read */
	int16_t fits;  /* steps that agreed less those that did not */
	uint32_t last_tid;
	uint16_t nr, cap; /* events in the ledger */
	struct lt_event *ledger;
	struct lt_watched *watched; /* NULL = it is not */

	struct lt_recent recent;
	uint64_t last_ns;
	uint8_t life;      /* enum lt_life */
	bool counts;       /* due is known */
	bool current;      /* by_object finds it */
	bool known;        /* balance is known */
	bool assumed;      /* but only by the custom that counts start at 1 */
	bool counted;      /* a counter was read */
	bool doubted;      /* since doubt_ns the counter is not what we counted, and silent threads may be why */
	bool has_new;      /* its birth was seen */
	bool incomplete;   /* operations were not seen */
	bool shared;       /* by more than one thread */
	bool soft : 1;     /* dead by the balance only */
	bool disputed : 1; /* and alive by the counter: others had yet to tell what they had done */
	bool floating;     /* its first reference was not sunk */
	bool post;         /* used after its death */
	bool census;       /* a census told of it: epoch, held, nobody */
	bool nobody;       /* and found no pointer */
	bool final_known;  /* final was read */

	struct lt_inc *before; /* the dead object at this address before it, with its ledger; owned */
	uint32_t place;        /* in the row of the living, or of the graves */
	uint16_t before_cap;
	uint16_t klass; /* index + 1 of its class, 0 = none */
	uint64_t serial;
	uint64_t birth_ns, end_ns;
	uint64_t doubt_ns;
	uint64_t final_ns; /* a put read the last reference then, before another thread's put was told; 0 = none did */
	int64_t gap;       /* what the counter knew and we did not */
	int32_t base;      /* references at first sight */
	int32_t start;     /* references that new gave */
	uint32_t folded;   /* events that the ledger lost (spill.h) */
	bool inherited;    /* born before a fork */
	bool attached;     /* its birth was not seen, perhaps because it was before the attach */
	bool unborn;       /* incomplete only because it began without a new, where one was seen before */
	bool freed;
	bool forced;      /* freed with open references */
	bool over;        /* born with 0, and put after its death */
	bool guessed;     /* operations after its death were taken for a part of its last put */
	bool inert;       /* its counter is none, and stays as it is: what is done to the object counts nothing */
	bool shaky;       /* a life before it at its address lacks its birth, its end or operations */
	bool shaped;      /* counted in the model */
	bool slotted;     /* pointers to it were stored since slots were looked at */
	uint8_t within;   /* gets inside the activation of the last put that were not put again */
	uint16_t settled; /* so many events, from the first on, whose slots were looked at for good */
	/* census */
	bool rooted, child;
	bool backwards : 1;   /* pointers that its own parts have to it are among those in lost objects, and all */
	bool untold : 1;      /* lost, by whom is not known: it had more references than can be told apart */
	bool handed_dead : 1; /* a function handed its address out after its end */
	bool rose : 1;        /* a get read 0 after its death, and it was not freed */
	bool returned : 1;    /* the allocator had its memory back: it was freed, and nobody told */
	uint8_t rank;         /* RT_RANK_OF() its last event */
	int16_t astray;       /* what the last step that no race explains was off; 0: by nothing, or too much */
	uint32_t held[5];     /* pointers per enum rt_holder */
	uint32_t epoch;       /* of the process' census that the above tell of */
	int64_t final;        /* the counter at the end */
};

/* Lives in the order in which they came; who leaves, leaves a hole: his neighbours lie far apart in memory. */
struct lt_row {
	struct rt_lifetime *lt;
	uint32_t *lives;     /* as in struct lt_bucket */
	uint32_t first, end; /* of those in use; all others are holes */
	uint32_t nr, room;
};

_Static_assert(sizeof(struct lt_inc) == 4 * LT_LINE, "a life is four cache lines");
_Static_assert(offsetof(struct lt_inc, before) == 2 * LT_LINE, "and its events need two of them");
