/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is read as the counter of a type is not always its count of references:
 * a wrong field, a constant too many, or a right one that operations move which
 * are not seen. Only what proves itself is evidence; the rest is told.
 */
#include "lifetime.h"

#define OK_LIFE(c1, c2, c3, c4, c5) \
	"new obj $ main@leak.c:38\n" \
	"get obj $ main;handle@leak.c:39 " c1 "\n" \
	"get obj $ main;handle@leak.c:40;parse_header@leak.c:29 " c2 "\n" \
	"put obj $ main;handle@leak.c:40;parse_header@leak.c:32 " c3 "\n" \
	"put obj $ main;handle@leak.c:42 " c4 "\n" \
	"put obj $ main@leak.c:43 " c5 "\n"
#define BAD_LIFE(c1, c2, c3, c4) \
	"new obj $ main@leak.c:38\n" \
	"get obj $ main;handle@leak.c:39 " c1 "\n" \
	"get obj $ main;handle@leak.c:40;parse_header@leak.c:29 " c2 "\n" \
	"put obj $ main;handle@leak.c:42 " c3 "\n" \
	"put obj $ main@leak.c:43 " c4 "\n"

/* what is read is no counter: nobody is accused, and the answer says why it is not complete */
static void disbelieved(char *events)
{
	struct story s = story_run(events, NULL);
	bool told = false;

	for (size_t i = 0; i < s.verdict->trust.note_count; i++)
		told |= strstr(s.verdict->trust.notes[i], "counter=STRUCT.FIELD") != NULL;
	if (s.verdict->finding_count || s.verdict->trust.complete || !told) {
		story_print(s.verdict);
		fail_msg("expected a note on the counter, and no finding");
	}
	story_end(&s);
	free(events);
}

/* lives of two threads; the counts as given: after new, then before each operation */
static char *lives(const char *c0, const char *c1, const char *c2, const char *c3, const char *c4)
{
	_cleanup_free_ char *ok = NULL, *bad = NULL, *whole = NULL;

	assert_true(asprintf(&ok,
			     "tid=1\nnew obj $ main;make@w.c:5 %s flags=return\ntid=7\n"
			     "get obj $ loop;work@w.c:20 %s\nput obj $ loop;work@w.c:22 %s\ntid=8\n"
			     "get obj $ loop;work@w.c:20 %s\n",
			     c0, c1, c2, c1) > 0);
	assert_true(asprintf(&bad, "%stid=1\nput obj $ main;stop@w.c:40 %s\n", ok, c4) > 0);
	assert_true(asprintf(&whole, "%sput obj $ loop;work@w.c:22 %s\ntid=1\nput obj $ main;stop@w.c:40 %s\n", ok, c2,
			     c3) > 0);
	return story_join(story_loop(whole, 0, 20), story_loop(bad, 20, 3),
			  "thread 7 end\nthread 8 end\nhits\nexit 0\n");
}

TEST(true_counter_of_two_threads)
{
	char *events = lives("read=1", "read=1", "read=2", "read=1", "read=2");

	story_accuses(events, RT_LEAK, RT_ROLE_MISSING_PUT, "work", 3);
	free(events);
}

/*
 * Each reports its put behind it, and who is late reports what the other one has left: at nearly each object, neither
 * is what the step before should have made of it.
 */
TEST(true_counter_of_two_threads_that_meet)
{
	const char *meet = "tid=1\nnew obj $ main;make@w.c:5 read=1 flags=return\nget obj $ main;make@w.c:6 read=1\n"
			   "put obj $ main;make@w.c:8 read=1\ntid=7\nput obj $ loop;work@w.c:22 read=1\n";
	const char *alone = "tid=1\nnew obj $ main;make@w.c:5 read=1 flags=return\nget obj $ main;make@w.c:6 read=1\n"
			    "put obj $ main;make@w.c:8 read=2\ntid=7\nput obj $ loop;work@w.c:22 read=1\n";
	char *events = story_join(story_loop(meet, 0, 60), story_loop(alone, 60, 4), "thread 7 end\nhits\nexit 0\n");

	story_lives(events, 64, 0);
	free(events);
}

TEST(field_that_never_moves)
{
	disbelieved(lives("read=1", "read=1", "read=1", "read=1", "read=1"));
	disbelieved(lives("read=0", "read=0", "read=0", "read=0", "read=0"));
	disbelieved(lives("read=37", "read=37", "read=37", "read=37", "read=37"));
}

TEST(field_of_each_object)
{
	disbelieved(lives("read=$", "read=$", "read=$", "read=$", "read=$"));
}

TEST(counter_and_a_constant)
{
	disbelieved(lives("read=2", "read=2", "read=3", "read=2", "read=3"));
	disbelieved(lives("read=17", "read=17", "read=18", "read=17", "read=18"));
	disbelieved(lives("read=100001", "read=100001", "read=100002", "read=100001", "read=100002"));
	disbelieved(lives("read=0", "read=0", "read=1", "read=0", "read=1"));
}

/* a right counter tells of a get and a put that are not seen: in a few lives, and the others still prove the leak */
TEST(right_counter_that_jumps)
{
	char *events =
		story_join(story_loop("new obj $ main@j.c:5 read=1 flags=return\nget obj $ main;hidden@j.c:9 read=2\n"
				      "put obj $ main;hidden@j.c:11 read=3\nput obj $ main@j.c:7 read=1\n",
				      0, 6),
			   story_join(story_loop(OK_LIFE("read=1", "read=2", "read=3", "read=2", "read=1"), 6, 12),
				      story_loop(BAD_LIFE("read=1", "read=2", "read=3", "read=2"), 18, 4), ""),
			   "hits\nexit 0\n");

	story_accuses(events, RT_LEAK, RT_ROLE_MISSING_PUT, "parse_header", 4);
	free(events);
}

