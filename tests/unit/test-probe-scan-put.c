/* SPDX-License-Identifier: GPL-2.0-only */
/* Families of which names tell only a half, or nothing: who gives back is known, the rest is what code does. */
#include "planned.h"

static const struct rt_scan_options all = { 0 };

static void scan(struct workdir *w, struct planned *p, const char *code, const char *how)
{
	print_message("%s\n", how);
	workdir_make(w);
	workdir_write(w, "prog.c", code);
	workdir_run(w, "%s -g -o prog prog.c", how);
	planned_open(p, workdir_path(w, "prog"));
	assert_ok(rt_scan_module(&p->module, &all, &p->spec));
}

static void done(struct workdir *w, struct planned *p)
{
	planned_close(p);
	workdir_remove(w);
}

static const char *const builds[] = { "gcc -O2", "clang-14 -O2", "gcc -O0" };

/* Constructors leave objects where they are told, from an allocator that may be another one. */
static const char leavers[] =
	"#include <stdlib.h>\n#define API __attribute__((noinline))\n"
	"struct own { void *(*get)(size_t); void (*give)(void *); };\n"
	"static struct own own = { malloc, free };\nAPI void choose(struct own *o) { own = *o; }\n"
	"struct buf { char *base; unsigned long len; int ref; };\n"
	"API void buf_incref(struct buf *b) { b->ref++; }\n"
	"API void buf_decref(struct buf *b) { if (--b->ref == 0) own.give(b); }\n"
	"API int buf_new(struct buf **ret, unsigned long len) { struct buf *b = malloc(sizeof(*b) + len); if (!b) "
	"return -1;\n"
	"  *ret = b; (*ret)->base = (char *)(b + 1); (*ret)->len = len; (*ret)->ref = 1; return 0; }\n"
	"API _Bool buf_chosen(int n, struct buf **ret) { struct buf *b = own.get(sizeof(*b)); if (!b) return 0; b->len "
	"= n;\n"
	"  b->ref = 1; *ret = b; return 1; }\n"
	/* makes one for itself, and leaves another; finds one or makes it; leaves one that it was given */
	"static struct buf *first, *spare;\n"
	"API int buf_swap_first(struct buf **ret) { struct buf *b = malloc(sizeof(*b)); b->ref = 1; spare = b; *ret = "
	"first;\n"
	"  return 0; }\n"
	"API int buf_find(struct buf **ret) { struct buf *b = first; if (!b) { b = malloc(sizeof(*b)); b->ref = 1; } "
	"*ret = b;\n"
	"  return 0; }\n"
	"API int buf_dup(struct buf **ret, struct buf *b) { b->ref++; *ret = b; return 0; }\n"
	"API int buf_replace(struct buf **slot, struct buf *b) { struct buf *old = *slot; if (b) b->ref++; *slot = b;\n"
	"  if (old && --old->ref == 0) free(old); return 0; }\n"
	/* takes a reference to the one that it finds, or makes one */
	"API int buf_acquire(struct buf *like, int n, struct buf **ret) { struct buf *b = first; if (b && n) { "
	"b->ref++; "
	"*ret = b;\n  return 0; } b = malloc(sizeof(*b)); if (!b) return -1; b->len = like->len; b->ref = 1; first = "
	"*ret = b; "
	"return 0; }\n"
	/* takes one of its own, and returns something else; takes one, or makes one */
	"API struct buf *buf_copy(int how, struct buf *b) { struct buf *n; if (how) { b->ref++; return b; }\n"
	"  n = malloc(sizeof(*n)); n->ref = 1; return n; }\n"
	/* by the name one of these; one of others; and what is none */
	"API void *buf_create_view(void *of) { struct buf *b = malloc(sizeof(*b)); if (!b) return 0; b->base = of;\n"
	"  b->len = 0; b->ref = 1; return b; }\n"
	"API void *page_create(void *of) { struct buf *b = malloc(sizeof(*b)); b->base = of; b->ref = 1; return b; }\n"
	"API void *buf_make_index(struct buf *b) { long *n = malloc(40); n[0] = b->len; n[4] = 1; return n; }\n"
	"API int buf_get_length(int *ret, struct buf *b) { b->ref++; *ret = b->len; return 0; }\n"
	"int main(void) { struct buf *a, *b = 0; int n; choose(&own); buf_new(&a, 1); buf_incref(a); buf_decref(a);\n"
	"  buf_chosen(1, &a); buf_swap_first(&a); buf_find(&a); buf_dup(&b, a); buf_acquire(a, 3, &b); buf_replace(&b, "
	"a);\n"
	"  page_create(buf_create_view(buf_make_index(a)));\n"
	"  return buf_get_length(&n, buf_copy(n, a)); }\n";

