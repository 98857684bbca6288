/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What is known of each object: its operations in order. Objects are found by address, in shards with a lock each; a
 * count is changed under that lock, so that the log and the count say the same.
 *
 * Memory: an object's log is folded when it is full. Pairs of a get and the put that gave it back go first, the oldest
 * half of them; open references are kept up to RC_LOG_MOST, beyond that they are counted only. Dead objects are
 * remembered, RC_DEAD a shard, for what is done to them afterwards. Where REFCNT_MEMORY is reached, new objects are not
 * kept, and the report says how many.
 */
#ifndef RC_LEDGER_H
#define RC_LEDGER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "refcnt/lib.h"

#include "memory.h"

#define RC_SHARDS 128
#define RC_LOG_FIRST 8
#define RC_LOG_FOLD 64 /* from here on a full log is folded before it grows */
#define RC_LOG_MOST 4096
#define RC_DEAD 64

enum rc_kind { RC_NEW, RC_GET, RC_PUT };

struct rc_op {
	uint64_t key; /* which reference: handle, alias, cookie; 0 where nothing says */
	const struct refcnt_dir *dir;
	uint32_t stack;
	uint32_t tid;
	uint32_t count;      /* after it */
	uint16_t generation; /* of forks */
	uint8_t kind;
	uint8_t closed; /* a get that was given back, or the put that did it */
};

struct rc_object {
	struct rc_object *next; /* in its bucket */
	uintptr_t address;      /* of its counter */
	const void *object;
	const char *cls; /* its name, kept (class.h) */
	struct rc_op *ops;
	uint64_t id; /* in the order of making */
	uint32_t n, room;
	uint32_t expected;  /* count by what was seen */
	uint32_t folded;    /* operations that are in the log no more */
	uint32_t uncounted; /* open references among them */
	uint32_t without_cookie;
	bool dead;
	bool accused; /* one report of a count that others changed is enough */
};

struct rc_shard {
	pthread_mutex_t lock;
	struct rc_object **buckets;
	size_t n_buckets, n_objects;
	struct rc_pool pool;
	struct rc_object *dead[RC_DEAD];
	unsigned next_dead;
} __attribute__((aligned(64)));

/* What an operation is done with; stack is taken before the lock. */
struct rc_call {
	struct refcnt_class *cls;
	struct refcnt *r;
	const void *object;
	uint64_t key;
	const struct refcnt_dir *dir;
	uint32_t stack;
	bool wants_cookie; /* mode tracker: one without is counted */
	bool at_home;      /* no key, where references have one if they can (alias.h) */
};

#define RC_EMPTY_COOKIE UINT64_MAX /* as a key: of a cookie with which nothing was taken */

enum rc_outcome { RC_DONE, RC_LAST, RC_REFUSED };

void rc_ledger_init(void);
/* Called between rc_thread_enter() and rc_thread_leave(). Each locks, changes the count, notes the operation, and
 * reports at once what is wrong with it. */
void rc_ledger_new(const struct rc_call *c);
enum rc_outcome rc_ledger_get(const struct rc_call *c, bool not_zero);
enum rc_outcome rc_ledger_put(const struct rc_call *c);
/* The object's memory goes: it should be dead. */
void rc_ledger_free(const struct rc_call *c);

/* With the object's shard locked; unlock with rc_ledger_unlock(). NULL when it is not known, nothing is locked then. */
struct rc_object *rc_ledger_find(const void *object);
void rc_ledger_unlock(const struct rc_object *o);

/* Calls fn for each object, its shard locked. Where that may not wait (an exit out of a signal handler), a shard that
 * is locked is left out. -> was none left out? */
bool rc_ledger_each(bool waits, void (*fn)(struct rc_object *o, void *arg), void *arg);
/* Pairs puts with gets where nothing else did; the lock is held. */
void rc_ledger_match(struct rc_object *o);
/* What dead objects show of which put is for which get is looked at in later matches. waits: as above. */
void rc_ledger_learn(bool waits);
/* The open get without a key, among the first operations, that this put gives back; NULL when there is none. */
struct rc_op *rc_ledger_likeliest(struct rc_object *o, const struct rc_op *put, uint32_t before);
/* For an open get: stacks of the closed ones that one of its puts may as well have been for. -> how many, at most room
 */
unsigned rc_ledger_rivals(const struct rc_object *o, const struct rc_op *get, uint32_t *ret_stacks, unsigned room);

/* Counted, not kept: for want of memory; in a signal handler that came into the library */
extern uint64_t rc_unkept, rc_unseen;
extern uint16_t rc_generation;

void rc_ledger_lock_all(void);
void rc_ledger_unlock_all(void);
/* In a forked child, whose one thread holds all locks. */
void rc_ledger_forked(void);

#endif