/* counts that are none at first are taken as not read; later ones prove the counter, and are believed again */
TEST(counter_proven_late)
{
	char *events =
		story_join(story_loop(OK_LIFE("read=9", "read=9", "read=9", "read=9", "read=9"), 0, 12),
			   story_join(story_loop(OK_LIFE("read=1", "read=2", "read=3", "read=2", "read=1"), 12, 60),
				      story_loop(BAD_LIFE("read=1", "read=2", "read=3", "read=2"), 72, 4), ""),
			   "hits\nexit 0\n");

	story_accuses(events, RT_LEAK, RT_ROLE_MISSING_PUT, "parse_header", 4);
	free(events);
}

/* constructors may give two references: lives that get to 0 prove it */
TEST(born_with_two)
{
	char *events = story_join(story_loop("new obj $ main;make@t.c:5 read=2 flags=return\n"
					     "put obj $ main;drop@t.c:9 read=2\nput obj $ main;drop@t.c:11 read=1\n",
					     0, 12),
				  story_loop("new obj $ main;make@t.c:5 read=2 flags=return\n"
					     "get obj $ main;look@t.c:20 read=2\n"
					     "put obj $ main;drop@t.c:9 read=3\nput obj $ main;drop@t.c:11 read=2\n"
					     "held $ none\n",
					     12, 1),
				  "mark census\nhits\nexit 0\n");

	story_accuses(events, RT_LEAK, RT_ROLE_MISSING_PUT, "look", 1);
	free(events);
}

/* a birth that is told after the life that it began leaves an object that nobody ever put */
TEST(birth_told_late)
{
	const char *life = "get obj $ main;use_it@b.c:8 read=1\nput obj $ main;use_it@b.c:9 read=2\n"
			   "put obj $ main@b.c:10 read=1\n";
	char *events = story_join(story_join(story_loop(life, 0, 1),
					     story_join(story_loop("new obj $ main@b.c:7 read=1 flags=return\n", 1, 12),
							story_loop(life, 1, 12), ""),
					     ""),
				  story_loop("new obj $ main@b.c:7 read=1 flags=return\nheld $ none\n", 0, 1),
				  "mark census\nhits\nexit 0\n");
	struct story s = story_run(events, NULL);

	if (s.verdict->finding_count || !s.verdict->suspect_count || s.verdict->trust.complete) {
		story_print(s.verdict);
		fail_msg("expected a suspicion");
	}
	story_end(&s);
	free(events);
}

/* the whole story: healthy lives, then one that is looked at while thread 7 is in its last operation */
static bool complete(const char *last, const char *look)
{
	char *events = story_join(story_loop("tid=7\nnew obj $ main;make@t.c:5 read=1 flags=return\n"
					     "get obj $ main;use@t.c:8 read=1\nput obj $ main;use@t.c:9 read=2\n"
					     "put obj $ main;drop@t.c:11 read=1\n",
					     0, 12),
				  story_loop("new obj $ main;make@t.c:5 read=1 flags=return\n"
					     "get obj $ main;use@t.c:8 read=1\n",
					     12, 1),
				  "");
	char *whole = story_join(events, story_loop(last, 12, 1), look);
	struct story s = story_run(whole, NULL);
	bool ret = s.verdict->trust.complete;

	story_end(&s);
	free(whole);
	return ret;
}

TEST(operation_that_is_under_way)
{
	const char *get = "get obj $ main;use@t.c:8 read=2\n", *put = "put obj $ main;use@t.c:9 read=2\n",
		   *other = "new obj 0x77000 main;make@t.c:5 read=1 flags=return\n"
			    "get obj 0x77000 main;use@t.c:8 read=1\n";

	/* counted, not counted yet */
	assert_true(complete(get, "tid=7\nmark inside\nfinal 0x1300 count=3\nmark census\nmark detach\nhits\n"));
	assert_true(complete(get, "tid=7\nmark inside\nfinal 0x1300 count=2\nmark census\nmark detach\nhits\n"));
	assert_true(complete(put, "tid=7\nmark inside\nfinal 0x1300 count=2\nmark census\nmark detach\nhits\n"));
	assert_true(complete(other, "tid=7\nmark inside\nfinal 0x1300 count=2\nmark census\nmark detach\nhits\n"));
	/* more than that; the wrong way; nobody, another thread, or at an earlier look; another object's operation */
	assert_false(complete(get, "tid=7\nmark inside\nfinal 0x1300 count=1\nmark census\nmark detach\nhits\n"));
	assert_false(complete(get, "tid=7\nmark inside\nfinal 0x1300 count=4\nmark census\nmark detach\nhits\n"));
	assert_false(complete(put, "tid=7\nmark inside\nfinal 0x1300 count=0\nmark census\nmark detach\nhits\n"));
	assert_false(complete(get, "final 0x1300 count=2\nmark census\nmark detach\nhits\n"));
	assert_false(complete(get, "tid=8\nmark inside\nfinal 0x1300 count=2\nmark census\nmark detach\nhits\n"));
	assert_false(complete(get, "tid=7\nmark inside\nmark census\nfinal 0x1300 count=2\nmark census\n"
				   "mark detach\nhits\n"));
	assert_false(complete(other, "tid=7\nmark inside\nfinal 0x1300 count=1\nmark census\nmark detach\nhits\n"));
}

TEST_MAIN();
