/* SPDX-License-Identifier: GPL-2.0-only */
/* One function, instruction by instruction: ELF against objdump and addr2line, BPF against the loaded program. */
#include <elf.h>

#include "base/sink.h"
#include "report/annotate.h"
#include "workdir.h"

static const char source[] = "#include <stdlib.h>\n"
			     "struct o { long count; int b[4]; };\n"
			     "static inline int scale(int a, int b)\n"
			     "{\n"
			     "	return a * (b ^ 3);\n" /* line 5 */
			     "}\n"
			     "__attribute__((noinline)) void dispose(struct o *o)\n"
			     "{\n"
			     "	free(o);\n"
			     "}\n"
			     "__attribute__((noinline)) int walk(struct o *o, int n)\n"
			     "{\n"
			     "	int s = 0;\n"
			     "	for (int i = 0; i < n; i++)\n"
			     "		s += scale(o->b[i & 3], s);\n"
			     "	if (--o->count == 0)\n"
			     "		dispose(o);\n" /* line 17 */
			     "	return s;\n"
			     "}\n"
			     "int main(void)\n"
			     "{\n"
			     "	struct o *o = calloc(1, sizeof(*o));\n"
			     "	return walk(o, 5);\n"
			     "}\n";

static const char *const cycles[] = { "cycles" };

struct elf_rig {
	struct workdir work;
	struct rt_image *image;
	struct rt_symtab *symtab;
	struct rt_dwarf *dwarf;
	struct rt_annotate_elf what;
};

/* Lines of the source above: what a namer answers from the file. */
static const char *source_line(struct rt_namer *self, uint32_t module, const char *file, uint32_t line, bool *ret_stale)
{
	static char text[128];
	const char *at = source;

	if (!strstr(file, "a.c") || !line)
		return NULL;
	while (--line && (at = strchr(at, '\n')))
		at++;
	if (!at)
		return NULL;
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, "\n"), at);
	return text;
}

static struct rt_namer namer = { .source_line = source_line };

static void elf_make(struct elf_rig *rig)
{
	workdir_make(&rig->work);
	workdir_write(&rig->work, "a.c", source);
	workdir_run(&rig->work, "gcc -g -O2 -fno-reorder-functions a.c -o a -Wl,--build-id=sha1");
	assert_ok(rt_image_open(workdir_path(&rig->work, "a"), &rig->image));
	assert_ok(rt_symtab_create(rig->image, &rig->symtab));
	assert_ok(rt_dwarf_create(rig->image, &rig->dwarf));
	rig->what = (struct rt_annotate_elf){ .path = "/opt/a",
					      .image = rig->image,
					      .symtab = rig->symtab,
					      .dwarf = rig->dwarf,
					      .namer = &namer,
					      .function = "walk",
					      .build_id = rig->image->build_id,
					      .build_id_size = rig->image->build_id_size };
}

static void elf_remove(struct elf_rig *rig)
{
	rt_dwarf_destroy(rig->dwarf);
	rt_symtab_destroy(rig->symtab);
	rt_image_destroy(rig->image);
	workdir_remove(&rig->work);
}

static char *render(const struct rt_annotation *a, const struct rt_annotate_options *options)
{
	struct rt_sink sink;
	char *text;

	rt_sink_init_memory(&sink);
	assert_ok(rt_annotate_text(a, options, &sink));
	assert_ok(rt_sink_end(&sink));
	text = strdup(sink.buffer);
	rt_sink_deinit(&sink);
	if (getenv("RT_SHOW"))
		puts(text);
	return text;
}

TEST(elf_lines_are_those_of_objdump_and_addr2line)
{
	struct rt_annotate_hits hits = { .events = cycles, .event_count = 1 };
	struct rt_annotation *a = NULL;
	struct elf_rig rig;
	char *want, *at;

	elf_make(&rig);
	assert_ok(rt_annotate_elf(&rig.what, &hits, &a));
	want = at = workdir_output(
		&rig.work,
		"objdump -d --no-show-raw-insn a | awk '/<walk>:/{on=1;next} /^$/{on=0} on{print $1}' |"
		" tr -d : | while read x; do echo 0x$x $(addr2line -e a 0x$x | sed 's/ .*//;s/.*://'); done");
	for (size_t i = 0; i < a->line_count; i++) {
		unsigned long long address = strtoull(at, &at, 16);
		unsigned long line = strtoul(at, &at, 10);

		at = strchr(at, '\n') + 1;
		assert_int_equal(a->lines[i].address, address);
		assert_int_equal(a->lines[i].line, line);
		if (line == 5) {
			assert_string_equal(a->lines[i].inlined, "scale");
			assert_string_equal(a->lines[i].source, "	return a * (b ^ 3);");
		}
	}
	/* objdump goes on: padding up to the next function */
	assert_true(!*at || strtoull(at, NULL, 16) >= a->lines[0].address + rt_symtab_find(rig.symtab, "walk")->size);
	assert_true(a->line_count > 10);
	free(want);
	rt_annotation_destroy(a);
	elf_remove(&rig);
}

