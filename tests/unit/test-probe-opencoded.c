/* SPDX-License-Identifier: GPL-2.0-only */
/* Counting that no function of the spec does is found where debug information says what is counted, and nowhere else.
 */
#include "planned.h"

static const char code[] =
	"#include <stdlib.h>\n"
	"typedef struct node_s { int id; unsigned refs; struct node_s *up; } node_t;\n"
	"struct other { int id; unsigned refs; };\n"
	"__attribute__((noinline)) node_t *node_new(int id)\n"
	"{ node_t *n = malloc(sizeof(*n)); n->id = id; n->refs = 1; n->up = 0; return n; }\n"
	"__attribute__((noinline)) void node_ref(node_t *n) { n->refs++; }\n"
	"__attribute__((noinline)) void node_unref(node_t *n) { if (!--n->refs) free(n); }\n"
	"__attribute__((noinline)) void adopt(node_t *n, node_t *up) { n->up = up; if (up) up->refs++; }\n"
	"__attribute__((noinline)) int leave(node_t *n) { if (--n->refs) return 0; free(n); return 1; }\n"
	"__attribute__((noinline)) void by_two(node_t *n) { n->refs += 2; }\n"
	/* a pointer into the object, that the compiler makes once; and one that may be another's */
	"__attribute__((noinline)) void inside(node_t *n) { unsigned *r = &n->refs; __asm__(\"\" : \"+r\"(r)); "
	"(*r)++;\n"
	"  n->id = 3; }\n"
	"__attribute__((noinline)) void either(node_t *n, unsigned *o) { unsigned *r = &n->refs; __asm__(\"\" : "
	"\"+r\"(r));\n"
	"  if (n->id) r = o; __asm__(\"\" : \"+r\"(r)); (*r)++; n->id = 3; }\n"
	/* what was read is looked at first, and needed once more */
	"__attribute__((noinline)) void lock(void) { __asm__ volatile(\"\" ::: \"memory\"); }\n"
	"__attribute__((noinline)) int checked(node_t *n) { unsigned left; lock(); if (!n->refs) abort(); left = "
	"--n->refs;\n"
	"  lock(); if (!left) { free(n); return 7; } lock(); return 0; }\n"
	"__attribute__((noinline)) void its_id(node_t *n) { n->id++; }\n"
	"__attribute__((noinline)) void not_ours(struct other *o) { o->refs++; }\n"
	"int main(int argc, char **argv) { node_t *n = node_new(argc), *m = node_new(2); struct other o = { 0, 0 };\n"
	"  adopt(n, m); inside(n); either(n, &o.refs); node_ref(n); if (argc > 9) checked(n); by_two(n); its_id(n); "
	"not_ours(&o); leave(m); node_unref(n);\n"
	"  return o.refs + n->id; }\n";

/* points whose instruction lies in the function */
static unsigned points_in(struct planned *p, const char *function, uint8_t op)
{
	const struct rt_symbol *s = rt_symtab_find(p->symtab, function);
	unsigned n = 0;

	assert_non_null(s);
	for (size_t i = 0; i < p->plan->points.len; i++) {
		const struct rt_point *at = &p->plan->points.data[i];

		n += at->op == op && at->address.v >= s->addr.v && at->address.v < s->addr.v + s->size;
	}
	return n;
}

static unsigned maybes_in(struct planned *p, const char *function)
{
	const struct rt_symbol *s = rt_symtab_find(p->symtab, function);
	unsigned n = 0;

	assert_non_null(s);
	for (size_t i = 0; i < p->plan->points.len; i++) {
		const struct rt_point *at = &p->plan->points.data[i];

		n += (at->flags & RT_EV_MAYBE) && at->address.v >= s->addr.v && at->address.v < s->addr.v + s->size;
	}
	return n;
}

TEST(what_counts_by_itself)
{
	static const char *const builds[] = { "gcc -O2 -g", "gcc -O1 -g", "clang-14 -O2 -g" };

	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		struct workdir w;
		struct planned p;

		print_message("%s\n", builds[i]);
		workdir_make(&w);
		workdir_write(&w, "n.c", code);
		workdir_run(&w, "%s -o n n.c", builds[i]);
		planned_open(&p, workdir_path(&w, "n"));
		planned_make(&p, "type=node new=node_new get=node_ref put=node_unref", NULL);
		assert_int_equal(points_in(&p, "adopt", RT_OP_GET), 1);
		assert_int_equal(points_in(&p, "leave", RT_OP_PUT), 1);
		assert_int_equal(points_in(&p, "node_ref", RT_OP_GET), 1);
		assert_int_equal(points_in(&p, "node_unref", RT_OP_PUT), 1);
		assert_int_equal(points_in(&p, "by_two", RT_OP_GET), 1);
		assert_int_equal(points_in(&p, "inside", RT_OP_GET), 1);
		assert_int_equal(points_in(&p, "either", RT_OP_GET), 0);
		assert_int_equal(points_in(&p, "checked", RT_OP_PUT), 1);
		assert_int_equal(points_in(&p, "its_id", RT_OP_GET), 0);
		assert_int_equal(points_in(&p, "not_ours", RT_OP_GET), 0);
		/* the place, not a function of this name: who stands around it takes the reference */
		assert_non_null(planned_point(&p, "node_s.count"));
		assert_int_equal(planned_point(&p, "node_s.count")->counter_offset, 4);
		planned_close(&p);
		workdir_remove(&w);
	}
}

