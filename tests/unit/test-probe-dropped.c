/* SPDX-License-Identifier: GPL-2.0-only */
/* Where the pointer to an object is given up without a new one in its place; and who is given objects to keep. */
#include "planned.h"

static const char program[] =
	"#include <netdb.h>\n#include <obstack.h>\n#include <stdlib.h>\n#include <string.h>\n#define API "
	"__attribute__((noinline, noipa))\n"
	"#define INLINE static inline __attribute__((always_inline))\n"
	"struct obj { int refs; long n; };\nstruct box { int k; struct obj *o; struct box *next; };\n"
	"struct node { struct node *next; void *any; };\nstruct plain { long a, b; char *text; };\n"
	"struct pair { long k; union { struct obj *o; void *other; } u; };\n"
	"API struct obj *obj_new(void) { struct obj *o = malloc(sizeof(*o)); o->refs = 1; return o; }\n"
	"API struct obj *obj_get(struct obj *o) { o->refs++; return o; }\n"
	"API void obj_put(struct obj *o) { if (--o->refs == 0) free(o); }\n"
	"API void my_free(void *p, int zero) { if (zero) memset(p, 0, 8); free(p); }\n"
	"INLINE void box_end(struct box *b) { free(b); }\n"
	"INLINE void mem_free(void *p) { free(p); }\n"
	/* blocks that are freed */
	"API void box_free(struct box *b) { b->k = 0; free(b); }\n"
	"API void by_wrapper(struct box *b) { my_free(b, 1); }\n"
	"API int by_inlined(struct box *b, int k) { int was = b->k + k; box_end(b); return was; }\n"
	"API int by_inline_free(struct box *b) { b->k++; mem_free(b); return 0; }\n"
	"API void pair_free(struct pair *p) { free(p); }\n"
	"API struct node *node_remove(struct node *n) { struct node *next = n->next; free(n); return next; }\n"
	"struct album { int k; struct node *first; };\n"
	"API int album_pop(struct album *a) { struct node *n = a->first; a->first = n->next; free(n); return a->k; }\n"
	/* by functions of other modules: one is given anything, the other a struct of its own */
	"API void to_obstack(struct box *b, void *all) { (obstack_free)(all, b); }\n"
	"API void as_another(struct box *b) { freeaddrinfo((struct addrinfo *)b); }\n"
	/* what a block holds in a part of it is ended by who gets that part, inlined there or called before */
	"struct value { long kind; union { struct obj *o; char *text; } u; };\n"
	"struct item { struct item *next; struct value value; struct obj *own; };\n"
	"INLINE void value_clear(struct value v) { if (v.kind == 3) free(v.u.text); }\n"
	"INLINE void value_reset(struct value *v) { if (v->kind == 4) v->kind = 3; }\n"
	"INLINE void item_clear(struct item *i) { if (i->value.kind == 6) i->next = NULL; }\n"
	"INLINE void value_drop(struct value *v) { if (v->kind == 5) free(v->u.text); }\n"
	"API void item_free(struct item *i) { value_clear(i->value); value_reset(&i->value); item_clear(i); free(i); "
	"}\n"
	"API void items_free(struct item *i) { while (i) { struct item *n = i->next; value_drop(&i->value); free(i); i "
	"= n; "
	"} }\n"
	"API void item_end(struct item *i) { value_clear(i->value); value_drop(&i->value); free(i); }\n"
	"API void value_destroy(struct value v) { if (v.kind == 7) free(v.u.text); }\n"
	"static __attribute__((noinline)) void value_fini(struct value *v) { if (v->kind == 8) free(v->u.text); "
	"v->kind = 0; }\n"
	"API void item_destroy(struct item *i) { value_destroy(i->value); free(i); }\n"
	"API int item_fini(struct item *i, int k) { value_fini(&i->value); free(i); return k; }\n"
	"API int item_swap(struct item *i, struct item *j) { free(i); value_fini(&j->value); return 1; }\n"
	/* by a pointer that is called so: in a variable, in a struct that is one, or that another one points to */
	"struct heap { long k; void (*gfree)(void *); void (*done)(void *), (*free_box)(struct box *), "
	"(*free_with)(void *, void *), (*free_at)(double, long, void *); } heap;\n"
	"void (*free_it)(void *);\n"
	"API void by_heap(struct box *b) { b->k = 0; heap.gfree(b); }\n"
	"API int by_heaps(struct box *b, struct box *c) { heap.gfree(b); heap.gfree(c); return heap.k; }\n"
	"API void by_variable(struct box *b) { b->k = 1; free_it(b); }\n"
	"API int by_member(struct heap *h, struct box *b) { h->gfree(b); return h->k; }\n"
	"API int by_done(struct heap *h, struct box *b) { h->done(b); return h->k; }\n"
	"API int by_box(struct heap *h, struct box *b) { h->free_box(b); return h->k; }\n"
	"API int by_two(struct heap *h, struct box *b) { h->free_with(b, h); return h->k; }\n"
	"API int by_fraction(struct heap *h, struct box *b) { h->free_at(1.5, 2, b); return h->k; }\n"
	/* NULL */
	"API int box_clear(struct box *b, int k) { if (b->k == k) return 0; b->o = NULL; return b->k; }\n"
	"struct rack { long k; struct obj *all[5]; struct rack *next; };\n"
	"API void rack_clear(struct rack *r) { for (int i = 0; i < 5; i++) if (r->all[i]) r->all[i] = NULL; }\n"
	/* what no variable points to: in a struct that another one points to, in an array of these, or by a global one
	 */
	"struct shelf { long n; struct place { long key[4]; struct obj *o, *next; long pad[3]; } *in; struct box *b; "
	"};\n"
	"struct shelf *known;\n"
	"API int box_forget(struct shelf *s, int k) { if (s->n == k) return 0; s->b->o = NULL; return 1; }\n"
	"API int shelf_forget(struct shelf *s, unsigned long i) { if (s->n == 3) return 0; s->in[i].key[0] = i; "
	"s->in[i].o = NULL; return 1; }\n"
	"API int known_forget(int k) { if (k > 7) return 0; known->b->o = NULL; return 1; }\n"
	"API int shelf_shift(struct shelf *s, unsigned long i) { if (s->n == 5) return 0; s->in[i].o = s->in[i].next; "
	"s->in[i].next = NULL; return 1; }\n"
	"struct cursor { long k[3]; char at, more; long n[7]; struct obj *all[5]; };\n"
	"API void cursor_pop(struct cursor *c) { int i = 1 - c->at; if (c->all[i]) c->all[i] = NULL; if (c->at) { "
	"c->n[i]--; c->at = 0; } }\n"
	"struct base { long k; struct obj *first; };\nstruct derived { struct base b; long n; struct obj *o; };\n"
	"API int derived_forget(struct base *b, int k) { struct derived *d = (struct derived *)b; if (d->n == k) "
	"return 0; d->o = NULL; return 1; }\n"
	"API int other_forget(struct shelf *s, int k) { if (s->n == k) return 0; s->b->next = NULL; return 1; }\n"
	/* all of a struct set to 0, in place or by a call; its helper does not know what is given up */
	"struct wide { long k[20]; struct obj *o; long n[20]; };\n"
	"struct huge { long k[3000]; struct obj *o; long n[3000]; };\n"
	"API int wide_reset(struct wide *w, int k) { if (w->k[0] == k) return 0; memset(w, 0, sizeof(*w)); w->k[1] = "
	"k; "
	"return 1; }\n"
	"API int huge_reset(struct huge *h, int k) { if (h->k[0] == k) return 0; memset(h, 0, sizeof(*h)); h->k[1] = "
	"k; "
	"return 1; }\n"
	"INLINE void huge_defaults(struct huge *h) { memset(h, 0, sizeof(*h)); h->n[2] = -1; }\n"
	"API int huge_again(struct huge *h, int k) { if (h->k[0] == k) return 0; huge_defaults(h); return k; }\n"
	/* none of these: moved, a part before the pointer, not 0, new */
	"API int huge_move(struct huge *to, struct huge *h) { *to = *h; memset(h, 0, sizeof(*h)); return 1; }\n"
	"API int wide_move(struct wide *to, struct wide *w) { *to = *w; memset(w, 0, sizeof(*w)); return 1; }\n"
	"API int huge_begin(struct huge *h, int k) { if (h->k[0] == k) return 0; memset(h, 0, sizeof(h->k)); return 1; "
	"}\n"
	"API int huge_fill(struct huge *h, int k) { if (h->k[0] == k) return 0; memset(h, 255, sizeof(*h)); return 1; "
	"}\n"
	"API struct huge *huge_new(void) { struct huge *h = malloc(sizeof(*h)); if (h) memset(h, 0, sizeof(*h)); "
	"return "
	"h; }\n"
	"API void plain_free(struct plain *p) { free(p); }\n"
	"API void any_free(void *p) { free(p); }\n"
	"API struct box *box_new(int k) { struct box *b = malloc(sizeof(*b)); if (!b) return NULL; b->k = k; b->o = "
	"NULL; "
	"b->next = NULL;\n  if (k > 9) { free(b); return NULL; } return b; }\n"
	"API void box_alone(struct box *b) { b->next = NULL; }\n"
	/* who may keep what he is given */
	"API void keep(struct box *b, struct obj *o) { b->o = o; }\n"
	"API int pass_on(struct box *b, struct obj *o, int k) { if (k > 3) return -1; keep(b, o); return b->k; }\n"
	"API long look(const struct obj *o) { return o->n; }\n"
	/* an operation of a table, whatever it does with it */
	"API long look_by_table(const struct obj *o) { return o->n + 1; }\n"
	"struct ops { int k; long (*look)(const struct obj *o); };\n"
	"struct ops table = { 3, look_by_table };\n"
	/* who by his name ends what he is given, whatever that is */
	"API void any_destroy(int k, void *p) { if (k) obj_put(p); }\n"
	"API void wipe_and_free(void *p) { obj_put(((struct box *)p)->o); free(p); }\n"
	"struct queue { struct obj *o; long n; };\n"
	"API void queue_purge(struct obj *o, struct queue *q) { q->n = o->n; }\n"
	"API void name_destroy(const char *name) { free((void *)name); }\n"
	"int main(int c, char **v) { struct box *b = box_new(c), *e = box_new(c), *f = box_new(c); struct obj *o = "
	"obj_new();\n"
	"  struct node *n = malloc(sizeof(*n)); struct pair *p = malloc(sizeof(*p)); n->next = NULL; n->any = v; "
	"keep(b, "
	"obj_get(o));\n"
	"  pass_on(b, o, c); box_clear(b, c + 1); box_alone(b); by_wrapper(e); by_inlined(f, 1); box_free(b); "
	"node_remove(n);\n"
	"  pair_free(p); plain_free(malloc(sizeof(struct plain))); any_free(malloc(8)); any_destroy(0, o); "
	"name_destroy(NULL); queue_purge(o, (struct queue *)o);\n"
	"  struct album a = { c, malloc(sizeof(struct node)) }; a.first->next = NULL; album_pop(&a);\n"
	"  if (c > 9) { struct huge *h = huge_new(); wide_reset((struct wide *)h, c); huge_reset(h, c); huge_again(h, "
	"c); "
	"huge_begin(h, c); huge_move(h, h); wide_move((struct wide *)h, (struct wide *)h); huge_fill(h, c); "
	"rack_clear((struct rack *)v[0]); box_forget(known, c); shelf_forget(known, c); known_forget(c); "
	"shelf_shift(known, c); derived_forget((struct base *)known, c); cursor_pop((struct cursor *)known); "
	"other_forget(known, c); wipe_and_free(f); "
	"to_obstack(b, n); "
	"as_another(b); "
	"item_free((struct item *)b); items_free((struct item *)b); item_end((struct item *)b); "
	"item_destroy((struct item *)b); item_fini((struct item *)b, 1); item_swap((struct item *)b, (struct item "
	"*)b); "
	"by_inline_free(e); by_heap(b); by_heaps(b, e); by_variable(b); by_member(&heap, b); by_done(&heap, b); "
	"by_box(&heap, b); by_two(&heap, b); by_fraction(&heap, b); } return (int)(look(o) + "
	"table.look(o)) & "
	"0; }\n";

