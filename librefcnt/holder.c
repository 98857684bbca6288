/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "refcnt/holder.h"
#include "ledger.h"
#include "life.h"
#include "refcnt/tracker.h"
#include "report.h"
#include "stack.h"
#include "symbol.h"
#include "text.h"
#include "thread.h"

static bool is_held(const struct rc_op *op)
{
	return op->kind != RC_PUT && !op->closed;
}

/* fn sees the operation as well; the object's shard is locked, and nobody's reports. first: before any of them */
static long each(const void *object, void (*first)(long n, void *arg), void (*fn)(const struct rc_op *op, void *arg),
		 void *arg)
{
	struct rc_object *o = NULL;
	const void *home;
	long n = -1;

	rc_init();
	home = refcnt_lib_home(object);
	if (!rc_thread_is_interrupted()) {
		rc_thread_enter(); /* what fn does to objects is counted only, and does not wait for itself */
		o = rc_ledger_find(home);
		if (!o)
			rc_thread_leave();
	}
	if (o) {
		rc_ledger_match(o);
		n = o->uncounted;
		for (uint32_t i = 0; i < o->n; i++)
			n += is_held(&o->ops[i]);
	}
	if (first)
		first(n, arg);
	if (!o)
		return n;
	for (uint32_t i = 0; i < o->n; i++)
		if (is_held(&o->ops[i]))
			fn(&o->ops[i], arg);
	rc_ledger_unlock(o);
	rc_thread_leave();
	return n;
}

struct caller {
	refcnt_holder_fn *fn;
	void *arg;
};

static void call(const struct rc_op *op, void *arg)
{
	const struct rc_stack *s = rc_stack_of(op->stack);
	const struct caller *caller = arg;
	struct refcnt_holder holder = { .handle = (const void *)(uintptr_t)op->key,
					.tid = (int)op->tid,
					.is_first = op->kind == RC_NEW,
					.is_exact = op->key != 0 };

	if (op->dir)
		holder.dir = op->dir->name;
	if (s) {
		holder.frames = (const void *const *)s->frames;
		holder.n_frames = s->n;
	}
	caller->fn(&holder, caller->arg);
}

long refcnt_holders(const void *object, refcnt_holder_fn *fn, void *arg)
{
	struct caller caller = { fn, arg };

	return each(object, NULL, call, &caller);
}

struct printer {
	struct rc_text text;
	const void *object;
};

static void print_first(long n, void *arg)
{
	struct printer *p = arg;

	(void)rc_text_begin(&p->text);
	if (n < 0)
		rc_text_add(&p->text, "refcnt: nothing is known of the object at %p\n", p->object);
	else
		rc_text_add(&p->text, "refcnt: %ld reference%s held on the object at %p\n", n, n == 1 ? " is" : "s are",
			    p->object);
}

static void print(const struct rc_op *op, void *arg)
{
	struct rc_text *t = &((struct printer *)arg)->text;

	rc_text_add(t, "  %s by thread %u%s%s%s:\n", op->kind == RC_NEW ? "new" : "get", op->tid,
		    rc_thread_lives(op->tid) ? "" : " (has ended)", op->dir ? ", for " : "",
		    op->dir ? op->dir->name : "");
	rc_symbol_print(t, op->stack);
}

void refcnt_print_holders(const void *object)
{
	struct printer p = { .object = object };

	(void)each(object, print_first, print, &p);
	rc_text_write(&p.text);
}
