/* SPDX-License-Identifier: GPL-2.0-only */
/* TRACING_DATA made by hand: formats of probes and tracepoints, in both byte orders, cut everywhere. */
#include "perfdata-file.h"

#include "base/sink.h"
#include "perfdata/tracing.h"

static struct perf_file data;

#define COMMON \
	"format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static const char probe[] =
	"name: poke\nID: 2326\n" COMMON "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:s32 a;\toffset:16;\tsize:4;\tsigned:1;\n\tfield:u8 b;\toffset:20;\tsize:1;\tsigned:0;\n"
	"\tfield:__data_loc char[] s;\toffset:24;\tsize:4;\tsigned:1;\n"
	"\tfield:__rel_loc char[] r;\toffset:28;\tsize:4;\tsigned:1;\n"
	"\nprint fmt: \"(%lx) a=%d b=%3u|%-4d|0x%02x s=\\\"%s%-4s\\\" 100%%\", REC->__probe_ip, REC->a, REC->b, "
	"(int)REC->b, ((unsigned int)(REC->b)), __get_str(s), __get_rel_str(r)\n";

static const char computed[] =
	"name: calc\nID: 7\n" COMMON "\tfield:char comm[8];\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:unsigned long flags;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:short "
	"s;\toffset:24;\tsize:2;\tsigned:1;\n"
	"\tfield:u8 mac[3];\toffset:26;\tsize:3;\tsigned:0;\n\tfield:const char * p;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\nprint fmt: \"comm=%s flags=%s\", REC->comm, __print_flags(REC->flags, \"|\", { 1, \"A, B\" })\n";

static void put_format(const char *text)
{
	put8(&data, strlen(text));
	put_bytes(&data, text, strlen(text));
}

static void make(bool big)
{
	memset(&data, 0, sizeof(data));
	data.big = big;
	put_bytes(&data, "\x17\x08\x44tracing0.6", 14);
	put(&data, big, 1);
	put(&data, 8, 1);
	put4(&data, 4096);
	put_bytes(&data, "header_page", 12);
	put_format("page");
	put_bytes(&data, "header_event", 13);
	put_format("event");
	put4(&data, 1);
	put_format("name: function\nID: 1\n" COMMON);
	put4(&data, 2);
	put_bytes(&data, "probes", 7);
	put4(&data, 1);
	put_format(probe);
	put_bytes(&data, "sched", 6);
	put4(&data, 1);
	put_format(computed);
}

static void expect(const struct rt_tracing *t, uint64_t id, struct rt_bytes raw, const char *want)
{
	const struct rt_trace_event *event = rt_tracing_event(t, id);
	struct rt_sink out;

	assert_non_null(event);
	rt_sink_init_memory(&out);
	rt_trace_print(t, event, raw, &out);
	assert_string_equal(out.buffer ? out.buffer : "", want);
	rt_sink_deinit(&out);
}

