/* SPDX-License-Identifier: GPL-2.0-only */
/* Families found in compiled programs, with and without debug info, and in installed libraries. */
#include "planned.h"

/* Two true families and six that only look like one. */
static const char program[] =
	"#include <stdlib.h>\n#define API __attribute__((noinline))\n"
	"struct thread { long id; int refcnt; };\n"
	"API static void thread__delete(struct thread *t) { free(t); }\n"
	"API struct thread *thread__new(int id) { struct thread *t = malloc(sizeof(*t)); t->id = id; t->refcnt = 1; "
	"return t; }\n"
	"API struct thread *thread__get(struct thread *t) { if (t) t->refcnt++; return t; }\n"
	"API void thread__put(struct thread *t) { if (t && --t->refcnt == 0) thread__delete(t); }\n"
	"API void thread__destroy(struct thread *t) { t->id = 0; }\n"
	"struct buf { char data[16]; unsigned long users; };\n"
	"API struct buf *buf_create(void) { struct buf *b = calloc(1, sizeof(*b)); b->users = 1; return b; }\n"
	"API struct buf *buf_ref(struct buf *b) { b->users += 1; return b; }\n"
	"API void buf_unref(struct buf *b) { b->users -= 1; if (!b->users) free(b); }\n"
	/* a queue, a stream of bits, a getter, a lock, a copy */
	"struct queue { void *items[8]; int len; };\n"
	"API void *queue_get(struct queue *q) { return q->items[--q->len]; }\n"
	"API void queue_put(struct queue *q, void *item) { q->items[q->len++] = item; }\n"
	"API int bits_get(struct queue *q, int n) { return q->len >> n; }\n"
	"API void bits_put(struct queue *q, int n) { q->len <<= n; }\n"
	"API int obj_get(struct queue *q) { return q->len; }\n"
	"API int obj_set(struct queue *q) { return q->len; }\n"
	"API void lock_acquire(int *l) { while (__atomic_exchange_n(l, 1, 2)); }\n"
	"API void lock_release(int *l) { __atomic_store_n(l, 0, 3); }\n"
	"API struct queue *queue_dup(struct queue *q) { struct queue *n = malloc(sizeof(*n)); *n = *q; return n; }\n"
	"API void queue_free(struct queue *q) { free(q); }\n"
	"API void queue_weak_ref(struct queue *q) { q->len |= 64; }\n"
	"API void queue_weak_unref(struct queue *q) { q->len &= ~64; }\n"
	"int main(int argc, char **argv) { struct thread *t = thread__new(1); struct buf *b = buf_create();\n"
	"  struct queue q = { { 0 }, 0 }; int l = 0;\n"
	"  thread__put(thread__get(t)); thread__destroy(t); buf_unref(buf_ref(b)); queue_put(&q, t);\n"
	"  lock_acquire(&l); lock_release(&l); queue_free(queue_dup(&q)); bits_put(&q, bits_get(&q, 1));\n"
	"  return queue_get(&q) == t && obj_get(&q) + obj_set(&q); }\n";

static void open_program(struct workdir *w, struct planned *p, const char *how)
{
	workdir_make(w);
	workdir_write(w, "prog.c", program);
	workdir_run(w, "%s -o prog prog.c", how);
	planned_open(p, workdir_path(w, "prog"));
}

/* points that count; the others look at who is given objects */
static size_t count_operations(const struct rt_plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->points.len; i++)
		n += plan->points.data[i].op != RT_OP_MOVE;
	return n;
}

TEST(true_families_and_no_others)
{
	static const char *const builds[] = { "gcc -O0",
					      "gcc -O2",
					      "gcc -O0 -g",
					      "gcc -O2 -g",
					      "clang-14 -O2",
					      "clang-14 -O2 -g",
					      "gcc -O2 -fcf-protection=full" };
	static const struct rt_scan_options all = { 0 };

	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		const struct rt_spec_type *thread, *buf;
		struct workdir w;
		struct planned p;

		print_message("%s\n", builds[i]);
		open_program(&w, &p, builds[i]);
		assert_ok(rt_scan_module(&p.module, &all, &p.spec));
		assert_int_equal(p.spec.types.len, 2);
		thread = rt_spec_type_named(&p.spec, "thread");
		buf = rt_spec_type_named(&p.spec, "buf");
		assert_non_null(thread);
		assert_non_null(buf);
		assert_string_equal(thread->origin, "scan");
		assert_false(thread->unsure);
		assert_int_equal(planned_function(thread, "thread__get")->op, RT_OP_GET);
		assert_int_equal(planned_function(thread, "thread__put")->op, RT_OP_PUT);
		assert_int_equal(planned_function(thread, "thread__new")->op, RT_OP_NEW);
		assert_int_equal(planned_function(thread, "thread__new")->place, RT_PLACE_RET);
		assert_int_equal(planned_function(thread, "thread__delete")->op, RT_OP_FREE);
		assert_true(planned_function(thread, "thread__get")->guessed);
		/* the put does not end in it */
		assert_null(planned_function(thread, "thread__destroy"));
		assert_int_equal(planned_function(buf, "buf_create")->op, RT_OP_NEW);
		assert_int_equal(buf->functions.len, 3);
		planned_make(&p, NULL, NULL);
		assert_int_equal(p.plan->types.data[0].counter_size + p.plan->types.data[1].counter_size, 12);
		assert_int_equal(count_operations(p.plan), 7);
		planned_close(&p);
		workdir_remove(&w);
	}
}

