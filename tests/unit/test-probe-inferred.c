/* SPDX-License-Identifier: GPL-2.0-only */
/* Where objects go in files without debug information and without names: what the code alone says of its functions. */
#include "planned.h"

static const char program[] =
	"#include <stdlib.h>\n#define FAR __attribute__((noinline, noipa))\n"
	"struct obj { int refs; long n; };\n"
	"struct box { long k; struct obj *o, *p; void *any; };\n"
	"FAR struct obj *obj_new(void) { struct obj *o = malloc(sizeof(*o)); if (!o) abort(); o->refs = 1; return o; "
	"}\n"
	"FAR struct obj *obj_get(struct obj *o) { o->refs++; return o; }\n"
	"struct thing { int refs; };\n"
	"FAR struct thing *thing_new(void) { struct thing *t = malloc(sizeof(*t)); if (!t) abort(); t->refs = 1; "
	"return t; "
	"}\n"
	"FAR void thing_put(struct thing *t) { if (--t->refs == 0) free(t); }\n"
	"FAR void obj_put(struct obj *o) { if (--o->refs == 0) free(o); }\n"
	/* its own argument is passed on as an object; and stored */
	"static FAR long keeps(struct box *b, struct obj *o) { obj_get(o); b->o = o; return b->k; }\n"
	/* only its callers say what it is given */
	"static FAR long adds(struct box *b, struct obj *o) { b->p = o; return b->k; }\n"
	/* of two types, or none */
	"static FAR long any(struct box *b, void *v) { b->any = v; return b->k; }\n"
	"static FAR long number(struct box *b, long n) { b->any = (void *)n; return b->k; }\n"
	/* hands out what it took: as its result, by an argument, through another one */
	"static FAR struct obj *makes(long k) { struct obj *o = obj_new(); if (k < 0) { obj_put(o); return 0; } o->n = "
	"k; "
	"return o; }\n"
	"static FAR int leaves(long k, struct obj **ret) { if (k > 8) return -1; *ret = obj_new(); return 0; }\n"
	"static FAR int leaves_too(long k, struct obj **ret) { return leaves(k + 1, ret) < 0 ? -2 : 0; }\n"
	/* leaves an object in the register, and hands out none: nobody takes it; and in a struct of its caller's */
	"static FAR void fills(struct box *b) { b->o = obj_new(); }\n"
	"static FAR void begins(struct obj **first) { *first = obj_new(); }\n"
	/* forgets what is in a member that it puts otherwise: one, or two at once */
	"static FAR void clears(struct box *b) { if (b->k > 3) obj_put(b->o); b->o = NULL; }\n"
	"static FAR void clears_two(struct box *b) { if (b->k > 3) { obj_put(b->o); obj_put(b->p); } b->o = NULL; b->p "
	"= "
	"NULL; }\n"
	"static FAR void clears_other(struct box *b) { if (b->k > 3) obj_put(b->o); b->any = NULL; }\n"
	"int main(int c, char **v) { struct box *b = calloc(1, sizeof(*b)); struct obj *o = obj_new(), *p, *q = NULL;\n"
	"  if (!b) abort(); b->k = keeps(b, o); b->k += adds(b, obj_new()) + number(b, c);\n"
	"  any(b, obj_new()); any(b, thing_new()); thing_put(b->any);\n"
	"  p = makes(c); if (p) b->k += p->n; if (!leaves_too(c, &q)) b->k += q->n;\n"
	"  fills(b); begins(&b->p); clears(b); clears_two(b); clears_other(b); return b->k > 0; }\n";

static const char *const builds[] = { "gcc -O0", "gcc -O1", "gcc -O2", "gcc -O2 -no-pie", "clang-14 -O2 -Dnoipa= -w" };

struct stripped {
	struct workdir w;
	struct planned p;
	struct rt_image *image; /* with names */
	struct rt_symtab *names;
};

/* the program without anything but what it exports; spec: see rt_spec_parse() */
static void open_stripped(struct stripped *s, const char *build, const char *spec)
{
	workdir_make(&s->w);
	workdir_write(&s->w, "prog.c", program);
	workdir_run(
		&s->w,
		"%s "
		"-Wl,--export-dynamic-symbol=obj_new,--export-dynamic-symbol=obj_get,--export-dynamic-symbol=obj_put,"
		"--export-dynamic-symbol=thing_new,--export-dynamic-symbol=thing_put -o named prog.c && strip -o prog "
		"named",
		build);
	assert_ok(rt_image_open(workdir_path(&s->w, "named"), &s->image));
	assert_ok(rt_symtab_create(s->image, &s->names));
	planned_open(&s->p, workdir_path(&s->w, "prog"));
	planned_make(&s->p, spec, NULL);
}