static const char *const builds[] = { "gcc -O0 -g -Dnoipa=noclone", "gcc -O2 -g", "gcc -O2 -g -no-pie",
				      "clang-14 -O2 -g -Dnoipa= -w" };

enum wanted { FREED, CLEARED, GIVEN, ENDED, NOTHING };
enum { ANY = -1 };

static const struct {
	const char *function;
	enum wanted wanted;
	int64_t offset;   /* ANY: as the compiler likes */
	bool any;         /* what is freed may point to anything */
	bool mine;        /* which is not its caller's business: it works on something else */
	const char *name; /* of what is inlined there, and just frees; NULL: the function's own */
} cases[] = {
	{ "by_inline_free", FREED, 8, false, false, "mem_free" },
	{ "album_pop", FREED, 8, true, true },
	{ "box_free", FREED, 8, false },
	{ "by_wrapper", FREED, 8, false },
	{ "by_inlined", FREED, 8, false },
	{ "by_heap", FREED, 8, false },
	{ "by_heaps", FREED, 8, false },
	{ "by_variable", FREED, 8, false },
	{ "by_member", FREED, 8, false },
	{ "by_done", NOTHING, 0, false },
	{ "by_box", NOTHING, 0, false },
	{ "by_two", NOTHING, 0, false },
	{ "by_fraction", NOTHING, 0, false },
	{ "pair_free", FREED, 8, false },
	{ "node_remove", FREED, 8, true },
	{ "box_clear", CLEARED, 8, false },
	{ "rack_clear", CLEARED, ANY, false },
	{ "box_forget", CLEARED, 8, false },
	{ "shelf_forget", CLEARED, 32, false },
	{ "known_forget", CLEARED, 8, false },
	{ "shelf_shift", CLEARED, ANY, false },
	{ "cursor_pop", CLEARED, ANY, false },
	{ "derived_forget", CLEARED, 24, false },
	{ "other_forget", NOTHING, 0, false },
	{ "wide_reset", CLEARED, 160, false },
	{ "huge_reset", CLEARED, 24000, false },
	{ "huge_again", CLEARED, 24000, false, false, "huge_defaults" },
	{ "huge_move", NOTHING, 0, false },
	{ "wide_move", NOTHING, 0, false },
	{ "huge_begin", NOTHING, 0, false },
	{ "huge_fill", NOTHING, 0, false },
	{ "huge_new", NOTHING, 0, false },
	{ "plain_free", NOTHING, 0, false },
	{ "any_free", NOTHING, 0, false },
	{ "box_new", NOTHING, 0, false },
	{ "box_alone", NOTHING, 0, false },
	{ "my_free", NOTHING, 0, false },
	{ "keep", GIVEN, 0, false },
	{ "pass_on", GIVEN, 0, false },
	{ "look", NOTHING, 0, false },
	{ "look_by_table", NOTHING, 0, false },
	{ "obj_put", NOTHING, 0, false },
	{ "any_destroy", ENDED, 0, true },
	{ "wipe_and_free", ENDED, 0, true },
	{ "name_destroy", NOTHING, 0, false },
	{ "to_obstack", FREED, 8, false },
	{ "as_another", NOTHING, 0, false },
};

