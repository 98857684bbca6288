/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of a kernel: a small one of our own, linked where kernels are, answered from its DWARF, from its BTF, and
 * from BTF with the kallsyms of a boot that has moved it. Places are nm's; offsets are those of the C source by the
 * rules of the x86-64 ABI.
 */
#include "probe/answer.h"

#include <inttypes.h>

#include "built.h"
#include "elf/kallsyms.h"

static const char source[] =
	"typedef unsigned int u32;\n"
	"typedef struct { u32 val; } kuid_t;\n"
	"struct big { long a, b, c; };\n"
	"struct name { const char *text; u32 len; };\n"
	"struct obj {\n"
	"	u32 flags;			/* 0 */\n"
	"	union { u32 refs; struct { short low, high; }; };	/* 4 */\n"
	"	struct name name;		/* 8, 16 */\n"
	"	struct obj *next;		/* 24 */\n"
	"	u32 bits : 3, more : 5;		/* 32: 0-2, 3-7 */\n"
	"	long table[4];			/* 40 */\n"
	"	char comm[16];			/* 72 */\n"
	"};\n"
	"volatile long sink;\n"
	"int shared = 5;\n"
	"__attribute__((section(\".data..percpu\"))) int mine = 6;\n"
	"__attribute__((noinline)) int plain(struct obj *o, int n, unsigned char c, const char *s)\n"
	"{ sink += n + c + *s; o->refs++; return n; }\n"
	"__attribute__((noinline)) void many(long a, long b, long c, long d, long e, long f, u32 g, struct obj *h)\n"
	"{ sink += a + b + c + d + e + f + g + h->flags; }\n"
	"__attribute__((noinline)) void owner(kuid_t u, int after) { sink += u.val + after; }\n"
	"__attribute__((noinline)) void by_value(int before, struct big v, int after) { sink += before + v.b + after; "
	"}\n"
	"static inline __attribute__((always_inline)) void inner(struct obj *o) { o->refs--; sink++; }\n"
	"__attribute__((noinline)) void outer(struct obj *p) { sink = 9; inner(p); }\n"
	"__attribute__((section(\".init.text\"), noinline)) void early(int x) { sink = x; }\n"
	"__attribute__((section(\".noinstr.text\"), noinline)) void closed(int x) { sink = x; }\n"
	"static __attribute__((noinline)) void twin(int x) { sink += x; }\n"
	"void other(void);\n"
	"void entry_SYSCALL_64(void) { struct obj o = { 0 }; plain(&o, 1, 2, \"\"); many(1, 2, 3, 4, 5, 6, 7, &o);\n"
	"	owner((kuid_t){ 1 }, 2); by_value(1, (struct big){ 1 }, 3); outer(&o); early(1); closed(1); twin(1); "
	"other(); }\n";

static const char second[] = "extern volatile long sink;\n"
			     "static __attribute__((noinline)) void twin(char *y) { sink += *y; }\n"
			     "void other(void) { twin(\"x\"); }\n";

static const char script[] =
	"SECTIONS {\n"
	"	. = 0xffffffff81000000;\n"
	"	_text = .;\n"
	"	.text : { QUAD(0) *(.text) __noinstr_text_start = .; *(.noinstr.text) __noinstr_text_end = .; }\n"
	"	_etext = .;\n"
	"	.notes : { __start_notes = .; *(.note.gnu.build-id) __stop_notes = .; }\n"
	"	.rodata : { *(.rodata*) }\n"
	"	.data : { *(.data) }\n"
	"	.bss : { *(.bss*) }\n"
	"	.data..percpu : { __per_cpu_start = .; *(.data..percpu) __per_cpu_end = .; }\n"
	"	.init.text : { _sinittext = .; *(.init.text) _einittext = .; }\n"
	"	_end = .;\n"
	"	.BTF : { __start_BTF = .; KEEP(*(.BTF)) __stop_BTF = .; }\n"
	"	/DISCARD/ : { *(.eh_frame*) *(.comment) }\n"
	"}\n";

struct kernel {
	struct rt_image *image;
	struct rt_symtab *symtab;
	struct rt_dwarf *dwarf;
	struct rt_decoder *decoder;
	struct rt_btf *btf;
	struct rt_kernel kernel;
};

