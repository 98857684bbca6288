/* SPDX-License-Identifier: GPL-2.0-only */
/* Classes: each has a model of its own, findings name it, and -t means it. */
#include "lifetime.h"

#define TAKEN \
	"new obj $ make@o.c:5 class=WORD\n" \
	"get obj $ open_file@o.c:10 count=1 class=WORD\n" \
	"get obj $ lock_file@o.c:20 count=2 class=WORD\n"
#define PUTS(first, second) \
	"put obj $ " first "@o.c:30 count=3 class=WORD\n" \
	"put obj $ " second "@o.c:40 count=2 class=WORD\n"
#define END "put obj $ make@o.c:7 count=1 class=WORD\n"
#define TYPE "type obj start=1\nclass obj 0x100 Plain\nclass obj 0x200 Odd\n"

/* text with the class of its objects; the caller frees */
static char *lives(const char *text, const char *word, unsigned from, unsigned n)
{
	char *out = NULL, *looped;
	size_t len = 0;
	FILE *f = open_memstream(&out, &len);

	for (const char *p = text, *at; *p; p = at ? at + strlen("WORD") : p + strlen(p)) {
		at = strstr(p, "WORD");
		fprintf(f, "%.*s%s", at ? (int)(at - p) : (int)strlen(p), p, at ? word : "");
	}
	fclose(f);
	looped = story_loop(out, from, n);
	free(out);
	return looped;
}

/*
 * What is taken by lock_file() is put by release() in one class, and by done() in the other, which has ten times as
 * many objects. The odd ones that are left lack the put of done().
 */
static char *crossed(void)
{
	static const char plain[] = TAKEN "put obj $ open_file@o.c:12 count=3 class=WORD\n"
					  "put obj $ unlock_file@o.c:40 count=2 class=WORD\n" END;
	static const char odd[] = TAKEN PUTS("unlock_file", "close_file") END;
	static const char lost[] = TAKEN "put obj $ unlock_file@o.c:30 count=3 class=WORD\n"
					 "put obj $ make@o.c:7 count=2 class=WORD\nheld $ none\n";
	char *text = story_join(lives(plain, "0x100", 0, 40), lives(odd, "0x200", 40, 20), "");
	char *all;

	text = story_join(text, lives(lost, "0x200", 60, 5), "mark census\nexit 0\n");
	assert_true(asprintf(&all, "%s%s", TYPE, text) > 0);
	free(text);
	return all;
}

TEST(findings_and_counts_are_of_a_class)
{
	char *text = crossed();
	struct story s = story_run(text, NULL);
	const struct rt_verdict *v = s.verdict;

	assert_int_equal(v->finding_count, 1);
	assert_string_equal(v->findings[0].klass, "Odd");
	assert_int_equal(v->findings[0].objects, 5);
	assert_int_equal(v->findings[0].of, 25);
	assert_int_equal(v->type_count, 1);
	assert_int_equal(v->types[0].incarnations, 65);
	assert_int_equal(v->class_count, 2);
	assert_string_equal(v->classes[0].name, "Plain");
	assert_int_equal(v->classes[0].incarnations, 40);
	assert_int_equal(v->classes[1].incarnations, 25);
	assert_int_equal(v->classes[1].live, 5);
	assert_true(v->trust.complete);
	story_end(&s);
	free(text);
}

TEST(only_one_class_is_judged)
{
	static const char *const plain[] = { "P*n", NULL }, *const odd[] = { "O?d", NULL },
				 *const type[] = { "obj", NULL };
	static const struct {
		const char *const *types;
		size_t findings;
	} cases[] = { { plain, 0 }, { odd, 1 }, { type, 1 } };
	char *text = crossed();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rt_lifetime_options options = { .types = cases[i].types };
		struct story s = story_run(text, &options);

		assert_int_equal(s.verdict->finding_count, cases[i].findings);
		story_end(&s);
	}
	free(text);
}

/*
 * Half of all objects are of a class that one function takes and another gives back, the others of one where it is the
 * other way round: only by themselves do they say who lacks a put.
 */
