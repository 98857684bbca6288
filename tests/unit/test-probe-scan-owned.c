/* SPDX-License-Identifier: GPL-2.0-only */
/* Types that nothing counts: who makes their objects, and who ends them. */
#include "planned.h"

static const struct rt_scan_options all = { 0 };
static const char *const builds[] = { "gcc -O2", "clang-14 -O2", "gcc -O0" };

static const char code[] =
	"#include <stdlib.h>\n#include <string.h>\n#define API __attribute__((noinline))\n"
	"struct parser { char *text; int count; };\n"
	"API struct parser *parser_open(const char *t) { struct parser *p = malloc(sizeof(*p)); if (!p) return 0;\n"
	"  p->text = strdup(t); p->count = 1; return p; }\n"
	"API void parser_close(struct parser *p) { if (!p) return; free(p->text); free(p); }\n"
	"static struct parser *last;\n"
	"API struct parser *parser_find(const char *t) { return t ? last : calloc(1, sizeof(*last)); }\n"
	"API struct parser *parser_grown(struct parser *p) { return realloc(p, 2 * sizeof(*p)); }\n"
	/* a status; words that are not parted; an end that is named after what makes it */
	"struct reader { int fd; };\n"
	"API int reader_new(struct reader **ret, int fd) { struct reader *r = calloc(1, sizeof(*r)); if (!r) return "
	"-1;\n"
	"  r->fd = fd; *ret = r; return 0; }\n"
	"API int reader_end(struct reader *r) { int fd = r->fd; free(r); return fd; }\n"
	"typedef struct { int kind; } DocFile;\n"
	"API DocFile *DocFileCreate(int kind) { DocFile *d = calloc(1, sizeof(*d)); if (d) d->kind = kind; return d; "
	"}\n"
	"API void FreeDocFile(DocFile *d) { free(d); }\n"
	"struct strtab_impl { char *base; };\n"
	"API struct strtab_impl *strtab_init(void) { return calloc(1, sizeof(struct strtab_impl)); }\n"
	"API void strtab_closetable(struct strtab_impl *t) { free(t); }\n"
	/* what it is led to, and clears: itself, or by a free() that does */
	"struct image { char *pixels; };\n"
	"API struct image *image_alloc(void) { return calloc(1, sizeof(struct image)); }\n"
	"API void image_free(struct image **i) { if (!i || !*i) return; free((*i)->pixels); free(*i); *i = 0; }\n"
	"struct sound { int rate; };\n"
	"API void MemFreep(void *p) { void *v = *(void **)p; *(void **)p = 0; free(v); }\n"
	"API struct sound *sound_alloc(void) { return calloc(1, sizeof(struct sound)); }\n"
	"API void sound_free(struct sound **s) { if (!s || !*s) return; (*s)->rate = 0; MemFreep(s); }\n"
	/* one that is in a list goes with others; who holds it is counted; each of an interface has names of its own */
	"struct node { struct node *next; };\n"
	"API struct node *node_new(void) { return calloc(1, sizeof(struct node)); }\n"
	"API void node_free(struct node *n) { while (n) { struct node *next = n->next; free(n); n = next; } }\n"
	"struct box { int size, refs; };\n"
	"API struct box *box_new(void) { struct box *b = calloc(1, sizeof(*b)); return b; }\n"
	"API void box_free(struct box *b) { free(b); }\n"
	"struct stream { int (*read)(struct stream *); };\n"
	"API struct stream *stream_of_file(void) { return calloc(1, sizeof(struct stream)); }\n"
	"API void disk_free(struct stream *s) { free(s); }\n"
	/* a part of it is freed; nothing makes it */
	"struct page { char *text; };\n"
	"API struct page *page_new(void) { return calloc(1, sizeof(struct page)); }\n"
	"API void page_clear(struct page *p) { free(p->text); p->text = 0; }\n"
	"struct leaf { int n; };\nAPI void leaf_free(struct leaf *l) { free(l); }\n"
	/* who removes what was added takes it back; it is freed later. Where one is freed, to remove it is no end; nor
	 * where nothing was added */
	"struct source { struct loop *loop; int ms; };\n"
	"struct loop { struct source *gone[16]; int n; };\n"
	"API static struct source *enter(struct loop *l, struct source *s) { if (l->n > 8) { free(s); return 0; }\n"
	"  s->loop = l; return s; }\n"
	"API struct source *loop_add_timer(struct loop *l, int ms) { struct source *s = calloc(1, sizeof(*s));\n"
	"  if (!s) return 0; s->ms = ms; return enter(l, s); }\n"
	"API int source_remove(struct source *s) { s->loop->gone[s->loop->n++] = s; return 0; }\n"
	"struct task { int n; };\n"
	"API struct task *queue_add_task(int n) { struct task *t = calloc(1, sizeof(*t)); if (t) t->n = n; return t; "
	"}\n"
	"API void task_remove(struct task *t) { t->n = 0; }\n"
	"API void task_free(struct task *t) { free(t); }\n"
	"struct hook { int n; };\n"
	"API struct hook *hook_new(int n) { struct hook *h = calloc(1, sizeof(*h)); if (h) h->n = n; return h; }\n"
	"API void hook_remove(struct hook *h) { h->n = 0; }\n"
	"int main(int argc, char **argv) { struct reader *r; struct page *p = page_new(); "
	"parser_close(parser_open(argv[0]));\n"
	"  parser_grown(parser_find(argv[1])); reader_new(&r, 1); reader_end(r); FreeDocFile(DocFileCreate(argc));\n"
	"  strtab_closetable(strtab_init()); node_free(node_new()); box_free(box_new()); disk_free(stream_of_file());\n"
	"  page_clear(p); leaf_free(malloc(4)); { struct image *i = image_alloc(); struct sound *s = sound_alloc();\n"
	"  image_free(&i); sound_free(&s); } { struct loop l = { { 0 }, 0 }; source_remove(loop_add_timer(&l, 1)); }\n"
	"  { struct task *t = queue_add_task(argc); task_remove(t); task_free(t); } hook_remove(hook_new(argc));\n"
	"  return 0; }\n";

