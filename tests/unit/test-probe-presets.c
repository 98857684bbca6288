/* SPDX-License-Identifier: GPL-2.0-only */
/* Presets that a module has the functions of. */
#include "planned.h"

#include "probe/presets.h"

static const char program[] =
	"#define API __attribute__((noinline))\nstruct doc { int refs; char *text; };\n"
	"API struct doc *doc_open(void) { static struct doc d; d.refs = 1; return &d; }\n"
	"API struct doc *doc_ref(struct doc *d) { d->refs++; return d; }\n"
	"API void doc_unref(struct doc *d) { d->refs--; }\n"
	"API char *value_get(struct doc *d) { return d->text; }\n"
	"API struct doc *value_new(void) { return doc_open(); }\n"
	"API void value_free(struct doc *d) { d->text = 0; }\n"
	"API void *block_new(void) { return doc_open(); }\nAPI void block_free(void *b) { doc_unref(b); }\n"
	"API struct doc *old_ref(struct doc *d) { return d; }\nAPI void old_unref(struct doc *d) { d->refs--; }\n"
	/* in other words, and another count of the same objects */
	"API struct doc *doc_lock_ref(struct doc *d) { d->refs++; return d; }\n"
	"API void doc_lock_unref(struct doc *d) { d->refs--; }\nAPI struct doc *doc_lock_new(void) { return "
	"doc_open(); }\n"
	"int main(void) { doc_lock_unref(doc_lock_ref(doc_lock_new())); struct doc *d = doc_ref(doc_open()); "
	"doc_unref(d); value_free(value_new()); "
	"block_free(block_new()); old_unref(old_ref(d)); return value_get(d) != 0; }\n";

static const char text[] = "[doc]\nnew=doc_open,doc_open_file,doc_lock_new\nget=doc_ref:1\nput=doc_unref:1\nstart=1\n"
			   /* its put is somewhere else: the get is another library's function of that name */
			   "[value]\nnew=value_new\nget=value_get:1\nput=value_put:1\nfree=value_free:1\n"
			   /* any program's allocator */
			   "[block]\nnew=block_new\nfree=block_free:1\n"
			   /* two functions of five */
			   "[old]\nnew=old_new,old_copy,old_open\nget=old_ref:1\nput=old_unref:1\n";

TEST(a_module_has_most_functions)
{
	_cleanup_(rt_presets_destroyp) struct rt_presets *presets = NULL;
	struct rt_spec types = { 0 };
	const struct rt_spec_type *doc;
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "prog.c", program);
	workdir_run(&w, "gcc -O2 -o prog prog.c");
	planned_open(&p, workdir_path(&w, "prog"));
	assert_ok(rt_spec_parse(text, sizeof(text) - 1, "presets/some", &types));
	assert_ok(rt_presets_create(&types, &presets));
	assert_int_equal(types.types.len, 1);
	assert_string_equal(types.types.data[0].name, "block");
	assert_ok(rt_presets_adopt(presets, &p.module, &p.spec));
	assert_int_equal(p.spec.types.len, 1);
	doc = &p.spec.types.data[0];
	assert_string_equal(doc->name, "doc");
	assert_string_equal(doc->origin, "presets/some");
	assert_int_equal(doc->functions.len, 5);
	assert_true(planned_function(doc, "doc_open_file")->guessed);
	/* a scan that follows leaves its functions alone, and a second module does not have it once more */
	assert_ok(rt_scan_module(&p.module, &(struct rt_scan_options){ 0 }, &p.spec));
	assert_ok(rt_presets_adopt(presets, &p.module, &p.spec));
	for (size_t i = 1; i < p.spec.types.len; i++) {
		assert_null(planned_function(&p.spec.types.data[i], "doc_ref"));
		assert_null(planned_function(&p.spec.types.data[i], "doc_lock_ref"));
	}
	rt_spec_deinit(&types);
	planned_close(&p);
	workdir_remove(&w);
}

TEST_MAIN();