/* What no two names say: a lock and an unlock, a put with the object second, and counting by those who are no API. */
static const char by_field[] =
	"#include <stdlib.h>\n#define API __attribute__((noinline))\n"
	"struct db { int open; };\nstruct node { char *text; int nRef; };\nstruct list { int count; };\n"
	"API void tableLock(struct node *t) { t->nRef++; }\n"
	"API void tableUnlock(struct db *d, struct node *t) { if (--t->nRef == 0) { d->open--; free(t); } }\n"
	"API struct node *nodeMake(void) { struct node *n = malloc(sizeof(*n)); n->text = 0; n->nRef = 1; return n; }\n"
	"API struct node *db_ref(struct db *d, struct node *n) { n->nRef++; d->open++; return n; }\n"
	/* counts for itself: the reports should name it */
	"API int attach(struct db *d, struct node *n) { n->nRef++; return d->open++; }\n"
	"API void list_add(struct list *l) { l->count++; }\nAPI void list_del(struct list *l) { l->count--; }\n"
	"int main(void) { struct db d = { 0 }; struct list l = { 0 }; struct node *n = nodeMake(); tableLock(n);\n"
	"  attach(&d, db_ref(&d, n)); tableUnlock(&d, n); tableUnlock(&d, n); tableUnlock(&d, n); list_add(&l); "
	"list_del(&l);\n"
	"  return l.count; }\n";

TEST(families_by_what_they_do_to_the_counter)
{
	static const struct rt_scan_options all = { 0 };
	const struct rt_spec_type *node;
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "prog.c", by_field);
	workdir_run(&w, "gcc -O2 -g -o prog prog.c");
	planned_open(&p, workdir_path(&w, "prog"));
	assert_ok(rt_scan_module(&p.module, &all, &p.spec));
	assert_int_equal(p.spec.types.len, 1);
	node = rt_spec_type_named(&p.spec, "node");
	assert_non_null(node);
	assert_int_equal(node->functions.len, 4);
	assert_int_equal(planned_function(node, "db_ref")->op, RT_OP_GET);
	assert_int_equal(planned_function(node, "db_ref")->arg, 2);
	assert_int_equal(planned_function(node, "tableLock")->op, RT_OP_GET);
	assert_int_equal(planned_function(node, "tableUnlock")->op, RT_OP_PUT);
	assert_int_equal(planned_function(node, "tableUnlock")->arg, 2);
	assert_int_equal(planned_function(node, "nodeMake")->op, RT_OP_NEW);
	planned_close(&p);
	workdir_remove(&w);
}

/* A library's functions have a second name inside of it, and only that is what debug information knows. */
static const char aliased[] =
	"#include <stdlib.h>\n"
	"struct font { int ref; int size; };\n"
	"struct font *own_font_create(void) { struct font *f = malloc(sizeof(*f)); f->ref = 1; return f; }\n"
	"struct font *own_font_reference(struct font *f) { if (f) f->ref++; return f; }\n"
	"void own_font_destroy(struct font *f) { if (f && --f->ref == 0) free(f); }\n"
	"extern __typeof(own_font_create) font_create __attribute__((alias(\"own_font_create\")));\n"
	"extern __typeof(own_font_reference) font_reference __attribute__((alias(\"own_font_reference\")));\n"
	"extern __typeof(own_font_destroy) font_destroy __attribute__((alias(\"own_font_destroy\")));\n"
	"__attribute__((noinline)) int measure(struct font *f) { own_font_reference(f); return f->size++; }\n"
	"int main(void) { struct font *f = own_font_create(); measure(f); own_font_destroy(f); own_font_destroy(f);\n"
	"  return 0; }\n";

TEST(one_family_under_two_names)
{
	static const struct rt_scan_options all = { 0 };
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "prog.c", aliased);
	workdir_run(&w, "gcc -O2 -g -o prog prog.c");
	planned_open(&p, workdir_path(&w, "prog"));
	assert_ok(rt_scan_module(&p.module, &all, &p.spec));
	assert_int_equal(p.spec.types.len, 1);
	assert_string_equal(p.spec.types.data[0].name, "font");
	assert_non_null(planned_function(&p.spec.types.data[0], "own_font_reference"));
	planned_close(&p);
	/* told by the other name, and by the result: the copy inside measure() is one of it */
	planned_open(&p, workdir_path(&w, "prog"));
	assert_ok(rt_spec_parse("type=font new=font_create get=font_reference:ret put=font_destroy:1", 65, "test",
				&p.spec));
	planned_make(&p, NULL, NULL);
	assert_int_equal(p.plan->types.data[0].counter_size, 4);
	{
		unsigned gets = 0;

		for (size_t i = 0; i < p.plan->points.len; i++)
			gets += p.plan->points.data[i].op == RT_OP_GET;
		assert_int_equal(gets, 2);
	}
	planned_close(&p);
	workdir_remove(&w);
}

/* One reference is a handle of its own; the other's object copies itself when it cannot be counted any further. */
static const char handles[] =
	"#include <stdlib.h>\n#define API __attribute__((noinline, noipa))\n"
	"struct block { long n; int refs; };\nstruct blockref { struct block *block; long size; };\n"
	"struct text { int refs; char text[20]; };\n"
	"API struct blockref *blockref_create(long n) { struct blockref *r = malloc(sizeof(*r)); r->block = "
	"calloc(1, sizeof(*r->block));\n  r->block->refs = 1; r->size = n; return r; }\n"
	"API struct blockref *blockref_ref(const struct blockref *of) { struct blockref *r = calloc(1, sizeof(*r)); if "
	"(!r) "
	"return NULL;\n  *r = *of; __atomic_fetch_add(&of->block->refs, 1, 5); return r; }\n"
	"API void blockref_unref(struct blockref *r) { if (__atomic_fetch_sub(&r->block->refs, 1, 5) == 1) "
	"free(r->block); free(r); }\n"
	"API struct text *text_new(void) { struct text *t = malloc(sizeof(*t)); t->refs = 1; return t; }\n"
	"API struct text *text_ref(struct text *t) { if (t->refs > 9) { struct text *n = malloc(sizeof(*n)); *n = *t; "
	"n->refs "
	"= 1;\n  return n; } t->refs++; return t; }\n"
	"API void text_unref(struct text *t) { if (--t->refs == 0) free(t); }\n"
	"int main(int c, char **v) { struct blockref *r = blockref_create(c), *s = blockref_ref(r); struct text *t = "
	"text_ref(text_new());\n  blockref_unref(r); blockref_unref(s); text_unref(t); text_unref(t); return !v; }\n";

