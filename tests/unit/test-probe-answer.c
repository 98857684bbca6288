/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where requests lead: against nm, objdump and the line table as other tools print it. What is read there is held to
 * running programs by tests/live/test_probe.py.
 */
#include "probe/answer.h"

#include <inttypes.h>

#include "built.h"

struct opened {
	struct rt_image *image;
	struct rt_symtab *symtab;
	struct rt_dwarf *dwarf;
	struct rt_decoder *decoder;
	char *path, *source;
};

static const char *source_text(void *arg, const char *path)
{
	const struct opened *o = arg;

	return strstr(path, "one.c") || strstr(path, "names.cc") ? o->source : NULL;
}

static void open_program(const char *name, const char *source, struct opened *o)
{
	o->path = built_path(name);
	o->source = strdup(source);
	assert_ok(rt_image_open(o->path, &o->image));
	assert_ok(rt_symtab_create(o->image, &o->symtab));
	assert_ok(rt_dwarf_create(o->image, &o->dwarf));
	assert_ok(rt_decoder_create(o->image->machine, &o->decoder));
}

static void close_program(struct opened *o)
{
	rt_decoder_destroy(o->decoder);
	rt_dwarf_destroy(o->dwarf);
	rt_symtab_destroy(o->symtab);
	rt_image_destroy(o->image);
	free(o->path);
	free(o->source);
}

/* What is answered may point into the request, which the caller ends. */
static struct rt_error *ask_for(struct opened *o, const char *text, struct rt_request *request, struct rt_answer *ret)
{
	struct rt_answer_module module = { .image = o->image,
					   .symtab = o->symtab,
					   .dwarf = o->dwarf,
					   .decoder = o->decoder,
					   .path = o->path,
					   .source = source_text,
					   .source_arg = o };

	assert_ok(rt_request_parse(text, request));
	return rt_answer_request(request, &module, ret);
}

static struct rt_error *ask(struct opened *o, const char *text, struct rt_answer *ret)
{
	struct rt_request request;
	struct rt_error *err = ask_for(o, text, &request, ret);

	/* names of events and of arguments may be the request's */
	for (size_t i = 0; i < ret->points.len; i++)
		ret->points.data[i].event = NULL;
	rt_request_deinit(&request);
	return err;
}

static uint64_t nm(const char *program, const char *name)
{
	char *text = built_output("nm -C %s | grep -F ' %s' | head -1", program, name);
	uint64_t v = strtoull(text, NULL, 16);

	free(text);
	if (!v)
		fail_msg("nm knows no %s", name);
	return v;
}

static void assert_at(struct opened *o, const char *text, const uint64_t *want, size_t count)
{
	struct rt_answer a;

	print_message("  %s\n", text);
	assert_ok(ask(o, text, &a));
	assert_int_equal(a.points.len, count);
	for (size_t i = 0; i < count; i++) {
		bool found = false;

		for (size_t k = 0; k < count; k++)
			found |= a.points.data[k].address.v == want[i];
		if (!found)
			fail_msg("%s: no point at %#" PRIx64, text, want[i]);
	}
	rt_answer_deinit(&a);
}

/* The event of its points is called so. */
static void assert_event(struct opened *o, const char *text, const char *name)
{
	struct rt_request request;
	struct rt_answer a;

	assert_ok(ask_for(o, text, &request, &a));
	assert_true(a.points.len);
	for (size_t i = 0; i < a.points.len; i++)
		assert_string_equal(a.points.data[i].event, name);
	rt_answer_deinit(&a);
	rt_request_deinit(&request);
}

static void assert_refused(struct opened *o, const char *text, const char *code, const char *why, const char *fix)
{
	struct rt_answer a;
	struct rt_error *err = ask(o, text, &a);

	if (!err)
		fail_msg("'%s' was answered", text);
	if (strcmp(rt_code_text(err->code), code) != 0 || !strstr(err->message, why) ||
	    (fix && (!err->fix || !strstr(err->fix, fix))))
		fail_msg("'%s': %s %s (%s); expected %s %s (%s)", text, rt_code_text(err->code), err->message,
			 err->fix ? err->fix : "", code, why, fix ? fix : "");
	rt_error_free(err);
	rt_answer_deinit(&a);
}

static const char one[] = "#include <stdio.h>\n"
			  "volatile int sink;\n"
			  "static __attribute__((noinline)) int same(int a) { sink = a; return a + 1; }\n"
			  "int other(int);\n"
			  "__attribute__((noinline)) int many(int a, double d, const char *s)\n"
			  "{\n"
			  "	sink = a;\n"
			  "	if (a > 3)\n"
			  "		printf(\"%d\\n\", a);\n"
			  "	else\n"
			  "		puts(s);\n"
			  "	return a + (int)d;\n"
			  "}\n"
			  "int main(int argc, char **argv)\n"
			  "{\n"
			  "	return same(argc) + other(argc) + many(argc, 1.5, argv[0]);\n"
			  "}\n";
