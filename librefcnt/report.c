/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "life.h"
#include "option.h"
#include "refcnt/tracker.h"
#include "report.h"
#include "symbol.h"
#include "thread.h"

#define GROUPS 4096
#define OTHERS 3
#define SHOWN 64 /* of an object's operations */

static unsigned faults;

static const char *const kinds[] = { "new", "get", "put" };

unsigned rc_report_faults(void)
{
	return __atomic_load_n(&faults, __ATOMIC_RELAXED);
}

static void fault_ends(struct rc_text *t)
{
	__atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED);
	rc_text_write(t);
	if (rc_option()->abort_at_once)
		abort();
}

static void add_thread(struct rc_text *t, uint32_t tid)
{
	rc_text_add(t, "thread %u%s", tid, rc_thread_lives(tid) ? "" : " (has ended)");
}

static void add_now(struct rc_text *t, uint32_t stack)
{
	rc_text_add(t, "  now, by thread %u:\n", rc_thread.tid);
	rc_symbol_print(t, stack);
}

static void add_history(struct rc_text *t, struct rc_object *o, uint64_t key)
{
	rc_ledger_match(o);
	if (o->folded)
		rc_text_add(t, "  %u earlier operations are not kept\n", o->folded);
	if (o->n > SHOWN)
		rc_text_add(t, "  %u of %u operations that are kept are shown, the first and the last\n", SHOWN, o->n);
	for (uint32_t i = 0; i < o->n; i++) {
		const struct rc_op *op = &o->ops[i];

		if (i >= SHOWN / 2 && i + SHOWN / 2 < o->n)
			continue;
		rc_text_add(t, "  %s, count %u then, by ", kinds[op->kind], op->count);
		add_thread(t, op->tid);
		if (op->dir)
			rc_text_add(t, ", for %s", op->dir->name);
		if (op->kind != RC_PUT && !op->closed)
			rc_text_add(t, ", held");
		rc_text_add(t, "%s:\n", key && op->key == key ? ", this reference" : "");
		rc_symbol_print(t, op->stack);
	}
}

void rc_report_wrong(struct rc_object *o, const struct rc_call *c, const char *what, const char *why)
{
	struct rc_text t;

	rc_text_begin(&t);
	rc_text_add(&t, "refcnt: %s: %s #%lu %p, %s\n", what, o->cls, (unsigned long)o->id, o->object, why);
	if (o->cls != c->cls->kept)
		rc_text_add(&t, "  it is used as %s\n", c->cls->kept);
	add_now(&t, c->stack);
	add_history(&t, o, c->key);
	fault_ends(&t);
}

void rc_report_count(struct rc_object *o, const struct rc_call *c, uint32_t now)
{
	struct rc_text t;

	rc_text_begin(&t);
	rc_text_add(&t,
		    "refcnt: COUNT CHANGED: %s #%lu %p, count %u where %u was left: by code of another mode, or memory "
		    "that was written over\n",
		    o->cls, (unsigned long)o->id, o->object, now, o->expected);
	add_now(&t, c->stack);
	add_history(&t, o, 0);
	fault_ends(&t);
}

void rc_report_foreign(const struct rc_call *c, enum rc_kind kind)
{
	struct rc_text t;

	rc_text_begin(&t);
	rc_text_add(&t, "refcnt: FOREIGN OBJECT: %s of %p, where no %s was made\n", kinds[kind], c->object,
		    c->cls->kept);
	add_now(&t, c->stack);
	fault_ends(&t);
}

void rc_report_alias(const struct rc_alias *a, const void *p, const char *what, const char *how, uint32_t stack)
{
	struct rc_text t;

	/* a race of two puts: the first is about to say where it was */
	for (int i = 0; i < 1000 && __atomic_load_n(&a->state, __ATOMIC_ACQUIRE) == RC_ALIAS_LEAVING; i++)
		sched_yield();
	rc_text_begin(&t);
	rc_text_add(&t, "refcnt: %s: %s through handle %p, %s\n", what, a->cls, p, how);
	add_now(&t, stack);
	rc_text_add(&t, "  the handle was taken by ");
	add_thread(&t, a->get_tid);
	rc_text_add(&t, ":\n");
	rc_symbol_print(&t, a->get_stack);
	rc_text_add(&t, "  the handle was given back by ");
	add_thread(&t, a->put_tid);
	rc_text_add(&t, ":\n");
	rc_symbol_print(&t, a->put_stack);
	fault_ends(&t);
}

void rc_report_note(const char *format, ...)
{
	struct rc_text t;
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	rc_text_begin(&t);
	rc_text_add(&t, "refcnt: %s\n", line);
	rc_text_write(&t);
}

/* References that are held, by class, kind and stack. */
struct group {
	const char *cls;
	const struct refcnt_dir *dir;
	uint32_t stack;
	uint8_t kind;
	bool exact;
	uint32_t references, tid;
	uint64_t first; /* the object */
	uint32_t first_count;
	uint32_t others[OTHERS]; /* stacks of its gets that may be meant as well */
};

struct left {
	struct group *groups;
	uint32_t n, room;
	const struct refcnt_dir *only; /* a tracker's directory */
	unsigned long objects, references, inherited, without_cookie, uncounted, beyond;
};

/* A key says so, or there was nothing to choose from. */
static bool is_exact(const struct rc_object *o, const struct rc_op *op)
{
	if (op->key)
		return true;
	for (uint32_t i = 0; i < o->n; i++)
		if (o->ops[i].kind == RC_PUT && !o->ops[i].key)
			return false;
	return !o->folded;
}

static struct group *group_of(struct left *l, const struct rc_object *o, const struct rc_op *op)
{
	bool exact = is_exact(o, op);