/* the silent point in the function that starts at this symbol that tells of no store of an object */
static const struct rt_point *point_in(const struct planned *p, const char *name, enum wanted wanted)
{
	const struct rt_symbol *s = rt_symtab_find(p->symtab, name);

	assert_non_null(s);
	for (size_t i = 0; i < p->plan->points.len; i++) {
		const struct rt_point *point = &p->plan->points.data[i];
		bool here = point->address.v >= s->addr.v && point->address.v < s->addr.v + s->size;

		if (!here || point->op != RT_OP_MOVE || !(point->flags & RT_EV_HIDDEN))
			continue;
		/* keep() also stores over what was there, and what frees has a name that ends things */
		if ((wanted != GIVEN || !(point->flags & RT_EV_INLINE)) &&
		    (wanted == ENDED) == (point->kind == RT_POINT_ENTRY && point->flags & RT_EV_MAYBE))
			return point;
	}
	return NULL;
}

static void check(const struct planned *p, const char *build, size_t i)
{
	const struct rt_point *point = point_in(p, cases[i].function, cases[i].wanted);
	bool is_insn = cases[i].wanted != GIVEN && cases[i].wanted != ENDED;

	/* what is copied in the frame is not followed */
	if (!point && cases[i].name && strstr(build, "-O0"))
		return;
	if (!point != (cases[i].wanted == NOTHING))
		fail_msg("%s: %s in %s", build, point ? "a point" : "nothing", cases[i].function);
	if (!point)
		return;
	assert_int_equal(point->delta, 0);
	assert_int_equal(point->kind, is_insn ? RT_POINT_INSN : RT_POINT_ENTRY);
	assert_int_equal(point->place, is_insn ? RT_PLACE_ARG_PTR : RT_PLACE_ARG);
	assert_int_equal(point->frees, cases[i].wanted == FREED);
	assert_int_equal(!!(point->flags & RT_EV_MAYBE), cases[i].any);
	if (is_insn && cases[i].offset != ANY)
		assert_int_equal(point->reg_offset, cases[i].offset);
	/* by the place, unless it is the caller's business; an entry by its name */
	if (cases[i].name) {
		assert_string_equal(point->name, cases[i].name);
		return;
	}
	assert_memory_equal(point->name, cases[i].function, strlen(cases[i].function));
	assert_int_equal(strchr(point->name, '+') != NULL, is_insn && (!cases[i].any || cases[i].mine));
}