static const char two[] = "extern volatile int sink;\n"
			  "static __attribute__((noinline)) int same(long b) { sink = b; return b * 3; }\n"
			  "int other(int c) { return same(c); }\n";

static void build_plain(void)
{
	free(built_write("one.c", one));
	free(built_write("two.c", two));
	assert_true(
		built_run("gcc -g -O1 one.c two.c -o plain && strip -o stripped plain && gcc -O1 one.c two.c -o bare"));
}

/* Each byte of a function: a point where objdump sees an instruction, else refused with the nearest two. */
TEST(instruction_boundaries)
{
	struct opened o;
	uint64_t start;
	char *code;

	build_plain();
	open_program("plain", one, &o);
	start = nm("plain", "T many");
	code = built_output("objdump -d --disassemble=many plain | grep -P '^ +[0-9a-f]+:\\t'");
	for (uint64_t at = start; at < start + 40; at++) {
		char address[32], request[64];
		bool begins;

		snprintf(address, sizeof(address), " %" PRIx64 ":", at);
		begins = strstr(code, address);
		snprintf(request, sizeof(request), at > start ? "many+%" PRIu64 : "many", at - start);
		if (begins) {
			assert_at(&o, request, &at, 1);
			snprintf(request, sizeof(request), "0x%" PRIx64, at);
			assert_at(&o, request, &at, 1);
		} else {
			assert_refused(&o, request, "E30", "inside of an instruction", "instructions begin at");
		}
	}
	free(code);
	close_program(&o);
}

TEST(functions_of_one_name)
{
	struct opened o;
	uint64_t both[2];
	char *text;

	build_plain();
	open_program("plain", one, &o);
	text = built_output("nm plain | grep ' t same'");
	both[0] = strtoull(text, NULL, 16);
	both[1] = strtoull(strchr(text, '\n') + 1, NULL, 16);
	free(text);
	assert_at(&o, "same", both, 2);
	assert_at(&o, "same@one.c a", &both[0], 1);
	assert_at(&o, "same@two.c b", &both[1], 1);
	assert_refused(&o, "same a", "E25", "there is no such variable", "did you mean b?");
	assert_refused(&o, "same@three.c", "E02", "no function 'same' in three.c", NULL);
	close_program(&o);
}

TEST(without_debug_information)
{
	struct opened o;
	char address[32];
	uint64_t many;

	build_plain();
	open_program("bare", one, &o);
	many = nm("bare", "T many");
	assert_at(&o, "many", &many, 1);
	assert_at(&o, "man?%return $retval", &many, 1);
	assert_at(&o, "many $arg1:s32 +0($arg2):string", &many, 1);
	assert_refused(&o, "many a", "E30", "no debug information", "NAME=%di");
	assert_refused(&o, "many:2", "E25", "lines are not known", "FUNC+OFFSET");
	assert_refused(&o, "one.c:7", "E25", "lines are not known", NULL);
	assert_refused(&o, "printf", "E02", "no function 'printf'", "-x LIBRARY");
	assert_refused(&o, "mani", "E02", "no function 'mani'", "did you mean m");
	close_program(&o);
	open_program("stripped", one, &o);
	assert_refused(&o, "many", "E03", "stripped", NULL);
	/* where its instructions begin is known by unwind tables alone */
	many = nm("plain", "T many");
	snprintf(address, sizeof(address), "0x%" PRIx64, many);
	assert_at(&o, address, &many, 1);
	close_program(&o);
}

TEST(lines_and_patterns)
{
	struct opened o;
	struct rt_answer a, b, c;

	build_plain();
	open_program("plain", one, &o);
	/* line 9 is line 4 of the function that begins at line 5 */
	assert_ok(ask(&o, "one.c:9", &a));
	assert_ok(ask(&o, "many:4", &b));
	assert_ok(ask(&o, "many;*printf*", &c));
	assert_int_equal(a.points.len, 1);
	assert_int_equal(b.points.len, 1);
	assert_int_equal(c.points.len, 1);
	assert_int_equal(a.points.data[0].address.v, b.points.data[0].address.v);
	assert_int_equal(a.points.data[0].address.v, c.points.data[0].address.v);
	assert_int_equal(a.points.data[0].line, 9);
	assert_true(built_run("addr2line -e plain 0x%" PRIx64 " | grep -q 'one.c:9'", a.points.data[0].address.v));
	rt_answer_deinit(&a);
	rt_answer_deinit(&b);
	rt_answer_deinit(&c);
	assert_refused(&o, "many:5", "E25", "line 5 of", "have");
	assert_refused(&o, "many;printf", "E25", "no line with code fits", ";*printf*");
	assert_refused(&o, "two.c;*sink*", "E25", "cannot be read", NULL);
	assert_refused(&o, "none.c:3", "E25", "no source file fits 'none.c'", NULL);
	close_program(&o);
}

