/* SPDX-License-Identifier: GPL-2.0-only */
/* Which functions are looked at when they return, because they may hand a reference up. */
#include "planned.h"

static const char program[] =
	"#include <stdlib.h>\n#define API __attribute__((noinline))\n"
	"struct obj { int refs; struct obj *next; };\nstruct other { int refs; };\nstruct obj *list;\n"
	"API struct obj *obj_alloc(void) { struct obj *o = malloc(sizeof(*o)); o->refs = 1; o->next = NULL; return o; "
	"}\n"
	"API void obj_get(struct obj *o) { o->refs++; }\n"
	"API void obj_put(struct obj *o) { if (--o->refs == 0) free(o); }\n"
	/* hand up */
	"API struct obj *make(int n) { struct obj *o = obj_alloc(); o->refs += n; o->refs -= n; return o; }\n"
	"API struct obj *outer(int n) { struct obj *o = make(n); if (o) o->next = NULL; return o; }\n"
	"API int open_it(int n, struct obj **ret) { struct obj *o = make(n); *ret = o; return 0; }\n"
	"API int by_callback(int (*cb)(struct obj **), struct obj **ret) { return cb(ret) + 1; }\n"
	"API struct obj *take(struct obj *o) { obj_get(o); return o; }\n"
	"API void *untyped(void) { return obj_alloc(); }\n"
	/* do not: nothing is taken inside, nothing of the type comes out, or it is not known where */
	"API struct obj *peek(struct obj *o) { return o->next; }\n"
	"API int count(struct obj **all) { int n = 0; while (all[n]) n++; return n; }\n"
	"API int keep(void) { struct obj *o = obj_alloc(); o->next = list; list = o; return 1; }\n"
	"API int scaled(double d, struct obj **ret) { *ret = make((int)d); return 0; }\n"
	"API void *memory(void) { return malloc(sizeof(struct other)); }\n"
	"API struct other *sibling(void) { list = obj_alloc(); return malloc(sizeof(struct other)); }\n"
	"static int cb(struct obj **ret) { return open_it(1, ret); }\n"
	"int main(int argc, char **argv) { struct obj *o, *all[2] = { outer(argc), NULL }; open_it(1, &o);\n"
	"  by_callback(cb, &o); obj_put(take(o)); peek(o); count(all); untyped(); memory(); keep(); scaled(argc, &o);\n"
	"  return sibling() == NULL; }\n";

static const char *const builds[] = { "gcc -O0 -g", "gcc -O2 -g", "clang-14 -O2 -g" };
static const char spec[] = "type=obj new=obj_alloc:ret get=obj_get put=obj_put";

static const struct rt_point *handing_point(const struct planned *p, const char *name)
{
	for (size_t i = 0; i < p->plan->points.len; i++)
		if (p->plan->points.data[i].op == RT_OP_MOVE && !strcmp(p->plan->points.data[i].name, name))
			return &p->plan->points.data[i];
	return NULL;
}

static void open_program(struct workdir *w, struct planned *p, const char *how)
{
	workdir_make(w);
	workdir_write(w, "prog.c", program);
	workdir_run(w, "%s -o prog prog.c", how);
	planned_open(p, workdir_path(w, "prog"));
}

TEST(who_takes_and_returns_is_looked_at)
{
	static const char *const yes[] = { "make", "outer", "take", "untyped" }, *const slots[] = { "open_it",
												    "by_callback" };
	static const char *const no[] = { "peek",    "count", "memory",  "keep",    "scaled",
					  "sibling", "main",  "obj_put", "obj_get", "obj_alloc" };

	for (size_t b = 0; b < sizeof(builds) / sizeof(builds[0]); b++) {
		struct workdir w;
		struct planned p;

		open_program(&w, &p, builds[b]);
		planned_make(&p, spec, NULL);
		for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
			const struct rt_point *point = handing_point(&p, yes[i]);

			assert_non_null(point);
			assert_int_equal(point->place, RT_PLACE_RET);
			assert_int_equal(point->kind, RT_POINT_RETURN);
			assert_int_equal(point->flags, RT_EV_AT_RETURN);
			assert_int_equal(point->delta, 0);
			assert_int_equal(point->counter_offset, RT_COUNTER_UNKNOWN);
		}
		for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
			const struct rt_point *point = handing_point(&p, slots[i]);

			assert_non_null(point);
			assert_int_equal(point->place, RT_PLACE_OUT);
			assert_int_equal(point->reg, RT_REG_RSI);
		}
		for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
			assert_null(handing_point(&p, no[i]));
		planned_close(&p);
		workdir_remove(&w);
	}
}