TEST(references_that_are_handles)
{
	static const struct rt_scan_options all = { 0 };
	static const char *const builds[] = { "gcc -O2 -g", "clang-14 -w -O2 -g" };

	for (size_t i = 0; i < 2; i++) {
		const struct rt_spec_type *blockref = NULL, *text = NULL;
		struct workdir w;
		struct planned p;

		workdir_make(&w);
		workdir_write(&w, "prog.c", handles);
		workdir_run(&w, "%s -o prog prog.c", builds[i]);
		planned_open(&p, workdir_path(&w, "prog"));
		assert_ok(rt_scan_module(&p.module, &all, &p.spec));
		for (size_t k = 0; k < p.spec.types.len; k++) {
			if (!strcmp(p.spec.types.data[k].name, "blockref"))
				blockref = &p.spec.types.data[k];
			else if (!strcmp(p.spec.types.data[k].name, "text"))
				text = &p.spec.types.data[k];
		}
		assert_non_null(blockref);
		assert_int_equal(planned_function(blockref, "blockref_ref")->op, RT_OP_NEW);
		assert_int_equal(planned_function(blockref, "blockref_ref")->place, RT_PLACE_RET);
		assert_int_equal(planned_function(blockref, "blockref_unref")->op, RT_OP_PUT);
		assert_non_null(text);
		assert_int_equal(planned_function(text, "text_ref")->op, RT_OP_GET);
		planned_close(&p);
		workdir_remove(&w);
	}
}

TEST(only_the_named_types)
{
	static const char *const thread[] = { "thread", NULL }, *const none[] = { "queue", "lock", NULL };
	struct workdir w;
	struct planned p;

	open_program(&w, &p, "gcc -O2 -g");
	assert_ok(rt_scan_module(&p.module, &(struct rt_scan_options){ .types = none }, &p.spec));
	assert_int_equal(p.spec.types.len, 0);
	assert_ok(rt_scan_module(&p.module, &(struct rt_scan_options){ .types = thread }, &p.spec));
	assert_int_equal(p.spec.types.len, 1);
	/* what the caller counts already is left alone */
	assert_ok(rt_scan_module(&p.module, &(struct rt_scan_options){ .types = thread }, &p.spec));
	assert_int_equal(p.spec.types.len, 1);
	assert_int_equal(p.spec.types.data[0].functions.len, 4);
	planned_close(&p);
	workdir_remove(&w);
}

static const char evidence[] =
	"#include <stdlib.h>\n#define API __attribute__((noinline))\n"
	"struct dev { long id; int refs; };\nstruct dev *table[9];\n"
	"API struct dev *dev_create(int id) { struct dev *d = calloc(1, sizeof(*d)); if (!d) abort(); d->refs = 1; "
	"d->id = id; return d; }\n"
	"API void dev_put(struct dev *d) { if (--d->refs == 0) free(d); }\n"
	"API struct dev *dev_find(int i) { struct dev *d = table[i]; if (d) d->refs++; return d; }\n"
	"API void dev_replace(struct dev **slot, struct dev *with) { struct dev *old = *slot; if (with) with->refs++; "
	"*slot = with; if (old && --old->refs == 0) free(old); }\n"
	"struct image { int width, refs; };\n"
	"API struct image *image_load(int n) { struct image *i = malloc(sizeof(*i)); i->width = n; i->refs = 1; "
	"return i; }\n"
	"API struct image *image_blank(void) { struct image *i = malloc(sizeof(*i)); i->width = 0; return i; }\n"
	"API struct image *image_get(struct image *i) { i->refs++; return i; }\n"
	"API void image_put(struct image *i) { if (--i->refs == 0) free(i); }\n"
	"struct job { int refs, n; };\n"
	"API struct job *job_new(int n) { struct job *j = malloc(sizeof(*j)); j->refs = 1; j->n = n; return j; }\n"
	"API void job_acquire(struct job *j) { __atomic_fetch_add(&j->refs, 1, 5); }\n"
	"API void job_release(struct job *j) { if (__atomic_fetch_sub(&j->refs, 1, 5) == 1) free(j); }\n"
	/* takes away, but counts no references; counts down, but frees nothing */
	"struct bag { int items; };\n"
	"API struct bag *bag_new(void) { struct bag *b = malloc(sizeof(*b)); b->items = 1; return b; }\n"
	"API void bag_drop(struct bag *b) { b->items--; }\n"
	/* counts, and is freed by force */
	"struct item { int refs; };\nAPI struct item *item_new(void) { struct item *i = malloc(4); i->refs = 1; "
	"return i; }\nAPI void item_ref(struct item *i) { i->refs++; }\nAPI void item_unref(struct item *i) { "
	"i->refs--; "
	"}\nAPI void item_destroy(struct item *i) { free(i); }\n"
	"int main(int argc, char **argv) { struct dev *d = dev_create(argc), *e = 0; struct image *i = image_load(1);\n"
	"  struct job *j = job_new(1); struct bag *b = bag_new(); job_acquire(j); job_release(j); bag_drop(b);\n"
	"  struct item *t = item_new(); item_ref(t); item_unref(t); item_destroy(t);\n"
	"  table[0] = d; dev_replace(&e, d); dev_put(dev_find(0)); image_put(image_get(i)); return !image_blank(); }\n";

