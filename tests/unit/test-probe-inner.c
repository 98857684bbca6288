/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constructors that are inlined into other functions: one that provably returns
 * the new object is armed in their place, in every other one the instruction that stores the first count; what has none
 * stays named as unseen.
 */
#include "planned.h"

static const char program[] =
	"#include <stdlib.h>\n#define API __attribute__((noinline))\n"
	"#define INLINE static inline __attribute__((always_inline))\n"
	"struct obj { int kind, refs; void *data, *next; };\n"
	"API void obj_put(struct obj *o) { if (o && --o->refs == 0) free(o); }\n"
	"API struct obj *obj_get(struct obj *o) { o->refs++; return o; }\n"
	"API void *pool_take(int n) { static char pool[4096]; static int used; return pool + (used += n); }\n"
	"struct obj *list; int fail;\n"
	"INLINE struct obj *obj_new(int kind) { struct obj *o = malloc(sizeof(*o)); if (!o) return NULL;\n"
	"  o->kind = kind; o->refs = 1; o->data = o->next = NULL; return o; }\n"
	"INLINE struct obj *obj_take(int kind) { struct obj *o = pool_take(sizeof(*o)); o->refs = 1; return o; }\n"
	/* constructors */
	"API struct obj *plain(void) { return obj_new(1); }\n"
	"API struct obj *filled(void *d) { struct obj *o = obj_new(2); if (o) o->data = d; return o; }\n"
	"API struct obj *careful(void) { struct obj *o = obj_new(3); if (!o) return NULL; o->data = malloc(10);\n"
	"  if (!o->data) { obj_put(o); return NULL; } return o; }\n"
	"API struct obj *either(int k) { if (k) return obj_new(k); return obj_new(7); }\n"
	"API struct obj *pooled(void) { return obj_take(1); }\n"
	/* not constructors: something else comes back, or something is lost on the way */
	"API struct obj *find(int k) { for (struct obj *o = list; o; o = o->next) if (o->kind == k) return o;\n"
	"  struct obj *o = obj_new(k); o->next = list; list = o; return o; }\n"
	"API void keep(void) { struct obj *o = obj_new(4); o->next = list; list = o; }\n"
	"API struct obj *pair(void) { struct obj *a = obj_new(5), *b = obj_new(6); b->data = a; return b; }\n"
	"API struct obj *chain(int n) { struct obj *o = NULL; while (n--) { struct obj *t = obj_new(n); t->next = o; o "
	"= t; }\n"
	"  return o; }\n"
	"API struct obj *lossy(void) { struct obj *o = obj_new(9); list = o; if (fail) return NULL; return o; }\n"
	"API struct obj *inside(void) { struct obj *o = obj_new(8); return (struct obj *)&o->data; }\n"
	"int main(int argc, char **argv) { obj_put(plain()); obj_put(filled(argv)); obj_put(careful());\n"
	"  obj_put(either(argc)); obj_put(obj_get(pooled())); find(1); keep(); pair(); chain(2); lossy(); inside();\n"
	"  return 0; }\n";

static const char *const builds[] = { "gcc -O0 -g", "gcc -O1 -g", "gcc -O2 -g",
				      "gcc -O3 -g -fcf-protection -fstack-protector-strong",
				      "clang-14 -O2 -g -gdwarf-4" };
/* the last one's two calls are made one by clang, which leaves an instance without a call: no proof */
static const char *const makers[] = { "plain", "filled", "careful", "either" };
static const char *const others[] = { "find", "keep", "pair", "chain", "lossy", "inside" };

static void build_code(struct workdir *w, struct planned *p, const char *how, const char *code)
{
	workdir_make(w);
	workdir_write(w, "prog.c", code);
	workdir_run(w, "%s -o prog prog.c", how);
	planned_open(p, workdir_path(w, "prog"));
}

static void build(struct workdir *w, struct planned *p, const char *how)
{
	build_code(w, p, how, program);
}

static void finish(struct workdir *w, struct planned *p)
{
	planned_close(p);
	workdir_remove(w);
}

static size_t points_of(const struct planned *p, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < p->plan->points.len; i++)
		n += strcmp(p->plan->points.data[i].name, name) == 0;
	return n;
}

TEST(what_returns_the_new_object_is_a_constructor)
{
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		struct workdir w;
		struct planned p;
		const struct rt_point *point;
		const char *why;
		size_t seen, unseen;

		build(&w, &p, builds[i]);
		planned_make(&p, "type=obj new=obj_new,obj_take get=obj_get put=obj_put", NULL);
		for (size_t k = 0; k < sizeof(makers) / sizeof(makers[0]); k++) {
			point = planned_point(&p, makers[k]);
			if (!point && k == 3 && strstr(builds[i], "clang"))
				continue;
			if (!point)
				fail_msg("%s: %s is not armed: %s", builds[i], makers[k], planned_why(&p, "obj_new"));
			assert_int_equal(points_of(&p, makers[k]), 1);
			assert_int_equal(point->kind, RT_POINT_RETURN);
			assert_int_equal(point->op, RT_OP_NEW);
			assert_int_equal(point->place, RT_PLACE_RET);
			assert_int_equal(point->delta, 1);
		}
		for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
			if ((point = planned_point(&p, others[k])) &&
			    ((point->op != RT_OP_MOVE && !(point->flags & RT_EV_HIDDEN)) || k == 1))
				fail_msg("%s: %s is armed", builds[i], others[k]);
		/* find, keep, chain, lossy, inside: one each, pair: two. They show where the first count is stored */
		why = planned_why(&p, "obj_new");
		seen = points_of(&p, "obj_new");
		unseen = 0;
		if (why)
			assert_int_equal(sscanf(why, "inlined at %zu place", &unseen), 1);
		if (!seen || seen + unseen != 7 || (unseen && i < 2))
			fail_msg("%s: %zu places, %s", builds[i], seen, why);
		for (size_t k = 0; k < p.plan->points.len; k++) {
			point = &p.plan->points.data[k];
			if (strcmp(point->name, "obj_new") != 0)
				continue;
			assert_int_equal(point->op, RT_OP_NEW);
			assert_int_equal(point->place, RT_PLACE_ARG);
			assert_int_equal(point->counter_offset, RT_COUNTER_UNKNOWN);
			assert_true(point->flags & RT_EV_INLINE);
		}
		/* its own allocator is known by nothing but the first count */
		assert_non_null(planned_point(&p, "pooled"));
		assert_null(planned_why(&p, "obj_take"));
		finish(&w, &p);
	}
}

