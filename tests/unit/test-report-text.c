/* SPDX-License-Identifier: GPL-2.0-only */
#include "report-cases.h"

#include "test.h"

static const char *source_line(struct rt_namer *self, uint32_t module, const char *file, uint32_t line, bool *stale)
{
	static const char *const lines[] = {
		[37] = "__attribute__((noinline)) static int parse_header(struct obj *o)",
		[38] = "{",
		[39] = "\tobj_get(o);",
		[40] = "\tif (o->number % 5 == 4)",
		[41] = "\t\treturn -1; /* the planted fault: no put on this path */",
		[42] = "\to->payload[0] = 'h';",
		[43] = "\tobj_put(o);",
	};

	if (stale)
		*stale = false;
	return line < COUNT(lines) && !strcmp(file, "leak.c") ? lines[line] : NULL;
}

static const char *stale_line(struct rt_namer *self, uint32_t module, const char *file, uint32_t line, bool *stale)
{
	if (stale)
		*stale = true;
	return NULL;
}

static struct rt_namer namer = { .source_line = source_line };

/* caller frees */
static char *render(const struct rt_verdict *verdict, const struct rt_run_info *run, struct rt_text_options options,
		    struct rt_namer *names)
{
	struct rt_sink sink;

	rt_sink_init_memory(&sink);
	rt_sink_puts(&sink, "");
	assert_ok(rt_report_text(verdict, run, &options, names, &sink));
	return sink.buffer ? sink.buffer : calloc(1, 1);
}

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static size_t widest(const char *text)
{
	size_t most = 0, now = 0;

	for (; *text; text++) {
		now = *text == '\n' ? 0 : now + 1;
		most = now > most ? now : most;
	}
	return most;
}

/* The one golden picture of the default report. */
TEST(leak_report)
{
	static const char want[] =
		"reftrace: ./leak 100 (pid 5426) exit 0, 0.3 s, 580 events, 0 lost\n"
		"pairs: new obj_new, get obj_get, put obj_put -> struct obj (found by name; change: -P)\n"
		"\n"
		"LEAK 3f2a91c0  struct obj: 20 of 100 objects never released (1.9 KiB)\n"
		"  missing put in parse_header()  leak.c:39   certain: all 20 point here\n"
		"\n"
		"  >     39  obj_get(o);                    100 gets, 20 without a put\n"
		"        40  if (o->number % 5 == 4)\n"
		"        41      return -1; /* the planted fault: no put on this path */\n"
		"        43  obj_put(o);                    80 puts\n"
		"\n"
		"  balance by caller                             new    gets    puts    left\n"
		"    parse_header   leak.c:39,43                   0     100      80     +20  <==\n"
		"    main           leak.c:60,63                 100       0     100       0\n"
		"    handle_request leak.c:49,52                   0     100     100       0\n"
		"  first: object #5 at +1.2 ms   new 60, get 49, get 39, put 52, put 63, (end)\n"
		"\n"
		"1 finding: 1 leak (20 objects), 0 extra puts, 0 uses after put\n"
		"trust: complete - 580 events, 0 lost, 3 points armed, stacks by frame pointers\n"
		"next: reftrace run -w run.rtspool -- ./leak 100 | -v for more | --json for programs\n";
	struct rt_verdict v = leak_verdict();
	char *text = render(&v, &case_run, (struct rt_text_options){ 0 }, &namer);

	assert_string_equal(text, want);
	free(text);
}

TEST(extra_put_report)
{
	static const char want[] = "EXTRA PUT 91b7c2d4  struct obj #1: put without a reference\n"
				   "  extra put in on_error()  leak.c:8   likely (0.82)\n"
				   "  why: on_error never took a reference on #1 (0 gets, 1 put on this path)\n"
				   "  ledger  new main:10 +1 =1 | get worker:7 +1 =2 | put worker:9 -1 =1\n"
				   "          put on_error:8 -1 =0 LAST PUT | free on_error:8 FREED | ...\n"
				   "          put shutdown_all:9 -1 AFTER THE LAST PUT\n"
				   "  extra put  on_error leak.c:8 < worker leak.c:9\n"
				   "  use        worker leak.c:9\n";
	struct rt_verdict v = put_verdict();
	char *text = render(&v, &case_run, (struct rt_text_options){ 0 }, NULL);

	assert_non_null(strstr(text, "EXTRA PUT"));
	assert_memory_equal(strstr(text, "EXTRA PUT"), want, strlen(want));
	assert_non_null(strstr(text, "1 finding: 0 leaks, 1 extra put, 0 uses after put\n"));
	free(text);
}