TEST(families_by_what_their_code_does)
{
	static const char *const builds[] = { "gcc -O0", "gcc -O2", "clang-14 -O0", "clang-14 -O2" };
	static const struct rt_scan_options all = { 0 };

	for (size_t i = 0; i < 8; i++) {
		const struct rt_spec_type *dev, *image, *job;
		bool debug = i % 2;
		struct workdir w;
		struct planned p;

		print_message("%s%s\n", builds[i / 2], debug ? " -g" : "");
		workdir_make(&w);
		workdir_write(&w, "prog.c", evidence);
		workdir_run(&w, "%s %s -o prog prog.c", builds[i / 2], debug ? "-g" : "");
		planned_open(&p, workdir_path(&w, "prog"));
		assert_ok(rt_scan_module(&p.module, &all, &p.spec));
		assert_int_equal(p.spec.types.len, 4);
		dev = rt_spec_type_named(&p.spec, "dev");
		image = rt_spec_type_named(&p.spec, "image");
		job = rt_spec_type_named(&p.spec, "job");
		assert_int_equal(planned_function(dev, "dev_put")->op, RT_OP_PUT);
		assert_int_equal(planned_function(dev, "dev_create")->op, RT_OP_NEW);
		assert_null(planned_function(dev, "dev_find"));
		/* there is no get to find the counter by */
		assert_int_equal(dev->counter_offset, 8);
		assert_int_equal(dev->counter_size, 4);
		assert_int_equal(planned_function(job, "job_acquire")->op, RT_OP_GET);
		assert_int_equal(planned_function(job, "job_release")->op, RT_OP_PUT);
		assert_int_equal(planned_function(job, "job_new")->op, RT_OP_NEW);
		assert_int_equal(planned_function(image, "image_get")->op, RT_OP_GET);
		assert_null(planned_function(image, "image_blank"));
		assert_int_equal(planned_function(rt_spec_type_named(&p.spec, "item"), "item_destroy")->op, RT_OP_FREE);
		/* what returns a T is known from debug information only */
		assert_int_equal(planned_function(image, "image_load") != NULL, debug);
		assert_int_equal(planned_function(dev, "dev_replace") != NULL, debug);
		planned_close(&p);
		workdir_remove(&w);
	}
}

TEST(classes)
{
	static const char code[] =
		"namespace a { struct N { N() : refs(1) {} virtual ~N() {} static N *create(int n); void ref(); "
		"void unref(); void get(); void put(); long pad; int refs, other; };\n"
		"N *N::create(int n) { return new N(); }\nvoid N::ref() { refs++; }\n"
		"void N::unref() { if (!--refs) delete this; }\nvoid N::get() { other += 2; }\n"
		"void N::put() { other--; } }\nint main() { return 0; }\n";
	static const char *const builds[] = { "g++ -O0", "g++ -O2 -g", "clang++-14 -O2" };
	static const struct rt_scan_options all = { 0 };

	for (size_t i = 0; i < 3; i++) {
		struct workdir w;
		struct planned p;

		workdir_make(&w);
		workdir_write(&w, "prog.cc", code);
		workdir_run(&w, "%s -o prog prog.cc", builds[i]);
		planned_open(&p, workdir_path(&w, "prog"));
		assert_ok(rt_scan_module(&p.module, &all, &p.spec));
		assert_int_equal(p.spec.types.len, 1);
		assert_string_equal(p.spec.types.data[0].name, "N");
		assert_int_equal(p.spec.types.data[0].functions.len, 3);
		assert_int_equal(planned_function(&p.spec.types.data[0], "_ZN1a1N6createEi")->op, RT_OP_NEW);
		assert_int_equal(planned_function(&p.spec.types.data[0], "_ZN1a1N3refEv")->op, RT_OP_GET);
		assert_int_equal(planned_function(&p.spec.types.data[0], "_ZN1a1N5unrefEv")->op, RT_OP_PUT);
		planned_close(&p);
		workdir_remove(&w);
	}
}

TEST(an_unknown_type_is_told_its_neighbours)
{
	static const char other[] = "[thread]\nget=thread__get\nput=thread__put\ncounter=thread.nothing";
	struct rt_error *err;
	struct workdir w;
	struct planned p;

	open_program(&w, &p, "gcc -O2 -g");
	err = rt_scan_unknown(&p.module, 1, "thraed");
	assert_string_equal(rt_code_text(err->code), rt_code_text(RT_E_NO_PAIRS));
	assert_non_null(strstr(err->message, "'thraed'"));
	assert_string_equal(err->fix, "did you mean: thread?");
	rt_error_free(err);
	err = rt_scan_unknown(&p.module, 1, "zork");
	assert_non_null(strstr(err->fix, "type=zork"));
	rt_error_free(err);
	/* a preset's word about a struct of another program does not hide the counter that is there */
	assert_ok(rt_spec_parse(other, strlen(other), "presets/x", &p.spec));
	planned_make(&p, NULL, NULL);
	assert_int_equal(p.plan->types.data[0].counter_offset, 8);
	planned_close(&p);
	workdir_remove(&w);
}

TEST(inlined_only_families_come_from_debug_info)
{
	static const char code[] =
		"struct map { long a; int refcnt; };\nvoid use(struct map *);\n"
		"static inline struct map *map__get(struct map *m) { if (m) m->refcnt++; return m; }\n"
		"static inline void map__put(struct map *m) { if (m) m->refcnt--; }\n"
		"void one(struct map *m) { map__get(m); use(m); map__put(m); }\n";
	static const struct rt_scan_options all = { 0 };
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "m.c", code);
	workdir_run(&w, "gcc -O2 -g -fPIC -shared -o m.so m.c");
	planned_open(&p, workdir_path(&w, "m.so"));
	assert_ok(rt_scan_module(&p.module, &all, &p.spec));
	assert_non_null(planned_function(rt_spec_type_named(&p.spec, "map"), "map__get"));
	assert_non_null(planned_function(rt_spec_type_named(&p.spec, "map"), "map__put"));
	planned_close(&p);
	workdir_remove(&w);
}