/*
 * The pointer into the object is kept on the stack while something is called on the way to where it is needed again.
 * Registers that a call leaves alone are taken from the compiler, so that it has to.
 */
TEST(counting_again_behind_a_call)
{
	static const char source[] =
		"#include <stdlib.h>\n"
		"struct node { int id; char rest[140]; int refs; };\nint *other(void);\n"
		"struct node *node_new(void) { struct node *n = calloc(1, sizeof(*n)); n->refs = 1; return n; }\n"
		"__attribute__((noinline)) void node_free(struct node *n) { free(n); }\n"
		"static inline int down(int *r) { int n = __atomic_sub_fetch(r, 1, 5); if (n < 0) abort(); return n; "
		"}\n"
		"void twice(struct node *n) { n->id = 1; if (!down(&n->refs)) node_free(n);\n"
		"  if (!down(&n->refs)) node_free(n); }\n"
		"void either(struct node *n) { int *r = &n->refs; n->id = 1; if (!down(r)) { node_free(n); r = "
		"other(); }\n"
		"  __asm__ volatile(\"\" : \"+a\"(r)); if (!down(r)) node_free(n); }\n";
	struct workdir w;
	struct planned p;
	unsigned n = 0;

	workdir_make(&w);
	workdir_write(&w, "n.c", source);
	workdir_run(&w, "gcc -O2 -g -fPIC -shared -ffixed-rbx -ffixed-rbp -ffixed-r12 -ffixed-r13 -ffixed-r14 "
			"-ffixed-r15 -o n.so n.c");
	planned_open(&p, workdir_path(&w, "n.so"));
	planned_make(&p, "type=node new=node_new free=node_free counter=node.refs", NULL);
	assert_int_equal(points_in(&p, "twice", RT_OP_PUT), 2);
	/* both are behind what counts, which is one less by then */
	for (size_t i = 0; i < p.plan->points.len; i++) {
		const struct rt_point *at = &p.plan->points.data[i];

		if (at->op == RT_OP_PUT && at->address.v > at->function.v)
			assert_int_equal(at->counter_bias, 1);
		n += at->op == RT_OP_PUT && at->address.v > at->function.v;
	}
	assert_int_equal(n, 3);
	/* what is read back, or comes from elsewhere, is not what was kept */
	assert_int_equal(points_in(&p, "either", RT_OP_PUT), 1);
	planned_close(&p);
	workdir_remove(&w);
}

/*
 * A variable whose address is taken lies in the frame, and what a T ** leads to nowhere else: what is read there is the
 * object, also where its counter is the first thing in it.
 */
TEST(counting_through_pointers_in_memory)
{
	static const char source[] =
		"#include <stdlib.h>\n"
		"struct index { int refs; int n; };\nstruct count { int n; };\n"
		"struct index *index_new(void) { struct index *i = calloc(1, sizeof(*i)); i->refs = 1; return i; }\n"
		"void index_put(struct index *i) { if (__atomic_sub_fetch(&i->refs, 1, 5) == 0) free(i); }\n"
		"int find(struct index **ret, int n);\nint find_count(struct count **ret, int n);\n"
		"int current(struct index **ret, int n) { if (find(ret, n) < 0) return -1;\n"
		"  __atomic_add_fetch(&(*ret)->refs, 1, 5); return 0; }\n"
		"int checkout(struct index *i, int n) { if (!i && find(&i, n) < 0) return -1;\n"
		"  __atomic_add_fetch(&i->refs, 1, 5); find(0, n); return i->n; }\n"
		"int unknown(struct count *c, int n) { if (!c && find_count(&c, n) < 0) return -1;\n"
		"  __atomic_add_fetch(&c->n, 1, 5); find(0, n); return c->n; }\n"
		"int others(int n) { struct count *c; if (find_count(&c, n) < 0) return -1;\n"
		"  __atomic_add_fetch(&c->n, 1, 5); return 0; }\n";
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "i.c", source);
	workdir_run(&w, "gcc -O2 -g -fPIC -shared -o i.so i.c");
	planned_open(&p, workdir_path(&w, "i.so"));
	planned_make(&p, "type=index new=index_new put=index_put counter=index.refs", NULL);
	assert_int_equal(points_in(&p, "current", RT_OP_GET), 1);
	assert_int_equal(points_in(&p, "checkout", RT_OP_GET), 1);
	assert_non_null(planned_point(&p, "index.count"));
	assert_false(planned_point(&p, "index.count")->flags & RT_EV_MAYBE);
	/* nobody knows what is counted there: it is one where an object lives */
	assert_int_equal(points_in(&p, "unknown", RT_OP_GET), 1);
	assert_int_equal(maybes_in(&p, "unknown"), 1);
	assert_int_equal(points_in(&p, "others", RT_OP_GET), 0);
	planned_close(&p);
	workdir_remove(&w);
}