TEST(one_finding_fits_a_screen)
{
	struct rt_verdict v = leak_verdict();
	struct rt_balance rows[40];
	struct rt_alive alive[6];
	char *text, *guilty;

	for (size_t i = 0; i < COUNT(rows); i++)
		rows[i] = case_leak_balance[i % 3];
	for (size_t i = 0; i < COUNT(alive); i++)
		alive[i] = (struct rt_alive){ "obj", NULL, 8, "cache" };
	case_leak[0].balance = rows;
	case_leak[0].balance_count = COUNT(rows);
	v.suspects = case_put;
	v.suspect_count = 1;
	v.alive = alive;
	v.alive_count = COUNT(alive);
	text = render(&v, &case_run, (struct rt_text_options){ 0 }, &namer);
	assert_in_range(count_lines(text), 15, 24);
	guilty = strstr(text, "parse_header()");
	assert_non_null(guilty);
	*guilty = 0;
	assert_in_range(count_lines(text), 1, 4);
	free(text);
	text = render(&v, &case_run, (struct rt_text_options){ 0 }, &namer);
	assert_non_null(strstr(text, "more callers: -v\n"));
	assert_non_null(strstr(text, "1 suspect (confidence < 0.5): -v\n"));
	assert_non_null(strstr(text, "alive at exit: 8 obj (cache), "));
	case_leak[0].balance = case_leak_balance;
	case_leak[0].balance_count = COUNT(case_leak_balance);
	free(text);
}

TEST(clean_only_when_complete)
{
	struct rt_verdict v = clean_verdict();
	char *text = render(&v, &case_run, (struct rt_text_options){ 0 }, &namer);
	const char *note = "12 events were lost";

	assert_non_null(strstr(text, "no leaks: 100 objects (struct obj), all released\n"));
	free(text);
	v.types[0].swept = 3;
	text = render(&v, &case_run, (struct rt_text_options){ 0 }, &namer);
	assert_non_null(strstr(text, "all released, 3 freed with references open\n"));
	v.types[0].swept = 0;
	free(text);
	v.trust.complete = false;
	v.trust.lost = 12;
	v.trust.notes = &note;
	v.trust.note_count = 1;
	text = render(&v, &case_run, (struct rt_text_options){ .quiet = true }, &namer);
	assert_null(strstr(text, "no leaks"));
	assert_non_null(strstr(text, "the answer is not complete"));
	assert_non_null(strstr(text, "note: 12 events were lost\n"));
	free(text);
}

TEST(clean_only_when_none_is_lost)
{
	struct rt_verdict v = clean_verdict();
	struct rt_finding suspects[] = { case_leak[0], case_leak[0] };
	char *text;

	suspects[0].lost = 2;
	v.suspects = suspects;
	v.suspect_count = COUNT(suspects);
	text = render(&v, &case_run, (struct rt_text_options){ 0 }, &namer);
	assert_null(strstr(text, "no leaks"));
	assert_non_null(strstr(text, "no finding, but nobody points to 2 objects that are left (-v): 100 objects"));
	free(text);
	/* who is pointed to may be a cache's */
	suspects[0].lost = 0;
	text = render(&v, &case_run, (struct rt_text_options){ 0 }, &namer);
	assert_non_null(strstr(text, "no leaks: 100 objects"));
	free(text);
}

TEST(quiet_and_clean_says_nothing)
{
	struct rt_verdict v = clean_verdict();
	char *text = render(&v, &case_run, (struct rt_text_options){ .quiet = true }, &namer);

	assert_string_equal(text, "");
	free(text);
}

TEST(nothing_seen_is_not_clean)
{
	struct rt_verdict v = clean_verdict();
	char *text;

	v.trust = (struct rt_trust){ .nothing_seen = true, .points = 3 };
	text = render(&v, &case_run, (struct rt_text_options){ .quiet = true }, &namer);
	assert_null(strstr(text, "no leaks"));
	assert_non_null(strstr(text, "E16 no get/put event was seen: this is NOT a clean result (exit 24)\n"));
	assert_non_null(strstr(text, "probes placed 3, hit 0\n"));
	free(text);
}