/* CamelCase, as much a family as with '_'; words that only begin like that are none. */
TEST(camel_case)
{
	static const char code[] =
		"#include <stdlib.h>\n"
		"typedef struct KeyInfo { int n; unsigned nRef; } KeyInfo;\n"
		"KeyInfo *vmKeyInfoAlloc(void) { KeyInfo *k = malloc(sizeof(*k)); k->nRef = 1; return k; }\n"
		"KeyInfo *vmKeyInfoRef(KeyInfo *k) { if (k) k->nRef++; return k; }\n"
		"void vmKeyInfoUnref(KeyInfo *k) { if (k && !--k->nRef) free(k); }\n"
		"typedef struct Font { int count; char name[8]; } Font;\n"
		"Font *FcFontCreate(void) { Font *f = calloc(1, sizeof(*f)); f->count = 1; return f; }\n"
		"void FcFontReference(Font *f) { f->count++; }\n"
		"void FcFontDestroy(Font *f) { if (!--f->count) free(f); }\n"
		"typedef struct Table { int n, rows; } Table;\n"
		"int TableReferences(Table *t) { return t->n++; }\n"
		"void TableDestroy(Table *t) { t->rows--; }\n"
		"int GetterPREF(Table *t) { return t->n; }\n"
		"int GetterPUnref(Table *t) { return t->n; }\n";
	static const struct rt_scan_options all = { 0 };
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "k.c", code);
	workdir_run(&w, "gcc -O2 -g -fPIC -shared -o k.so k.c");
	planned_open(&p, workdir_path(&w, "k.so"));
	assert_ok(rt_scan_module(&p.module, &all, &p.spec));
	assert_int_equal(p.spec.types.len, 2);
	assert_int_equal(planned_function(rt_spec_type_named(&p.spec, "KeyInfo"), "vmKeyInfoRef")->op, RT_OP_GET);
	assert_int_equal(planned_function(rt_spec_type_named(&p.spec, "KeyInfo"), "vmKeyInfoUnref")->op, RT_OP_PUT);
	assert_int_equal(planned_function(rt_spec_type_named(&p.spec, "KeyInfo"), "vmKeyInfoAlloc")->op, RT_OP_NEW);
	assert_int_equal(planned_function(rt_spec_type_named(&p.spec, "Font"), "FcFontReference")->op, RT_OP_GET);
	assert_int_equal(planned_function(rt_spec_type_named(&p.spec, "Font"), "FcFontDestroy")->op, RT_OP_PUT);
	assert_int_equal(planned_function(rt_spec_type_named(&p.spec, "Font"), "FcFontCreate")->op, RT_OP_NEW);
	planned_close(&p);
	workdir_remove(&w);
}

/* A header's inlined family is in the program and in its library; who makes such objects is in the library alone. */
TEST(a_family_goes_on_in_the_next_module)
{
	static const char header[] =
		"#include <stdlib.h>\nstruct val { int kind; long refs; };\n"
		"void val_delete(struct val *v);\nstruct val *val_new(int kind);\n"
		"static inline struct val *val_incref(struct val *v) { if (v) v->refs++; return v; }\n"
		"static inline void val_decref(struct val *v) { if (v && !--v->refs) val_delete(v); }\n";
	static const char library_code[] =
		"#include \"val.h\"\nstruct val *val_new(int kind)\n"
		"{ struct val *v = malloc(sizeof(*v)); v->kind = kind; v->refs = 1; return v; }\n"
		"void val_delete(struct val *v) { free(v); }\n"
		"void val_copy(struct val **to, struct val *v) { val_incref(v); val_decref(*to); *to = v; }\n";
	static const char program_code[] = "#include \"val.h\"\nint main(void) { struct val *v = val_new(1);\n"
					   "  val_incref(v); val_decref(v); val_decref(v); return 0; }\n";
	static const struct rt_scan_options all = { 0 };
	struct planned prog, lib;
	struct workdir w;

	workdir_make(&w);
	workdir_write(&w, "val.h", header);
	workdir_write(&w, "lib.c", library_code);
	workdir_write(&w, "prog.c", program_code);
	workdir_run(&w, "gcc -O2 -g -fPIC -shared -o libval.so lib.c");
	workdir_run(&w, "gcc -O2 -g -o prog prog.c ./libval.so");
	planned_open(&prog, workdir_path(&w, "prog"));
	planned_open(&lib, workdir_path(&w, "libval.so"));
	assert_ok(rt_scan_module(&prog.module, &all, &prog.spec));
	assert_null(planned_function(rt_spec_type_named(&prog.spec, "val"), "val_new"));
	assert_ok(rt_scan_module(&lib.module, &all, &prog.spec));
	assert_int_equal(prog.spec.types.len, 1);
	assert_int_equal(planned_function(rt_spec_type_named(&prog.spec, "val"), "val_new")->op, RT_OP_NEW);
	/* what somebody told is left as it was told */
	assert_ok(rt_spec_parse("type=val get=val_incref put=val_decref", 38, "-P", &lib.spec));
	assert_ok(rt_scan_module(&lib.module, &all, &lib.spec));
	assert_int_equal(lib.spec.types.len, 1);
	assert_int_equal(lib.spec.types.data[0].functions.len, 2);
	planned_close(&lib);
	planned_close(&prog);
	workdir_remove(&w);
}

