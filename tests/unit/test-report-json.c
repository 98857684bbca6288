/* SPDX-License-Identifier: GPL-2.0-only */
#include <math.h>
#include <spawn.h>
#include <sys/wait.h>

#include "report-cases.h"
#include "report/json_writer.h"
#include "report/utf8.h"

#include "test.h"

extern char **environ;

static char *render(const struct rt_verdict *verdict, const struct rt_run_info *run)
{
	struct rt_sink sink;

	rt_sink_init_memory(&sink);
	assert_ok(rt_report_json(verdict, run, &sink));
	return sink.buffer;
}

/* Exit status of python3 -c script with the JSON in argv[1] and the schema in argv[2]; 77: skip. */
static int python(char *script, const char *json)
{
	static char name[] = "python3", option[] = "-c";
	char dir[] = "/tmp/reftrace-json-XXXXXX", path[64], schema[4096];
	const char *root = getenv("RT_SOURCE_ROOT");
	char *argv[] = { name, option, script, path, schema, NULL };
	int status = 0;
	pid_t pid;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/out.json", dir);
	snprintf(schema, sizeof(schema), "%s/docs/findings.schema.json", root ? root : ".");
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(json, f);
	fclose(f);
	if (posix_spawnp(&pid, "python3", NULL, NULL, argv, environ))
		return 77;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink(path);
	rmdir(dir);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void validate(const struct rt_verdict *verdict, const struct rt_run_info *run, const char *check)
{
	char script[4096];
	char *json = render(verdict, run);
	int status;

	snprintf(script, sizeof(script),
		 "import sys, json\n"
		 "try:\n"
		 "  import jsonschema\n"
		 "except ImportError:\n"
		 "  sys.exit(77)\n"
		 "d = json.load(open(sys.argv[1], encoding='utf-8'))\n"
		 "s = json.load(open(sys.argv[2]))\n"
		 "jsonschema.Draft7Validator.check_schema(s)\n"
		 "jsonschema.validate(d, s, cls=jsonschema.Draft7Validator)\n"
		 "%s",
		 check);
	status = python(script, json);
	free(json);
	if (status == 77)
		skip();
	assert_int_equal(status, 0);
}

TEST(leak_follows_the_schema)
{
	struct rt_verdict v = leak_verdict();

	v.suspects = case_put;
	v.suspect_count = 1;
	validate(&v, &case_run,
		 "f = d['findings'][0]\n"
		 "assert d['command'] == ['./leak', '100'] and d['exit'] == {'program': 0, 'reftrace': 0}\n"
		 "assert f['guilty']['function'] == 'parse_header' and f['guilty']['role'] == 'missing-put'\n"
		 "assert f['guilty']['line'] == 39 and f['guilty']['build_id'] == 'deadbeef'\n"
		 "assert f['guilty']['offset'] == '0x1127' and f['confidence'] == 0.97\n"
		 "assert f['history'][2]['count'] == 3 and f['taken_by']['taken'] == 100\n"
		 "assert d['suspects'][0]['kind'] == 'extra-put' and d['suspects'][0]['taken_by'] is None\n"
		 "assert d['suspects'][0]['history'][-1]['count'] is None\n"
		 "assert d['points'][2]['hits'] is None and d['points'][1]['hits'] == 200\n"
		 "assert d['sites'][1]['events'] == 80 and d['types'][0]['live'] in (0, 20)\n");
}

TEST(empty_verdict_follows_the_schema)
{
	struct rt_verdict v = { .trust.nothing_seen = true };
	struct rt_run_info run = { .engine = "replay", .exit_status = 24 };

	validate(&v, &run,
		 "assert d['trust']['nothing_seen'] and d['exit'] == {'program': None, 'reftrace': 24}\n"
		 "assert d['findings'] == [] and d['command'] == []\n");
}

TEST(hostile_strings_stay_strings)
{
	struct rt_verdict v = leak_verdict();
	struct rt_finding f = case_leak[0];
	struct rt_run_info run = case_run;
	const char *command[] = { "q\"\\\n\x01\x7f", "\xff\xc0\xaf\xed\xa0\x80z", "\xf0\x9f\x98\x80\xe2\x82", NULL };

	f.guilty.function = "operator\"\"_x";
	f.confidence = 1;
	v.findings = &f;
	run.command = command;
	run.program_status = 11;
	validate(&v, &run,
		 "assert d['command'][0] == 'q\"\\\\\\n\\x01\\x7f', d['command']\n"
		 "assert d['command'][1] == '\\ufffd' * 6 + 'z', d['command']\n"
		 "assert d['command'][2] == '\\U0001f600' + '\\ufffd' * 2, d['command']\n"
		 "assert d['findings'][0]['guilty']['function'] == 'operator\"\"_x'\n"
		 "assert d['exit']['program'] == 139\n");
}

TEST(writer_puts_commas)
{
	struct rt_sink sink;
	struct rt_json json;

	rt_sink_init_memory(&sink);
	rt_json_init(&json, &sink);
	rt_json_begin_array(&json, NULL);
	rt_json_begin_array(&json, NULL);
	rt_json_begin_object(&json, NULL);
	rt_json_end_object(&json);
	rt_json_begin_object(&json, NULL);
	rt_json_u64(&json, "a", UINT64_MAX);
	rt_json_i64(&json, "b", INT64_MIN);
	rt_json_number(&json, "c", 0.5);
	rt_json_number(&json, "d", NAN);
	rt_json_number(&json, "e", 3);
	rt_json_hex(&json, "f", 0x12c);
	rt_json_bool(&json, "g", true);
	rt_json_string(&json, "h", NULL);
	rt_json_end_object(&json);
	rt_json_end_array(&json);
	rt_json_begin_array(&json, NULL);
	rt_json_end_array(&json);
	rt_json_end_array(&json);
	assert_ok(rt_sink_end(&sink));
	assert_string_equal(sink.buffer,
			    "[\n  [\n    {},\n    {\"a\": 18446744073709551615, \"b\": -9223372036854775808, "
			    "\"c\": 0.5, \"d\": null, \"e\": 3.0, \"f\": \"0x12c\", \"g\": true, \"h\": null}\n"
			    "  ],\n  []\n]\n");
	rt_sink_deinit(&sink);
}

TEST(utf8_refuses_what_is_none)
{
	static const char *const bad[] = {
		"\x80",     "\xc1\x81", "\xe0\x80\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
		"\xe2\x82", "\xc3"
	};
	uint32_t c;

	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(rt_utf8_next(bad[i], &c), 0);
	assert_int_equal(rt_utf8_next("\xe2\x82\xac", &c), 3);
	assert_int_equal(c, 0x20ac);
}

TEST_MAIN();