/* Index of the first instruction of a source line. */
static size_t first_of(const struct rt_annotation *a, uint32_t line)
{
	for (size_t i = 0; i < a->line_count; i++) {
		if (a->lines[i].line == line)
			return i;
	}
	fail_msg("no instruction of line %u", line);
	return 0;
}

TEST(elf_hits_lie_on_their_instructions)
{
	static const char *const two[] = { "cycles", "misses" };
	static const uint64_t totals[] = { 1000, 50 };
	struct rt_annotate_hits none = { .events = two, .event_count = 2 }, hits = none;
	struct rt_annotation *a = NULL;
	struct rt_annotate_hit given[6];
	struct elf_rig rig;
	uint64_t start, hot, inside;
	bool called = false, jumped = false;
	char *text;

	elf_make(&rig);
	assert_ok(rt_annotate_elf(&rig.what, &none, &a));
	start = a->lines[0].address;
	hot = a->lines[first_of(a, 5)].address;
	inside = hot + 1; /* in the middle of an instruction */
	for (size_t i = 0; i < a->line_count; i++) {
		const struct rt_annotation_line *l = &a->lines[i];

		if (l->target_name) {
			/* a tail call or a call: by name */
			assert_string_equal(l->target_name, "dispose");
			assert_int_equal(l->line, 17);
			called = true;
		}
		if (l->target != RT_NO_LINE) {
			assert_true(a->lines[l->target].label);
			jumped = true;
		}
	}
	assert_true(called && jumped);
	rt_annotation_destroy(a);
	given[0] = (struct rt_annotate_hit){ hot, 70, 0 };
	given[1] = (struct rt_annotate_hit){ inside, 20, 0 };
	given[2] = (struct rt_annotate_hit){ start, 10, 0 };
	given[3] = (struct rt_annotate_hit){ start, 5, 1 };
	given[4] = (struct rt_annotate_hit){ start - 1, 1000, 0 };
	given[5] = (struct rt_annotate_hit){ start, 1, 7 }; /* an event that was not declared */
	hits.hits = given;
	hits.count = 6;
	hits.totals = totals;
	assert_ok(rt_annotate_elf(&rig.what, &hits, &a));
	assert_int_equal(a->hits[0], 100);
	assert_int_equal(a->hits[1], 5);
	assert_int_equal(a->lines[first_of(a, 5)].hits[0], 90);
	assert_int_equal(a->lines[0].hits[0], 10);
	assert_int_equal(a->lines[0].hits[1], 5);
	text = render(a, &(struct rt_annotate_options){ .width = 100 });
	assert_non_null(strstr(text, "walk in /opt/a, machine code\n"));
	assert_non_null(strstr(text, "  cycles: 100 hits, 10.0 % of 1000\n"));
	assert_non_null(strstr(text, "  misses: 5 hits, 10.0 % of 50\n"));
	assert_non_null(strstr(text, "       90  90.0 %                   a.c:5  return a * (b ^ 3);\n"));
	assert_non_null(strstr(text, "return a * (b ^ 3);  (inlined scale)\n"));
	assert_non_null(strstr(text, "dispose\n"));
	assert_null(strstr(text, "\033"));
	free(text);
	rt_annotation_destroy(a);
	elf_remove(&rig);
}

TEST(elf_failures_say_what_to_do)
{
	static const uint8_t other[20] = { 1, 2, 3 };
	struct rt_annotate_hits hits = { .events = cycles, .event_count = 1 };
	struct rt_annotation *a = NULL;
	struct rt_annotate_elf what;
	struct rt_image *debug = NULL;
	struct rt_symtab *symtab = NULL;
	struct rt_error *err;
	struct elf_rig rig;

	elf_make(&rig);
	what = rig.what;
	what.image = NULL;
	err = rt_annotate_elf(&what, &hits, &a);
	assert_int_equal(err->code, RT_E_NOT_FOUND);
	assert_non_null(strstr(err->message, "/opt/a"));
	assert_non_null(err->fix);
	rt_error_free(err);

	what = rig.what;
	what.build_id = other;
	err = rt_annotate_elf(&what, &hits, &a);
	assert_int_equal(err->code, RT_E_BUILD_ID);
	assert_non_null(strstr(err->message, "0102030000"));
	rt_error_free(err);

	what = rig.what;
	what.function = "wal";
	err = rt_annotate_elf(&what, &hits, &a);
	assert_int_equal(err->code, RT_E_NO_FUNCTION);
	assert_string_equal(err->fix, "did you mean walk?");
	rt_error_free(err);

	what.function = NULL;
	what.address.v = 1;
	assert_code(rt_annotate_elf(&what, &hits, &a), RT_E_NO_FUNCTION);

	workdir_run(&rig.work, "objcopy --only-keep-debug a a.debug");
	assert_ok(rt_image_open(workdir_path(&rig.work, "a.debug"), &debug));
	assert_ok(rt_symtab_create(debug, &symtab));
	what = rig.what;
	what.image = debug;
	what.symtab = symtab;
	err = rt_annotate_elf(&what, &hits, &a);
	assert_int_equal(err->code, RT_E_FORMAT);
	assert_non_null(strstr(err->fix, "debug file"));
	rt_error_free(err);
	rt_symtab_destroy(symtab);
	rt_image_destroy(debug);

	hits.event_count = 0;
	assert_code(rt_annotate_elf(&rig.what, &hits, &a), RT_E_USAGE);
	assert_null(a);
	elf_remove(&rig);
}