	for (uint32_t i = 0; i < l->n; i++) {
		struct group *g = &l->groups[i];

		if (g->stack == op->stack && g->exact == exact && g->kind == op->kind && g->dir == op->dir &&
		    g->cls == o->cls)
			return g;
	}
	if (l->n == l->room)
		return NULL;
	l->groups[l->n] = (struct group){ .cls = o->cls,
					  .dir = op->dir,
					  .stack = op->stack,
					  .kind = op->kind,
					  .exact = exact,
					  .tid = op->tid,
					  .first = o->id,
					  .first_count = o->expected };
	return &l->groups[l->n++];
}

static void add_left(struct rc_object *o, void *arg)
{
	struct left *l = arg;
	unsigned long before = l->references;

	rc_ledger_match(o);
	l->without_cookie += o->without_cookie;
	for (uint32_t i = 0; i < o->n; i++) {
		const struct rc_op *op = &o->ops[i];
		struct group *g;

		if (op->kind == RC_PUT || op->closed || (l->only && op->dir != l->only))
			continue;
		if (op->generation != rc_generation) {
			l->inherited++;
			continue;
		}
		l->references++;
		g = group_of(l, o, op);
		if (!g) {
			l->beyond++;
			continue;
		}
		if (!g->references++ || o->id < g->first) {
			memset(g->others, 0, sizeof(g->others));
			(void)rc_ledger_rivals(o, op, g->others, OTHERS);
			g->first = o->id;
			g->first_count = o->expected;
			g->tid = op->tid;
		}
	}
	l->uncounted += o->uncounted;
	l->objects += l->references > before;
}

static int by_number(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->references != y->references)
		return x->references < y->references ? 1 : -1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static void sort(struct group *g, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) /* qsort(3) allocates */
		for (uint32_t k = i; k > 0 && by_number(&g[k - 1], &g[k]) > 0; k--) {
			struct group other = g[k];

			g[k] = g[k - 1];
			g[k - 1] = other;
		}
}

static void print_group(struct rc_text *t, const struct group *g, const char *what)
{
	rc_text_add(t, "refcnt: %s: %s, %u reference%s %staken by %s", what, g->cls, g->references,
		    g->references == 1 ? "" : "s", g->exact ? "" : "probably ", kinds[g->kind]);
	if (g->dir)
		rc_text_add(t, " for %s", g->dir->name);
	rc_text_add(t, ", first on #%lu (count %u now) by ", (unsigned long)g->first, g->first_count);
	add_thread(t, g->tid);
	rc_text_add(t, "\n");
	rc_symbol_print(t, g->stack);
	for (unsigned i = 0; i < OTHERS && g->others[i]; i++) {
		rc_text_add(t, "  if not that, the one taken at\n");
		rc_symbol_print(t, g->others[i]);
	}
}

static void print_gaps(struct rc_text *t, const struct left *l, bool whole)
{
	unsigned long unkept = __atomic_load_n(&rc_unkept, __ATOMIC_RELAXED);
	unsigned long unseen = __atomic_load_n(&rc_unseen, __ATOMIC_RELAXED);

	if (l->inherited)
		rc_text_add(t,
			    "refcnt: %lu references that the parent process took before the fork are its own matter\n",
			    l->inherited);
	if (l->without_cookie)
		rc_text_add(t, "refcnt: %lu operations without a cookie on these objects\n", l->without_cookie);
	if (unkept)
		rc_text_add(t, "refcnt: not complete: %lu objects were not kept (REFCNT_MEMORY)\n", unkept);
	if (unseen)
		rc_text_add(t, "refcnt: not complete: %lu operations of signal handlers inside of operations\n",
			    unseen);
	if (l->uncounted + l->beyond)
		rc_text_add(t, "refcnt: not complete: %lu more references whose stacks are not shown\n",
			    l->uncounted + l->beyond);
	if (!whole)
		rc_text_add(
			t,
			"refcnt: not complete: the program ended inside of an operation, its objects are left out\n");
}

static long print_left(const char *what, const char *title, const struct refcnt_dir *only, bool at_exit)
{
	struct left l = { .room = GROUPS, .only = only };
	bool busy = rc_thread.busy, waits = !rc_thread_is_interrupted(), whole;
	struct rc_text t;

	rc_thread.busy = true;
	l.groups = rc_memory_map(GROUPS * sizeof(*l.groups));
	if (!l.groups)
		l.room = 0;
	rc_ledger_learn(waits);
	whole = rc_ledger_each(waits, add_left, &l);
	whole &= !rc_text_begin(&t);
	sort(l.groups, l.n);
	if (!at_exit || l.references || !whole)
		rc_text_add(&t, title, l.objects, l.objects == 1 ? "" : "s", l.references,
			    l.references == 1 ? "" : "s");
	for (uint32_t i = 0; i < l.n; i++)
		print_group(&t, &l.groups[i], what);
	if (!at_exit || l.references || !whole || rc_unkept || rc_unseen)
		print_gaps(&t, &l, whole);
	rc_text_write(&t);
	if (l.groups)
		rc_memory_unmap(l.groups, GROUPS * sizeof(*l.groups));
	rc_thread.busy = busy;
	return (long)(only ? l.references : l.objects);
}

long rc_report_left(bool at_exit)
{
	return print_left(at_exit ? "LEAK" : "HELD",
			  at_exit ? "refcnt: left at exit: %lu object%s, %lu reference%s\n"
				  : "refcnt: now: %lu object%s, %lu reference%s\n",
			  NULL, at_exit);
}

long refcnt_tracker_report(const struct refcnt_dir *dir)
{
	char title[256];

	rc_init();
	snprintf(title, sizeof(title), "refcnt: now, for %.200s: %%lu object%%s, %%lu reference%%s\n", dir->name);
	return print_left("HELD", title, dir, false);
}
