/* SPDX-License-Identifier: GPL-2.0-only */
/* Models across runs: what one has learnt of healthy objects tells in another, where all objects leak, which get it
 * was. */
#include "lifetime.h"
#include "lifetime/models.h"

#define HEAD "type obj start=1\nclass obj 0x100 Odd\n"
#define BORN "new obj $ make@o.c:5 CLASS\n"
#define TAKEN "get obj $ a@o.c:10 count=1 CLASS\n"
#define END "put obj $ make@o.c:7 count=1 CLASS\n"

/* x puts what a took, and y what b took */
static const char left[] = BORN TAKEN "put obj $ x@o.c:11 count=2 CLASS\n"
				      "get obj $ b@o.c:20 count=1 CLASS\nput obj $ y@o.c:21 count=2 CLASS\n" END;
/* the other way round */
static const char right[] = BORN TAKEN "put obj $ y@o.c:21 count=2 CLASS\n"
				       "get obj $ b@o.c:20 count=1 CLASS\nput obj $ x@o.c:11 count=2 CLASS\n" END;
/* no put of y in any of them */
static const char lost[] = BORN TAKEN "get obj $ b@o.c:20 count=2 CLASS\nput obj $ x@o.c:11 count=3 CLASS\n"
				      "put obj $ make@o.c:7 count=2 CLASS\nheld $ none\n";

static char *stream(const char *life, unsigned n, const char *klass)
{
	char *text = NULL, *looped, *all;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	for (const char *p = life, *at; *p; p = at ? at + strlen("CLASS") : p + strlen(p)) {
		at = strstr(p, "CLASS");
		fprintf(f, "%.*s%s", at ? (int)(at - p) : (int)strlen(p), p, at ? klass : "");
	}
	fclose(f);
	looped = story_loop(text, 0, n);
	assert_true(asprintf(&all, "%s%smark census\nexit 0\n", HEAD, looped) > 0);
	free(looped);
	free(text);
	return all;
}

/* what a run of n such lives has learnt, with what was there before (NULL: nothing); the caller frees */
static char *learn(const char *life, unsigned n, const char *klass, const char *before)
{
	char *text = stream(life, n, klass), *ret;
	struct story s = story_run(text, NULL);
	struct rt_sink sink;
	uint64_t used;

	if (before)
		assert_ok(rt_models_read(s.lifetime, before, strlen(before), "before", &used));
	rt_sink_init_memory(&sink);
	assert_ok(rt_models_write(s.lifetime, &sink));
	assert_ok(rt_sink_end(&sink));
	ret = strdup(sink.buffer);
	rt_sink_deinit(&sink);
	story_end(&s);
	free(text);
	return ret;
}

/* as story_run(), with models before the verdict */
static struct story run_with(const char *text, const char *models, uint64_t *ret_used)
{
	struct story s = { 0 };
	const struct rt_wire_head *record;

	assert_ok(rt_text_create(text, strlen(text), "story", &s.text));
	assert_ok(rt_lifetime_create(NULL, rt_text_namer(s.text), &s.lifetime));
	for (;;) {
		assert_ok(rt_text_source(s.text)->next(rt_text_source(s.text), &record));
		if (!record)
			break;
		assert_ok(rt_lifetime_record(s.lifetime, record));
	}
	assert_ok(rt_models_read(s.lifetime, models, strlen(models), "models", ret_used));
	assert_ok(rt_lifetime_verdict(s.lifetime, &s.verdict));
	return s;
}

static void takes(const char *models, const char *klass, const char *taker)
{
	char *text = stream(lost, 6, klass);
	uint64_t used;
	struct story s = run_with(text, models, &used);

	if (s.verdict->finding_count != 1)
		story_print(s.verdict);
	assert_int_equal(used, 40);
	assert_int_equal(s.verdict->finding_count, 1);
	assert_string_equal(s.verdict->findings[0].taken_by.function, taker);
	assert_int_equal(s.verdict->findings[0].objects, 6);
	story_end(&s);
	free(text);
}

TEST(another_run_tells_which_get_it_was)
{
	static const char *const classes[] = { "", "class=0x100" };

	for (size_t i = 0; i < 2; i++) {
		char *l = learn(left, 40, classes[i], NULL), *r = learn(right, 40, classes[i], NULL);

		takes(l, classes[i], "b");
		takes(r, classes[i], "a");
		free(l);
		free(r);
	}
}