TEST(each_class_has_a_model_of_its_own)
{
	static const char left[] = "new obj $ make@o.c:5 class=WORD\n"
				   "get obj $ a@o.c:10 count=1 class=WORD\nput obj $ x@o.c:11 count=2 class=WORD\n"
				   "get obj $ b@o.c:20 count=1 class=WORD\nput obj $ y@o.c:21 count=2 class=WORD\n" END;
	static const char right[] =
		"new obj $ make@o.c:5 class=WORD\n"
		"get obj $ a@o.c:10 count=1 class=WORD\nput obj $ y@o.c:21 count=2 class=WORD\n"
		"get obj $ b@o.c:20 count=1 class=WORD\nput obj $ x@o.c:11 count=2 class=WORD\n" END;
	static const char lost[] = "new obj $ make@o.c:5 class=WORD\n"
				   "get obj $ a@o.c:10 count=1 class=WORD\nget obj $ b@o.c:20 count=2 class=WORD\n"
				   "put obj $ x@o.c:11 count=3 class=WORD\n"
				   "put obj $ make@o.c:7 count=2 class=WORD\nheld $ none\n";
	static const char *const words[] = { "0x100", "0x200" }, *const takers[] = { "b", "a" };

	for (int i = 0; i < 2; i++) {
		char *text = story_join(lives(left, "0x100", 0, 30), lives(right, "0x200", 30, 30), "");
		char *all;
		struct story s;

		text = story_join(text, lives(lost, words[i], 60, 4), "mark census\nexit 0\n");
		assert_true(asprintf(&all, "%s%s", TYPE, text) > 0);
		s = story_run(all, NULL);
		if (s.verdict->finding_count != 1)
			story_print(s.verdict);
		assert_int_equal(s.verdict->finding_count, 1);
		assert_non_null(s.verdict->findings[0].taken_by.function);
		assert_string_equal(s.verdict->findings[0].taken_by.function, takers[i]);
		story_end(&s);
		free(text);
		free(all);
	}
}

/* A class of which no object was healthy is judged by what the others do. */
TEST(a_rare_class_has_the_model_of_its_type)
{
	static const char healthy[] =
		"new obj $ make@o.c:5 class=WORD\n"
		"get obj $ a@o.c:10 count=1 class=WORD\nput obj $ x@o.c:11 count=2 class=WORD\n"
		"get obj $ b@o.c:20 count=1 class=WORD\nput obj $ y@o.c:21 count=2 class=WORD\n" END;
	static const char other[] =
		"new obj $ make@o.c:5 class=WORD\n"
		"get obj $ a@o.c:10 count=1 class=WORD\nput obj $ y@o.c:21 count=2 class=WORD\n"
		"get obj $ b@o.c:20 count=1 class=WORD\nput obj $ x@o.c:11 count=2 class=WORD\n" END;
	static const char lost[] = "new obj $ make@o.c:5 class=WORD\n"
				   "get obj $ a@o.c:10 count=1 class=WORD\nget obj $ b@o.c:20 count=2 class=WORD\n"
				   "put obj $ x@o.c:11 count=3 class=WORD\n"
				   "put obj $ make@o.c:7 count=2 class=WORD\nheld $ none\n";
	static const char *const lives_of[] = { healthy, other }, *const takers[] = { "b", "a" };

	for (int i = 0; i < 2; i++) {
		char *text = story_join(lives(lives_of[i], "0x100", 0, 30), lives(lost, "0x200", 30, 4),
					"mark census\nexit 0\n");
		char *all;
		struct story s;

		assert_true(asprintf(&all, "%s%s", TYPE, text) > 0);
		s = story_run(all, NULL);
		if (s.verdict->finding_count != 1)
			story_print(s.verdict);
		assert_int_equal(s.verdict->finding_count, 1);
		assert_string_equal(s.verdict->findings[0].klass, "Odd");
		assert_string_equal(s.verdict->findings[0].taken_by.function, takers[i]);
		story_end(&s);
		free(text);
		free(all);
	}
}

/* What a constructor of a base class shows is not what the object is; what nobody named is of no class. */
TEST(the_last_birth_tells)
{
	static const char text[] = TYPE "new obj 0x1000 main@o.c:1;base@o.c:2 class=0x100\n"
					"get obj 0x1000 main@o.c:1;derived@o.c:3 count=1 class=0x100\n"
					"put obj 0x1000 main@o.c:1;derived@o.c:4 count=2 class=0x200\n"
					"new obj 0x1000 main@o.c:1 count=1 class=0x200 flags=return\n"
					"new obj 0x2000 main@o.c:9 class=0x300\n"
					"get obj 0x3000 main@o.c:10 class=0x200\n"
					"put obj 0x3000 main@o.c:11 class=0x100\n";
	struct story s = story_run(text, NULL);

	assert_int_equal(s.verdict->class_count, 2);
	assert_int_equal(s.verdict->classes[0].incarnations, 0);
	assert_int_equal(s.verdict->classes[1].incarnations, 2);
	assert_int_equal(s.verdict->types[0].incarnations, 3);
	story_end(&s);
}

TEST_MAIN();