/* The counter is a structure with atomic functions of its own, that are inlined and never see the object. */
TEST(atomic_functions_of_the_counter)
{
	static const char atomic[] =
		"#include <stdlib.h>\n"
		"struct cnt { int v; };\nstruct peer { long id; struct cnt refcnt; };\n"
		"static inline __attribute__((always_inline)) int cnt_add(struct cnt *c, int n)\n"
		"{ return __atomic_add_fetch(&c->v, n, __ATOMIC_SEQ_CST); }\n"
		"struct peer *peer_new(void) { struct peer *p = calloc(1, sizeof(*p)); p->refcnt.v = 1; return p; }\n"
		"void peer_get(struct peer *p) { cnt_add(&p->refcnt, 1); }\n"
		"void peer_put(struct peer *p) { if (!cnt_add(&p->refcnt, -1)) free(p); }\n"
		"void share(struct peer *p) { p->id = 7; cnt_add(&p->refcnt, 1); }\n"
		"void count(struct cnt *c) { cnt_add(c, 1); }\n";
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "a.c", atomic);
	workdir_run(&w, "gcc -O2 -g -fPIC -shared -o a.so a.c");
	planned_open(&p, workdir_path(&w, "a.so"));
	planned_make(&p, "type=peer new=peer_new get=peer_get put=peer_put", NULL);
	assert_int_equal(points_in(&p, "share", RT_OP_GET), 1);
	assert_int_equal(points_in(&p, "count", RT_OP_GET), 0);
	planned_close(&p);
	workdir_remove(&w);
}

/*
 * Atomic counting stands where no probe can: what comes right before or behind it is looked at instead, with what the
 * counter was. Who holds objects of one type and is an operation of another one counts as well; where nobody knows what
 * a register points to, it counts where such an object lives.
 */
TEST(atomic_counting_of_holders)
{
	static const char atomic[] =
		"#include <stdlib.h>\n"
		"struct peer { long id; int refs; };\nstruct task { long refs; struct peer *peer; };\n"
		"struct peer *peer_new(void) { struct peer *p = calloc(1, sizeof(*p)); p->refs = 1; return p; }\n"
		"void peer_get(struct peer *p) { __atomic_add_fetch(&p->refs, 1, 5); }\n"
		"void peer_put(struct peer *p) { if (!__atomic_sub_fetch(&p->refs, 1, 5)) free(p); }\n"
		"struct task *task_new(struct peer *p) { struct task *t = calloc(1, sizeof(*t)); t->refs = 1;\n"
		"  t->peer = p; __atomic_add_fetch(&p->refs, 1, 5); return t; }\n"
		"void task_end(struct task *t) { if (__atomic_sub_fetch(&t->peer->refs, 1, 5) == 0) free(t->peer); "
		"free(t); }\n"
		"void leave(struct peer *p) { p->id = 7; if (__atomic_sub_fetch(&p->refs, 1, 5) == 0) free(p); }\n"
		"int drop(struct peer *p) { int n; p->id = 7; n = __atomic_fetch_sub(&p->refs, 1, 5);\n"
		"  return n * 3; }\n"
		"struct peer *kept(struct task *t, void (*lock)(void)) { struct peer *p; lock(); p = t->peer;\n"
		"  if (p) __atomic_add_fetch(&p->refs, 1, 5); lock(); return p; }\n"
		"struct peer *fit(struct task *t, void (*lock)(void)) { struct peer *p = t->peer; lock();\n"
		"  if (p && (t->refs == 3 || p->id == 2)) __atomic_add_fetch(&p->refs, 1, 5); else p = 0; lock(); "
		"return p; }\n"
		"void second(struct peer **all) { if (__atomic_sub_fetch(&all[1]->refs, 1, 5) == 0) free(all[1]); }\n"
		"void first(void *all) { if (__atomic_sub_fetch(&(*(struct peer **)all)->refs, 1, 5) == 0) abort(); }\n"
		"extern void (*hook)(struct task *t);\n"
		"void handed_on(struct task *t) { struct peer *p = t->peer;\n"
		"  if (p && __atomic_fetch_sub(&p->refs, 1, 5) <= 1 && p->id) free(p); hook(t); }\n";
	struct workdir w;
	struct planned p;
	unsigned maybes = 0;

	workdir_make(&w);
	workdir_write(&w, "a.c", atomic);
	workdir_run(&w, "gcc -O2 -g -fPIC -shared -o a.so a.c");
	planned_open(&p, workdir_path(&w, "a.so"));
	planned_make(&p,
		     "type=peer new=peer_new get=peer_get put=peer_put counter=peer.refs\n"
		     "type=task new=task_new free=task_end",
		     NULL);
	assert_int_equal(points_in(&p, "task_new", RT_OP_GET), 1);
	assert_int_equal(points_in(&p, "task_end", RT_OP_PUT), 1);
	assert_int_equal(points_in(&p, "leave", RT_OP_PUT), 1);
	assert_int_equal(points_in(&p, "drop", RT_OP_PUT), 1);
	assert_int_equal(points_in(&p, "kept", RT_OP_GET), 1);
	assert_int_equal(points_in(&p, "fit", RT_OP_GET), 1);
	assert_int_equal(points_in(&p, "second", RT_OP_PUT), 1);
	assert_int_equal(points_in(&p, "first", RT_OP_PUT), 1);
	/* the jump to who knows where, at its end, leads out of the function */
	assert_int_equal(points_in(&p, "handed_on", RT_OP_PUT), 1);
	for (size_t i = 0; i < p.plan->points.len; i++) {
		const struct rt_point *at = &p.plan->points.data[i];

		if (strcmp(at->name, "peer.count") != 0)
			continue;
		assert_int_equal(at->counter_offset, 8);
		maybes += (at->flags & RT_EV_MAYBE) != 0;
	}
	/* what task_end() puts is no variable of anybody's, but a member; what first() puts is not even that */
	assert_int_equal(maybes, 1);
	planned_close(&p);
	workdir_remove(&w);
}

