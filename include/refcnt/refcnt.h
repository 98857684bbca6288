/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Reference counts that cost nothing until one asks them a question: refcnt(3).
 *
 *     struct conn {
 *             struct refcnt refs;
 *             int fd;
 *     };
 *
 *     REFCNT_DECLARE(conn, struct conn);
 *     static void conn_release(struct conn *c) { close(c->fd); conn_dealloc(c); }
 *     REFCNT_DEFINE(conn, struct conn, refs, conn_release);
 *
 * makes these, static inline; T is struct conn:
 *
 *     T *conn_alloc(void)          zeroed memory with the first reference; NULL without memory
 *     T *conn_alloc_more(size_t)   the same with so many bytes behind it
 *     void *conn_more(T *p)        where those are. Keep that of conn_home(p), which is there as long as the object
 *     T *conn_init(T *p)           the same on memory of one's own
 *     T *conn_get(T *p)            one more reference. p is one that the caller holds
 *     T *conn_get_not_zero(T *p)   the same for an object that nobody may hold any more; NULL then. Its memory must be
 *                                  there still (a lock, RCU)
 *     bool conn_put(T *p)          gives p back; with the last one calls the release function. -> was it the last?
 *     void conn_dealloc(T *p)      what alloc took; in the release function, of an object that alloc made
 *     uint32_t conn_count(p)       for a look: another thread may change it at once
 *     T *conn_steal(T **from)      hands the reference over; *from is NULL then. Not atomic, nor is
 *     void conn_swap(T **a, T **b)
 *     bool conn_same(a, b)         two references to one object? Where handles are, == says no; refcnt_same(conn, a, b)
 *     T *conn_home(T *p)           one address for all holders, valid as long as the object lives: for intrusive lists
 *                                  and keys. No reference of its own: not to be put
 *     T *conn_get_tracked(), conn_put_tracked()   refcnt/tracker.h
 *
 * What alloc, init, get and get_not_zero return is the reference: use it, not p, and put it. In plain mode it is p.
 *
 *     REFCNT_SCOPED(conn) struct conn *c = conn_get(shared);    put at the end of the block, unless c is NULL then
 *
 * Threads, memory order, overflow: refcnt/count.h. Modes: refcnt/mode.h. Questions: refcnt/holder.h. C11, C++17, gcc
 * and clang.
 *
 * -DREFCNT_SHOW_COUNTS, in plain mode, adds markers of a provider of their own, refcnt_count, with the count before the
 * operation. They are guarded by a semaphore: a load and a branch where nobody looks. To be declared once in each
 * program or library: REFCNT_SHOWN_COUNTS;
 */
#ifndef REFCNT_REFCNT_H
#define REFCNT_REFCNT_H

#include "mode.h"

#include "count.h"
#include "define.h"
#include "field.h"
#include "guarded.h"
#include "holder.h"
#include "tracker.h"

/* Before a release function that uses dealloc. */
#define REFCNT_DECLARE(name, type) \
	REFCNT_INLINE void name##_dealloc(type *p); \
	struct refcnt

#define REFCNT_DEFINE(name, type, member, release) \
	REFCNT_DEFINE_MODE_(name, type, member, release) REFCNT_DEFINE_COMMON_(name, type)

#define REFCNT_SCOPED(name) __attribute__((__cleanup__(name##_put_at)))

#define refcnt_same(name, a, b) name##_same(a, b)

#endif