static void open_with(const char *program, bool dwarf, const char *kallsyms, struct kernel *k)
{
	char *path = built_path(program);
	struct rt_bytes bytes;
	struct rt_elfaddr addr;

	*k = (struct kernel){ 0 };
	assert_ok(rt_image_open(path, &k->image));
	free(path);
	if (kallsyms)
		assert_ok(rt_symtab_of_kallsyms(rt_bytes_make(kallsyms, strlen(kallsyms)), &k->symtab));
	else
		assert_ok(rt_symtab_create(k->image, &k->symtab));
	if (dwarf) {
		assert_ok(rt_dwarf_create(k->image, &k->dwarf));
		assert_true(rt_dwarf_present(k->dwarf));
	} else {
		assert_true(rt_image_section(k->image, ".BTF", &bytes, &addr));
		assert_ok(rt_btf_create(bytes, &k->btf));
	}
	assert_ok(rt_decoder_create(k->image->machine, &k->decoder));
	assert_ok(rt_kernel_init(k->symtab, k->btf, &k->kernel));
}

static void close_kernel(struct kernel *k)
{
	rt_decoder_destroy(k->decoder);
	rt_dwarf_destroy(k->dwarf);
	rt_btf_destroy(k->btf);
	rt_symtab_destroy(k->symtab);
	rt_image_destroy(k->image);
}

/* The lines of kprobe_events, or "CODE message". */
static char *ask(struct kernel *k, const char *text)
{
	struct rt_answer_module module = {
		.image = k->image, .symtab = k->symtab, .dwarf = k->dwarf, .decoder = k->decoder, .kernel = &k->kernel
	};
	struct rt_request request;
	struct rt_answer answer = { .arena = { 0 } };
	struct rt_error *err;
	struct rt_sink sink;
	char *lines;

	rt_sink_init_memory(&sink);
	assert_ok(rt_request_parse(text, &request));
	err = rt_answer_request(&request, &module, &answer);
	for (size_t i = 0; !err && i < answer.points.len; i++) {
		rt_answer_write(&answer.points.data[i], "g", answer.points.data[i].event, NULL, &sink);
		rt_sink_puts(&sink, "\n");
	}
	if (err)
		rt_sink_printf(&sink, "%s %s", rt_code_text(err->code), err->message);
	assert_ok(rt_sink_end(&sink));
	lines = strdup(sink.buffer);
	rt_sink_deinit(&sink);
	rt_error_free(err);
	rt_answer_deinit(&answer);
	rt_request_deinit(&request);
	return lines;
}

static uint64_t nm(const char *name)
{
	char *text = built_output("nm dwarf | awk '$3 == \"%s\" { print $1; exit }'", name);
	uint64_t v = strtoull(text, NULL, 16);

	free(text);
	assert_true(v > UINT64_C(0xffffffff81000000));
	return v - UINT64_C(0xffffffff81000000);
}

/* want: what stands behind "_text+OFF" of function, for the one line that there is. */
static void assert_line(struct kernel *k, const char *text, const char *start, const char *function, const char *want)
{
	char *got = ask(k, text), *line;

	assert_true(asprintf(&line, "%s _text+%" PRIu64 "%s\n", start, nm(function), want) > 0);
	if (strcmp(got, line) != 0)
		fail_msg("%s: %s instead of %s", text, got, line);
	free(got);
	free(line);
}

static void assert_says(struct kernel *k, const char *text, const char *want)
{
	char *got = ask(k, text);

	if (!strstr(got, want))
		fail_msg("%s: '%s' instead of '%s'", text, got, want);
	free(got);
}