/* Of an object that may be immortal the counter is read and tested, and changed and stored behind branches. */
TEST(counters_that_are_tested_first)
{
	static const char tested[] =
		"#include <stdlib.h>\n#include <assert.h>\n"
		"struct lens { unsigned refs; int kind; };\n"
		"#define REF(s) ((s) == NULL || (s)->refs == ~0u ? (s) : ((s)->refs++, (s)))\n"
		"#define UNREF(s) do { if (s && (s)->refs != ~0u) { assert((s)->refs > 0); if (--(s)->refs == 0) "
		"lens_free(s); } } while (0)\n"
		"__attribute__((noinline)) struct lens *lens_new(void) { struct lens *l = calloc(1, sizeof(*l)); "
		"l->refs = 1; return l; }\n"
		"__attribute__((noinline)) void lens_free(struct lens *l) { free(l); }\n"
		"__attribute__((noinline)) void keep(struct lens **to, struct lens *l) { *to = REF(l); }\n"
		"__attribute__((noinline)) void drop(struct lens *l) { UNREF(l); }\n"
		"__attribute__((noinline)) void assign(struct lens *l, unsigned n) { if (n > 3) l->refs = n + 1; }\n"
		"__attribute__((noinline)) void both(struct lens *l) { if (l->refs < 9) { l->refs++; l->refs++; "
		"l->kind = 1; } }\n"
		"int main(void) { struct lens *l = lens_new(), *m; keep(&m, l); drop(l); assign(m, 1); drop(m); if "
		"(!m) "
		"both(l); return 0; }\n";
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "l.c", tested);
	workdir_run(&w, "gcc -O2 -g -o l l.c");
	planned_open(&p, workdir_path(&w, "l"));
	planned_make(&p, "type=lens new=lens_new free=lens_free counter=lens.refs", NULL);
	assert_int_equal(points_in(&p, "keep", RT_OP_GET), 1);
	assert_int_equal(points_in(&p, "drop", RT_OP_PUT), 1);
	assert_int_equal(points_in(&p, "assign", RT_OP_GET), 0);
	/* compilers make one addition of two */
	assert_int_equal(points_in(&p, "both", RT_OP_GET), 1);
	planned_close(&p);
	workdir_remove(&w);
}

/* No function makes such objects: who allocates one stores its first count. Where one does, or it is 0, that is none.
 */
TEST(first_counts_make_objects)
{
	static const char made[] =
		"#include <stdlib.h>\n"
		"struct table { char *name; int refs; struct table *next; };\n"
		"__attribute__((noinline)) void table_lock(struct table *t) { t->refs++; }\n"
		"__attribute__((noinline)) void table_unlock(struct table *t) { if (!--t->refs) free(t); }\n"
		"__attribute__((noinline)) struct table *table_new(void) { struct table *t = calloc(1, sizeof(*t));\n"
		"  t->refs = 1; return t; }\n"
		"__attribute__((noinline)) int load(struct table **to, char *name, int (*init)(struct table *)) {\n"
		"  struct table *t = calloc(1, sizeof(*t)); if (!t) return 1; t->name = name;\n"
		"  if (init(t)) { free(t); return 1; } t->refs = 1; t->next = *to; *to = t; return 0; }\n"
		"__attribute__((noinline)) void forget(struct table *t) { t->refs = 0; }\n"
		"static int none(struct table *t) { return !t; }\n"
		"int main(int argc, char **argv) { struct table *all = 0, *own = table_new(); load(&all, argv[0], "
		"none);\n"
		"  table_lock(all); table_unlock(all); table_unlock(all); table_unlock(own); forget(own); return argc; "
		"}\n";
	static const char *const told[] = {
		"type=table get=table_lock put=table_unlock counter=table.refs",
		"type=table get=table_lock put=table_unlock counter=table.refs start=0",
		"type=table new=table_new get=table_lock put=table_unlock counter=table.refs"
	};
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "t.c", made);
	workdir_run(&w, "gcc -O2 -g -o t t.c");
	for (size_t i = 0; i < 3; i++) {
		print_message("%s\n", told[i]);
		planned_open(&p, workdir_path(&w, "t"));
		planned_make(&p, told[i], NULL);
		assert_int_equal(points_in(&p, "load", RT_OP_NEW), i == 0);
		assert_int_equal(points_in(&p, "table_new", RT_OP_NEW), i != 1);
		assert_int_equal(points_in(&p, "forget", RT_OP_NEW), 0);
		planned_close(&p);
	}
	workdir_remove(&w);
}