/* Path of an installed library, or NULL. */
static const char *library(const char *name, char path[256])
{
	snprintf(path, 256, "/usr/lib/x86_64-linux-gnu/%s", name);
	return access(path, R_OK) ? NULL : path;
}

/* Members without a partner of their own, and functions that only sound like some. */
TEST(variants_without_a_partner)
{
	static const char code[] =
		"#include <stdlib.h>\n#define API __attribute__((noinline))\n"
		"struct call { int users, locks; struct call *next; };\n"
		"API void atomic_up(int *n) { __atomic_fetch_add(n, 1, __ATOMIC_SEQ_CST); }\n"
		"API struct call *make_call(void) { struct call *c = calloc(1, sizeof(*c)); atomic_up(&c->users); "
		"return c; }\n"
		"API struct call *borrow(struct call *c) { atomic_up(&c->locks); return c; }\n"
		"API struct call *call_ref(struct call *c) { c->users++; return c; }\n"
		"API void call_unref(struct call *c) { if (--c->users == 0) free(c); }\n"
		"API struct call *_call_ref_unlocked(struct call *c) { atomic_up(&c->users); return c; }\n"
		"API void _call_unref_and_unlock(struct call *c) { c->locks--; if (--c->users == 0) free(c); }\n"
		"API void call_ref_back(struct call *c) { c->users--; }\n"
		"API void call_ref_lock(struct call *c) { c->locks++; }\n"
		"API void call_ref_all(struct call *c) { for (; c; c = c->next) call_ref(c); }\n"
		"API int call_ref_count(struct call *c) { return c->users; }\n"
		"API char *call_free(struct call *c, int all) { if (--c->users == 0 && all) free(c); return 0; }\n"
		"API void call_delete(struct call *c) { c->locks = 0; call_unref(c); }\n"
		"int main(void) { struct call *c = make_call(); call_free(c, 1); call_delete(c); "
		"_call_ref_unlocked(call_ref(borrow(c)));\n"
		"  call_ref_lock(c); call_ref_all(c); call_ref_back(c); _call_unref_and_unlock(c); call_unref(c);\n"
		"  return call_ref_count(c); }\n";
	static const char *const builds[] = { "gcc -O0 -g", "gcc -O2 -g -fno-ipa-icf", "clang-14 -O2 -g" };
	static const char *const no[] = { "borrow",         "call_ref_lock", "call_ref_back", "call_ref_all",
					  "call_ref_count", "atomic_up",     "call_delete" };
	static const struct rt_scan_options all = { 0 };

	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		const struct rt_spec_type *call;
		struct workdir w;
		struct planned p;

		workdir_make(&w);
		workdir_write(&w, "prog.c", code);
		workdir_run(&w, "%s -o prog prog.c", builds[i]);
		planned_open(&p, workdir_path(&w, "prog"));
		assert_ok(rt_scan_module(&p.module, &all, &p.spec));
		call = rt_spec_type_named(&p.spec, "call");
		assert_non_null(call);
		assert_non_null(planned_function(call, "_call_ref_unlocked"));
		assert_int_equal(planned_function(call, "_call_ref_unlocked")->op, RT_OP_GET);
		assert_non_null(planned_function(call, "_call_unref_and_unlock"));
		assert_int_equal(planned_function(call, "_call_unref_and_unlock")->op, RT_OP_PUT);
		/* gives up one, whatever it returns */
		assert_non_null(planned_function(call, "call_free"));
		assert_int_equal(planned_function(call, "call_free")->op, RT_OP_PUT);
		/* its count begins with an increment */
		assert_non_null(planned_function(call, "make_call"));
		assert_int_equal(planned_function(call, "make_call")->op, RT_OP_NEW);
		for (size_t k = 0; k < sizeof(no) / sizeof(no[0]); k++)
			assert_null(planned_function(call, no[k]));
		planned_close(&p);
		workdir_remove(&w);
	}
}

/* Without debug info a name may say that an object is made where the code returns a number, or nothing. */
TEST(what_returns_no_address_makes_nothing)
{
	static const char code[] =
		"#include <stdlib.h>\nstruct box { int refs, mode; struct box *next; };\n"
		"struct box *box_new(void) { struct box *b = calloc(1, sizeof(*b)); if (b) b->refs = 1; return b; }\n"
		"struct box *box_ref(struct box *b) { b->refs++; return b; }\n"
		"void box_unref(struct box *b) { if (--b->refs == 0) free(b); }\n"
		"struct box *box_new_pair(int n) { struct box *b = box_new(); if (n < 0) return 0; b->next = "
		"box_new(); "
		"return b; }\n"
		"struct box *box_new_none(void) { return 0; }\n"
		"static struct box all;\nstruct box *box_create_static(void) { return &all; }\n"
		"int box_new_mode(struct box *b, int n) { if (!n) return 0; b->mode += n; return 1; }\n"
		"int box_alloc_buffers(struct box *b, int n) { return n ? b->mode << n : -1; }\n"
		"void box_create_line(struct box *b, int n) { b->mode += n; }\n";
	static const char *const builds[] = { "gcc -O0", "gcc -O2", "clang-14 -O2" };
	static const struct rt_scan_options all = { 0 };

	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		const struct rt_spec_type *box;
		struct workdir w;
		struct planned p;

		workdir_make(&w);
		workdir_write(&w, "lib.c", code);
		workdir_run(&w, "%s -shared -fPIC -s -o lib.so lib.c", builds[i]);
		planned_open(&p, workdir_path(&w, "lib.so"));
		assert_ok(rt_scan_module(&p.module, &all, &p.spec));
		box = rt_spec_type_named(&p.spec, "box");
		assert_non_null(box);
		assert_non_null(planned_function(box, "box_new"));
		assert_non_null(planned_function(box, "box_new_pair"));
		assert_non_null(planned_function(box, "box_new_none"));
		assert_non_null(planned_function(box, "box_create_static"));
		assert_null(planned_function(box, "box_new_mode"));
		assert_null(planned_function(box, "box_alloc_buffers"));
		if (i) /* unoptimised code has its argument in the register, which may be a result */
			assert_null(planned_function(box, "box_create_line"));
		planned_close(&p);
		workdir_remove(&w);
	}
}