TEST(formats)
{
	for (int big = 0; big < 2; big++) {
		_cleanup_(rt_tracing_destroyp) struct rt_tracing *t = NULL;
		static struct perf_file raw;
		const struct rt_trace_event *event;
		uint64_t value;
		size_t count;

		make(big);
		assert_ok(rt_tracing_create(rt_bytes_make(data.data, data.len), &t));
		rt_tracing_events(t, &count);
		assert_int_equal(count, 3);
		event = rt_tracing_event(t, 2326);
		assert_string_equal(event->group, "probes");
		assert_string_equal(event->name, "poke");
		assert_int_equal(event->field_count, 7);
		assert_true(event->fields[0].is_common);
		assert_string_equal(event->fields[2].type, "unsigned long");
		assert_null(rt_trace_field(event, "c"));
		assert_null(rt_tracing_event(t, 2));

		memset(&raw, 0, sizeof(raw));
		raw.big = big;
		put8(&raw, 0);
		put8(&raw, 0x401136);
		put4(&raw, (uint32_t)-5);
		put(&raw, 200, 1);
		put(&raw, 0, 3);
		put4(&raw, 6u << 16 | 32);
		put4(&raw, 2u << 16 | 6);
		put_bytes(&raw, "he\033lo", 6);
		put_bytes(&raw, "xy", 2);
		expect(t, 2326, rt_bytes_make(raw.data, raw.len), "(401136) a=-5 b=200|200 |0xc8 s=\"he.loxy  \" 100%");
		expect(t, 2326, rt_bytes_make(raw.data, 20), "(401136) a=-5 b=?|?|0x? s=\"??\" 100%");
		assert_true(rt_trace_number(t, rt_trace_field(event, "a"), rt_bytes_make(raw.data, raw.len), &value));
		assert_int_equal((int64_t)value, -5);
		assert_false(rt_trace_number(t, rt_trace_field(event, "s"), rt_bytes_make(raw.data, raw.len), &value));

		raw.len = 8;
		put_bytes(&raw, "comm\0xyz", 8);
		put8(&raw, 0xabc);
		put(&raw, (uint16_t)-2, 2);
		put_bytes(&raw, "\1\2\377\0\0\0", 6);
		put8(&raw, 0x1000);
		expect(t, 7, rt_bytes_make(raw.data, raw.len),
		       " comm=comm flags=0xabc s=-2 mac=ARRAY[01, 02, ff] p=0x1000");
		expect(t, 7, rt_bytes_make(raw.data, 26), " comm=comm flags=0xabc s=-2 mac=? p=?");
		expect(t, 1, rt_bytes_make(raw.data, raw.len), "");
	}
}

/* Formats that are no plain list of fields are not half printed. */
TEST(formats_that_are_refused)
{
	static const char *const formats[] = {
		"",
		"\"a=%d",
		"\"a=%d\"",
		"\"a=%d\", REC->b",
		"\"a=%d\", REC->a + 1",
		"\"a=%d\", REC->a, REC->a",
		"\"a=%pS\", REC->a",
		"\"a=%*d\", REC->a",
		"\"a=%9999d\", REC->a",
		"\"a=%s\", REC->a",
		"\"a=%d\" \"x\", REC->a",
		"\"a=%d\", (REC->a",
		"\"a=%d\", (1+2)REC->a",
		"\"a=%\", REC->a",
		"\"a=%.1234d\", REC->a",
		"\"a=%-+ #0-+ #d\", REC->a",
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		_cleanup_(rt_tracing_destroyp) struct rt_tracing *t = NULL;
		char text[512];

		memset(&data, 0, sizeof(data));
		put_bytes(&data, "\x17\x08\x44tracing0.6", 14);
		put(&data, 0, 1);
		put(&data, 8, 1);
		put4(&data, 4096);
		put_bytes(&data, "header_page", 12);
		put8(&data, 0);
		put_bytes(&data, "header_event", 13);
		put8(&data, 0);
		put4(&data, 1);
		snprintf(text, sizeof(text),
			 "name: x\nID: 5\nformat:\n\tfield:int a;\toffset:0;\tsize:4;\tsigned:1;\n%s%s",
			 *formats[i] ? "print fmt: " : "", formats[i]);
		put_format(text);
		put4(&data, 0);
		assert_ok(rt_tracing_create(rt_bytes_make(data.data, data.len), &t));
		expect(t, 5, rt_bytes_make("\xff\xff\xff\xff", 4), " a=-1");
	}
}

TEST(cut_everywhere)
{
	_cleanup_(rt_tracing_destroyp) struct rt_tracing *whole = NULL;

	make(true);
	for (size_t size = 0; size < data.len; size++) {
		struct rt_tracing *t = NULL;
		uint8_t *copy = malloc(size ? size : 1);

		assert_non_null(copy);
		memcpy(copy, data.data, size);
		assert_code(rt_tracing_create(rt_bytes_make(copy, size), &t), size < 10 ? RT_E_FORMAT : RT_E_TRUNCATED);
		assert_null(t);
		free(copy);
	}
	assert_ok(rt_tracing_create(rt_bytes_make(data.data, data.len), &whole));
}

TEST_MAIN();