/*
 * What is counted was read from an array, from where a register was kept, from a pointer to a pointer, or was just
 * returned: no variable is where it is, and its type follows from what it was read from. Of what is read from a void *,
 * nothing does.
 */
TEST(counting_what_no_variable_holds)
{
	static const char source[] =
		"#include <stdlib.h>\n"
		"struct node { int refs; struct node *up; struct node **kids; };\n"
		"struct tree { int depth; struct node *nodes[4]; };\n"
		"__attribute__((noinline)) struct node *node_new(void)\n"
		"{ struct node *n = calloc(1, sizeof(*n)); n->refs = 1; return n; }\n"
		"__attribute__((noinline)) void node_ref(struct node *n) { n->refs++; }\n"
		"__attribute__((noinline)) void node_unref(struct node *n) { if (!--n->refs) free(n); }\n"
		"__attribute__((noinline)) struct node *find(struct tree *t, int i) { __asm__ volatile(\"\" ::: "
		"\"memory\"); return t->nodes[i]; }\n"
		"__attribute__((noinline)) void all(struct node **v, int n) { for (int i = 0; i < n; i++) "
		"v[i]->refs++; }\n"
		"__attribute__((noinline)) void kids(struct tree *t, int i, int k) { t->nodes[i]->kids[k]->refs++; }\n"
		"__attribute__((noinline)) void found(struct tree *t, int i) { find(t, i)->refs++; }\n"
		"__attribute__((noinline)) void anything(void **v, int n) { for (int i = 0; i < n; i++) ++*(int "
		"*)v[i]; }\n"
		"int main(int argc, char **argv) { struct tree t = { 0 }; struct node *n = node_new(), *v[1] = { n };\n"
		"  t.nodes[0] = n; n->kids = v; all(v, 1); kids(&t, 0, 0); found(&t, 0); anything((void **)v, 1); "
		"node_ref(n);\n"
		"  node_unref(n); return n->refs; }\n";
	static const char *const builds[] = { "gcc -O2 -g", "gcc -O1 -g", "clang-14 -O2 -g" };

	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		struct workdir w;
		struct planned p;

		print_message("%s\n", builds[i]);
		workdir_make(&w);
		workdir_write(&w, "n.c", source);
		workdir_run(&w, "%s -o n n.c", builds[i]);
		planned_open(&p, workdir_path(&w, "n"));
		planned_make(&p, "type=node new=node_new get=node_ref put=node_unref", NULL);
		assert_true(points_in(&p, "all", RT_OP_GET));
		assert_true(points_in(&p, "kids", RT_OP_GET));
		assert_true(points_in(&p, "found", RT_OP_GET));
		assert_int_equal(maybes_in(&p, "all"), 0);
		assert_int_equal(maybes_in(&p, "kids"), 0);
		assert_int_equal(maybes_in(&p, "found"), 0);
		assert_int_equal(maybes_in(&p, "anything"), points_in(&p, "anything", RT_OP_GET));
		planned_close(&p);
		workdir_remove(&w);
	}
}

/* Without debug information nothing says what a register points to. */
TEST(nothing_is_guessed)
{
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "n.c", code);
	workdir_run(&w, "gcc -O2 -o n n.c");
	planned_open(&p, workdir_path(&w, "n"));
	planned_make(&p, "type=node new=node_new get=node_ref put=node_unref", NULL);
	assert_int_equal(p.plan->types.data[0].counter_offset, 4);
	assert_int_equal(points_in(&p, "adopt", RT_OP_GET), 0);
	assert_int_equal(points_in(&p, "leave", RT_OP_PUT), 0);
	planned_close(&p);
	workdir_remove(&w);
}

/* A constructor that says how it went, and leaves the object where its caller wants it or made room. */
TEST(constructors_that_return_a_status)
{
	static const char status[] =
		"#include <stdlib.h>\n"
		"struct obj { int refs; char text[12]; };\n"
		"int obj_new(const char *name, struct obj **ret) { struct obj *o = calloc(1, sizeof(*o));\n"
		"  if (!o) return -1; o->refs = 1; o->text[0] = name[0]; *ret = o; return 0; }\n"
		"void obj_init(struct obj *o) { o->refs = 1; }\n"
		"_Bool obj_find(int n, struct obj **ret) { static struct obj all[3]; if (n > 2) return 0;\n"
		"  all[n].refs++; *ret = &all[n]; return 1; }\n"
		"struct obj *obj_dup(struct obj *o) { struct obj *n = malloc(sizeof(*n)); *n = *o; n->refs = 1; return "
		"n; }\n"
		"void obj_get(struct obj *o) { o->refs++; }\nvoid obj_put(struct obj *o) { if (!--o->refs) free(o); "
		"}\n";
	const struct rt_point *point;
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "o.c", status);
	workdir_run(&w, "gcc -O2 -g -fPIC -shared -o o.so o.c");
	planned_open(&p, workdir_path(&w, "o.so"));
	planned_make(&p, "type=o new=obj_new,obj_init,obj_dup hidden=obj_find get=obj_get put=obj_put", NULL);
	point = planned_point(&p, "obj_new");
	assert_int_equal(point->place, RT_PLACE_OUT);
	assert_int_equal(point->reg, RT_REG_RSI);
	assert_int_equal(point->condition, RT_IF_NOT_NEGATIVE);
	point = planned_point(&p, "obj_init");
	assert_int_equal(point->place, RT_PLACE_ARG);
	assert_int_equal(point->reg, RT_REG_RDI);
	assert_int_equal(planned_point(&p, "obj_dup")->place, RT_PLACE_RET);
	point = planned_point(&p, "obj_find");
	assert_int_equal(point->place, RT_PLACE_OUT);
	assert_int_equal(point->condition, RT_IF_NONZERO);
	planned_close(&p);
	workdir_remove(&w);
}