TEST(no_debug_information_is_said)
{
	struct rt_annotate_hits hits = { .events = cycles, .event_count = 1 };
	struct rt_annotation *a = NULL;
	struct elf_rig rig;
	char *text;

	elf_make(&rig);
	rig.what.dwarf = NULL;
	assert_ok(rt_annotate_elf(&rig.what, &hits, &a));
	text = render(a, NULL);
	assert_non_null(strstr(text, "note: no debug information"));
	assert_null(strstr(text, "hottest"));
	free(text);
	rt_annotation_destroy(a);
	elf_remove(&rig);
}

TEST(trampolines_are_named)
{
	static const struct {
		const char *symbol, *says;
	} cases[] = { { "bpf_trampoline_6442", "is not kept" },
		      { "bpf_dispatcher_xdp", "is not kept" },
		      { "bpf_prog_0102030405060708_x", "nothing about this BPF program" },
		      { "vfs_read", "lies in no file" } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rt_error *err = rt_annotate_no_code(cases[i].symbol);

		assert_int_equal(err->code, RT_E_NOT_FOUND);
		assert_non_null(strstr(err->message, cases[i].symbol));
		assert_non_null(strstr(err->message, cases[i].says));
		assert_non_null(err->fix);
		rt_error_free(err);
	}
}

/* An annotation by hand: 12 instructions of two lines, the hot one in the middle, names that are hostile. */
TEST(text_is_as_it_should_be)
{
	static const char file[] = "/src/loop.c";
	static uint64_t numbers[12][1] = { [5] = { 900 }, [6] = { 100 } };
	struct rt_annotation_line lines[12];
	uint64_t hits[1] = { 1000 }, totals[1] = { 4000 };
	struct rt_annotation a = { .function = "loop\033[2J",
				   .module = "/bin/x",
				   .events = cycles,
				   .event_count = 1,
				   .totals = totals,
				   .hits = hits,
				   .lines = lines,
				   .line_count = 12 };
	struct rt_annotate_options options = { .hide_cold = true };
	char *text;

	for (unsigned i = 0; i < 12; i++)
		lines[i] = (struct rt_annotation_line){ .address = 0x1000 + i,
							.text = i == 6 ? "jne 0x1005" : "nop",
							.target = i == 6 ? 5 : RT_NO_LINE,
							.stem = i == 6 ? 4 : 0,
							.label = i == 5,
							.file = file,
							.line = i == 5 || i == 6 ? 11 : 10,
							.source = i == 5 || i == 6 ? "\twhile (x)\033" : "int x;",
							.hits = numbers[i] };
	text = render(&a, &options);
	assert_string_equal(text, "loop\\x1b[2J in /bin/x, machine code\n"
				  "  cycles: 1000 hits, 25.0 % of 4000\n"
				  "\n"
				  "hottest lines\n"
				  "     1000 100.0 %  loop.c:11  while (x)\\x1b\n"
				  "\n"
				  "     hits       %\n"
				  "                   /src/loop.c\n"
				  "                      10  int x;\n"
				  "                                  1000  nop\n"
				  "                                  1001  nop\n"
				  "                                  1002  nop\n"
				  "                                  1003  nop\n"
				  "                                  1004  nop\n"
				  "     1000 100.0 %     11      while (x)\\x1b\n"
				  "      900  90.0 %            L1:  1005  nop\n"
				  "      100  10.0 %                 1006  jne     L1\n"
				  "                      10  int x;\n"
				  "                                  1007  nop\n"
				  "                                  1008  nop\n"
				  "                                  1009  nop\n"
				  "                                  100a  nop\n"
				  "                                  100b  nop\n");
	free(text);
	numbers[5][0] = 0;
	numbers[6][0] = 0;
	numbers[0][0] = 1000;
	options.color = true;
	text = render(&a, &options);
	assert_non_null(strstr(text, "\033[1;31m     1000 100.0 %\033[0m"));
	assert_non_null(strstr(text, "... 8 instructions without hits"));
	assert_null(strstr(text, "\033[2J"));
	free(text);
}

TEST_MAIN();
