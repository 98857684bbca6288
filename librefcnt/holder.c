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

/* fn sees the operation as well; the object's shard is locked */
static long each(const void *object, void (*fn)(const struct rc_op *op, void *arg), void *arg, struct rc_object **ret)
{
	struct rc_object *o;
	long n = 0;

	rc_init();
	o = rc_ledger_find(refcnt_lib_home(object));
	if (!o)
		return -1;
	rc_thread.busy = true; /* what fn does to objects is counted only, and does not wait for itself */
	rc_ledger_match(o);
	*ret = o;
	for (uint32_t i = 0; i < o->n; i++) {
		if (o->ops[i].kind == RC_PUT || o->ops[i].closed)
			continue;
		fn(&o->ops[i], arg);
		n++;
	}
	n += o->uncounted;
	rc_thread.busy = false;
	rc_ledger_unlock(o);
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
	struct rc_object *o;

	return each(object, call, &caller, &o);
}

static void print(const struct rc_op *op, void *arg)
{
	struct rc_text *t = arg;

	rc_text_add(t, "  %s by thread %u%s%s%s:\n", op->kind == RC_NEW ? "new" : "get", op->tid,
		    rc_thread_lives(op->tid) ? "" : " (has ended)", op->dir ? ", for " : "",
		    op->dir ? op->dir->name : "");
	rc_symbol_print(t, op->stack);
}

static void count(const struct rc_op *op, void *arg)
{
	(void)op;
	(void)arg;
}

void refcnt_print_holders(const void *object)
{
	struct rc_object *o = NULL;
	long n = each(object, count, NULL, &o);
	struct rc_text t;

	rc_text_begin(&t);
	if (n < 0)
		rc_text_add(&t, "refcnt: nothing is known of the object at %p\n", object);
	else
		rc_text_add(&t, "refcnt: %ld references are held on the object at %p\n", n, object);
	if (n > 0)
		(void)each(object, print, &t, &o);
	rc_text_write(&t);
}