static void made_and_ended(const struct planned *p, const char *name, const char *maker, enum rt_place place,
			   const char *ender)
{
	const struct rt_spec_type *type = rt_spec_type_named(&p->spec, name);

	print_message("  %s\n", name);
	assert_non_null(type);
	assert_true(type->owned);
	assert_int_equal(type->start, 1);
	assert_int_equal(type->functions.len, 2);
	assert_int_equal(planned_function(type, maker)->op, RT_OP_NEW);
	assert_int_equal(planned_function(type, maker)->place, place);
	assert_int_equal(planned_function(type, ender)->op, RT_OP_PUT);
	assert_int_equal(planned_function(type, ender)->arg, 1);
}

TEST(one_owner)
{
	for (size_t i = 0; i < 3; i++) {
		struct workdir w;
		struct planned p;

		print_message("%s\n", builds[i]);
		workdir_make(&w);
		workdir_write(&w, "prog.c", code);
		workdir_run(&w, "%s -g -o prog prog.c", builds[i]);
		planned_open(&p, workdir_path(&w, "prog"));
		assert_ok(rt_scan_module(&p.module, &all, &p.spec));
		made_and_ended(&p, "parser", "parser_open", RT_PLACE_RET, "parser_close");
		made_and_ended(&p, "reader", "reader_new", RT_PLACE_OUT, "reader_end");
		assert_int_equal(rt_spec_type_named(&p.spec, "reader")->functions.data[0].condition,
				 RT_IF_NOT_NEGATIVE);
		made_and_ended(&p, "DocFile", "DocFileCreate", RT_PLACE_RET, "FreeDocFile");
		made_and_ended(&p, "strtab_impl", "strtab_init", RT_PLACE_RET, "strtab_closetable");
		made_and_ended(&p, "image", "image_alloc", RT_PLACE_RET, "image_free");
		made_and_ended(&p, "sound", "sound_alloc", RT_PLACE_RET, "sound_free");
		assert_int_equal(planned_function(rt_spec_type_named(&p.spec, "sound"), "sound_free")->place,
				 RT_PLACE_ARG_PTR);
		assert_int_equal(planned_function(rt_spec_type_named(&p.spec, "parser"), "parser_close")->place,
				 RT_PLACE_ARG);
		made_and_ended(&p, "source", "loop_add_timer", RT_PLACE_RET, "source_remove");
		assert_int_equal(p.spec.types.len, 7);
		/* how many are in it is not how many hold it */
		planned_make(&p, NULL, NULL);
		for (size_t k = 0; k < p.plan->types.len; k++)
			assert_int_equal(p.plan->types.data[k].counter_offset, RT_COUNTER_UNKNOWN);
		planned_close(&p);
		workdir_remove(&w);
	}
}

TEST_MAIN();