/* gcc inlines the beginning of the get, and leaves a rare way through it as a function of its own */
static const char split[] =
	"#include <stdlib.h>\n"
	"#include <stdio.h>\n"
	"struct obj { long n; int refs; };\n"
	"struct obj *current;\n"
	"__attribute__((noinline)) void lock(void) { fflush(stdout); }\n"
	"__attribute__((noinline)) struct obj *obj_new(void) { struct obj *o = calloc(1, sizeof(*o)); o->refs = 1; "
	"return o; }\n"
	"struct obj *obj_get(struct obj *o)\n"
	"{\n"
	"  if (!o) {\n"
	"    lock();\n"
	"    o = current;\n"
	"    if (!o) { lock(); o = obj_new(); lock(); current = o; printf(\"made\\n\"); lock(); }\n"
	"    o->refs++;\n"
	"    lock();\n"
	"    printf(\"%ld\\n\", o->n);\n"
	"  } else {\n"
	"    o->refs++;\n"
	"  }\n"
	"  return o;\n"
	"}\n"
	"__attribute__((noinline)) void obj_put(struct obj *o) { if (--o->refs == 0) free(o); }\n"
	"__attribute__((noinline)) long a(struct obj *o) { long n; o = obj_get(o); n = o->n; obj_put(o); return n; }\n"
	"__attribute__((noinline)) long b(struct obj *o) { long n; o = obj_get(o); n = o->n + 1; obj_put(o); return n; "
	"}\n"
	"__attribute__((noinline)) long c(struct obj *o) { long n; o = obj_get(o); n = o->n + 2; obj_put(o); return n; "
	"}\n"
	"int main(void) { long n = a(NULL) + b(NULL) + c(current); obj_put(current); return (int)n & 0; }\n";

TEST(rest_of_a_split_get)
{
	struct workdir w;
	struct planned p;
	const struct rt_symbol *rest;
	unsigned found = 0;

	workdir_make(&w);
	workdir_write(&w, "prog.c", split);
	workdir_run(&w, "gcc -O2 -g -o prog prog.c");
	planned_open(&p, workdir_path(&w, "prog"));
	planned_make(&p, "type=obj new=obj_new:ret get=obj_get:ret put=obj_put", NULL);
	rest = rt_symtab_find(p.symtab, "obj_get.part.0");
	assert_non_null(rest);
	for (size_t i = 0; i < p.plan->points.len; i++) {
		const struct rt_point *point = &p.plan->points.data[i];

		if (point->op != RT_OP_GET || point->address.v < rest->addr.v ||
		    point->address.v >= rest->addr.v + rest->size)
			continue;
		assert_int_equal(point->delta, 1);
		assert_int_equal(point->flags, RT_EV_INLINE);
		/* its caller is who takes the reference */
		assert_string_equal(point->name, "obj_get");
		found++;
	}
	assert_int_equal(found, 1);
	planned_close(&p);
	workdir_remove(&w);
}

/* Compilers store the sum of what they know: who was compared with 0 and gets one more is 1 then. */
TEST(sums_that_are_known)
{
	static const char source[] =
		"#include <stdlib.h>\n"
		"struct node { int id; unsigned refs; };\nextern void note(struct node *);\n"
		"extern struct node *node_find(int id);\n"
		"struct node *node_new(int id) { struct node *n = malloc(sizeof(*n)); n->id = id; n->refs = 0; return "
		"n; }\n"
		"void node_put(struct node *n) { if (!--n->refs) free(n); }\n"
		"void first(struct node *n) { note(n); if (n->refs == 0) { n->refs++; note(n); } }\n"
		"void first_by_two(struct node *n) { note(n); if (!n->refs) { n->refs++; n->refs++; note(n); } }\n"
		"void third(struct node *n) { if (n->refs != 2) note(n); else n->refs++; }\n"
		"struct node *found(int id) { struct node *n = node_find(id); if (!n->refs) n->refs++; note(n); return "
		"n; }\n"
		"void last(struct node *n) { if (n->refs == 1) { n->refs = 0; note(n); } }\n"
		"void reset(struct node *n) { n->refs = 1; note(n); }\n"
		"void by_id(struct node *n) { if (!n->id) { n->refs = 1; note(n); } }\n"
		"void behind(struct node *n) { if (!n->refs) { note(n); n->refs = 1; note(n); } }\n"
		"void either(struct node *n, int x) { if (!n->refs || x) { n->refs = 1; note(n); } }\n"
		"void masked(struct node *n) { if (!(n->refs & 1)) { n->refs = 1; note(n); } }\n";
	static const char *const builds[] = { "gcc -O2 -g", "gcc -O1 -g", "clang-14 -O2 -g" };

	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		struct workdir w;
		struct planned p;

		print_message("%s\n", builds[i]);
		workdir_make(&w);
		workdir_write(&w, "k.c", source);
		workdir_run(&w, "%s -shared -fPIC -o k.so k.c", builds[i]);
		planned_open(&p, workdir_path(&w, "k.so"));
		planned_make(&p, "type=node new=node_new put=node_put", NULL);
		assert_int_equal(points_in(&p, "first", RT_OP_GET), 1);
		assert_int_equal(points_in(&p, "first_by_two", RT_OP_GET), 1);
		assert_int_equal(points_in(&p, "third", RT_OP_GET), 1);
		assert_int_equal(points_in(&p, "found", RT_OP_GET), 1);
		assert_int_equal(points_in(&p, "last", RT_OP_PUT), 1);
		assert_int_equal(points_in(&p, "reset", RT_OP_GET), 0);
		assert_int_equal(points_in(&p, "by_id", RT_OP_GET), 0);
		assert_int_equal(points_in(&p, "behind", RT_OP_GET), 0);
		assert_int_equal(points_in(&p, "either", RT_OP_GET), 0);
		assert_int_equal(points_in(&p, "masked", RT_OP_GET), 0);
		planned_close(&p);
		workdir_remove(&w);
	}
}