/* What DWARF and BTF both tell. */
static void check_both(struct kernel *k)
{
	assert_line(k, "plain", "p:g/plain", "plain", "");
	assert_line(k, "plain%return $retval", "r:g/plain__return", "plain", " $retval:s32");
	assert_line(k, "plain $params", "p:g/plain", "plain", " o=%di:x64 n=%si:s32 c=%dx:x8 s=%cx:x64");
	assert_line(k, "plain o->refs o->high o->name.len t=o->name.text:string f=o->next->next->flags", "p:g/plain",
		    "plain",
		    " refs=+4(%di):x32 high=+6(%di):s16 len=+16(%di):x32 t=+0(+8(%di)):string "
		    "f=+0(+24(+24(%di))):x32");
	assert_line(k, "plain o->more t=o->table[2] u=o->table[1]:u8 o->comm:string s:string c:u8", "p:g/plain",
		    "plain",
		    " more=+32(%di):b5@3/32 t=+56(%di):s64 u=+48(%di):u8 comm=+72(%di):string s=+0(%cx):string "
		    "c=%dx:u8");
	assert_line(k, "plain o->name.text:string@user", "p:g/plain", "plain", " text=+u0(+u8(%di)):string");
	assert_line(k, "many f", "p:g/many", "many", " f=%r9:s64");
	assert_line(k, "plain $arg2 a=%ax $comm b=+u8(%cx):ustring", "p:g/plain", "plain",
		    " %si a=%ax $comm b=+u8(%cx):ustring");
	assert_says(k, "early", "E30 early");
	assert_says(k, "early", "__init");
	assert_says(k, "closed x", "noinstr");
	assert_says(k, "plain nobody", "E25 argument 'nobody' of plain");
	assert_says(k, "plain o.refs", "o is a pointer");
	assert_says(k, "plain o->nobody", "there is no member nobody");
	assert_says(k, "plain o->table[9]", "element");
	assert_says(k, "plain o->name", "more than one value");
	assert_says(k, "outer%return p", "at the entry only");
	assert_says(k, "many%return $retval", "returns nothing");
	assert_says(k, "plain @0xffffffff81000000", "another at each boot");
	assert_says(k, "plain @+0x10", "no file that is mapped");
	assert_says(k, "plain @mine", "each CPU has its own");
	assert_says(k, "%sdt_a:b", "no SDT markers");
	assert_says(k, "nobody", "there is no function 'nobody'");
}

/* Data lie at the same distance from _text at each boot. */
static void check_data(struct kernel *k)
{
	char *want;

	assert_true(asprintf(&want, " v=@_text+%" PRIu64 ":u32", nm("shared")) > 0);
	assert_line(k, "plain v=@shared:u32", "p:g/plain", "plain", want);
	free(want);
}

static void test_dwarf(void **state)
{
	struct kernel k;
	char *got, *want;

	open_with("dwarf", true, NULL, &k);
	check_both(&k);
	check_data(&k);
	assert_line(&k, "outer p->flags", "p:g/outer", "outer", " flags=+0(%di):x32");
	/* where it is inlined, its argument is still in outer's register */
	assert_says(&k, "inner o->flags", " flags=+0(%di):x32");
	/* a name of two functions: both, each by itself */
	got = ask(&k, "twin");
	assert_true(asprintf(&want, "_text+%" PRIu64 "\n", nm("twin")) > 0);
	assert_non_null(strstr(got, want));
	assert_int_equal(strchr(strchr(got, '\n') + 1, '\n')[1], '\0');
	free(got);
	free(want);
	assert_says(&k, "plain mine", "each CPU has its own");
	close_kernel(&k);
}

static void test_btf(void **state)
{
	struct kernel k;

	open_with("btf", false, NULL, &k);
	check_both(&k);
	check_data(&k);
	/* the seventh and eighth are behind the return address */
	assert_line(&k, "many g h->next", "p:g/many", "many", " g=+8(%sp):x32 next=+24(+16(%sp)):x64");
	assert_line(&k, "owner u.val after", "p:g/owner", "owner", " val=%di:x32 after=%si:s32");
	assert_line(&k, "by_value before", "p:g/by_value", "by_value", " before=%di:s32");
	assert_says(&k, "by_value v.b", "in several parts, or in memory");
	assert_says(&k, "by_value after", "a parameter before it");
	assert_says(&k, "inner", "there is no function 'inner'");
	assert_says(&k, "plain:1", "lines are not known");
	assert_says(&k, "plain $vars", "BTF knows no local variables");
	assert_says(&k, "plain+4 o", "at the entry of a function only");
	assert_says(&k, "twin x", "several functions of that name");
	assert_says(&k, "0xffffffff81000008", "another at each boot");
	close_kernel(&k);
}

