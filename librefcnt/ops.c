/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the typed functions call. Each takes its caller's stack itself: none may become a tail call. */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>

#include "alias.h"
#include "class.h"
#include "interrupt.h"
#include "ledger.h"
#include "life.h"
#include "option.h"
#include "refcnt/holder.h"
#include "refcnt/tracker.h"
#include "report.h"
#include "runtime.h"
#include "stack.h"
#include "thread.h"

enum state { STATE_UNKNOWN, STATE_PLAIN, STATE_TRACKED };

static enum state decide(struct refcnt_class *cls)
{
	int error = errno;
	const char *glob;
	bool tracked;

	rc_init();
	glob = rc_option()->classes;
	tracked = (cls->mode != REFCNT_SHARED || refcnt_runtime_mode() == REFCNT_TRACKING) &&
		  (!*glob || !fnmatch(glob, cls->name, 0));
	__atomic_store_n(&cls->kept, rc_class_keep(cls->name), __ATOMIC_RELAXED);
	__atomic_store_n(&cls->state, tracked ? STATE_TRACKED : STATE_PLAIN, __ATOMIC_RELEASE);
	errno = error;
	return tracked ? STATE_TRACKED : STATE_PLAIN;
}

enum way { WAY_PLAIN, WAY_TRACKED, WAY_INTERRUPTED };

/* WAY_TRACKED ends with rc_thread_leave(). */
static inline enum way enter(struct refcnt_class *cls)
{
	enum state state = (enum state)__atomic_load_n(&cls->state, __ATOMIC_ACQUIRE);

	if (state == STATE_PLAIN)
		return WAY_PLAIN;
	if (rc_thread_is_interrupted())
		return WAY_INTERRUPTED;
	rc_thread_enter();
	if (!state && decide(cls) == STATE_PLAIN) {
		rc_thread_leave();
		return WAY_PLAIN;
	}
	if (!rc_thread.tid)
		rc_thread_learn();
	return WAY_TRACKED;
}

/* ThreadSanitizer does not see the atomics of a library that is not built with it; where it is there, it is told.
 * (Under the ledger's locks it sees the locks.)
 */
void __tsan_acquire(void *address) __attribute__((weak));
void __tsan_release(void *address) __attribute__((weak));

static bool put_untracked(struct refcnt *r)
{
	bool last;

	if (__tsan_release)
		__tsan_release(r);
	last = refcnt_count_less(r);
	if (last && __tsan_acquire)
		__tsan_acquire(r);
	return last;
}