/*
 * Interpreters count in functions of many thousand instructions, between jumps that lead who knows where: to the
 * beginnings of what they choose from, and not between the instructions that read, change and store one count.
 */
TEST(counting_of_interpreters)
{
	static const char head[] =
		"#include <stdlib.h>\n"
		"struct node { int id; int refs; };\nextern void note(struct node *);\nextern int more(int);\n"
		"struct node *node_new(int id) { struct node *n = malloc(sizeof(*n)); n->id = id; n->refs = 1; return "
		"n; }\n"
		"void node_put(struct node *n) { if (!--n->refs) free(n); }\n"
		"#define TEN(x) x x x x x x x x x x\n"
		"int run(struct node *n, int op) { for (;;) switch (op) {\n"
		"  case 0: TEN(TEN(TEN(op = more(op); op = more(op); op = more(op);))) break;\n"
		"  case 1: op = more(7); break; case 2: return 3; case 3: op = more(op + 4); break;\n"
		"  case 4: if (n->refs-- <= 1) note(n); op = more(1); break;\n"
		"  case 5: op = more(op * 3); break; case 6: note(n); op = 4; break; case 7: op = more(9); break;\n"
		"  default: return 1; } }\n";
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "i.c", head);
	workdir_run(&w, "gcc -O2 -g -fno-crossjumping -shared -fPIC -o i.so i.c");
	planned_open(&p, workdir_path(&w, "i.so"));
	planned_make(&p, "type=node new=node_new put=node_put", NULL);
	assert_true(rt_symtab_find(p.symtab, "run")->size > 16384);
	assert_int_equal(points_in(&p, "run", RT_OP_PUT), 1);
	planned_close(&p);
	workdir_remove(&w);
}

static unsigned points_named(struct planned *p, const char *name)
{
	unsigned n = 0;

	for (size_t i = 0; i < p->plan->points.len; i++)
		n += !strcmp(p->plan->points.data[i].name, name);
	return n;
}

/*
 * What is inlined, is given nothing but the object, and says by its name that it counts, counts for who calls it. What
 * is given something that it may take it for, or has another purpose, is who takes the reference.
 */
TEST(helpers_that_count_for_their_callers)
{
	static const char source[] =
		"#define INLINE static inline __attribute__((always_inline))\n"
		"struct node { int id; unsigned refs; };\nstruct tree { struct node *root; };\n"
		"extern void note(void *);\n"
		"INLINE unsigned add(unsigned *count) { return __atomic_add_fetch(count, 1, 5); }\n"
		"INLINE struct node *node_keep(const char *why, struct node *n) { note((void *)why); add(&n->refs); "
		"return n; }\n"
		"INLINE void tree_take(struct tree *t, struct node *n) { t->root = n; add(&n->refs); }\n"
		"INLINE void observe(struct node *n) { note(n); add(&n->refs); }\n"
		"void node_put(struct node *n) { if (!__atomic_sub_fetch(&n->refs, 1, 5)) note(n); }\n"
		"void one(struct node *n) { note(n); note(node_keep(\"one\", n)); }\n"
		"void two(struct node *n, struct tree *t) { note(t); note(node_keep(\"two\", n)); tree_take(t, n); }\n"
		"void three(struct node *n) { note(n); observe(n); note(n); }\n";
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "h.c", source);
	workdir_run(&w, "gcc -O2 -g -shared -fPIC -o h.so h.c");
	planned_open(&p, workdir_path(&w, "h.so"));
	planned_make(&p, "type=node put=node_put counter=node.refs", NULL);
	assert_int_equal(points_in(&p, "one", RT_OP_GET), 1);
	assert_int_equal(points_in(&p, "two", RT_OP_GET), 2);
	assert_int_equal(points_in(&p, "three", RT_OP_GET), 1);
	assert_int_equal(points_named(&p, "node_keep"), 2);
	/* those are just given the counter: who calls them takes it */
	assert_int_equal(points_named(&p, "add"), 2);
	planned_close(&p);
	workdir_remove(&w);
}