TEST(constructors_that_return_a_status)
{
	for (size_t i = 0; i < 3; i++) {
		const struct rt_spec_type *buf;
		struct workdir w;
		struct planned p;

		scan(&w, &p, leavers, builds[i]);
		buf = rt_spec_type_named(&p.spec, "buf");
		assert_non_null(planned_function(buf, "buf_new"));
		assert_int_equal(planned_function(buf, "buf_new")->op, RT_OP_NEW);
		assert_int_equal(planned_function(buf, "buf_new")->place, RT_PLACE_OUT);
		assert_int_equal(planned_function(buf, "buf_new")->condition, RT_IF_NOT_NEGATIVE);
		assert_non_null(planned_function(buf, "buf_chosen"));
		assert_int_equal(planned_function(buf, "buf_chosen")->arg, 2);
		assert_int_equal(planned_function(buf, "buf_chosen")->condition, RT_IF_NONZERO);
		assert_null(planned_function(buf, "buf_swap_first"));
		assert_null(planned_function(buf, "buf_find"));
		assert_int_equal(planned_function(buf, "buf_acquire")->op, RT_OP_GET);
		assert_int_equal(planned_function(buf, "buf_acquire")->arg, 3);
		assert_true(planned_function(buf, "buf_acquire")->hidden);
		assert_int_equal(planned_function(buf, "buf_dup")->op, RT_OP_GET);
		assert_int_equal(planned_function(buf, "buf_dup")->arg, 2);
		assert_int_equal(planned_function(buf, "buf_replace")->op, RT_OP_SWAP);
		assert_non_null(planned_function(buf, "buf_create_view"));
		assert_int_equal(planned_function(buf, "buf_create_view")->op, RT_OP_NEW);
		assert_null(planned_function(buf, "page_create"));
		assert_null(planned_function(buf, "buf_make_index"));
		assert_null(planned_function(buf, "buf_get_length"));
		assert_null(planned_function(buf, "buf_copy"));
		done(&w, &p);
	}
}

/* Nobody but the put is a function of its own: the count begins in a constructor, and goes up in the open. */
static const char puts_only[] =
	"#include <stdlib.h>\n#define API __attribute__((noinline))\n"
	"typedef struct Img { struct Img *parent; int kind; int ref_count; } Img;\n"
	"API int img_end(Img *e) { if (!e) return 0; if (e->ref_count && --e->ref_count) return e->ref_count;\n"
	"  if (e->parent) { img_end(e->parent); free(e); return 0; } free(e); return 0; }\n"
	"API Img *img_read(int kind, Img *parent) { Img *e = calloc(1, sizeof(*e)); e->kind = kind; e->ref_count = 1;\n"
	"  if (parent) { parent->ref_count++; e->parent = parent; } return e; }\n"
	"API Img *img_writable(Img *e) { Img *n; if (e->ref_count == 1) return e; n = malloc(sizeof(*n)); n->ref_count "
	"= 1;\n"
	"  e->ref_count--; return n; }\n"
	/* the counter and whom it belongs to */
	"struct counted { int refcount; void *owner; };\n"
	"struct tree { int depth; struct counted rc; struct tree *up; };\n"
	"static void tree_release(struct tree *t) { if (t->depth) free(t->rc.owner); free(t); }\n"
	"API void tree_close(struct tree *t) { if (__atomic_sub_fetch(&t->rc.refcount, 1, 5) <= 0) tree_release(t); }\n"
	"API struct tree *tree_top(struct tree *t) { while (t->up) t = t->up;\n"
	"  __atomic_fetch_add(&t->rc.refcount, 1, 5); return t; }\n"
	/* how many are in it, not who holds it */
	"struct bag { struct counted *of; int count; };\n"
	"API struct bag *bag_new(void) { struct bag *b = malloc(sizeof(*b)); b->count = 1; return b; }\n"
	"API void bag_close(struct bag *b) { while (b->count) b->count--; free(b); }\n"
	/* what is put and never got is no count of references: lives that are left, say */
	"struct cat { int refs; };\nAPI void cat_free(struct cat *c) { if (--c->refs == 0) free(c); }\n"
	"int main(int argc, char **argv) { Img *e = img_read(1, img_read(0, 0)); struct bag *b = bag_new();\n"
	"  static struct cat c; cat_free(&c); tree_close(tree_top(calloc(1, sizeof(struct tree)))); "
	"bag_close(b);\n"
	"  return img_end(img_writable(e)); }\n";