TEST(what_tracefs_cannot_say)
{
	struct opened o;

	build_plain();
	open_program("plain", one, &o);
	assert_refused(&o, "many d", "E30", "floating point", NULL);
	assert_refused(&o, "many a:u64", "E30", "it has 4 bytes, and u64 reads 8", NULL);
	assert_refused(&o, "many a:string", "E30", "int is no text", NULL);
	assert_refused(&o, "many a->x", "E30", "a is no pointer", NULL);
	assert_refused(&o, "many a[1]", "E30", "neither array nor pointer", NULL);
	assert_refused(&o, "many s->x", "E30", "no struct", NULL);
	assert_refused(&o, "many $retval", "E30", "at the return only", "%return");
	assert_refused(&o, "many%return s", "E30", "at the entry only", NULL);
	assert_refused(&o, "many a a", "E30", "two arguments called a", "NAME=");
	assert_refused(&o, "many @nothing", "E30", "no symbol nothing", NULL);
	assert_refused(&o, "many+4000", "E25", "is not in the code of many", NULL);
	close_program(&o);
}

static const char cxx[] =
	"#include <cstdio>\n"
	"namespace ns {\n"
	"struct T { int v; int m[3]; int get(int n); int over(int); int over(long); bool operator<(int n); };\n"
	"namespace { __attribute__((noinline)) int hidden(int q) { return printf(\"%d\\n\", q); } }\n"
	"__attribute__((noinline)) int T::get(int n) { return hidden(n + v) + m[1]; }\n"
	"__attribute__((noinline)) int T::over(int a) { return a + v; }\n"
	"__attribute__((noinline)) int T::over(long a) { return (int)a + m[2]; }\n"
	"template<class X> __attribute__((noinline)) X plus(X x) { return x + 1; }\n"
	"__attribute__((noinline)) bool T::operator<(int n) { return v + m[0] < n; }\n"
	"template<class X> struct wrap { X x; int in(int n); };\n"
	"template<class X> __attribute__((noinline)) int wrap<X>::in(int n) { return x.v + n; }\n"
	"template<class X> __attribute__((noinline)) int tag(X *x) { return x->x.v; }\n"
	"}\n"
	"__attribute__((noinline)) int caught(int n)\n"
	"{ try { if (n > 1) throw 1; return printf(\"x\\n\"); } catch (int) { return 2; } }\n"
	"int main(int c, char **)\n"
	"{\n"
	"	ns::T t{};\n"
	"	return t.get(c) + t.over(c) + t.over(2L) + ns::plus(c) + (int)ns::plus(2L) + caught(c) +\n"
	"		(t < c) + ns::wrap<ns::T>{t}.in(c) + ns::tag(new ns::wrap<ns::T>{t});\n"
	"}\n";

TEST(names_of_cxx)
{
	struct opened o;
	uint64_t get, overs[2], plus[2], hidden;

	free(built_write("names.cc", cxx));
	assert_true(built_run("g++ -g -O1 names.cc -o names"));
	open_program("names", cxx, &o);
	get = nm("names", "T ns::T::get(int)");
	overs[0] = nm("names", "T ns::T::over(int)");
	overs[1] = nm("names", "T ns::T::over(long)");
	plus[0] = nm("names", "W int ns::plus<int>(int)");
	plus[1] = nm("names", "W long ns::plus<long>(long)");
	hidden = nm("names", "t ns::(anonymous namespace)::hidden(int)");
	assert_at(&o, "ns::T::get n this->v this->m[1]", &get, 1);
	assert_at(&o, "T::get", &get, 1);
	assert_at(&o, "_ZN2ns1T3getEi", &get, 1);
	assert_at(&o, "ns::T::over", overs, 2);
	assert_at(&o, "ns::T::over(int) a", &overs[0], 1);
	assert_at(&o, "T::over(long)", &overs[1], 1);
	assert_at(&o, "ns::plus<int> x", &plus[0], 1);
	assert_at(&o, "ns::plus<*>", plus, 2);
	/* an event is called as the function, not by what a template was given */
	assert_event(&o, "ns::plus<*>", "plus");
	assert_event(&o, "ns::wrap<ns::T>::in", "in");
	assert_event(&o, "ns::tag<*>", "tag");
	assert_event(&o, "T::operator<", "operator_");
	assert_event(&o, "T::over(long)%return", "over__return");
	assert_at(&o, "ns::(anonymous namespace)::hidden q", &hidden, 1);
	assert_refused(&o, "ns::S::get", "E02", "no function 'ns::S::get'", NULL);
	assert_refused(&o, "caught%return", "E30", "exception handlers", "--force");
	close_program(&o);
}

TEST_MAIN();