/*
 * The pointer into the object is made in one case of a switch, or before that, and nothing else leads to where it is
 * counted through it: the table of the switch says so. Where another case makes it point elsewhere, it is not known.
 */
TEST(where_a_switch_leads)
{
	static const char source[] =
		"struct node { int id; unsigned refs; };\n"
		"extern void note(void *), *more(int);\n"
		"#define HIDE(r) __asm__(\"\" : \"+r\"(r))\n"
		"#define CASES case 1: note(n); break; case 2: note(more(3)); break; case 3: note(more(9)); break; "
		"case 4: more(1); break; case 5: more(8); note(n); break;\n"
		"void node_put(struct node *n) { if (!--n->refs) note(n); }\n"
		"void within(struct node *n, int op) { unsigned *r; switch (op) { CASES\n"
		"  case 6: note(n); r = &n->refs; HIDE(r); note(n); (*r)++; note(r); n->id = 3; break; case 7: "
		"more(7); } "
		"note(n); "
		"}\n"
		"void before(struct node *n, int op) { unsigned *r; note(n); r = &n->refs; HIDE(r); switch (op) { "
		"CASES\n"
		"  case 6: note(r); (*r)++; n->id = 3; break; case 7: more(7); } note(n); }\n"
		"void either(struct node *n, int op, unsigned *o) { unsigned *r; note(n); r = &n->refs; HIDE(r); "
		"switch (op) { "
		"CASES\n"
		"  case 7: r = o; HIDE(r); more(7); /* fallthrough */\n"
		"  case 6: note(r); (*r)++; n->id = 3; } note(n); }\n";
	static const char *const builds[] = {
		"gcc -O2 -g -shared -fPIC", "clang-14 -O2 -g -shared -fPIC",
		"gcc -O2 -g -no-pie -fno-pic -nostdlib -Wl,--unresolved-symbols=ignore-all -Wl,-e,node_put"
	};

	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		struct workdir w;
		struct planned p;

		print_message("%s\n", builds[i]);
		workdir_make(&w);
		workdir_write(&w, "s.c", source);
		workdir_run(&w, "%s -o s.so s.c", builds[i]);
		workdir_run(&w, "objdump -d s.so | grep -q 'jmp *[*]'");
		planned_open(&p, workdir_path(&w, "s.so"));
		planned_make(&p, "type=node put=node_put counter=node.refs", NULL);
		assert_int_equal(points_in(&p, "within", RT_OP_GET), 1);
		assert_int_equal(points_in(&p, "before", RT_OP_GET), 1);
		assert_int_equal(points_in(&p, "either", RT_OP_GET), 0);
		planned_close(&p);
		workdir_remove(&w);
	}
}

/*
 * A constructor that is told, and inlined wherever it is called: its result is seen nowhere, and the count that it
 * takes is what makes the object. It is counted through what begins with the structure.
 */
TEST(constructors_that_are_seen_by_their_count)
{
	static const char source[] =
		"#include <stdlib.h>\n"
		"#define INLINE static inline __attribute__((always_inline))\n"
		"struct node { int id; int refs; };\nstruct big { struct node base; long more[4]; };\n"
		"struct other { int id; int refs; };\n"
		"extern void note(void *);\n"
		"INLINE int big_make(struct big **out, int id) { struct big *b = calloc(1, sizeof(*b)); if (!b) return "
		"-1; "
		"note(b); b->base.refs++; *out = b; return 0; }\n"
		"void node_put(struct node *n) { if (!--n->refs) free(n); }\n"
		"int by_id(struct big **ret, int id) { return id ? big_make(ret, id) : 1; }\n"
		"void hold(struct big *b) { note(b); b->base.refs++; note(b); }\n"
		"void hold_other(struct other *o) { note(o); o->refs++; note(o); }\n";
	static const char *const builds[] = { "gcc -O2 -g", "gcc -O1 -g", "clang-14 -O2 -g" };

	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		struct workdir w;
		struct planned p;

		print_message("%s\n", builds[i]);
		workdir_make(&w);
		workdir_write(&w, "k.c", source);
		workdir_run(&w, "%s -shared -fPIC -o k.so k.c", builds[i]);
		planned_open(&p, workdir_path(&w, "k.so"));
		planned_make(&p, "type=node new=big_make:out*1 put=node_put counter=node.refs", NULL);
		assert_int_equal(points_in(&p, "by_id", RT_OP_NEW), 1);
		assert_int_equal(points_in(&p, "by_id", RT_OP_GET), 0);
		assert_int_equal(points_in(&p, "hold", RT_OP_GET), 1);
		assert_int_equal(points_in(&p, "hold", RT_OP_NEW), 0);
		assert_int_equal(points_in(&p, "hold_other", RT_OP_GET), 0);
		planned_close(&p);
		workdir_remove(&w);
	}
}

TEST_MAIN();