/* kallsyms of a boot that has moved the kernel by 0x1a000000; a module has a function of the same name. */
static void test_moved(void **state)
{
	char *text = built_output("nm dwarf | sed 's/^ffffffff81/ffffffff9b/'; "
				  "printf 'ffffffffc0000000 t plain\\t[mod]\\n'");
	struct kernel k;

	open_with("btf", false, text, &k);
	check_both(&k);
	close_kernel(&k);
	free(text);
}

static void test_hidden(void **state)
{
	static const char text[] = "0000000000000000 T _text\n0000000000000000 T plain\n";
	struct rt_symtab *symtab;
	struct rt_kernel kernel;
	struct rt_error *err;

	assert_ok(rt_symtab_of_kallsyms(rt_bytes_make(text, sizeof(text) - 1), &symtab));
	assert_int_equal(symtab->count, 0);
	err = rt_kernel_init(symtab, NULL, &kernel);
	assert_int_equal(err->code, RT_E_NOT_FOUND);
	rt_error_free(err);
	rt_symtab_destroy(symtab);
}

/* Lines that are none are skipped, wherever the text ends. */
static void test_kallsyms(void **state)
{
	static const char text[] = "\nx\nffffffff81000000\nffffffff81000000 T\nffffffff81000000 T \n"
				   "ffffffff81000010 t one\tzz\nffffffff81000020 W two\r\n"
				   "fffffffffffffffff T wide\nffffffff81000030 D data\nffffffff81000040 T last";
	struct rt_symtab *symtab;

	for (size_t len = 0; len < sizeof(text); len++) {
		assert_ok(rt_symtab_of_kallsyms(rt_bytes_make(text, len), &symtab));
		assert_true(symtab->count <= 3);
		rt_symtab_destroy(symtab);
	}
	assert_ok(rt_symtab_of_kallsyms(rt_bytes_make(text, sizeof(text) - 1), &symtab));
	assert_int_equal(symtab->count, 3);
	assert_string_equal(symtab->symbols[2].name, "last");
	assert_false(symtab->symbols[1].function);
	rt_symtab_destroy(symtab);
}

/* Any byte of the BTF replaced, and any end: an answer or a refusal. */
static void test_damaged(void **state)
{
	struct kernel k;
	struct rt_bytes bytes;
	struct rt_elfaddr addr;
	uint8_t *copy;

	open_with("btf", false, NULL, &k);
	assert_true(rt_image_section(k.image, ".BTF", &bytes, &addr));
	copy = malloc(bytes.size);
	for (size_t i = 0; i < 2 * bytes.size; i++) {
		struct rt_error *err;
		struct rt_btf *btf;

		memcpy(copy, bytes.data, bytes.size);
		copy[i / 2] = i % 2 ? 0xff : (uint8_t)(copy[i / 2] + 1);
		err = rt_btf_create(rt_bytes_make(copy, bytes.size), &btf);
		if (err) {
			rt_error_free(err);
			continue;
		}
		k.kernel.btf = btf;
		free(ask(&k, "plain o->next->next->table[1] o->more $params"));
		free(ask(&k, "many h->name.text:string"));
		free(ask(&k, "owner u.val after"));
		rt_btf_destroy(btf);
	}
	free(copy);
	close_kernel(&k);
}

static int setup(void **state)
{
	free(built_write("one.c", source));
	free(built_write("two.c", second));
	free(built_write("link", script));
	for (unsigned i = 0; i < 2; i++)
		if (!built_run("gcc -O2 -mcmodel=kernel -fno-pie -fno-ipa-ra -fno-ipa-cp -fno-ipa-sra -mno-sse "
			       "-fno-asynchronous-unwind-tables -g%s -c one.c -o one.o && gcc -O2 -mcmodel=kernel "
			       "-fno-pie "
			       "-fno-ipa-cp -fno-ipa-sra -mno-sse %s -c two.c -o two.o && ld -static -nostdlib -T link "
			       "--build-id one.o two.o "
			       "-o %s",
			       i ? "btf" : "", i ? "" : "-g", i ? "btf" : "dwarf"))
			return 1;
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dwarf),  cmocka_unit_test(test_btf),      cmocka_unit_test(test_moved),
		cmocka_unit_test(test_hidden), cmocka_unit_test(test_kallsyms), cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