/* Who is told how to take and put hands out what it took; and g_thing_ref(void *) is about struct _GThing. */
TEST(takers_that_are_passed_and_structs_by_their_spelling)
{
	static const char text[] =
		"#include <stdlib.h>\n#define API __attribute__((noinline, noipa))\n"
		"struct _GThing { int refs; long n; };\nstruct part { struct _GThing base; long k; };\n"
		"API void *g_thing_new(void) { struct _GThing *t = malloc(sizeof(struct part)); t->refs = 1; return t; "
		"}\n"
		"API void *g_thing_ref(void *p) { struct _GThing *t = p; t->refs++; return t; }\n"
		"API void g_thing_unref(void *p) { struct _GThing *t = p; if (--t->refs == 0) free(t); }\n"
		"static int up(void *p) { return g_thing_ref(p) != NULL; }\nstatic void *table[2];\n"
		"API void *generic(int (*ref)(void *), int k) { ref(table[k]); return table[k]; }\n"
		"API struct part *fetch(int k) { return generic(up, k); }\n"
		"API struct part *first(int k) { return table[k]; }\n"
		"API struct part *other(int k) { return generic((int (*)(void *))atoi, k); }\n"
		"int main(void) { table[0] = g_thing_new(); g_thing_unref(fetch(0)); return first(0) == other(0); }\n";

	for (size_t b = 1; b < sizeof(builds) / sizeof(builds[0]); b++) {
		struct workdir w;
		struct planned p;

		workdir_make(&w);
		workdir_write(&w, "prog.c", text);
		workdir_run(&w, "%s -o prog prog.c", builds[b]);
		planned_open(&p, workdir_path(&w, "prog"));
		planned_make(&p, "type=g_thing new=g_thing_new:ret get=g_thing_ref put=g_thing_unref", NULL);
		assert_non_null(handing_point(&p, "fetch"));
		assert_null(handing_point(&p, "first"));
		assert_null(handing_point(&p, "other"));
		planned_close(&p);
		workdir_remove(&w);
	}
}

TEST(what_cannot_be_looked_at_is_not_missed)
{
	static const struct rt_plan_options no_returns = { .avoid_nop5 = true };
	struct workdir w;
	struct planned p;

	open_program(&w, &p, builds[1]);
	planned_make(&p, "type=obj get=obj_get put=obj_put", &no_returns);
	assert_null(handing_point(&p, "take"));
	assert_int_equal(p.plan->refused.len, 0);
	planned_close(&p);
	workdir_remove(&w);
}

/* What a library exports it calls through stubs of its own. */
TEST(calls_of_what_the_library_exports)
{
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "prog.c", program);
	workdir_run(&w, "gcc -O2 -g -fPIC -shared -o lib.so prog.c");
	planned_open(&p, workdir_path(&w, "lib.so"));
	planned_make(&p, spec, NULL);
	assert_non_null(handing_point(&p, "make"));
	assert_non_null(handing_point(&p, "outer"));
	assert_non_null(handing_point(&p, "open_it"));
	planned_close(&p);
	workdir_remove(&w);
}

/* A user of a library knows the structure by its tag, the spec by its typedef, and no function of the type is here. */
TEST(typedefs_of_what_others_make)
{
	static const char lib[] = "#include <stdlib.h>\nstruct obj_st { int refs; };\n"
				  "struct obj_st *OBJ_new(void) { return calloc(1, sizeof(struct obj_st)); }\n"
				  "void OBJ_free(struct obj_st *o) { free(o); }\n";
	static const char user[] =
		"typedef struct obj_st OBJ;\nOBJ *OBJ_new(void);\nvoid OBJ_free(OBJ *o);\n"
		"__attribute__((noinline)) OBJ *make(void) { OBJ *o = OBJ_new(); return o ? o : OBJ_new(); }\n"
		"int main(void) { OBJ_free(make()); return 0; }\n";
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "lib.c", lib);
	workdir_write(&w, "user.c", user);
	workdir_run(&w, "gcc -O2 -fPIC -shared -o libobj.so lib.c");
	workdir_run(&w, "gcc -O2 -g -o user user.c ./libobj.so");
	planned_open(&p, workdir_path(&w, "user"));
	planned_make(&p, "type=OBJ new=OBJ_new:ret put=OBJ_free:1", NULL);
	assert_non_null(handing_point(&p, "make"));
	planned_close(&p);
	workdir_remove(&w);
}

TEST(without_debug_information_there_is_none)
{
	struct workdir w;
	struct planned p;

	open_program(&w, &p, "gcc -O2");
	planned_make(&p, spec, NULL);
	assert_non_null(planned_point(&p, "obj_get"));
	assert_null(handing_point(&p, "make"));
	planned_close(&p);
	workdir_remove(&w);
}

TEST_MAIN();