TEST(puts_alone)
{
	for (size_t i = 0; i < 2; i++) {
		const struct rt_spec_type *img, *tree;
		struct workdir w;
		struct planned p;

		scan(&w, &p, puts_only, builds[i]);
		img = rt_spec_type_named(&p.spec, "Img");
		tree = rt_spec_type_named(&p.spec, "tree");
		assert_non_null(img);
		assert_int_equal(planned_function(img, "img_end")->op, RT_OP_PUT);
		assert_non_null(planned_function(img, "img_read"));
		assert_int_equal(planned_function(img, "img_read")->op, RT_OP_NEW);
		assert_null(planned_function(img, "img_writable"));
		assert_non_null(tree);
		assert_int_equal(planned_function(tree, "tree_close")->op, RT_OP_PUT);
		/* it sounds like a put, and counts nothing */
		assert_null(planned_function(tree, "tree_release"));
		assert_true(rt_spec_type_named(&p.spec, "bag")->owned);
		assert_null(rt_spec_type_named(&p.spec, "cat"));
		assert_int_equal(p.spec.types.len, 3);
		planned_make(&p, NULL, NULL);
		assert_int_equal(p.plan->types.data[2].counter_offset, RT_COUNTER_UNKNOWN);
		assert_int_equal(p.plan->types.data[0].counter_size + p.plan->types.data[1].counter_size, 8);
		done(&w, &p);
	}
}

/* Whatever it is, it is given as a void *, and only inlined: what the functions are called by is a struct with a
 * counter. */
static const char by_name[] =
	"#include <stdlib.h>\n"
	"struct cached { long size; int flags; int refcount; }; struct commit { struct cached cached; int parents; };\n"
	"static inline void cached_incref(void *o) { __atomic_fetch_add(&((struct cached *)o)->refcount, 1, 5); }\n"
	"static inline void cached_decref(void *o) { if (!__atomic_sub_fetch(&((struct cached *)o)->refcount, 1, 5)) "
	"free(o); }\n"
	"static inline void any_incref(void *o) { ++*(int *)o; }\nstatic inline void any_decref(void *o) { --*(int "
	"*)o; }\n"
	"void keep(struct commit *c, int *n) { cached_incref(c); any_incref(n); }\n"
	"void drop(struct commit *c, int *n) { cached_decref(c); any_decref(n); }\n"
	"int main(void) { struct commit *c = calloc(1, sizeof(*c)); int n = 0; keep(c, &n); drop(c, &n); return n; }\n";

TEST(void_pointers_to_what_the_name_says)
{
	struct workdir w;
	struct planned p;

	scan(&w, &p, by_name, "gcc -O2");
	assert_int_equal(p.spec.types.len, 1);
	assert_string_equal(p.spec.types.data[0].name, "cached");
	assert_int_equal(planned_function(&p.spec.types.data[0], "cached_incref")->op, RT_OP_GET);
	planned_make(&p, NULL, NULL);
	assert_int_equal(p.plan->types.data[0].counter_offset, 12);
	done(&w, &p);
}

/*
 * Macros count wherever they are used, and one function ends what nobody refers to any more. What is counted up only,
 * and what no function is seen to end (its 0 may be no end), is no family.
 */