static uint64_t next_cookie(void)
{
	static uint64_t last;

	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static void say_tracked_only(struct refcnt_class *cls, const char *why)
{
	static const struct refcnt_class *said[64];

	for (unsigned i = 0; i < sizeof(said) / sizeof(*said); i++) {
		const struct refcnt_class *none = NULL;

		if (__atomic_load_n(&said[i], __ATOMIC_RELAXED) == cls)
			return;
		if (!__atomic_compare_exchange_n(&said[i], &none, cls, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		rc_report_note("%s has no handles, it is tracked only: %s", cls->name, why);
		return;
	}
}

void *refcnt_lib_alloc(struct refcnt_class *cls, size_t offset, size_t extra)
{
	size_t size = cls->size + extra;
	struct rc_call c = { .cls = cls };
	char *home = NULL, *p;
	enum way way;

	if (size < extra || size > PTRDIFF_MAX) {
		errno = ENOMEM;
		return NULL;
	}
	way = enter(cls);
	if (way == WAY_INTERRUPTED)
		return rc_interrupt_alloc(size, offset);
	if (way == WAY_PLAIN) {
		p = calloc(1, size);
		if (p)
			refcnt_count_init((struct refcnt *)(p + offset));
		return p;
	}
	c.stack = RC_CAPTURE();
	if (cls->mode == REFCNT_ALIAS)
		home = rc_alias_make(size, offset);
	if (home)
		p = rc_alias_take(cls, home, c.stack);
	else
		p = home = calloc(1, size);
	if (p) {
		c.r = (struct refcnt *)(home + offset);
		c.object = home;
		c.key = p == home ? 0 : (uintptr_t)p;
		if (cls->mode == REFCNT_CHECKED)
			say_tracked_only(cls, "REFCNT_STRUCT tells no fields of it");
		rc_ledger_new(&c);
	}
	rc_thread_leave();
	return p;
}

void *refcnt_lib_init(struct refcnt_class *cls, struct refcnt *r, void *p)
{
	enum way way = enter(cls);
	struct rc_call c = { .cls = cls };
	struct rc_place at;

	if (way == WAY_INTERRUPTED)
		rc_interrupt_init(r);
	else if (way == WAY_PLAIN)
		refcnt_count_init(r);
	if (way != WAY_TRACKED)
		return p;
	c.stack = RC_CAPTURE();
	at = rc_alias_place(r, p);
	c.r = at.counter;
	c.object = at.object;
	if (at.alias && !rc_alias_is_live(at.alias))
		rc_report_alias(at.alias, p, "USE AFTER PUT", "an object begins in what was given back", c.stack);
	if (cls->mode == REFCNT_ALIAS || cls->mode == REFCNT_CHECKED)
		say_tracked_only(cls, "its objects are in memory of the program's (init); alloc makes them");
	rc_ledger_new(&c);
	rc_thread_leave();
	return at.object;
}

void refcnt_lib_dealloc(struct refcnt_class *cls, struct refcnt *r, void *p)
{
	enum way way = enter(cls);
	struct rc_call c = { .cls = cls };
	struct rc_place at;

	if (way == WAY_INTERRUPTED) {
		rc_interrupt_free(p);
		return;
	}
	if (way == WAY_PLAIN) {
		free(p);
		return;
	}
	c.stack = RC_CAPTURE();
	at = rc_alias_place(r, p); /* by a handle: that is a fault, and is said to be */
	c.r = at.counter;
	c.object = at.object;
	rc_ledger_free(&c);
	if (at.whole)
		rc_alias_free(at.object);
	else if (rc_alias_has(p))
		rc_report_note("dealloc of %s at %p has no effect: it lies in another object", cls->name, p);
	rc_thread_leave();
	if (!rc_alias_has(p))
		free(p);
}

static uint64_t key_of(const struct refcnt_tracker *cookie)
{
	return cookie->id ? cookie->id : RC_EMPTY_COOKIE;
}

/* Of an object that has handles: of this one, if there can be one more. -> the pointer of the new reference */
static char *take_alias(struct rc_call *c, const struct rc_place *at)
{
	char *p = rc_alias_take(c->cls, at->object, c->stack);

	if (p != at->object)
		c->key = (uintptr_t)p;
	return p;
}

void *refcnt_lib_get(struct refcnt_class *cls, struct refcnt *r, void *p, struct refcnt_dir *dir,
		     struct refcnt_tracker *cookie)
{
	enum way way = enter(cls);
	struct rc_call c = { .cls = cls, .dir = dir };
	struct rc_place at;

	if (way == WAY_INTERRUPTED)
		return rc_interrupt_get(r, p, false);
	if (way == WAY_PLAIN) {
		(void)refcnt_count_more(r);
		return p;
	}
	c.stack = RC_CAPTURE();
	at = rc_alias_place(r, p);
	c.r = at.counter;
	c.object = at.object;
	if (at.alias && !rc_alias_is_live(at.alias)) {
		rc_report_alias(at.alias, p, "USE AFTER PUT", "a get through what was given back", c.stack);
	} else {
		p = at.whole ? take_alias(&c, &at) : at.object;
		if (!c.key && cookie)
			c.key = cookie->id = next_cookie();
		c.wants_cookie = cls->mode == REFCNT_TRACKER && !cookie;
		(void)rc_ledger_get(&c, false);
	}
	rc_thread_leave();
	return p;
}

void *refcnt_lib_get_not_zero(struct refcnt_class *cls, struct refcnt *r, void *p)
{
	enum way way = enter(cls);
	struct rc_call c = { .cls = cls, .wants_cookie = cls->mode == REFCNT_TRACKER };
	struct rc_place at;
	struct rc_alias *a;
	char *mine = NULL;

	if (way == WAY_INTERRUPTED)
		return rc_interrupt_get(r, p, true);
	if (way == WAY_PLAIN)
		return refcnt_count_more_not_zero(r) ? p : NULL;
	c.stack = RC_CAPTURE();
	at = rc_alias_place(r, p);
	c.r = at.counter;
	c.object = at.object;
	if (!at.alias || rc_alias_is_live(at.alias)) {
		mine = at.whole ? take_alias(&c, &at) : at.object;
		if (rc_ledger_get(&c, true) != RC_DONE) {
			a = c.key ? rc_alias_of(mine) : NULL;
			if (a && rc_alias_give(a, c.stack))
				rc_alias_unmap(a);
			mine = NULL;
		}
	}
	rc_thread_leave();
	return mine;
}

static void *put_alias(struct rc_call *c, const struct rc_place *at, const void *p)
{
	enum rc_outcome outcome;

	if (!rc_alias_give(at->alias, c->stack)) {
		rc_report_alias(at->alias, p, "EXTRA PUT", "a put of what was given back", c->stack);
		return NULL;
	}
	c->key = (uintptr_t)p;
	outcome = rc_ledger_put(c);
	rc_alias_unmap(at->alias);
	return outcome == RC_LAST ? at->object : NULL;
}

void *refcnt_lib_put(struct refcnt_class *cls, struct refcnt *r, void *p, struct refcnt_tracker *cookie)
{
	enum way way = enter(cls);
	struct rc_call c = { .cls = cls };
	struct rc_place at;
	void *last = NULL;

	if (way == WAY_INTERRUPTED)
		return rc_interrupt_put(r, p);
	if (way == WAY_PLAIN)
		return put_untracked(r) ? p : NULL;
	c.stack = RC_CAPTURE();
	at = rc_alias_place(r, p);
	c.r = at.counter;
	c.object = at.object;
	if (at.alias && at.whole) {
		last = put_alias(&c, &at, p);
	} else if (at.alias && !rc_alias_is_live(at.alias)) {
		rc_report_alias(at.alias, p, "USE AFTER PUT", "a put inside of what was given back", c.stack);
	} else {
		if (cookie && (cookie->id || !at.whole))
			c.key = key_of(cookie);
		c.wants_cookie = cls->mode == REFCNT_TRACKER && !cookie;
		c.at_home = at.whole;
		last = rc_ledger_put(&c) == RC_LAST ? at.object : NULL;
	}
	rc_thread_leave();
	return last;
}

void refcnt_lib_handle_get(struct refcnt_class *cls, struct refcnt *r, void *object, void *handle, bool first)
{
	struct rc_call c = { .cls = cls, .r = r, .object = object, .key = (uintptr_t)handle };
	enum way way = enter(cls);

	if (way == WAY_TRACKED) {
		c.stack = RC_CAPTURE();
		if (first)
			rc_ledger_new(&c);
		else
			(void)rc_ledger_get(&c, false);
		rc_thread_leave();
	} else if (first && way == WAY_INTERRUPTED) {
		rc_interrupt_init(r);
	} else if (first) {
		refcnt_count_init(r);
	} else if (way == WAY_INTERRUPTED) {
		(void)rc_interrupt_get(r, object, false);
	} else {
		(void)refcnt_count_more(r);
	}
}

bool refcnt_lib_handle_get_not_zero(struct refcnt_class *cls, struct refcnt *r, void *object, void *handle)
{
	struct rc_call c = { .cls = cls, .r = r, .object = object, .key = (uintptr_t)handle };
	enum way way = enter(cls);
	bool taken;

	if (way == WAY_INTERRUPTED)
		return rc_interrupt_get(r, object, true);
	if (way == WAY_PLAIN)
		return refcnt_count_more_not_zero(r);
	c.stack = RC_CAPTURE();
	taken = rc_ledger_get(&c, true) == RC_DONE;
	rc_thread_leave();
	return taken;
}

bool refcnt_lib_handle_put(struct refcnt_class *cls, struct refcnt *r, void *object, void *handle)
{
	struct rc_call c = { .cls = cls, .r = r, .object = object, .key = (uintptr_t)handle };
	enum way way = enter(cls);
	bool last;

	if (way == WAY_INTERRUPTED)
		return rc_interrupt_put(r, object);
	if (way == WAY_PLAIN)
		return put_untracked(r);
	c.stack = RC_CAPTURE();
	last = rc_ledger_put(&c) == RC_LAST;
	rc_thread_leave();
	return last;
}

const void *refcnt_lib_home(const void *p)
{
	struct rc_place at = rc_alias_place(p, p);

	if (at.alias && !rc_alias_is_live(at.alias) && !rc_thread_is_interrupted()) {
		rc_thread_enter();
		if (!rc_thread.tid)
			rc_thread_learn();
		rc_report_alias(at.alias, p, "USE AFTER PUT", "which was given back, and is asked for its home",
				RC_CAPTURE());
		rc_thread_leave();
	}
	return at.object;
}

long refcnt_report(void)
{
	rc_init();
	return rc_report_left(false);
}
