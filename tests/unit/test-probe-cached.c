/* SPDX-License-Identifier: GPL-2.0-only */
/* Definitions as perf 6.1 writes them into its caches, their lines, and what takes whose place. */
#include "probe/cached.h"

#include "test.h"

/* Each spec is what perf probe --cache wrote for the definition; those without debug information follow its source. */
TEST(specs)
{
	static const struct {
		const char *text, *spec;
	} table[] = {
		{ "wc1:a=work n s=s:string", "wc1:a=work n s=s:string" },
		{ "a=work", "probe_x:a=work" },
		{ "work o->refs o->in.b[2]", "work refs=o->refs b=o->in.b[2]" },
		{ "work a[1]", "work a=a[1]" },
		{ "negative%return $retval", "negative%return $retval" },
		{ "wc1:f=work@probed.c:5 n", "wc1:f=work:5@probed.c n" },
		{ "n=negative n:u64", "probe_x:n=negative n:u64" },
		{ "work+16", "work+16" },
		{ "work+0x10", "work+16" },
		{ "probed.c:60", "@probed.c:60" },
		{ "f@/usr/src/a/long/way/down/to/some/file.c", "f@long/way/down/to/some/file.c" },
		{ "0x1440 +8(%di):u32", "0x1440 +8(%di):u32" },
		{ "work $params", "work $params" },
		{ "work s->text:string@user", "work text=s->text:string" },
		/* what it would split is escaped */
		{ "ns::T::get", "ns\\:\\:T\\:\\:get" },
		{ "operator\\=%return", "operator\\=%return" },
		{ "get<int, 2>(void *)", "get<int,?2>(void?*)" },
		{ "f;\"a = b\"", "f;a=b" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct rt_request r, again;
		struct rt_sink sink;

		rt_sink_init_memory(&sink);
		assert_ok(rt_request_parse(table[i].text, &r));
		assert_ok(rt_request_write(&r, "probe_x", &sink));
		assert_ok(rt_sink_end(&sink));
		assert_string_equal(sink.buffer, table[i].spec);
		rt_request_deinit(&r);
		/* what begins with '@' is a form that perf alone has */
		if (*sink.buffer != '@') {
			assert_ok(rt_request_parse(sink.buffer, &again));
			rt_request_deinit(&again);
		}
		rt_sink_deinit(&sink);
	}
}

TEST(specs_refused)
{
	static const char *const table[] = { "g:e=sdt_p:n", "f \\\"a b\\\"" };

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct rt_request r;
		struct rt_sink sink;
		struct rt_error *err = rt_request_parse(table[i], &r);

		rt_sink_init_memory(&sink);
		if (!err)
			assert_code(rt_request_write(&r, "probe_x", &sink), RT_E_UNSUPPORTED);
		rt_error_free(err);
		assert_int_equal(sink.len, 0);
		rt_sink_deinit(&sink);
		rt_request_deinit(&r);
	}
}

TEST(lines)
{
	static const char *const bad[] = { "",
					   "p",
					   "q:g/e /a:0x1",
					   "p:g /a:0x1",
					   "p:g/e",
					   "p:g/e /a",
					   "p:g/e /a:1",
					   "p:g/e :0x1",
					   "p:g/e /a:0x",
					   "p:g/e /a:0x1(0x2",
					   "p:g/e /a:0x1(2)",
					   "p:g/e /a:0x1x",
					   "p:1g/e /a:0x1",
					   "p:g/e.x /a:0x1",
					   "p:g/e /a:0x1 a=%di#",
					   "p:g/e /a:0x1 a=%di\r",
					   "p:g/e /a:0x10000000000000000" };
	struct rt_cached_line l;

	assert_true(rt_cached_read("p:semp/hit /opt/w/se:m:0x10a9(0x3020) arg1=%bx:s32", &l));
	assert_string_equal(l.group, "semp");
	assert_string_equal(l.event, "hit");
	assert_int_equal(l.offset.v, 0x10a9);
	assert_int_equal(l.semaphore.v, 0x3020);
	assert_string_equal(l.arguments, " arg1=%bx:s32");
	assert_false(l.at_return);
	assert_true(rt_cached_read("r:g/e /a:0x1", &l));
	assert_true(l.at_return);
	assert_int_equal(l.semaphore.v, 0);
	assert_string_equal(l.arguments, "");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (rt_cached_read(bad[i], &l))
			fail_msg("'%s' was taken", bad[i]);
}

static void set(struct rt_probes *probes, const char *text, const char *line)
{
	struct rt_request r;

	assert_ok(rt_request_parse(text, &r));
	assert_ok(rt_cached_set(probes, &r, "probe_x", &line, 1));
	rt_request_deinit(&r);
}

/* A name is one definition's, the same words are one entry, and markers are nobody's. */
TEST(places)
{
	static const char text[] =
		"%sdt_g:e=e\np:sdt_g/e /x:0x1\n#g:e=old\np:g/e /x:0x2\n#g:e=older\np:g/e /x:0x3\n#g:ee=f\np:g/ee "
		"/x:0x4\n#f\np:probe_x/f /x:0x5\n";
	struct rt_probes probes;
	struct rt_sink sink;

	assert_ok(rt_probes_parse(rt_bytes_make(text, sizeof(text) - 1), &probes));
	set(&probes, "g:e=new", "p:g/e /x:0x6");
	set(&probes, "f", "p:probe_x/f /x:0x7");
	rt_sink_init_memory(&sink);
	rt_probes_write(&probes, &sink);
	assert_ok(rt_sink_end(&sink));
	assert_string_equal(sink.buffer,
			    "%sdt_g:e=e\np:sdt_g/e /x:0x1\n#g:ee=f\np:g/ee /x:0x4\n#g:e=new\np:g/e /x:0x6\n#f\n"
			    "p:probe_x/f /x:0x7\n");
	rt_sink_deinit(&sink);
	assert_true(rt_cached_fits(&probes.entries.data[0], "sdt_g", "e"));
	assert_true(rt_cached_fits(&probes.entries.data[0], "g", "*"));
	assert_true(rt_cached_fits(&probes.entries.data[2], NULL, "e"));
	assert_false(rt_cached_fits(&probes.entries.data[1], NULL, "e"));
	assert_false(rt_cached_fits(&probes.entries.data[2], "gg", "e"));
	rt_probes_deinit(&probes);
}

TEST_MAIN();
