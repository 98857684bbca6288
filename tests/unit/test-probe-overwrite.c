/* SPDX-License-Identifier: GPL-2.0-only */
/* Which stores are looked at, because they may overwrite the pointer to an object. */
#include "planned.h"

static const char program[] =
	"#include <stdlib.h>\n#include <string.h>\n#define API __attribute__((noinline, noipa))\n"
	"#define INLINE static inline __attribute__((always_inline))\n"
	"struct obj { int refs; long n; struct obj *own; };\nstruct box { int k; struct obj *o; struct box *next; void "
	"*any; };\n"
	"struct obj *current;\n"
	"API struct obj *obj_new(void) { struct obj *o = malloc(sizeof(*o)); o->refs = 1; return o; }\n"
	"API struct obj *obj_get(struct obj *o) { o->refs++; return o; }\n"
	"API void obj_put(struct obj *o) { if (--o->refs == 0) free(o); }\n"
	"INLINE void store(struct box *b, void *v) { b->any = v; }\n"
	"INLINE struct obj *obj_inc(struct obj *o) { if (o) o->refs++; return o; }\n"
	/* slots */
	"API void set(struct box *b, struct obj *o) { b->o = o; }\n"
	"API int set_late(struct box *b, int k, struct obj *o) { if (k > 7) return -1; if (b->k == k) { b->k++; return "
	"0; }\n"
	"  free(b->any); b->o = o; return 1; }\n"
	"API void fill(struct box *b) { b->o = obj_new(); }\n"
	"API void keep(struct obj *o) { current = obj_get(o); }\n"
	"API void by_helper(struct box *b, struct obj *o) { b->k = 2; store(b, o); }\n"
	"API int other(struct box *b, void *any) { b->any = any; return b->k; }\n"
	"API void *look(struct box *b, int k) { return k ? b->any : b; }\n"
	"API int set_or_add(struct box *b, int k, struct obj *o) { void *any = look(b, k); struct box *n = look(b, k + "
	"1);\n"
	"  if (!any || !n) return other(b, any); n->o = o; return look(b, 3) == any; }\n"
	/* the body of a loop that is entered at its condition, below it */
	"API int in_all(struct box *b, struct obj *o) { struct box *n; while ((n = look(b, b->k))) { b->k--; n->o = o; "
	"} "
	"return b->k; }\n"
	/* another store into the variable; and one that an object comes to from further down */
	"API int close_current(void) { if (!current) return 0; current = NULL; return 1; }\n"
	"API void use(struct obj *o) { current = o ? o : current; }\n"
	"struct obj *chosen; long number_of;\n"
	"API int choose(struct obj *o, int k) { struct obj *n = look(0, k); do { chosen = n; n = obj_get(o); } while "
	"(k-- > 0); "
	"return n->refs; }\n"
	"API void forget_number(void) { number_of = 0; }\n"
	/* nothing but the type of the variable tells what it holds */
	"static struct obj *opened;\n"
	"API int open_by(struct box *b, int k) { opened = k ? look(b, k) : look(b, 1); return opened != 0; }\n"
	"API int close_opened(void) { int was = opened ? opened->refs : 0; opened = NULL; return was; }\n"
	/* what it read from memory, and took a reference for inline */
	"API int copy(struct box *b, int k) { struct obj *o = obj_inc(b->o); if (k) return b->k; "
	"((struct box *)look(b, k))->o = o; return 0; }\n"
	/* what is handed out to it through a T ** */
	"API int make_out(struct obj **ret, int k) { if (k < 0) return -1; *ret = obj_new(); return 0; }\n"
	"API int from_out(struct box *b, int k) { struct obj *o; if (make_out(&o, k)) return -1; b->o = o; return "
	"b->k; "
	"}\n"
	/* what may be anything; and two words at once, one of which is it */
	"struct node { struct node *next; void *what; long n; };\n"
	"API int push_any(struct box *b, int k, void *v) { if (b->k == k) return -1; b->any = v; return b->k; }\n"
	"API void push_pair(struct node **first, void *v) { struct node *n = malloc(sizeof(*n)); if (!n) abort();\n"
	"  n->what = v; n->next = *first; n->n++; *first = n; }\n"
	/* none: its own frame, another type's, the object's own; in memory that is new */
	"API long local(struct obj *o) { struct obj *volatile copy = o; return copy->n; }\n"
	"API struct box *fresh(struct obj *o) { struct box *b = malloc(sizeof(*b)); if (b) { b->o = o; b->k = 1; } "
	"return b; }\n"
	"API void link(struct box *b, struct box *n) { b->next = n; }\n"
	"API void number(struct obj *o, long n) { o->n = n; }\n"
	"API void point_to_itself(struct obj *o) { o->own = o; }\n"
	/* inlined, and no helper: it takes itself what it stores, whatever it is given */
	"INLINE int refill(struct box *b, int k) { if (b->k == k) return 0; b->o = obj_new(); return 1; }\n"
	"API int refill_twice(struct box *b, int k) { return refill(b, k) + 1; }\n"
	"int main(int c, char **v) { struct obj *o = obj_new(); struct box *b = fresh(o); set(b, o); set_late(b, c, "
	"o); fill(b);\n"
	"  struct node *list = NULL; push_any(b, c, o); push_pair(&list, o);\n"
	"  keep(o); by_helper(b, o); link(b, b); set_or_add(b, c, o); in_all(b, o); copy(b, c); from_out(b, c); "
	"number(o, "
	"local(o)); point_to_itself(o); refill_twice(b, c); close_current(); use(o); choose(o, c); forget_number(); "
	"open_by(b, c); close_opened(); obj_put(o); "
	"return 0; }\n";

