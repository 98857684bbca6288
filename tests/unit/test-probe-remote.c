/* SPDX-License-Identifier: GPL-2.0-only */
/* Lines of uprobe_events, taken apart for another host: what is one, what is none, and which may share an event. */
#include "test.h"

#include <string.h>

#include "probe/remote.h"

static char *lines(const struct rt_remote *r)
{
	struct rt_sink sink;
	char *text;

	rt_sink_init_memory(&sink);
	assert_ok(rt_remote_lines(r, "/x", &sink));
	assert_ok(rt_sink_end(&sink));
	text = strdup(sink.buffer ? sink.buffer : "");
	rt_sink_deinit(&sink);
	return text;
}

static void test_taken(void **state)
{
	static const char *const good[] = {
		"p:sdt_a/b /usr/lib/a:b:0x12(0x34) arg1=+8(%di):s32 arg2=%ax",
		"r:g/e /p:0xAB",
		"p:g/e2 /p:0x1 a=\\5:u8 b=@+0x10:string",
	};
	struct rt_remote r = { 0 };
	char *text;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_ok(rt_remote_add(&r, good[i], NULL));
	text = lines(&r);
	assert_string_equal(text, "p:sdt_a/b /x:0x12(0x34) arg1=+8(%di):s32 arg2=%ax\nr:g/e /x:0xAB\n"
				  "p:g/e2 /x:0x1 a=\\5:u8 b=@+0x10:string\n");
	free(text);
	rt_remote_deinit(&r);
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"p",
		"p:",
		"p:g/",
		"p:g/e",
		"p:g/e ",
		"p:/e /x:0x1",
		"p:g /x:0x1",
		"q:g/e /x:0x1",
		"p:g/e x:0x1",
		"p:g/e /x",
		"p:g/e /x:",
		"p:g/e /x:0x",
		"p:g/e /x:12",
		"p:g/e /x:0x1(",
		"p:g/e /x:0x1(0x2",
		"p:g/e /x:0x1()",
		"p:g/e /x:0x1(0x)",
		"p:g/e /x:0x1(0x2)3",
		"p:g/e /x:0x1;2",
		"p:g/e;f /x:0x1",
		"p:g.h/e /x:0x1",
		"p:1g/e /x:0x1",
		"p:g/e /x:0x1 a=1#b",
		"p:g/e /x:0x1 a=1\nb",
		"-:g/e",
		"p:g:e /x:0x1",
	};
	struct rt_remote r = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rt_error *err = rt_remote_add(&r, bad[i], NULL);

		if (!err || err->code != RT_E_FORMAT)
			fail_msg("'%s' was taken", bad[i]);
		rt_error_free(err);
	}
	assert_int_equal(r.probes.len, 0);
	rt_remote_deinit(&r);
}

/* Names and types must be equal, what is fetched need not be (kernel/trace/trace_probe.c, compare_arg_type). */
static void test_names(void **state)
{
	static const struct {
		const char *line, *event;
	} want[] = {
		{ "p:g/e /x:0x1 a=%ax:u64", "g/e" },
		{ "p:g/e /x:0x2 a=+0(%bx):u64", "g/e" },
		{ "p:g/e /x:0x3 a=%ax:u32", "g/e_1" },
		{ "p:g/e /x:0x4 b=%ax:u64", "g/e_2" },
		{ "p:g/e /x:0x5", "g/e_3" },
		{ "r:g/e /x:0x6 a=%ax:u64", "g/e_4" },
		{ "p:g/e /x:0x7 a=%cx:u32", "g/e_1" },
		{ "p:g/e /x:0x8 a=%ax:u64 b=%bx:u64", "g/e_5" },
		{ "p:g/e_1 /x:0x9 a=\\1:u32", "g/e_1" },
		{ "p:g/e_1 /x:0x10 a=\\1:s32", "g/e_1_1" },
	};
	struct rt_remote r = { 0 };
	size_t count = sizeof(want) / sizeof(want[0]);

	for (size_t i = 0; i < count; i++) {
		assert_ok(rt_remote_add(&r, want[i].line, NULL));
		assert_string_equal(r.probes.data[i].event, want[i].event);
	}
	/* one place is probed once */
	assert_ok(rt_remote_add(&r, want[0].line, NULL));
	assert_int_equal(r.probes.len, count);
	rt_remote_deinit(&r);
}

static void test_kernel(void **state)
{
	static const char *const bad[] = {
		"p:g/e /x:0x1",   "p:g/e _text",  "p:g/e _text+",  "p:g/e _text+0x1",     "p:g/e _text+1;2",
		"p:g/e _text+1'", "p:g/e dput+1", "p:g/e _text-1", "p:g/e _text+1 a=1#b", "p:g/e  _text+1",
	};
	struct rt_remote r = { .kernel = true };
	char *text;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rt_error *err = rt_remote_add(&r, bad[i], "f");

		if (!err || err->code != RT_E_FORMAT)
			fail_msg("'%s' was taken", bad[i]);
		rt_error_free(err);
	}
	assert_ok(rt_remote_add(&r, "p:probe/dput _text+7212736 n=+36(%di):x32", "dput"));
	assert_ok(rt_remote_add(&r, "r:probe/dput__return _text+7212736", NULL));
	text = lines(&r);
	assert_string_equal(text, "p:probe/dput _text+7212736 n=+36(%di):x32\nr:probe/dput__return _text+7212736\n");
	free(text);
	rt_remote_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