static void close_stripped(struct stripped *s)
{
	planned_close(&s->p);
	rt_symtab_destroy(s->names);
	rt_image_destroy(s->image);
	workdir_remove(&s->w);
}

enum what { STORED, OVERWRITTEN, RETURNED, LEFT, GIVEN };

static bool is_what(const struct rt_point *p, enum what what)
{
	switch (what) {
	case STORED:
		return p->kind == RT_POINT_INSN && p->stored;
	case OVERWRITTEN:
		return p->kind == RT_POINT_INSN && !p->stored;
	case RETURNED:
		return p->kind == RT_POINT_RETURN && p->place == RT_PLACE_RET;
	case LEFT:
		return p->kind == RT_POINT_RETURN && p->place == RT_PLACE_OUT;
	case GIVEN:
		break;
	}
	return p->kind != RT_POINT_INSN && p->kind != RT_POINT_RETURN && p->place == RT_PLACE_ARG;
}

/* how many points in the code of this function look at that, which count nothing; its name is where it begins */
static unsigned looks(const struct stripped *s, const char *function, enum what what)
{
	const struct rt_symbol *symbol = rt_symtab_find(s->names, function);
	char name[32];
	unsigned n = 0;

	assert_non_null(symbol);
	snprintf(name, sizeof(name), "0x%llx", (unsigned long long)symbol->addr.v);
	for (size_t i = 0; i < s->p.plan->points.len; i++) {
		const struct rt_point *p = &s->p.plan->points.data[i];

		if (p->op != RT_OP_MOVE || p->address.v < symbol->addr.v ||
		    p->address.v >= symbol->addr.v + symbol->size || !is_what(p, what))
			continue;
		assert_true(p->guessed);
		assert_int_equal(p->delta, 0);
		assert_int_equal(strncmp(p->name, name, strlen(name)), 0);
		n++;
	}
	return n;
}

TEST(where_objects_go_in_stripped_code)
{
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		struct stripped s;

		print_message("%s\n", builds[i]);
		/* compilers copy ends of branches: one store may be two */
		open_stripped(&s, builds[i], "type=obj new=obj_new:ret get=obj_get put=obj_put");
		assert_in_range(looks(&s, "keeps", STORED), 1, 4);
		assert_in_range(looks(&s, "keeps", OVERWRITTEN), 1, 4);
		assert_int_equal(looks(&s, "keeps", GIVEN), 1);
		assert_in_range(looks(&s, "adds", STORED), 1, 4);
		assert_int_equal(looks(&s, "adds", GIVEN), 1);
		assert_int_equal(looks(&s, "number", STORED) + looks(&s, "number", GIVEN), 0);
		assert_int_equal(looks(&s, "makes", RETURNED), 1);
		assert_int_equal(looks(&s, "leaves", LEFT), 1);
		assert_int_equal(looks(&s, "leaves_too", LEFT), 1);
		assert_in_range(looks(&s, "fills", STORED), 1, 4);
		assert_int_equal(looks(&s, "fills", RETURNED), 0);
		assert_int_equal(looks(&s, "begins", LEFT), 0);
		assert_in_range(looks(&s, "clears", OVERWRITTEN), 1, 4);
		assert_in_range(looks(&s, "clears_two", OVERWRITTEN), 2, 4);
		assert_int_equal(looks(&s, "clears_other", OVERWRITTEN), 0);
		close_stripped(&s);
	}
}

/* callers pass it objects of two types: it takes anything, and that says nothing */
TEST(what_takes_anything)
{
	struct stripped s;

	open_stripped(&s, "gcc -O2", "type=obj new=obj_new:ret get=obj_get put=obj_put");
	assert_int_equal(looks(&s, "any", GIVEN), 1);
	close_stripped(&s);
	open_stripped(&s, "gcc -O2",
		      "[obj] new=obj_new:ret get=obj_get put=obj_put [thing] new=thing_new:ret put=thing_put");
	assert_int_equal(looks(&s, "any", GIVEN), 0);
	assert_int_equal(looks(&s, "adds", GIVEN), 1);
	close_stripped(&s);
}

/* the file itself tells: nothing is inferred */
TEST(debug_information_goes_first)
{
	struct stripped s;
	const struct rt_point *p;

	open_stripped(&s, "gcc -O2 -g", "type=obj new=obj_new:ret get=obj_get put=obj_put");
	planned_close(&s.p);
	planned_open(&s.p, workdir_path(&s.w, "named"));
	planned_make(&s.p, "type=obj new=obj_new:ret get=obj_get put=obj_put", NULL);
	for (size_t i = 0; i < s.p.plan->points.len; i++) {
		p = &s.p.plan->points.data[i];
		assert_int_not_equal(strncmp(p->name, "0x", 2), 0);
	}
	assert_non_null(planned_point(&s.p, "makes"));
	close_stripped(&s);
}

TEST_MAIN();