static const char *const builds[] = { "gcc -O0 -g -Dnoipa=noclone", "gcc -O2 -g", "gcc -O2 -g -no-pie",
				      "clang-14 -O2 -g -Dnoipa= -w" };

/* of a store of the function that starts at this symbol: what it overwrites, or what it stores */
static const struct rt_point *store_in(const struct planned *p, const char *name, bool stored)
{
	const struct rt_symbol *s = rt_symtab_find(p->symtab, name);

	assert_non_null(s);
	for (size_t i = 0; i < p->plan->points.len; i++) {
		const struct rt_point *point = &p->plan->points.data[i];

		if (point->op == RT_OP_MOVE && (point->flags & RT_EV_INLINE) && point->address.v >= s->addr.v &&
		    point->address.v < s->addr.v + s->size && (point->stored != 0) == stored)
			return point;
	}
	return NULL;
}

/* Stores of what may be anything: where it comes from is of no interest, where it goes is. */
static void check_any(const struct planned *p, const char *build)
{
	static const char *const names[] = { "push_any", "push_pair" };

	for (size_t i = 0; i < 2; i++) {
		const struct rt_symbol *s = rt_symtab_find(p->symtab, names[i]);
		unsigned found = 0;

		assert_non_null(s);
		for (size_t k = 0; k < p->plan->points.len; k++) {
			const struct rt_point *point = &p->plan->points.data[k];

			if (point->op != RT_OP_MOVE || !(point->flags & RT_EV_INLINE) || point->address.v < s->addr.v ||
			    point->address.v >= s->addr.v + s->size)
				continue;
			assert_int_equal(point->flags, RT_EV_HIDDEN | RT_EV_INLINE | RT_EV_MAYBE);
			/* behind a vector instruction the slot is read, before any other the register */
			assert_int_equal(point->filled, !point->stored);
			assert_int_equal(point->deref, point->filled);
			found++;
		}
		if (!found)
			fail_msg("%s: nothing in %s", build, names[i]);
	}
}

TEST(stores_into_slots)
{
	static const char *const yes[] = { "set",        "set_late", "fill", "keep",     "by_helper",
					   "set_or_add", "in_all",   "copy", "from_out", "refill_twice" };
	static const char *const no[] = { "local", "link", "number", "obj_get", "obj_new", "point_to_itself" };

	for (size_t b = 0; b < sizeof(builds) / sizeof(builds[0]); b++) {
		struct workdir w;
		struct planned p;

		workdir_make(&w);
		workdir_write(&w, "prog.c", program);
		workdir_run(&w, "%s -o prog prog.c", builds[b]);
		planned_open(&p, workdir_path(&w, "prog"));
		planned_make(&p, "type=obj new=obj_new:ret get=obj_get,obj_inc put=obj_put", NULL);
		for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
			const struct rt_point *point = store_in(&p, yes[i], false), *stored;

			stored = store_in(&p, yes[i], true);
			if (!point || !stored)
				fail_msg("%s: nothing in %s", builds[b], yes[i]);
			/* at the same instruction; the one reads what is in the slot, the other what will be */
			assert_int_equal(stored->address.v, point->address.v);
			assert_int_equal(stored->deref, 0);
			assert_int_equal(stored->reg_offset, point->reg_offset);
			assert_string_equal(stored->name, point->name);
			assert_int_equal(point->kind, RT_POINT_INSN);
			assert_int_equal(point->flags, RT_EV_HIDDEN | RT_EV_INLINE);
			assert_int_equal(point->deref, 1);
			assert_int_equal(point->delta, 0);
			/* a helper that is given a mere pointer does not know what it stores */
			if (i == 4)
				assert_string_equal(point->name, "store");
			else
				assert_memory_equal(point->name, yes[i], strlen(yes[i]));
		}
		for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
			if (store_in(&p, no[i], false) || store_in(&p, no[i], true))
				fail_msg("%s: a store in %s", builds[b], no[i]);
		check_any(&p, builds[b]);
		/* what is stored there otherwise may be no object: what was there is of interest */
		if (!store_in(&p, "close_current", false) || store_in(&p, "close_current", true))
			fail_msg("%s: in close_current", builds[b]);
		if (!store_in(&p, "choose", true) || store_in(&p, "forget_number", false))
			fail_msg("%s: in choose or forget_number", builds[b]);
		if (!store_in(&p, "open_by", true) || !store_in(&p, "open_by", false) ||
		    !store_in(&p, "close_opened", false) || store_in(&p, "close_opened", true))
			fail_msg("%s: in open_by or close_opened", builds[b]);
		/* memory that is new holds nothing, and keeps what is stored there */
		if (store_in(&p, "fresh", false) || !store_in(&p, "fresh", true))
			fail_msg("%s: in fresh", builds[b]);
		assert_int_equal(p.plan->refused.len, 0);
		planned_close(&p);
		workdir_remove(&w);
	}
}

TEST_MAIN();