static const char in_the_open[] =
	"#include <stdlib.h>\n#define API __attribute__((noinline))\n"
	"struct job { long id; int refcount; char *name; };\n"
	"#define JOB_KEEP(j) ((j)->refcount++)\n"
	"#define JOB_DROP(j) do { if (--(j)->refcount == 0) job_destroy_final(j); } while (0)\n"
	"API void job_destroy_final(struct job *j) { free(j->name); free(j); }\n"
	"API struct job *job_new(long id) { struct job *j = calloc(1, sizeof(*j)); if (!j) return 0; j->id = id;\n"
	"  j->refcount = 1; return j; }\n"
	"struct work { struct job *job; int n; };\n"
	"API void work_on(struct work *w, struct job *j) { JOB_KEEP(j); w->job = j; w->n++; }\n"
	"API void work_over(struct work *w) { struct job *j = w->job; w->job = 0; JOB_DROP(j); }\n"
	"struct seen { long id; int refcnt; };\nAPI void look_at(struct seen *s) { s->refcnt++; s->id = 7; }\n"
	"API void seen_free(struct seen *s) { free(s); }\n"
	"struct gate { long id; int refs; int closed; };\n"
	"API void come(struct gate *g) { g->refs++; g->id = 1; }\n"
	"API void leave(struct gate *g) { if (--g->refs == 0 && g->closed) g->id = 0; }\n"
	"int main(void) { struct work w = { 0 }; struct job *j = job_new(1); struct gate g = { 0 };\n"
	"  struct seen *s = malloc(sizeof(*s)); work_on(&w, j); work_over(&w); JOB_DROP(j); look_at(s); seen_free(s);\n"
	"  come(&g); leave(&g); return w.n; }\n";

TEST(counted_in_the_open)
{
	for (size_t i = 0; i < 2; i++) {
		const struct rt_spec_type *job;
		struct workdir w;
		struct planned p;
		unsigned gets = 0, puts = 0;

		scan(&w, &p, in_the_open, builds[i]);
		job = rt_spec_type_named(&p.spec, "job");
		assert_non_null(job);
		assert_int_equal(job->functions.len, 2);
		assert_int_equal(planned_function(job, "job_new")->op, RT_OP_NEW);
		assert_int_equal(planned_function(job, "job_destroy_final")->op, RT_OP_FREE);
		assert_int_equal(job->counter_offset, 8);
		assert_null(rt_spec_type_named(&p.spec, "seen"));
		assert_null(rt_spec_type_named(&p.spec, "gate"));
		planned_make(&p, NULL, NULL);
		for (size_t k = 0; k < p.plan->points.len; k++) {
			gets += p.plan->points.data[k].op == RT_OP_GET;
			puts += p.plan->points.data[k].op == RT_OP_PUT;
		}
		assert_int_equal(gets, 1);
		assert_int_equal(puts, 2);
		done(&w, &p);
	}
}

/* An allocator whose references belong to holders; and functions that only sound like those of one. */
static const char holders[] =
	"#include <stdlib.h>\n#include <string.h>\n#define API __attribute__((noinline))\n"
	"struct chunk { struct chunk *parent, *refs; long size; };\n#define CHUNK(p) ((struct chunk *)(p) - 1)\n"
	"API void *_mem_alloc(const void *holder, long size) { struct chunk *c = malloc(sizeof(*c) + size);\n"
	"  if (!c) return 0; c->parent = (void *)holder; c->refs = 0; c->size = size; return c + 1; }\n"
	"API void *mem_zero(const void *holder, long size) { void *p = _mem_alloc(holder, size);\n"
	"  return p ? memset(p, 0, size) : 0; }\n"
	"API void *mem_parent(const void *p) { return CHUNK(p)->parent; }\n"
	"API void *mem_realloc(const void *holder, void *p, long size) { return realloc(CHUNK(p), size); }\n"
	"API void *_mem_reference_at(const void *holder, const void *p, const char *place) {\n"
	"  struct chunk *c = malloc(sizeof(*c)); c->parent = (void *)holder; c->refs = CHUNK(p)->refs;\n"
	"  CHUNK(p)->refs = c; return (void *)p; }\n"
	"API int mem_unlink(const void *holder, void *p) { struct chunk **at = &CHUNK(p)->refs, *c;\n"
	"  while ((c = *at)) { if (c->parent == holder) { *at = c->refs; free(c); return 0; } at = &c->refs; } return "
	"-1; }\n"
	"API int _mem_free(void *p, const char *place) { free(CHUNK(p)); return 0; }\n"
	"API void mem_free_children(void *p) { CHUNK(p)->refs = 0; }\n"
	/* takes things out of a list: nothing is ever referenced there */
	"API int list_unlink(void *list, void *p) { *(void **)list = p; return 0; }\n"
	"API void *list_alloc(void *list) { return malloc(8); }\nAPI void list_free(void *list) { free(list); }\n"
	"int main(void) { void *a = _mem_alloc(0, 8), *b = mem_zero(a, 8), *l = list_alloc(0);\n"
	"  _mem_reference_at(a, b, \"x\"); mem_unlink(a, b); list_unlink(l, b); list_free(l); mem_free_children(a);\n"
	"  a = mem_realloc(0, mem_parent(b), 8); return _mem_free(b, \"x\"); }\n";