TEST(foreign_names_cannot_move_the_cursor)
{
	struct rt_verdict v = leak_verdict();
	struct rt_finding f = case_leak[0];
	const char *command[] = { "a\033[2Jb", "c\nd", "\xff\xc2\x9b\xe2\x80\xae", NULL };
	struct rt_run_info run = case_run;
	char *text;

	f.guilty.function = "evil\033]0;x\007name";
	f.guilty.file = "dir\r/x.c";
	f.type = "ty\tpe";
	v.findings = &f;
	run.command = command;
	text = render(&v, &run, (struct rt_text_options){ .verbose = true, .width = 200 }, NULL);
	for (const char *p = text; *p; p++)
		assert_true(*p == '\n' || (unsigned char)*p >= 0x20);
	assert_null(strstr(text, "\xc2\x9b"));
	assert_non_null(strstr(text, "a\\x1b[2Jb c\\x0ad \\xff\\u{9b}\\u{202e}"));
	assert_non_null(strstr(text, "evil\\x1b]0;x\\x07name()"));
	free(text);
}

TEST(color_only_when_asked)
{
	struct rt_verdict v = leak_verdict();
	char *text = render(&v, &case_run, (struct rt_text_options){ .color = true }, &namer);

	assert_non_null(strstr(text, "\033[1;31mLEAK\033[0m"));
	free(text);
	text = render(&v, &case_run, (struct rt_text_options){ .verbose = true }, &namer);
	assert_null(strchr(text, '\033'));
	free(text);
}

TEST(paths_give_way_and_names_do_not)
{
	struct rt_verdict v = leak_verdict();
	struct rt_finding f = case_leak[0];
	const char *name = "a_function_with_a_name_that_is_longer_than_every_column_of_the_table";
	char *text;

	f.guilty.file = "/home/somebody/src/a/rather/deep/folder/of/sources/parser/leak.c";
	f.balance = NULL;
	f.balance_count = 0;
	v.findings = &f;
	text = render(&v, &case_run, (struct rt_text_options){ 0 }, NULL);
	assert_non_null(strstr(text, ")  leak.c:39   certain"));
	/* the pairs line is the session's own text */
	assert_in_range(widest(strstr(text, "LEAK")), 60, 83);
	free(text);
	text = render(&v, &case_run, (struct rt_text_options){ .width = 100 }, NULL);
	assert_non_null(strstr(text, ")  .../"));
	assert_non_null(strstr(text, "/sources/parser/leak.c:39   certain"));
	free(text);
	f = case_leak[0];
	f.guilty.function = name;
	case_leak_balance[0].site.function = name;
	v.findings = &f;
	text = render(&v, &case_run, (struct rt_text_options){ .width = 60 }, NULL);
	assert_non_null(strstr(text, name));
	assert_non_null(strstr(strstr(text, name) + 1, name));
	case_leak_balance[0].site.function = "parse_header";
	free(text);
}

TEST(stale_source_is_not_shown)
{
	struct rt_namer stale = { .source_line = stale_line };
	struct rt_verdict v = leak_verdict();
	char *text = render(&v, &case_run, (struct rt_text_options){ 0 }, &stale);

	assert_non_null(strstr(text, "(leak.c is newer than the program: its lines are not shown)\n"));
	free(text);
}

TEST(many_findings_are_folded)
{
	struct rt_verdict v = leak_verdict();
	struct rt_finding many[40];
	char *text;

	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = case_leak[0];
	v.findings = many;
	v.finding_count = COUNT(many);
	text = render(&v, &case_run, (struct rt_text_options){ 0 }, NULL);
	assert_non_null(strstr(text, "and 25 more findings: -v\n"));
	assert_non_null(strstr(text, "40 findings: 40 leaks (800 objects)"));
	assert_in_range(count_lines(text), 40, 100);
	free(text);
}

/* Everything absent that may be absent. */
TEST(bare_finding)
{
	struct rt_finding f = {
		.id = "00000000", .kind = RT_LEAK, .type = "t", .objects = 1, .of = 1, .confidence = 0.6
	};
	struct rt_verdict v = { .findings = &f, .finding_count = 1 };
	struct rt_run_info run = { 0 };
	char *text = render(&v, &run, (struct rt_text_options){ .verbose = true, .color = true, .width = 1 }, NULL);

	assert_non_null(strstr(text, "struct t: 1 of 1 object never released"));
	assert_non_null(strstr(text, "possible (0.60)"));
	free(text);
}

TEST_MAIN();