/* Nothing but names: one counts somewhere else, the other not at all. A get that adds 1 to one field says enough. */
/* kinds of a shape begin with one; a drawing's memory is cleared, and it lies in what nobody frees */
static const char bases[] =
	"#include <stdlib.h>\n"
	"#define FAR __attribute__((noinline, noclone, noipa))\n"
	"struct shape { const char *kind; int refs; };\n"
	"FAR void shape_init(struct shape *s, const char *kind) { s->kind = kind; s->refs = 1; }\n"
	"FAR void shape_init_copy(struct shape *s, const struct shape *of) { s->kind = of->kind; s->refs = 0; }\n"
	"FAR struct shape *shape_get(struct shape *s) { s->refs++; return s; }\n"
	"FAR void shape_put(struct shape *s) { if (!--s->refs) free(s); }\n"
	"struct circle { struct shape base; int radius; };\n"
	"FAR struct circle *circle_new(int radius)\n"
	"{ struct circle *c = malloc(sizeof(*c)); shape_init(&c->base, \"circle\");\n"
	"  if (radius < 0) { shape_put(&c->base); return NULL; } c->radius = radius; return c; }\n"
	"struct drawing { int refs; char ink[16]; };\n"
	"FAR void drawing_init(struct drawing *d) { d->refs = 1; }\n"
	"FAR void drawing_get(struct drawing *d) { d->refs++; }\n"
	"FAR void drawing_put(struct drawing *d) { if (!--d->refs) d->ink[0] = 0; }\n"
	"int main(int argc, char **argv)\n"
	"{ static struct drawing d; struct shape copy; struct circle *c = circle_new(argc); (void)argv;\n"
	"  drawing_init(&d); drawing_get(&d); drawing_put(&d);\n"
	"  shape_init_copy(&copy, &c->base); shape_get(&c->base); shape_put(&c->base); shape_put(&c->base); return 0; "
	"}\n";

TEST(what_others_begin_with)
{
	static const struct rt_scan_options all = { 0 };
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "prog.c", bases);
	for (int optimised = 0; optimised < 2; optimised++) {
		const struct rt_spec_function *made;

		workdir_run(&w, optimised ? "gcc -O2 -g -o prog prog.c" : "gcc -O0 -g -o prog prog.c");
		planned_open(&p, workdir_path(&w, "prog"));
		assert_ok(rt_scan_module(&p.module, &all, &p.spec));
		assert_int_equal(p.spec.types.len, 2);
		assert_string_equal(p.spec.types.data[0].name, "shape");
		made = planned_function(&p.spec.types.data[0], "shape_init");
		assert_non_null(made);
		assert_int_equal(made->op, RT_OP_NEW);
		assert_int_equal(made->place, RT_PLACE_ARG);
		/* a 0 is what cleared memory has; and what no put frees is its owner's, not counted from there */
		assert_null(planned_function(&p.spec.types.data[0], "shape_init_copy"));
		assert_string_equal(p.spec.types.data[1].name, "drawing");
		assert_null(planned_function(&p.spec.types.data[1], "drawing_init"));
		planned_close(&p);
	}
	workdir_remove(&w);
}

/* What messages are made by makes shapes; their get and put jump to those that a preset has, which alone are probed. */
TEST(other_words_for_a_presets_functions)
{
	static const char code[] =
		"#include <stdlib.h>\n"
		"struct shape { const char *kind; int refs; };\n"
		"struct shape *shape_get(struct shape *s) { __atomic_add_fetch(&s->refs, 1, 5); return s; }\n"
		"void shape_put(struct shape *s) { if (!__atomic_sub_fetch(&s->refs, 1, 5)) free(s); }\n"
		"struct shape *circle_new(void) { struct shape *s = calloc(1, sizeof(*s)); s->refs = 1; return s; }\n"
		"struct shape *circle_ref(struct shape *s) { return shape_get(s); }\n"
		"void circle_unref(struct shape *s) { shape_put(s); }\n"
		"struct square { struct shape *shape; int refs; };\n"
		"struct square *square_ref(struct square *s) { s->refs++; return s; }\n"
		"void square_unref(struct square *s) { if (!--s->refs) { shape_put(s->shape); free(s); } }\n";
	static const char preset[] = "type=shape get=shape_get:1 put=shape_put:1 new=shape_init:1";
	static const char *const builds[] = { "gcc -O2", "gcc -O2 -fcf-protection", "clang-14 -O2" };
	static const struct rt_scan_options all = { 0 };

	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		const struct rt_spec_type *shape;
		struct workdir w;
		struct planned p;

		workdir_make(&w);
		workdir_write(&w, "lib.c", code);
		workdir_run(&w, "%s -shared -fPIC -fno-inline -s -o lib.so lib.c", builds[i]);
		planned_open(&p, workdir_path(&w, "lib.so"));
		assert_ok(rt_spec_parse(preset, strlen(preset), "presets/x", &p.spec));
		assert_ok(rt_scan_module(&p.module, &all, &p.spec));
		assert_int_equal(p.spec.types.len, 2);
		shape = rt_spec_type_named(&p.spec, "shape");
		assert_int_equal(planned_function(shape, "circle_new")->op, RT_OP_NEW);
		assert_null(planned_function(shape, "circle_unref"));
		assert_non_null(rt_spec_type_named(&p.spec, "square"));
		planned_close(&p);
		workdir_remove(&w);
	}
}