TEST(references_of_holders)
{
	static const char *const no[] = { "mem_parent", "mem_realloc", "mem_free_children" };

	for (size_t i = 0; i < 3; i++) {
		const struct rt_spec_type *mem;
		struct workdir w;
		struct planned p;

		scan(&w, &p, holders, builds[i]);
		assert_int_equal(p.spec.types.len, 1);
		mem = rt_spec_type_named(&p.spec, "mem");
		assert_non_null(mem);
		assert_int_equal(planned_function(mem, "_mem_reference_at")->op, RT_OP_GET);
		assert_int_equal(planned_function(mem, "_mem_reference_at")->arg, 2);
		assert_int_equal(planned_function(mem, "mem_unlink")->op, RT_OP_PUT);
		assert_int_equal(planned_function(mem, "mem_unlink")->arg, 2);
		assert_int_equal(planned_function(mem, "_mem_free")->op, RT_OP_PUT);
		assert_int_equal(planned_function(mem, "_mem_free")->arg, 1);
		assert_int_equal(planned_function(mem, "_mem_alloc")->op, RT_OP_NEW);
		assert_non_null(planned_function(mem, "mem_zero"));
		for (size_t k = 0; k < sizeof(no) / sizeof(no[0]); k++)
			assert_null(planned_function(mem, no[k]));
		done(&w, &p);
	}
}

/* A put that leaves the free() to a timer, of a type without a get; and add_ref() with remove_ref(), told who called.
 */
TEST(freed_later_and_by_whom)
{
	static const char code[] =
		"#include <stdlib.h>\n#define API __attribute__((noinline))\n"
		"struct client { char name[40]; int references; void *peer; };\n"
		"struct window { struct window *next; int references; };\n"
		"struct gauge { int level; int references; };\n"
		"static void (*later)(void *); static void *what;\n"
		"API void once(void (*call)(void *), void *with) { later = call; what = with; }\n"
		"API void say(const char *from, void *p) { if (!from) what = p; }\n"
		"static void client_free(void *p) { struct client *c = p; free(c->peer); free(c); }\n"
		"API struct client *client_create(void) { struct client *c = calloc(1, sizeof(*c)); c->references = 1; "
		"return c; }\n"
		"API void client_unref(struct client *c) { say(c->name, c); if (--c->references == 0) "
		"once(client_free, c); }\n"
		"API struct window *window_create(void) { struct window *w = calloc(1, sizeof(*w)); return w; }\n"
		"API void window_add_ref(struct window *w, const char *from) { w->references++; say(from, w); }\n"
		"API void window_remove_ref(struct window *w, const char *from) { say(from, w); if (--w->references == "
		"0) free(w); }\n"
		/* the name says of no reference, and nothing is freed */
		"API struct gauge *gauge_create(void) { struct gauge *g = calloc(1, sizeof(*g)); g->references = 1; "
		"return g; }\n"
		"API void gauge_drop(struct gauge *g) { if (--g->references == 0) once(client_free, g); }\n"
		"int main(void) { struct client *c = client_create(); struct window *w = window_create();\n"
		"  window_add_ref(w, __func__); c->references++; client_unref(c); client_unref(c); "
		"window_remove_ref(w, __func__);\n"
		"  gauge_drop(gauge_create()); later(what); return 0; }\n";

	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		const struct rt_spec_type *client, *window;
		struct workdir w;
		struct planned p;

		/* as where what it calls is in another file */
		scan(&w, &p, code, i ? builds[i] : "gcc -O2 -fno-ipa-ra");
		client = rt_spec_type_named(&p.spec, "client");
		window = rt_spec_type_named(&p.spec, "window");
		assert_non_null(client);
		assert_int_equal(planned_function(client, "client_unref")->op, RT_OP_PUT);
		assert_int_equal(planned_function(client, "client_create")->op, RT_OP_NEW);
		assert_non_null(window);
		assert_int_equal(planned_function(window, "window_add_ref")->op, RT_OP_GET);
		assert_int_equal(planned_function(window, "window_remove_ref")->op, RT_OP_PUT);
		assert_null(rt_spec_type_named(&p.spec, "gauge"));
		planned_close(&p);
		workdir_remove(&w);
	}
}

TEST_MAIN();