/* who ends the part that lies there, by the points of the function that say so, each once: "16:value_clear ..." */
static char *enders_in(const struct planned *p, const char *function)
{
	const struct rt_symbol *s = rt_symtab_find(p->symtab, function);
	char *all = strdup("");

	for (size_t i = 0; i < p->plan->points.len; i++) {
		const struct rt_point *point = &p->plan->points.data[i];
		char one[80], *more;

		if (!point->frees || point->address.v < s->addr.v || point->address.v >= s->addr.v + s->size)
			continue;
		/* compilers copy the end of a function */
		snprintf(one, sizeof(one), "%ld:%s ", (long)point->reg_offset, point->ender ?: "-");
		if (strstr(all, one))
			continue;
		assert_true(asprintf(&more, "%s%s", all, one) > 0);
		free(all);
		all = more;
	}
	return all;
}

static void check_enders(const struct planned *p, const char *build)
{
	/* the part of the value, which is struct item's byte 16; not what lies beside it */
	static const char *const wanted[][2] = { { "item_free", "16:value_clear 24:- " },
						 { "items_free", "16:value_drop 24:- " },
						 { "item_end", "16:- 24:- " },
						 { "item_destroy", "16:value_destroy 24:- " },
						 { "item_fini", "16:value_fini 24:- " },
						 { "item_swap", "16:- 24:- " } };

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		char *got = enders_in(p, wanted[i][0]);

		if (strcmp(got, wanted[i][1]) != 0)
			fail_msg("%s: %s: %s", build, wanted[i][0], got);
		free(got);
	}
}