TEST(names_alone)
{
	static const char code[] = "#define API __attribute__((noinline))\nstruct packet { char *data; long size; };\n"
				   "API void packet_ref(struct packet *to, struct packet *from) { *to = *from; }\n"
				   "API void packet_unref(struct packet *p) { p->data = 0; p->size = 0; }\n"
				   "struct view { int (**ops)(struct view *); int refs; };\n"
				   "API void view_ref(struct view *v) { v->refs++; }\n"
				   "API void view_unref(struct view *v) { v->ops[0](v); }\n"
				   "int main(void) { struct packet a, b; packet_ref(&a, &b); packet_unref(&a); "
				   "view_ref(0); view_unref(0); "
				   "return 0; }\n";
	static const struct rt_scan_options all = { 0 };
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "prog.c", code);
	workdir_run(&w, "gcc -O2 -o prog prog.c");
	planned_open(&p, workdir_path(&w, "prog"));
	assert_ok(rt_scan_module(&p.module, &all, &p.spec));
	assert_int_equal(p.spec.types.len, 2);
	assert_true(rt_spec_type_named(&p.spec, "packet")->unsure);
	assert_false(rt_spec_type_named(&p.spec, "view")->unsure);
	planned_close(&p);
	workdir_remove(&w);
}

/* obj_unref() is a call of the function that counts, which takes the object back where its end says so. */
TEST(what_a_put_is_done_by)
{
	static const char code[] =
		"#include <stdlib.h>\n#define API __attribute__((noinline))\n"
		"struct job { int users, locks; int (*last)(struct job *j); };\n"
		"API struct job *job_new(void) { struct job *j = calloc(1, sizeof(*j)); j->users = 1; return "
		"j; }\n"
		"API struct job *job_ref(struct job *j) { j->users++; return j; }\n"
		"API int job_unref_locked(struct job *j, int locked) { if (!locked) j->locks++; if "
		"(--j->users) return "
		"0;\n"
		"  if (j->last) { j->users++; if (j->last(j)) return 0; j->users--; } free(j); return 1; }\n"
		"API void job_unref(struct job *j) { j->locks++; job_unref_locked(j, 1); }\n"
		"API int job_unref_shy(struct job *j) { j->users--; j->users++; return j->locks; }\n"
		"int main(void) { struct job *j = job_ref(job_new()); job_unref_shy(j); job_unref_locked(j, "
		"0); "
		"job_unref(j);\n"
		"  return 0; }\n";
	static const char *const builds[] = { "gcc -O0 -g", "gcc -O2 -g", "clang-14 -O2 -g" };
	static const struct rt_scan_options all = { 0 };

	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		const struct rt_spec_type *job;
		struct workdir w;
		struct planned p;

		workdir_make(&w);
		workdir_write(&w, "prog.c", code);
		workdir_run(&w, "%s -o prog prog.c", builds[i]);
		planned_open(&p, workdir_path(&w, "prog"));
		assert_ok(rt_scan_module(&p.module, &all, &p.spec));
		job = rt_spec_type_named(&p.spec, "job");
		assert_non_null(job);
		assert_non_null(planned_function(job, "job_unref_locked"));
		assert_int_equal(planned_function(job, "job_unref_locked")->op, RT_OP_PUT);
		assert_null(planned_function(job, "job_unref_shy"));
		planned_close(&p);
		workdir_remove(&w);
	}
}

TEST(installed_libraries)
{
	static const struct {
		const char *library, *type, *get, *put, *new;
		int32_t counter;
	} cases[] = {
		{ "libjson-c.so.5", "json_object", "json_object_get", "json_object_put", "json_object_new_string", 4 },
		{ "libdbus-1.so.3", "dbus_message", "dbus_message_ref", "dbus_message_unref", "dbus_message_new", 0 },
		{ "libglib-2.0.so.0", "g_bytes", "g_bytes_ref", "g_bytes_unref", "g_bytes_new", 16 },
		{ "libglib-2.0.so.0", "g_main_context", "g_main_context_ref", "g_main_context_unref", NULL, 48 },
		{ "libgobject-2.0.so.0", "g_object", "g_object_ref", "g_object_unref", "g_object_new", 8 },
	};
	static const struct rt_scan_options all = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct rt_spec_type *type;
		struct planned p;
		char path[256];

		if (!library(cases[i].library, path))
			continue;
		print_message("%s %s\n", cases[i].library, cases[i].type);
		planned_open(&p, path);
		assert_ok(rt_scan_module(&p.module, &all, &p.spec));
		type = rt_spec_type_named(&p.spec, cases[i].type);
		assert_non_null(type);
		assert_non_null(planned_function(type, cases[i].get));
		assert_non_null(planned_function(type, cases[i].put));
		assert_true(!cases[i].new || planned_function(type, cases[i].new));
		/* a lock on the same type is no family */
		assert_null(planned_function(type, "g_main_context_acquire"));
		planned_make(&p, NULL, NULL);
		for (size_t t = 0; t < p.plan->types.len; t++)
			if (p.plan->types.data[t].spec == type) {
				assert_int_equal(p.plan->types.data[t].counter_offset, cases[i].counter);
				assert_int_equal(p.plan->types.data[t].counter_size, 4);
			}
		planned_close(&p);
	}
}

TEST(run_time_libraries_are_left_alone)
{
	static const char *const names[] = { "libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2" };
	static const struct rt_scan_options all = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct planned p;
		char path[256];

		if (!library(names[i], path))
			continue;
		planned_open(&p, path);
		assert_ok(rt_scan_module(&p.module, &all, &p.spec));
		assert_int_equal(p.spec.types.len, 0);
		planned_close(&p);
	}
}

TEST_MAIN();