/* the first count and what lies beside it come from a constant of the file, by a register or a vector */
TEST(a_first_count_among_others)
{
	static const char code[] =
		"#include <stdlib.h>\n#define API __attribute__((noinline))\n"
		"struct obj { int refs, kind; long a, b; };\n"
		"API void obj_put(struct obj *o) { if (!--o->refs) free(o); }\n"
		"API struct obj *obj_get(struct obj *o) { o->refs++; return o; }\n"
		"API void touch(long *a) { ++*a; }\n"
		"static struct obj *obj_new(void) { struct obj *o = calloc(1, sizeof(*o)); o->refs = 1; o->kind = 7;\n"
		"  MORE touch(&o->a); return o; }\n"
		"API void use(struct obj *o) { if (!o) o = obj_new(); obj_put(obj_get(o)); obj_put(o); }\n"
		"int main(void) { use(NULL); return 0; }\n";
	static const char *const how[] = { "gcc -O2 -g -DMORE=", "gcc -O2 -g '-DMORE=o->b = 9;'",
					   "gcc -O2 -g '-DMORE=o->a = 3;'", "clang-14 -O2 -g '-DMORE=o->a = 3;'" };

	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		struct workdir w;
		struct planned p;

		build_code(&w, &p, how[i], code);
		planned_make(&p, "type=obj new=obj_new get=obj_get put=obj_put", NULL);
		if (points_of(&p, "obj_new") != 1)
			fail_msg("%s: %s", how[i], planned_why(&p, "obj_new"));
		finish(&w, &p);
	}
}

/* a constructor that is known already, told or by its name, gets no second point */
TEST(known_constructors_are_left_alone)
{
	struct workdir w;
	struct planned p;

	build(&w, &p, builds[2]);
	planned_make(&p, "type=obj new=plain,obj_new,filled get=obj_get put=obj_put", NULL);
	for (size_t k = 0; k < sizeof(makers) / sizeof(makers[0]); k++)
		assert_int_equal(points_of(&p, makers[k]), 1);
	planned_close(&p);
	planned_open(&p, workdir_path(&w, "prog"));
	planned_make(&p, "type=obj new=obj_new get=obj_get put=obj_put",
		     &(struct rt_plan_options){ .no_inline = true });
	assert_null(planned_point(&p, "plain"));
	planned_close(&p);
	/* an engine that sees no results sees these neither, and says so */
	planned_open(&p, workdir_path(&w, "prog"));
	planned_make(&p, "type=obj new=obj_new get=obj_get put=obj_put", &(struct rt_plan_options){ 0 });
	assert_null(planned_point(&p, "plain"));
	assert_non_null(planned_why(&p, "plain"));
	finish(&w, &p);
}

/* without a counter and with an allocator of unknown name nothing says that an object was made */
TEST(no_proof_no_point)
{
	struct workdir w;
	struct planned p;

	build(&w, &p, builds[2]);
	planned_make(&p, "type=obj new=obj_take put=obj_put counter=+4:4", NULL);
	assert_non_null(planned_point(&p, "pooled"));
	planned_close(&p);
	planned_open(&p, workdir_path(&w, "prog"));
	planned_make(&p, "type=obj new=obj_take put=obj_put counter=+128:4", NULL);
	assert_true(planned_point(&p, "pooled")->flags & RT_EV_HIDDEN);
	assert_non_null(strstr(planned_why(&p, "obj_take"), "inlined at 1 place,"));
	finish(&w, &p);
}

/* C++ and -fexceptions: the return must not be hooked, the object is seen behind the calls */
TEST(returns_that_must_not_be_hooked)
{
	static const char code[] =
		"#include <stdlib.h>\nstruct obj { int refs; };\nextern \"C\" void obj_put(obj *o) { if (!--o->refs) "
		"free(o); }\n"
		"static inline __attribute__((always_inline)) obj *obj_new() { obj *o = (obj *)malloc(sizeof(obj));\n"
		"  if (o) o->refs = 1; return o; }\n"
		"__attribute__((noinline)) static obj *make(int) { return obj_new(); }\n"
		"int main(int c, char **) { obj_put(make(c)); return 0; }\n";
	struct workdir w;
	struct planned p;
	const struct rt_point *point;

	workdir_make(&w);
	workdir_write(&w, "p.cc", code);
	workdir_run(&w, "g++ -O2 -g -o p p.cc");
	planned_open(&p, workdir_path(&w, "p"));
	planned_make(&p, "type=obj new=obj_new put=obj_put", NULL);
	point = planned_point(&p, "make");
	assert_non_null(point);
	assert_int_equal(point->kind, RT_POINT_INSN);
	assert_true(point->flags & RT_EV_AT_RETURN);
	finish(&w, &p);
}

TEST_MAIN();