/* by its name it ends its second argument: who is given as the first one is not ended */
static void check_ended(const struct planned *p)
{
	const struct rt_symbol *s = rt_symtab_find(p->symtab, "queue_purge");
	unsigned found = 0;

	for (size_t i = 0; i < p->plan->points.len; i++) {
		const struct rt_point *point = &p->plan->points.data[i];

		if (point->op != RT_OP_MOVE || point->function.v != s->addr.v)
			continue;
		assert_int_equal(point->reg, RT_REG_RSI);
		found++;
	}
	assert_int_equal(found, 1);
}

/* It moves a pointer from one member to another, and counts nothing: what was there is looked at, and what is stored.
 */
static void check_moved(const struct planned *p)
{
	const struct rt_symbol *s = rt_symtab_find(p->symtab, "shelf_shift");
	unsigned stores = 0, others = 0;

	for (size_t i = 0; i < p->plan->points.len; i++) {
		const struct rt_point *point = &p->plan->points.data[i];

		if (point->address.v < s->addr.v || point->address.v >= s->addr.v + s->size)
			continue;
		if (point->reg_offset == 32)
			stores += point->stored != 0;
		else
			others++;
	}
	assert_int_equal(stores, 1);
	assert_true(others);
}

TEST(pointers_given_up)
{
	for (size_t b = 0; b < sizeof(builds) / sizeof(builds[0]); b++) {
		struct workdir w;
		struct planned p;

		workdir_make(&w);
		workdir_write(&w, "prog.c", program);
		workdir_run(&w, "%s -o prog prog.c", builds[b]);
		planned_open(&p, workdir_path(&w, "prog"));
		planned_make(&p, "type=obj new=obj_new:ret get=obj_get put=obj_put", NULL);
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			check(&p, builds[b], i);
		check_ended(&p);
		check_moved(&p);
		check_enders(&p, builds[b]);
		assert_int_equal(p.plan->refused.len, 0);
		planned_close(&p);
		workdir_remove(&w);
	}
}

/* the points that tell of a pointer which is stored at this offset in the function: of so many types */
static unsigned stored_in(const struct planned *p, const char *function, int64_t offset)
{
	const struct rt_symbol *s = rt_symtab_find(p->symtab, function);
	unsigned types = 0;

	assert_non_null(s);
	for (size_t i = 0; i < p->plan->points.len; i++) {
		const struct rt_point *point = &p->plan->points.data[i];

		if (point->stored && point->reg_offset == offset && point->address.v >= s->addr.v &&
		    point->address.v < s->addr.v + s->size)
			types |= 1u << point->type;
	}
	return (unsigned)__builtin_popcount(types);
}

