/* SPDX-License-Identifier: GPL-2.0-only */
/* perf's probe definitions: the forms of perf-probe(1), and what is wrong with those that perf refuses, too. */
#include "probe/request.h"

#include "test.h"

struct point {
	const char *text;
	enum rt_request_kind kind;
	const char *group, *event, *function, *file, *pattern, *provider;
	uint64_t offset;
	uint32_t line;
	bool has_line, at_return, is_glob;
};

static void assert_same(const char *text, const char *got, const char *want)
{
	if (!got != !want || (got && strcmp(got, want) != 0))
		fail_msg("%s: '%s', expected '%s'", text, got ? got : "nothing", want ? want : "nothing");
}

TEST(points)
{
	static const struct point table[] = {
		{ "f", RT_REQUEST_FUNCTION, .function = "f" },
		{ "f+0x10", RT_REQUEST_FUNCTION, .function = "f", .offset = 16 },
		{ "f+12", RT_REQUEST_FUNCTION, .function = "f", .offset = 12 },
		{ "f%return", RT_REQUEST_FUNCTION, .function = "f", .at_return = true },
		{ "f:0", RT_REQUEST_FUNCTION, .function = "f", .has_line = true },
		{ "f:17", RT_REQUEST_FUNCTION, .function = "f", .line = 17, .has_line = true },
		{ "f@src/a.c:3", RT_REQUEST_FUNCTION, .function = "f", .file = "src/a.c", .line = 3, .has_line = true },
		{ "f;*refs++*", RT_REQUEST_FUNCTION, .function = "f", .pattern = "*refs++*" },
		{ "f;\"a = b\"", RT_REQUEST_FUNCTION, .function = "f", .pattern = "a = b" },
		{ "f;*a\\[i\\]++*", RT_REQUEST_FUNCTION, .function = "f", .pattern = "*a\\[i\\]++*" },
		{ "obj_*", RT_REQUEST_FUNCTION, .function = "obj_*", .is_glob = true },
		{ "obj_[gp][!a-d:]t+4", RT_REQUEST_FUNCTION, .function = "obj_[gp][!a-d:]t", .offset = 4,
		  .is_glob = true },
		/* what the backslash makes plain is plain, and stays so beside what is not */
		{ "operator\\*", RT_REQUEST_FUNCTION, .function = "operator*" },
		{ "a\\*::o\\=*", RT_REQUEST_FUNCTION, .function = "a\\*::o=*", .is_glob = true },
		{ "a\\[b\\]", RT_REQUEST_FUNCTION, .function = "a[b]" },
		/* brackets of names */
		{ "operator[]", RT_REQUEST_FUNCTION, .function = "operator[]" },
		{ "operator[]*", RT_REQUEST_FUNCTION, .function = "operator\\[]*", .is_glob = true },
		{ "<[T] as S>::len", RT_REQUEST_FUNCTION, .function = "<[T] as S>::len" },
		{ "<[T] as S>::*", RT_REQUEST_FUNCTION, .function = "<\\[T] as S>::*", .is_glob = true },
		{ "a.c:12", RT_REQUEST_LINE, .file = "a.c", .line = 12 },
		{ "/usr/src/a:12", RT_REQUEST_LINE, .file = "/usr/src/a", .line = 12 },
		{ "a.c;return*", RT_REQUEST_SOURCE, .file = "a.c", .pattern = "return*" },
		{ "0x4010a9", RT_REQUEST_ADDRESS, .offset = 0x4010a9 },
		{ "e=f", RT_REQUEST_FUNCTION, .event = "e", .function = "f" },
		{ "g:e=f:2", RT_REQUEST_FUNCTION, .group = "g", .event = "e", .function = "f", .line = 2,
		  .has_line = true },
		{ "g:e=0x10", RT_REQUEST_ADDRESS, .group = "g", .event = "e", .offset = 16 },
		{ "sdt_python:gc__done", RT_REQUEST_MARKER, .provider = "python", .function = "gc__done" },
		{ "%sdt_python:gc__done", RT_REQUEST_MARKER, .provider = "python", .function = "gc__done" },
		{ "%python", RT_REQUEST_MARKER, .function = "python" },
		{ "%g:e", RT_REQUEST_MARKER, .provider = "g", .function = "e" },
		{ "e=%python:gc__done", RT_REQUEST_MARKER, .event = "e", .provider = "python", .function = "gc__done" },
		{ "sdt_init:3", RT_REQUEST_FUNCTION, .function = "sdt_init", .line = 3, .has_line = true },
		{ "ns::Obj::get", RT_REQUEST_FUNCTION, .function = "ns::Obj::get" },
		{ "ns::Obj::get:2", RT_REQUEST_FUNCTION, .function = "ns::Obj::get", .line = 2, .has_line = true },
		{ "map<int, int>::at", RT_REQUEST_FUNCTION, .function = "map<int, int>::at" },
		{ "get(void *)%return", RT_REQUEST_FUNCTION, .function = "get(void *)", .at_return = true,
		  .is_glob = true },
		{ "operator\\=", RT_REQUEST_FUNCTION, .function = "operator=" },
		{ "core::ptr::{{closure}}+4", RT_REQUEST_FUNCTION, .function = "core::ptr::{{closure}}", .offset = 4 },
		{ "f.isra.0", RT_REQUEST_FUNCTION, .function = "f.isra.0" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		const struct point *want = &table[i];
		struct rt_request r;

		assert_ok(rt_request_parse(want->text, &r));
		if (r.kind != want->kind)
			fail_msg("%s: kind %d, expected %d", want->text, (int)r.kind, (int)want->kind);
		assert_same(want->text, r.group, want->group);
		assert_same(want->text, r.event, want->event);
		assert_same(want->text, r.function, want->function);
		assert_same(want->text, r.file, want->file);
		assert_same(want->text, r.pattern, want->pattern);
		assert_same(want->text, r.provider, want->provider);
		assert_int_equal(r.offset, want->offset);
		assert_int_equal(r.line, want->line);
		assert_int_equal(r.has_line, want->has_line);
		assert_int_equal(r.at_return, want->at_return);
		assert_int_equal(r.is_glob, want->is_glob);
		assert_int_equal(r.arguments.len, 0);
		rt_request_deinit(&r);
	}
}

TEST(variables)
{
	struct rt_request r;
	const struct rt_request_argument *a;

	assert_ok(rt_request_parse("f n nm=o->in.name[3]:string@user  flags:b3@2/8 $params s@user i[-1]", &r));
	assert_int_equal(r.arguments.len, 6);
	a = r.arguments.data;
	assert_string_equal(a[0].variable, "n");
	assert_null(a[0].name);
	assert_null(a[0].type);
	assert_string_equal(a[1].name, "nm");
	assert_string_equal(a[1].variable, "o");
	assert_string_equal(a[1].text, "nm=o->in.name[3]:string@user");
	assert_int_equal(a[1].step_count, 3);
	assert_int_equal(a[1].steps[0].kind, RT_TRAIL_ARROW);
	assert_string_equal(a[1].steps[0].name, "in");
	assert_int_equal(a[1].steps[1].kind, RT_TRAIL_DOT);
	assert_int_equal(a[1].steps[2].kind, RT_TRAIL_INDEX);
	assert_int_equal(a[1].steps[2].index, 3);
	assert_string_equal(a[1].type, "string");
	assert_true(a[1].user);
	assert_string_equal(a[2].type, "b3@2/8");
	assert_false(a[2].user);
	assert_int_equal(a[3].kind, RT_ARGUMENT_PARAMS);
	assert_true(a[4].user && !a[4].type);
	assert_int_equal(a[5].steps[0].index, -1);
	rt_request_deinit(&r);
}

TEST(fetches)
{
	static const struct {
		const char *text;
		enum rt_fetch_base base;
		const char *name;
		int64_t number;
		unsigned derefs;
		int64_t first, last; /* offsets */
	} table[] = {
		{ "%di", RT_FETCH_REG, "di" },
		{ "%rdi", RT_FETCH_REG, "di" },
		{ "%r10", RT_FETCH_REG, "r10" },
		{ "$stack", RT_FETCH_STACK },
		{ "$stack3", RT_FETCH_STACK_ENTRY, NULL, 3 },
		{ "$comm", RT_FETCH_COMM },
		{ "$arg2", RT_FETCH_ARGUMENT, NULL, 2 },
		{ "\\-5", RT_FETCH_NUMBER, NULL, -5 },
		{ "\\0xffffffffffffffff", RT_FETCH_NUMBER, NULL, -1 },
		{ "\\\"hello\"", RT_FETCH_TEXT, "hello" },
		{ "@0x4000", RT_FETCH_ADDRESS, NULL, 0x4000 },
		{ "@+0x4000", RT_FETCH_OFFSET, NULL, 0x4000 },
		{ "@table+8", RT_FETCH_SYMBOL, "table", 8 },
		{ "@table-8", RT_FETCH_SYMBOL, "table", -8 },
		{ "+8(%di)", RT_FETCH_REG, "di", 0, 1, 8, 8 },
		{ "+8(-16(%sp))", RT_FETCH_REG, "sp", 0, 2, -16, 8 },
		{ "+u0(+0x10($stack1))", RT_FETCH_STACK_ENTRY, NULL, 1, 2, 16, 0 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		const struct rt_request_fetch *f;
		struct rt_request r;
		char text[64];

		snprintf(text, sizeof(text), "f x=%s:u64", table[i].text);
		assert_ok(rt_request_parse(text, &r));
		assert_int_equal(r.arguments.len, 1);
		assert_int_equal(r.arguments.data[0].kind, RT_ARGUMENT_FETCH);
		f = &r.arguments.data[0].fetch;
		assert_int_equal(f->base, table[i].base);
		assert_same(text, f->name, table[i].name);
		assert_int_equal(f->number, table[i].number);
		assert_int_equal(f->derefs, table[i].derefs);
		if (f->derefs) {
			assert_int_equal(f->offset[0], table[i].first);
			assert_int_equal(f->offset[f->derefs - 1], table[i].last);
		}
		rt_request_deinit(&r);
	}
}

/* Each fault is told at the column where it is. */
TEST(faults)
{
	static const struct {
		const char *text;
		unsigned column;
	} table[] = {
		{ "", 1 },
		{ "f+x", 3 },
		{ "f:3%return", 4 },
		{ "f%return:3", 9 },
		{ "f+4;x", 4 },
		{ "f%ret", 2 },
		{ "f:3-5", 4 },
		{ "f@a@b", 4 },
		{ "f;", 3 },
		{ "f;\"x", 3 },
		{ "a.c:0", 5 },
		{ "a.c:x", 5 },
		{ "1a=f", 1 },
		{ "g-h:e=f", 1 },
		{ "g:=f", 3 },
		{ "map<int", 4 },
		{ "%", 2 },
		{ "%:x", 2 },
		{ "0xzz", 1 },
		{ "0x10+4", 5 },
		{ "f o->", 6 },
		{ "f o[n]", 5 },
		{ "f o[1", 6 },
		{ "f n:u33", 5 },
		{ "f n:b9@0/8", 5 },
		{ "f n:u8[65]", 5 },
		{ "f &n", 3 },
		{ "f %zz", 4 },
		{ "f $foo", 3 },
		{ "f +8(%di", 9 },
		{ "f +8%di", 5 },
		{ "f +8($retval)", 3 },
		{ "f x=$params", 5 },
		{ "f \\x", 4 },
		{ "f n,m", 4 },
		{ "f 12345678901234567890123456789012=n", 3 },
		{ "f a23456789012345678901234567890123=n", 3 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct rt_request r;
		struct rt_error *err = rt_request_parse(table[i].text, &r);
		char want[32];

		if (!err)
			fail_msg("'%s' was understood", table[i].text);
		assert_string_equal(rt_code_text(err->code), "E18");
		snprintf(want, sizeof(want), ", column %u: ", table[i].column);
		if (!strstr(err->message, want))
			fail_msg("'%s': %s; expected%s", table[i].text, err->message, want);
		assert_non_null(err->fix);
		rt_error_free(err);
		rt_request_deinit(&r);
	}
}

TEST_MAIN();
