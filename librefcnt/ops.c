/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the typed functions call. Each takes its caller's stack itself: none may become a tail call. */
#include <fnmatch.h>
#include <stdlib.h>

#include "alias.h"
#include "class.h"
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

#define EMPTY_COOKIE UINT64_MAX

static enum state decide(struct refcnt_class *cls)
{
	const char *glob;
	bool tracked;

	rc_init();
	glob = rc_option()->classes;
	tracked = (cls->mode != REFCNT_SHARED || refcnt_runtime_mode() == REFCNT_TRACKING) &&
		  (!*glob || !fnmatch(glob, cls->name, 0));
	__atomic_store_n(&cls->kept, rc_class_keep(cls->name), __ATOMIC_RELAXED);
	__atomic_store_n(&cls->state, tracked ? STATE_TRACKED : STATE_PLAIN, __ATOMIC_RELEASE);
	return tracked ? STATE_TRACKED : STATE_PLAIN;
}

static inline bool is_tracked(struct refcnt_class *cls)
{
	enum state state = (enum state)__atomic_load_n(&cls->state, __ATOMIC_ACQUIRE);

	if (!state)
		state = decide(cls);
	if (state == STATE_PLAIN)
		return false;
	if (!rc_thread.tid)
		rc_thread_learn();
	return true;
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

/* The counter at the object's home, from what the caller's pointers are. */
static struct refcnt *counter_of(const char *home, const struct refcnt *r, const void *p)
{
	return (struct refcnt *)(uintptr_t)(home + ((const char *)r - (const char *)p));
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
	bool tracked = is_tracked(cls);
	char *home = tracked && cls->mode == REFCNT_ALIAS ? rc_alias_make(size) : NULL;
	struct rc_call c = { .cls = cls, .stack = tracked ? RC_CAPTURE() : 0 };
	void *p = home;

	if (home)
		p = rc_alias_take(cls, home, c.stack);
	else
		p = home = calloc(1, size);
	if (!p)
		return NULL;
	c.r = (struct refcnt *)(home + offset);
	c.object = home;
	c.key = p == home ? 0 : (uintptr_t)p;
	if (tracked && cls->mode == REFCNT_CHECKED)
		say_tracked_only(cls, "REFCNT_STRUCT tells no fields of it");
	if (tracked)
		rc_ledger_new(&c);
	else
		refcnt_count_init(c.r);
	return p;
}

void *refcnt_lib_init(struct refcnt_class *cls, struct refcnt *r, void *p)
{
	struct rc_call c = { .cls = cls, .r = r, .object = p };

	if (!is_tracked(cls)) {
		refcnt_count_init(r);
		return p;
	}
	c.stack = RC_CAPTURE();
	if (cls->mode == REFCNT_ALIAS || cls->mode == REFCNT_CHECKED)
		say_tracked_only(cls, "its objects are in memory of the program's (init); alloc makes them");
	rc_ledger_new(&c);
	return p;
}

void refcnt_lib_dealloc(struct refcnt_class *cls, struct refcnt *r, void *p)
{
	struct rc_alias *a = rc_alias_of(p);
	struct rc_call c = { .cls = cls, .r = r };

	if (a) { /* by a holder: that is a fault, and is said to be */
		c.r = counter_of(a->home, r, p);
		p = a->home;
	}
	c.object = p;
	if (is_tracked(cls)) {
		c.stack = RC_CAPTURE();
		rc_ledger_free(&c);
	}
	if (!rc_alias_free(p))
		free(p);
}

void *refcnt_lib_get(struct refcnt_class *cls, struct refcnt *r, void *p, struct refcnt_dir *dir,
		     struct refcnt_tracker *cookie)
{
	struct rc_call c = { .cls = cls, .r = r, .object = p, .dir = dir };
	struct rc_alias *a;

	if (!is_tracked(cls)) {
		(void)refcnt_count_more(r);
		return p;
	}
	c.stack = RC_CAPTURE();
	a = rc_alias_of(p);
	if (a && a->state != RC_ALIAS_LIVE) {
		rc_report_alias(a, p, "USE AFTER PUT", "a get through what was given back", c.stack);
		return p;
	}
	if (a || rc_alias_is_home(p)) {
		char *home = a ? a->home : p;

		c.object = home;
		c.r = counter_of(home, r, p);
		p = rc_alias_take(cls, home, c.stack);
		c.key = p == home ? 0 : (uintptr_t)p;
	} else if (cookie) {
		c.key = cookie->id = next_cookie();
	} else {
		c.wants_cookie = cls->mode == REFCNT_TRACKER;
	}
	(void)rc_ledger_get(&c, false);
	return p;
}

void *refcnt_lib_get_not_zero(struct refcnt_class *cls, struct refcnt *r, void *p)
{
	struct rc_call c = { .cls = cls, .r = r, .object = p, .wants_cookie = cls->mode == REFCNT_TRACKER };
	struct rc_alias *a;

	if (!is_tracked(cls))
		return refcnt_count_more_not_zero(r) ? p : NULL;
	c.stack = RC_CAPTURE();
	a = rc_alias_of(p);
	if (a && a->state != RC_ALIAS_LIVE)
		return NULL;
	if (a || rc_alias_is_home(p)) {
		char *home = a ? a->home : p;
		void *alias = rc_alias_take(cls, home, c.stack);

		c.object = home;
		c.r = counter_of(home, r, p);
		c.key = alias == home ? 0 : (uintptr_t)alias;
		if (rc_ledger_get(&c, true) == RC_DONE)
			return alias;
		a = rc_alias_of(alias);
		if (a && rc_alias_give(a, c.stack))
			rc_alias_unmap(a);
		return NULL;
	}
	return rc_ledger_get(&c, true) == RC_DONE ? p : NULL;
}

static void *put_alias(struct rc_alias *a, struct rc_call *c, const struct refcnt *r, const void *p)
{
	enum rc_outcome outcome;
	char *home = a->home;

	if (!rc_alias_give(a, c->stack)) {
		rc_report_alias(a, p, "EXTRA PUT", "a put of what was given back", c->stack);
		return NULL;
	}
	c->object = home;
	c->r = counter_of(home, r, p);
	c->key = (uintptr_t)p;
	outcome = rc_ledger_put(c);
	rc_alias_unmap(a);
	return outcome == RC_LAST ? home : NULL;
}

void *refcnt_lib_put(struct refcnt_class *cls, struct refcnt *r, void *p, struct refcnt_tracker *cookie)
{
	struct rc_call c = { .cls = cls, .r = r, .object = p };
	struct rc_alias *a;
	void *last;

	if (!is_tracked(cls))
		return put_untracked(r) ? p : NULL;
	c.stack = RC_CAPTURE();
	a = rc_alias_of(p);
	if (a && a->state != RC_ALIAS_NONE) {
		last = put_alias(a, &c, r, p);
	} else {
		if (cookie)
			c.key = cookie->id ? cookie->id : EMPTY_COOKIE;
		else
			c.wants_cookie = cls->mode == REFCNT_TRACKER;
		last = rc_ledger_put(&c) == RC_LAST ? p : NULL;
	}
	return last;
}

void refcnt_lib_handle_get(struct refcnt_class *cls, struct refcnt *r, void *object, void *handle, bool first)
{
	struct rc_call c = { .cls = cls, .r = r, .object = object, .key = (uintptr_t)handle };

	if (is_tracked(cls)) {
		c.stack = RC_CAPTURE();
		if (first)
			rc_ledger_new(&c);
		else
			(void)rc_ledger_get(&c, false);
	} else if (first) {
		refcnt_count_init(r);
	} else {
		(void)refcnt_count_more(r);
	}
}

bool refcnt_lib_handle_get_not_zero(struct refcnt_class *cls, struct refcnt *r, void *object, void *handle)
{
	struct rc_call c = { .cls = cls, .r = r, .object = object, .key = (uintptr_t)handle };
	bool taken;

	if (!is_tracked(cls))
		return refcnt_count_more_not_zero(r);
	c.stack = RC_CAPTURE();
	taken = rc_ledger_get(&c, true) == RC_DONE;
	return taken;
}

bool refcnt_lib_handle_put(struct refcnt_class *cls, struct refcnt *r, void *object, void *handle)
{
	struct rc_call c = { .cls = cls, .r = r, .object = object, .key = (uintptr_t)handle };
	bool last;

	if (!is_tracked(cls))
		return put_untracked(r);
	c.stack = RC_CAPTURE();
	last = rc_ledger_put(&c) == RC_LAST;
	return last;
}

const void *refcnt_lib_home(const void *p)
{
	const struct rc_alias *a = rc_alias_of(p);

	return a ? a->home : p;
}

long refcnt_report(void)
{
	rc_init();
	return rc_report_left(false);
}