/* What a call returned is kept where a member says so, whoever counts; what is copied is new memory, with old pointers.
 */
TEST(what_was_returned_and_what_was_copied)
{
	static const char text[] =
		"#include <stdlib.h>\n#include <string.h>\n#define API __attribute__((noinline, noipa))\n"
		"struct obj { int refs; };\nstruct card { int refs; };\nstruct box { long k; struct obj *o; };\n"
		"struct both { long k; union { struct obj *o; struct card *c; } u; };\nstruct obj *global;\n"
		"API struct obj *obj_new(void) { struct obj *o = malloc(sizeof(*o)); o->refs = 1; return o; }\n"
		"API void obj_get(struct obj *o) { o->refs++; }\nAPI void obj_put(struct obj *o) { if (--o->refs == 0) "
		"free(o); }\n"
		"API struct card *card_new(void) { struct card *c = malloc(sizeof(*c)); c->refs = 1; return c; }\n"
		"API void card_get(struct card *c) { c->refs++; }\nAPI void card_put(struct card *c) { if (--c->refs "
		"== "
		"0) free(c); }\n"
		"API void *lookup(int k) { return k ? global : NULL; }\n"
		"API void *g_memdup(const void *p, size_t n) { return memcpy(malloc(n), p, n); }\n"
		"API void keep_result(struct box *b) { b->o = lookup(3); }\n"
		"API void keep_later(struct box *b) { struct obj *o; b->o = NULL; o = lookup(3); b->k = "
		"(long)lookup(4); b->o = o; }\n"
		"API void keep_either(struct both *b) { b->u.o = lookup(3); }\n"
		"API void keep_number(struct box *b) { b->k = (long)lookup(3); }\n"
		"API struct box *box_dup(struct box *b) { struct box *n = g_memdup(b, sizeof(*n)); n->k = b->k; n->o = "
		"NULL; return n; }\n"
		"API struct box *box_take(struct box *b) { struct box *n = lookup(5); n->k = b->k; n->o = NULL; return "
		"n; "
		"}\n"
		"int main(void) { struct box b = { 0 }; struct both c = { 0 }; obj_get(obj_new()); "
		"obj_put(obj_new());\n"
		"  card_get(card_new()); card_put(card_new()); keep_result(&b); keep_later(&b); keep_either(&c);\n"
		"  keep_number(&b); return box_dup(&b) == box_take(&b); }\n";
	static const char obj[] = "type=obj new=obj_new:ret get=obj_get put=obj_put";

	for (size_t b = 1; b < sizeof(builds) / sizeof(builds[0]); b++) {
		struct workdir w;
		struct planned p;

		workdir_make(&w);
		workdir_write(&w, "prog.c", text);
		workdir_run(&w, "%s -o prog prog.c", builds[b]);
		planned_open(&p, workdir_path(&w, "prog"));
		assert_ok(rt_spec_parse(obj, strlen(obj), "-P", &p.spec));
		planned_make(&p, "type=card new=card_new:ret get=card_get put=card_put", NULL);
		assert_int_equal(stored_in(&p, "keep_result", 8), 1);
		assert_int_equal(stored_in(&p, "keep_later", 8), 1);
		assert_int_equal(stored_in(&p, "keep_either", 8), 2);
		assert_int_equal(stored_in(&p, "keep_number", 0), 0);
		assert_non_null(point_in(&p, "box_take", CLEARED));
		assert_null(point_in(&p, "box_dup", CLEARED));
		planned_close(&p);
		workdir_remove(&w);
	}
}

/* Where no references are taken, the one goes along with the object: to operations of a table, too. */
TEST(operations_of_a_table)
{
	for (size_t b = 0; b < sizeof(builds) / sizeof(builds[0]); b++) {
		struct workdir w;
		struct planned p;

		workdir_make(&w);
		workdir_write(&w, "prog.c", program);
		workdir_run(&w, "%s -o prog prog.c", builds[b]);
		planned_open(&p, workdir_path(&w, "prog"));
		planned_make(&p, "type=obj new=obj_new:ret put=obj_put", NULL);
		if (!point_in(&p, "look_by_table", GIVEN))
			fail_msg("%s: nothing in look_by_table", builds[b]);
		if (point_in(&p, "look", GIVEN))
			fail_msg("%s: a point in look", builds[b]);
		planned_close(&p);
		workdir_remove(&w);
	}
}

TEST_MAIN();