/* What is read and written again is the same; runs add up. */
TEST(models_are_read_back)
{
	char *one = learn(left, 40, "", NULL), *two = learn(left, 2, "", one), *plain = learn(left, 42, "", NULL);

	assert_string_equal(two, plain);
	free(one);
	free(two);
	free(plain);
}

/* Other types, other classes, modules of other builds. */
TEST(what_is_not_here_says_nothing)
{
	static const char *const models[] = {
		"reftrace-models 1\n",
		"reftrace-models 1\nframe 0 f f.c 1 0x0 0x0\nsite 1\ntype other\nhealthy 9\nstat 1 1 1 1\n",
		"reftrace-models 1\nframe 0 f f.c 1 0x0 0x0\nsite 1\ntype obj None\nhealthy 9\nstat 1 1 1 1\n",
		"reftrace-models 1\nmodule 0011aa x\nframe 1 f f.c 1 0x0 0x0\nsite 1\ntype obj\nhealthy 9\nstat 1 1 1 "
		"1\n"
		"pair 1 1 3\nshape 2 +1,0,0,0\n",
	};
	char *text = stream(left, 3, "");

	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		uint64_t used = 1;
		struct story s = run_with(text, models[i], &used);

		assert_int_equal(used, 0);
		story_end(&s);
	}
	free(text);
}

TEST(a_fault_adds_nothing_and_says_its_line)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "models: line 0 is not understood, expected reftrace-models 1" },
		{ "reftrace-models 2\n", "models: line 1 is not understood, expected reftrace-models 1" },
		{ "reftrace-models 1\n# note\nbelow\n",
		  "models: line 3 is not understood, expected a type before what is known of it" },
		{ "reftrace-models 1\ntype obj\nbelow\n",
		  "models: line 3 is not understood, expected module, frame, site, "
		  "type, healthy, stat, pair or shape" },
		{ "reftrace-models 1\nmodule 0g a\n",
		  "models: line 2 is not understood, expected module BUILD-ID NAME" },
		{ "reftrace-models 1\nframe 1 f f.c 1 0x0 0x0\n",
		  "models: line 2 is not understood, expected frame MODULE FUNCTION FILE LINE 0xENTRY 0xADDRESS" },
		{ "reftrace-models 1\nframe 0 f - 1 0x0 0x0\n",
		  "models: line 2 is not understood, expected frame MODULE FUNCTION FILE LINE 0xENTRY 0xADDRESS" },
		{ "reftrace-models 1\nframe 0 %0 f.c 1 0x0 0x0\n",
		  "models: line 2 is not understood, expected frame MODULE FUNCTION FILE LINE 0xENTRY 0xADDRESS" },
		{ "reftrace-models 1\nsite 1\n",
		  "models: line 2 is not understood, expected numbers of frames that were told before" },
		{ "reftrace-models 1\ntype obj\nstat 1 2 3 4\n",
		  "models: line 3 is not understood, expected stat SITE OPENED CLOSED OBJECTS" },
		{ "reftrace-models 1\ntype obj\npair 0 0 999999999999999999\n",
		  "models: line 3 is not understood, expected pair SITE SITE TIMES" },
		{ "reftrace-models 1\ntype obj\nshape 1 0,0,0,0\n",
		  "models: line 3 is not understood, expected marks like +SITE,HOW,THREAD,ACT" },
		{ "reftrace-models 1\ntype obj\nshape 1 +0,0,256,0\n",
		  "models: line 3 is not understood, expected marks like +SITE,HOW,THREAD,ACT" },
		{ "reftrace-models 1\ntype obj\nshape 0 +0,0,0,0\n",
		  "models: line 3 is not understood, expected shape TIMES MARK..." },
	};
	char *text = stream(left, 3, "");
	struct story s = story_run(text, NULL);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t used;
		struct rt_error *err =
			rt_models_read(s.lifetime, cases[i].text, strlen(cases[i].text), "models", &used);

		assert_non_null(err);
		assert_string_equal(err->message, cases[i].says);
		assert_int_equal(err->code, RT_E_FORMAT);
		rt_error_free(err);
	}
	story_end(&s);
	free(text);
}

TEST_MAIN();
