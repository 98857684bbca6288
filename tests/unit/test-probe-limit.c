/* SPDX-License-Identifier: GPL-2.0-only */
/* Places that are too many to be looked at are told of; nothing is told where all are. */
#include "planned.h"

/* functions that forget what a box has, each a place: the planner looks at 1024 */
static void make_program(struct workdir *w, unsigned functions)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	fputs("#include <stdlib.h>\n#define API __attribute__((noinline, noipa))\n"
	      "struct obj { int refs; long n; };\nstruct box { int k; struct obj *o; };\n"
	      "API struct obj *obj_new(void) { struct obj *o = malloc(sizeof(*o)); o->refs = 1; return o; }\n"
	      "API struct obj *obj_get(struct obj *o) { o->refs++; return o; }\n"
	      "API void obj_put(struct obj *o) { if (--o->refs == 0) free(o); }\n"
	      "int main(void) { return 0; }\n",
	      f);
	for (unsigned i = 0; i < functions; i++)
		fprintf(f, "API int forget_%u(struct box *b) { b->o = NULL; return b->k + %u; }\n", i, i);
	fclose(f);
	workdir_write(w, "prog.c", text);
	free(text);
}

static void plan_of(struct planned *p, struct workdir *w, unsigned functions)
{
	make_program(w, functions);
	workdir_run(w, "gcc -g -O2 -o prog-%u prog.c", functions);
	planned_open(p, workdir_path(w, functions == 1024 ? "prog-1024" : "prog-1025"));
	planned_make(p, "type=obj new=obj_new:ret get=obj_get put=obj_put", NULL);
}

TEST(too_many_places)
{
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	plan_of(&p, &w, 1024);
	assert_int_equal(p.plan->limits.len, 0);
	assert_true(p.plan->points.len > 1024);
	planned_close(&p);

	plan_of(&p, &w, 1025);
	assert_int_equal(p.plan->limits.len, 1);
	assert_string_equal(p.plan->limits.data[0],
			    "prog-1025: obj: slots that are given up: 1025 places, more than 1024");
	assert_true(p.plan->points.len < 1024);
	/* what counts is there all the same */
	assert_non_null(planned_point(&p, "obj_get"));
	assert_int_equal(p.plan->refused.len, 0);
	planned_close(&p);
	workdir_remove(&w);
}

TEST_MAIN();
