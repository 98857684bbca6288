/* SPDX-License-Identifier: GPL-2.0-only */
/* Gets and puts by other names, for what begins with an object of the family. */
#include "planned.h"

static const struct rt_scan_options all = { 0 };
static const char *const builds[] = { "gcc -O2", "clang-14 -O2", "gcc -O0" };

static const char code[] =
	"#include <stdlib.h>\n#define API __attribute__((noinline))\n"
	"struct object { int refs; };\nstruct message { struct object base; int kind; };\n"
	"struct sink { struct message base; int rate; };\n"
	"API struct object *object_ref(struct object *o) { __atomic_add_fetch(&o->refs, 1, 5); return o; }\n"
	"API void object_unref(struct object *o) { if (!__atomic_sub_fetch(&o->refs, 1, 5)) free(o); }\n"
	"API struct object *object_new(size_t n) { struct object *o = calloc(1, n); if (o) o->refs = 1; return o; }\n"
	/* one of its own code, one that is inlined everywhere, and one two levels deep */
	"API struct message *message_ref(struct message *m) { return (struct message *)object_ref(&m->base); }\n"
	"API void message_unref(struct message *m) { object_unref(&m->base); }\n"
	"static inline __attribute__((always_inline)) struct sink *sink_ref(struct sink *s) {\n"
	"  return (struct sink *)object_ref(&s->base.base); }\n"
	"static inline __attribute__((always_inline)) void sink_unref(struct sink *s) { object_unref(&s->base.base); "
	"}\n"
	/* it begins with an object, and counts by itself; it holds one, and begins with none */
	"struct file { struct object base; int users; };\n"
	"API struct file *file_ref(struct file *f) { f->users++; return f; }\n"
	"API void file_unref(struct file *f) { if (!--f->users) object_unref(&f->base); }\n"
	"struct holder { int users; struct object *o; };\n"
	"API struct holder *holder_ref(struct holder *h) { object_ref(h->o); h->users++; return h; }\n"
	"API void holder_unref(struct holder *h) { object_unref(h->o); if (!--h->users) free(h); }\n"
	"int main(int argc, char **argv) { struct message *m = (struct message *)object_new(sizeof(*m));\n"
	"  struct sink *s = (struct sink *)object_new(sizeof(*s)); struct file *f = (struct file "
	"*)object_new(sizeof(*f));\n"
	"  struct holder h = { argc, &f->base };\n"
	"  message_unref(message_ref(m)); sink_ref(s); sink_unref(s); file_unref(file_ref(f));\n"
	"  holder_unref(holder_ref(&h)); return argv[0][0] == 1; }\n";

static void counts_as(const struct rt_spec_type *type, const char *function, enum rt_op op)
{
	print_message("  %s\n", function);
	assert_int_equal(planned_function(type, function)->op, op);
	assert_int_equal(planned_function(type, function)->place, RT_PLACE_ARG);
	assert_int_equal(planned_function(type, function)->arg, 1);
}

TEST(other_names)
{
	for (size_t i = 0; i < 3; i++) {
		const struct rt_spec_type *object;
		struct workdir w;
		struct planned p;

		print_message("%s\n", builds[i]);
		workdir_make(&w);
		workdir_write(&w, "prog.c", code);
		workdir_run(&w, "%s -g -o prog prog.c", builds[i]);
		planned_open(&p, workdir_path(&w, "prog"));
		assert_ok(rt_scan_module(&p.module, &all, &p.spec));
		object = rt_spec_type_named(&p.spec, "object");
		assert_non_null(object);
		counts_as(object, "object_ref", RT_OP_GET);
		counts_as(object, "object_unref", RT_OP_PUT);
		counts_as(object, "message_ref", RT_OP_GET);
		counts_as(object, "message_unref", RT_OP_PUT);
		counts_as(object, "sink_ref", RT_OP_GET);
		counts_as(object, "sink_unref", RT_OP_PUT);
		/* those are no types of their own; what counts by itself is one, and so is what holds one */
		assert_null(rt_spec_type_named(&p.spec, "message"));
		assert_null(rt_spec_type_named(&p.spec, "sink"));
		assert_non_null(rt_spec_type_named(&p.spec, "file"));
		assert_non_null(rt_spec_type_named(&p.spec, "holder"));
		for (size_t k = 0; k < object->functions.len; k++) {
			assert_null(strstr(object->functions.data[k].name, "file"));
			assert_null(strstr(object->functions.data[k].name, "holder"));
		}
		planned_close(&p);
		workdir_remove(&w);
	}
}

TEST_MAIN();
