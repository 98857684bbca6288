/* SPDX-License-Identifier: GPL-2.0-only */
/* Leaks: who is named, and that what is kept on purpose stays silent. */
#include <stdio.h>

#include "lifetime.h"

#define HEALTHY \
	"new obj $ main@leak.c:38\n" \
	"get obj $ main;handle@leak.c:39 count=1\n" \
	"get obj $ main;handle@leak.c:40;parse_header@leak.c:29 count=2\n" \
	"put obj $ main;handle@leak.c:40;parse_header@leak.c:32 count=3\n" \
	"put obj $ main;handle@leak.c:42 count=2\n" \
	"put obj $ main@leak.c:43 count=1\n"
#define LEAKY \
	"new obj $ main@leak.c:38\n" \
	"get obj $ main;handle@leak.c:39 count=1\n" \
	"get obj $ main;handle@leak.c:40;parse_header@leak.c:29 count=2\n" \
	"put obj $ main;handle@leak.c:42 count=3\n" \
	"put obj $ main@leak.c:43 count=2\n"

static void leaks(const char *healthy, unsigned n, const char *leaky, unsigned l, const char *end, const char *function,
		  enum rt_role role)
{
	char *events = story_join(story_loop(healthy, 0, n), story_loop(leaky, n, l), end);

	story_accuses(events, RT_LEAK, role, function, l);
	free(events);
}

static void silent(const char *healthy, unsigned n, const char *kept, unsigned k, const char *end)
{
	char *events = story_join(story_loop(healthy, 0, n), story_loop(kept, n, k), end);

	story_silent(events);
	free(events);
}

/* All take through one helper and give back through another: who asked for it has forgotten, and neither of these. */
TEST(who_asked_a_helper_has_forgotten)
{
	static const char page[] = "type page start=0\n";
	char *own = story_loop("get page $ main;read_all@b.c:4;fetch@p.c:7 read=0\n"
			       "put page $ main;read_all@b.c:9;release@p.c:12 read=1\n",
			       0, 6);
	char *other = story_loop("get page $ main;write_all@b.c:24;fetch@p.c:7 read=0\n"
				 "put page $ main;write_all@b.c:29;release@p.c:12 read=1\n",
				 6, 6);
	char *lost = story_loop("get page $ main;copy_all@b.c:44;fetch@p.c:7 read=0\nheld $ none\n", 12, 3);
	char *events = story_join(own, other, "");

	events = story_join(events, lost, "mark census\nexit 0\n");
	own = malloc(strlen(page) + strlen(events) + 1);
	strcpy(own, page);
	strcat(own, events);
	story_accuses(own, RT_LEAK, RT_ROLE_MISSING_PUT, "copy_all", 3);
	free(own);
	free(events);
}

/*
 * What all use is there until the end, and each third request keeps a reference. No ledger holds all of that, but what
 * places took and gave back is counted all the same: ask() gives back what it takes, now and then later.
 */
TEST(what_all_use_piles_up)
{
	enum { REQUESTS = 3000 };
	static const char high[] = "sp=0x8000 cfa=100", deep[] = "sp=0x7f80 cfa=228,128";
	unsigned count = 1;
	size_t size;
	char *events;
	FILE *f = open_memstream(&events, &size);
	struct story s;

	assert_non_null(f);
	fprintf(f,
		"type conf start=1\npoint 1 conf new conf_new\npoint 2 conf get conf_get\npoint 3 conf put conf_put\n"
		"new conf 0x1000 main@m.c:5+0x5 via=:1 count=1 %s\n",
		high);
	for (unsigned i = 0; i < REQUESTS; i++) {
		fprintf(f, "get conf 0x1000 main@m.c:7+0x7;handle@h.c:11+0x101 via=:2 count=%u %s\n", count++, deep);
		if (i % 3)
			fprintf(f, "put conf 0x1000 main@m.c:7+0x7;handle@h.c:15+0x109 via=:3 count=%u %s\n", count--,
				deep);
		if (i % 10 == 0)
			fprintf(f, "get conf 0x1000 main@m.c:8+0x8;ask@a.c:3+0x201 via=:2 count=%u %s\n", count++,
				deep);
		if (i % 10 == 5)
			fprintf(f, "put conf 0x1000 main@m.c:9+0x9;answer@a.c:9+0x301 via=:3 count=%u %s\n", count--,
				deep);
	}
	for (unsigned i = 0; i < 4; i++)
		fprintf(f,
			"new conf 0x%u000 main@m.c:5+0x5 via=:1 count=1 %s\n"
			"get conf 0x%u000 main@m.c:8+0x8;ask@a.c:3+0x201 via=:2 count=1 %s\n"
			"put conf 0x%u000 main@m.c:9+0x9;answer@a.c:9+0x301 via=:3 count=2 %s\n"
			"put conf 0x%u000 main@m.c:20+0x20 via=:3 count=1 %s\n",
			i + 2, high, i + 2, deep, i + 2, deep, i + 2, high);
	fprintf(f, "held 0x1000 global 1\nfinal 0x1000 count=%u\nmark census\nexit 0\n", count);
	fclose(f);
	story_accuses(events, RT_LEAK, RT_ROLE_MISSING_PUT, "handle", 1);
	s = story_run(events, NULL);
	assert_int_equal(s.verdict->findings[0].references, REQUESTS / 3);
	story_end(&s);
	free(events);
}

/* Where references pile up from more places than can be matched, that is said: no answer is complete that does not
 * know. */
TEST(what_piles_up_from_everywhere)
{
	enum { PLACES = 40, TIMES = 30 };
	size_t size;
	char *events;
	FILE *f = open_memstream(&events, &size);
	struct story s;

	assert_non_null(f);
	fprintf(f, "type conf start=1\nnew conf 0x1000 main@m.c:5+0x5 count=1\n");
	for (unsigned i = 0; i < PLACES * TIMES; i++)
		fprintf(f, "get conf 0x1000 main@m.c:7+0x7;by%u@h.c:11+0x%x count=%u\n", i % PLACES,
			256 + 8 * (i % PLACES), i + 1);
	fprintf(f, "held 0x1000 global 1\nfinal 0x1000 count=%u\nmark census\nexit 0\n", PLACES * TIMES + 1);
	fclose(f);
	s = story_run(events, NULL);
	assert_int_equal(s.verdict->finding_count, 0);
	assert_false(s.verdict->trust.complete);
	assert_int_equal(s.verdict->alive_count, 1);
	assert_string_equal(s.verdict->alive[0].reason, "held, by how many is not known");
	story_end(&s);
	free(events);
}

/*
 * A queue between two threads, so that hundreds of references to one object are open at a time: what the ledger loses
 * of them goes as it does in other objects, and the one that another place has lost is left.
 */
TEST(one_is_lost_beside_a_long_queue)
{
	enum { SENT = 3000, QUEUED = 200 };
	static const char high[] = "sp=0x8000 cfa=100", deep[] = "sp=0x7f80 cfa=228,128",
			  other[] = "sp=0x8f80 cfa=228,128 tid=2";
	unsigned count = 1, queued = 0;
	size_t size;
	char *events;
	FILE *f = open_memstream(&events, &size);

	assert_non_null(f);
	fprintf(f, "type broker start=1\n");
	for (unsigned i = 0; i < 6; i++)
		fprintf(f,
			"new broker 0x%u000 main@m.c:5+0x5 count=1 %s\n"
			"get broker 0x%u000 main@m.c:7+0x7;send@q.c:3+0x103 count=1 %s\n"
			"put broker 0x%u000 thread@t.c:4+0x404;receive@q.c:9+0x509 count=2 %s\n"
			"put broker 0x%u000 main@m.c:9+0x9 count=1 %s\n",
			i + 2, high, i + 2, deep, i + 2, other, i + 2, high);
	fprintf(f, "new broker 0x1000 main@m.c:5+0x5 count=1 %s\n", high);
	for (unsigned i = 0; i < SENT; i++) {
		fprintf(f, "get broker 0x1000 main@m.c:7+0x7;send@q.c:3+0x103 count=%u %s\n", count++, deep);
		queued++;
		while (queued > QUEUED / 2 && (queued == QUEUED || count % 3 == 0 || i + 1 == SENT)) {
			fprintf(f, "put broker 0x1000 thread@t.c:4+0x404;receive@q.c:9+0x509 count=%u %s\n", count--,
				other);
			queued--;
		}
		if (i == SENT / 3)
			fprintf(f, "get broker 0x1000 main@m.c:8+0x8;lose@l.c:3+0x603 count=%u %s\n", count++, deep);
	}
	for (; queued; queued--)
		fprintf(f, "put broker 0x1000 thread@t.c:4+0x404;receive@q.c:9+0x509 count=%u %s\n", count--, other);
	fprintf(f,
		"put broker 0x1000 main@m.c:9+0x9 count=%u %s\nheld 0x1000 none\nfinal 0x1000 count=1\nmark census\n"
		"exit 0\n",
		count, high);
	fclose(f);
	story_accuses(events, RT_LEAK, RT_ROLE_MISSING_PUT, "lose", 1);
	free(events);
}

TEST(missing_put_with_twins)
{
	leaks(HEALTHY, 80, LEAKY, 20, "exit 0\n", "parse_header", RT_ROLE_MISSING_PUT);
}

TEST(missing_put_with_twins_names_the_evidence)
{
	char *events = story_join(story_loop(HEALTHY, 0, 80), story_loop(LEAKY, 80, 20), "hits\nexit 0\n");
	struct story s = story_run(events, NULL);
	const struct rt_finding *f = s.verdict->findings;
	bool seen = false;

	assert_int_equal(s.verdict->finding_count, 1);
	assert_int_equal(f->guilty.line, 29);
	assert_string_equal(f->guilty.file, "leak.c");
	assert_string_equal(f->taken_by.function, "parse_header");
	assert_int_equal(f->taken_count, 100);
	assert_int_equal(f->taken_closed, 80);
	assert_int_equal(f->of, 100);
	assert_int_equal(f->references, 20);
	assert_int_equal(f->first_object, 81);
	assert_true(f->confidence > 0.9);
	assert_int_equal(strlen(f->id), 8);
	assert_int_equal(f->history_count, 5);
	assert_int_equal(f->history[4].count_after, 1);
	assert_string_equal(f->history[1].api, "obj_get");
	assert_int_equal(f->stack_count, 1);
	assert_int_equal(f->stacks[0].count, 3);
	assert_string_equal(f->stacks[0].frames[0].function, "parse_header");
	for (size_t i = 0; i < f->balance_count; i++) {
		const struct rt_balance *b = &f->balance[i];

		if (strcmp(b->site.function, "parse_header")) {
			assert_int_equal(b->left, 0);
			continue;
		}
		seen = true;
		assert_true(b->guilty);
		assert_int_equal(b->gets, 100);
		assert_int_equal(b->puts, 80);
		assert_int_equal(b->left, 20);
		assert_int_equal(b->lines[0], 29);
		assert_int_equal(b->lines[1], 32);
	}
	assert_true(seen);
	assert_true(s.verdict->trust.complete);
	story_end(&s);
	free(events);
}

TEST(healthy_program)
{
	char *events = story_join(story_loop(HEALTHY, 0, 50), NULL, "hits\nexit 0\n");
	struct story s = story_run(events, NULL);

	assert_int_equal(s.verdict->finding_count, 0);
	assert_int_equal(s.verdict->suspect_count, 0);
	assert_true(s.verdict->trust.complete);
	assert_int_equal(s.verdict->types[0].news, 50);
	assert_int_equal(s.verdict->types[0].live, 0);
	story_end(&s);
	free(events);
}

TEST(missing_put_of_the_only_object)
{
	leaks("", 0, LEAKY, 1, "final 0x1000 count=1\nheld 0x1000 none\nmark census\nexit 0\n", "parse_header",
	      RT_ROLE_MISSING_PUT);
}

TEST(error_path)
{
	leaks("new obj $ main;serve@s.c:3 count=0\n"
	      "get obj $ main;serve@s.c:4;check@s.c:10 count=1\n"
	      "put obj $ main;serve@s.c:4;check@s.c:19 count=2\n"
	      "put obj $ main;serve@s.c:7 count=1\n",
	      10,
	      "new obj $ main;serve@s.c:3\n"
	      "get obj $ main;serve@s.c:4;check@s.c:10 count=1\n"
	      "use obj $ main;serve@s.c:4;check@s.c:12;log_error@s.c:40\n"
	      "put obj $ main;serve@s.c:7 count=2\n",
	      3, "exit 0\n", "check", RT_ROLE_MISSING_PUT);
}

TEST(leak_in_a_thread)
{
	const char *healthy = "tid=1\nnew obj $ main@t.c:5\n"
			      "tid=7\nget obj $ thread_main;work@t.c:20 count=1\n"
			      "put obj $ thread_main;work@t.c:25 count=2\n"
			      "tid=1\nput obj $ main@t.c:9 count=1\n";
	const char *leaky = "tid=1\nnew obj $ main@t.c:5\n"
			    "tid=7\nget obj $ thread_main;work@t.c:20 count=1\n"
			    "tid=1\nput obj $ main@t.c:9 count=2\n";

	leaks(healthy, 10, leaky, 4, "thread 7 end\nexit 0\n", "work", RT_ROLE_MISSING_PUT);
}

#define HANDED \
	"tid=1\nnew obj $ main;produce@q.c:5\n" \
	"tid=7\nget obj $ thread_main;consume@q.c:20 count=1\n" \
	"put obj $ thread_main;consume@q.c:25 count=2\n" \
	"put obj $ thread_main;consume@q.c:26 count=1\n"

TEST(handed_over_healthy)
{
	silent(HANDED, 20, "", 0, "exit 0\n");
}

TEST(handed_over_and_still_queued)
{
	silent(HANDED, 20, "tid=1\nnew obj $ main;produce@q.c:5\n", 5, "exit 0\n");
}

TEST(handed_over_consumer_leaks)
{
	char *leaky = story_join(story_loop(HANDED, 0, 10),
				 story_loop("tid=1\nnew obj $ main;produce@q.c:5\n"
					    "tid=7\nget obj $ thread_main;consume@q.c:20 count=1\n"
					    "put obj $ thread_main;consume@q.c:22 count=2\n",
					    10, 4),
				 "");
	char *events = story_join(leaky, story_loop(HANDED, 14, 10), "thread 7 end\nexit 0\n");

	story_accuses(events, RT_LEAK, RT_ROLE_MISSING_PUT, "consume", 4);
	free(events);
}

TEST(extra_get)
{
	leaks("new obj $ main@x.c:5\n"
	      "get obj $ main;attach@x.c:20 count=1\n"
	      "put obj $ main;attach@x.c:29 count=2\n"
	      "put obj $ main@x.c:9 count=1\n",
	      10,
	      "new obj $ main@x.c:5\n"
	      "get obj $ main;attach@x.c:20 count=1\n"
	      "get obj $ main;attach@x.c:21 count=2\n"
	      "put obj $ main;attach@x.c:29 count=3\n"
	      "put obj $ main@x.c:9 count=2\n",
	      4, "exit 0\n", "attach", RT_ROLE_EXTRA_GET);
}

TEST(all_leak_with_census)
{
	leaks("", 0,
	      "new obj $ main@x.c:5\n"
	      "get obj $ main;attach@x.c:20 count=1\n"
	      "put obj $ main@x.c:9 count=2\n"
	      "held $ none\n",
	      4, "mark census\nexit 0\n", "attach", RT_ROLE_MISSING_PUT);
}

TEST(all_leak_without_census_is_a_suspect)
{
	silent("", 0,
	       "new obj $ main@x.c:5\n"
	       "get obj $ main;attach@x.c:20 count=1\n"
	       "put obj $ main@x.c:9 count=2\n",
	       4, "exit 0\n");
}

TEST(cache_without_census)
{
	/* every object enters the cache and stays */
	silent("", 0,
	       "new obj $ main;load@c.c:5\n"
	       "get obj $ main;load@c.c:6;cache_add@c.c:20 count=1\n"
	       "put obj $ main;load@c.c:7 count=2\n",
	       30, "exit 0\n");
	/* some enter it */
	silent("new obj $ main;load@c.c:5\nput obj $ main;load@c.c:7 count=1\n", 20,
	       "new obj $ main;load@c.c:5\n"
	       "get obj $ main;load@c.c:6;cache_add@c.c:20 count=1\n"
	       "put obj $ main;load@c.c:7 count=2\n",
	       30, "exit 0\n");
}

TEST(cache_with_census)
{
	const char *kept = "new obj $ main;load@c.c:5\n"
			   "get obj $ main;load@c.c:6;remember_it@c.c:20 count=1\n"
			   "put obj $ main;load@c.c:7 count=2\n"
			   "final $ count=1\nheld $ heap 1\n";
	char *events = story_join(story_loop("new obj $ main;load@c.c:5\nput obj $ main;load@c.c:7 count=1\n", 0, 20),
				  story_loop(kept, 20, 30), "mark census\nexit 0\n");
	struct story s = story_run(events, NULL);

	assert_int_equal(s.verdict->finding_count, 0);
	assert_int_equal(s.verdict->suspect_count, 0);
	assert_int_equal(s.verdict->alive_count, 1);
	assert_string_equal(s.verdict->alive[0].reason, "cache");
	assert_int_equal(s.verdict->alive[0].objects, 30);
	story_end(&s);
	free(events);
}

TEST(reachable_but_twins_close_it)
{
	/* a pointer is left in a global, and yet the function always gives its reference back */
	leaks(HEALTHY, 20, LEAKY "final $ count=1\nheld $ global 1\n", 5, "mark census\nexit 0\n", "parse_header",
	      RT_ROLE_MISSING_PUT);
}

TEST(kept_where_the_insertion_succeeds)
{
	/* the reference comes back only when the table has the object already */
	const char *failed =
		"new obj $ main@i.c:5\nget obj $ main;share@i.c:9 count=1\nput obj $ main;share@i.c:12 count=2\n"
		"put obj $ main@i.c:7 count=1\n";
	const char *kept = "new obj $ main@i.c:5\nget obj $ main;share@i.c:9 count=1\nput obj $ main@i.c:7 count=2\n";

	silent(failed, 6, kept, 20, "exit 0\n");
	silent(failed, 6,
	       "new obj $ main@i.c:5\nget obj $ main;share@i.c:9 count=1\nput obj $ main@i.c:7 count=2\n"
	       "held $ heap 1\n",
	       20, "mark census\nexit 0\n");
}

TEST(stale_pointers_on_the_stack)
{
	char *end = story_join(story_loop("held $ none\n", 20, 4), NULL, "held 0x1600 stack 2\nmark census\nexit 0\n");

	leaks(HEALTHY, 20, LEAKY, 5, end, "parse_header", RT_ROLE_MISSING_PUT);
	leaks("", 20, LEAKY, 5, end, "parse_header", RT_ROLE_MISSING_PUT);
	free(end);
}

TEST(child_of_a_leaked_root)
{
	char *events =
		story_join(story_loop("new obj $ main;load@c.c:5\nput obj $ main;load@c.c:7 count=1\n", 0, 5), NULL,
			   "new obj 0x10 main;parse@c.c:5\nget obj 0x10 main;parse@c.c:6 count=1\nput obj 0x10 "
			   "main;use_it@c.c:8 count=2\n"
			   "new obj 0x20 main;parse@c.c:9;child_make@c.c:50\n"
			   "held 0x10 none\nheld 0x20 object 1 holder=0x10\nmark census\nexit 0\n");
	struct story s = story_run(events, NULL);

	assert_int_equal(s.verdict->finding_count, 1);
	assert_string_equal(s.verdict->findings[0].guilty.function, "parse");
	assert_int_equal(s.verdict->findings[0].objects, 1);
	assert_int_equal(s.verdict->alive_count, 1);
	story_end(&s);
	free(events);
}

TEST(circle_of_objects)
{
	leaks("", 0,
	      "new obj $ main;parse@c.c:5\n"
	      "held $ object 1 holder=$\n",
	      1, "mark census\nexit 0\n", "parse", RT_ROLE_MISSING_PUT);
}

TEST(returned_reference_belongs_to_the_caller)
{
	leaks("new obj $ main;serve@s.c:3;make_item@s.c:40->obj\n"
	      "put obj $ main;serve@s.c:7 count=1\n",
	      10, "new obj $ main;serve@s.c:3;make_item@s.c:40->obj\n", 3, "use obj 0x1 main;idle@s.c:1\nexit 0\n",
	      "serve", RT_ROLE_MISSING_PUT);
}

TEST(recursion_and_loops_have_their_own_activations)
{
	/* two turns of one loop: the get of the first has no put, the second turn closes its own */
	char *events = story_join(story_loop(HEALTHY, 0, 10), NULL,
				  "new obj 0x10 main;walk@r.c:1\n"
				  "get obj 0x10 main;walk@r.c:2;walk@r.c:2;leaf@r.c:9 count=1\n"
				  "put obj 0x10 main;walk@r.c:2;walk@r.c:2;leaf@r.c:11 count=2\n"
				  "get obj 0x10 main;walk@r.c:2;leaf@r.c:9 count=1\n"
				  "put obj 0x10 main;walk@r.c:2;leaf@r.c:11 count=2\n"
				  "put obj 0x10 main;walk@r.c:3 count=1\n"
				  "hits\nexit 0\n");
	struct story s = story_run(events, NULL);

	assert_int_equal(s.verdict->finding_count, 0);
	assert_true(s.verdict->trust.complete);
	story_end(&s);
	free(events);
}

TEST(swept_away_at_the_end)
{
	/* the shutdown frees whatever is left, leaked references or not */
	leaks(HEALTHY, 20, LEAKY "free obj $ main;sweep@leak.c:60\n", 5, "exit 0\n", "parse_header",
	      RT_ROLE_MISSING_PUT);
}

TEST(made_at_the_start_and_kept)
{
	char *events = story_join(story_loop("new obj $ main;init_table@s.c:9\n", 0, 10), story_loop(HEALTHY, 10, 20),
				  "exit 0\n");

	story_silent(events);
	free(events);
}

TEST(stacks_that_are_cut)
{
	leaks("new obj $ ...;loop;turn;main_part@leak.c:38\n"
	      "get obj $ ...;turn;main_part@leak.c:40;parse_header@leak.c:29 count=1\n"
	      "put obj $ ...;turn;main_part@leak.c:40;parse_header@leak.c:32 count=2\n"
	      "put obj $ ...;loop;turn;main_part@leak.c:43 count=1\n",
	      20,
	      "new obj $ ...;loop;turn;main_part@leak.c:38\n"
	      "get obj $ ...;turn;main_part@leak.c:40;parse_header@leak.c:29 count=1\n"
	      "put obj $ ...;loop;turn;main_part@leak.c:43 count=2\n",
	      5, "exit 0\n", "parse_header", RT_ROLE_MISSING_PUT);
}

TEST(killed_process_leaves_no_findings)
{
	silent("new obj $ main@k.c:1\nput obj $ main@k.c:2 count=1\n", 5, "new obj $ main@k.c:1\n", 3,
	       "exit signal=9\n");
	silent("", 0, LEAKY, 3, "exit signal=11\n");
}

TEST(exec_ends_the_image)
{
	silent("", 0, "new obj $ main@k.c:1\n", 3,
	       "exec\nnew obj 0x9000 main@k.c:1\nput obj 0x9000 main@k.c:3\nexit 0\n");
}

/* the number of a process that has ended is given to another one: they are two */
TEST(processes_of_one_number)
{
	char *first = story_join(story_loop(HEALTHY, 1, 20), story_loop(LEAKY, 21, 10), "exit 0\n");
	char *second = story_join(story_loop(HEALTHY, 1, 20), story_loop(LEAKY, 21, 10), "exit 0\n");
	char *events =
		story_join(story_join(strdup("mark census pid=70\n"), first, "mark census pid=70/1\n"), second, "");
	struct story s = story_run(events, NULL);

	assert_int_equal(s.verdict->finding_count, 1);
	assert_int_equal(s.verdict->findings[0].objects, 20);
	assert_int_equal(s.verdict->findings[0].pid_count, 2);
	assert_int_equal(RT_PID_OF(s.verdict->findings[0].pids[0]), 70);
	assert_int_equal(RT_PID_OF(s.verdict->findings[0].pids[1]), 70);
	story_end(&s);
	free(events);
}

TEST(unarmed_function_and_the_counter)
{
	const char *unarmed = "unarmed obj_find obj get inlined at 3 places\nmark census\nexit 0\n";

	/* the counter at the end agrees: nothing was missed on these objects */
	leaks(HEALTHY, 20, LEAKY "final $ count=1\nheld $ none\n", 4, unarmed, "parse_header", RT_ROLE_MISSING_PUT);
	silent(HEALTHY, 20, LEAKY, 4, unarmed);
	/* who makes objects does not change their counts: other functions are as guilty as before */
	leaks(HEALTHY, 20, LEAKY, 4, "unarmed obj_clone obj new inlined at 3 places\nexit 0\n", "parse_header",
	      RT_ROLE_MISSING_PUT);
}

TEST(type_filter)
{
	static const char *const only[] = { "other", NULL };
	struct rt_lifetime_options options = { .types = only };
	char *events = story_join(story_loop(HEALTHY, 0, 80), story_loop(LEAKY, 80, 20), "exit 0\n");
	struct story s = story_run(events, &options);

	assert_int_equal(s.verdict->finding_count, 0);
	story_end(&s);
	free(events);
}

TEST(snapshot_then_more)
{
	char *events = story_join(story_loop(HEALTHY, 0, 8), story_loop(LEAKY, 8, 2), "exit 0\n");
	struct story s = story_run(events, NULL);
	size_t before = s.verdict->finding_count;

	assert_ok(rt_lifetime_verdict(s.lifetime, &s.verdict));
	assert_int_equal(s.verdict->finding_count, before);
	assert_int_equal(s.verdict->findings[0].objects, 2);
	story_end(&s);
	free(events);
}

/*
 * An engine may tell an inlined place by a stack that it knows from a return to just there, as by places they are one.
 * The call before that place is over, all the same: nobody jumped from there.
 */
TEST(stored_right_behind_the_call)
{
	static const char events[] =
		"type backend start=1\n"
		"point 1 backend new backend_open flags=return entry=0x100\n"
		"point 2 backend move open_module+0x2c stored flags=hidden,inline entry=0x22c\n"
		"point 3 backend move free_module+0x40 block flags=hidden,inline entry=0x340\n"
		"frame backend_open@b.c:3+0x100 module=/m.so entry=0x100\n"
		"frame open_module@m.c:31->int+0x22c module=/m.so entry=0x200 calls=backend_open@b.c:3+0x100\n"
		"new backend 0x1000 main;get_module@c.c:10;open_module@m.c:31->int+0x22c via=:1 flags=return sp=0x6e00 "
		"cfa=256,64,16\n"
		"move backend 0x1000 main;get_module@c.c:10;open_module@m.c:31->int+0x22c via=:2 slot=0x9000 "
		"flags=hidden,inline sp=0x6e00 cfa=256,64,16\n"
		"move backend 0x1000 main;end_modules@c.c:20;free_module@m.c:50 via=:3 slot=0x9000 flags=hidden,inline "
		"sp=0x6e80 cfa=128,32,16\n"
		"held 0x1000 none\nfinal 0x1000 count=1\nmark census\nexit 0\n";
	const struct rt_wire_head *record;
	struct story s = { 0 };

	assert_ok(rt_text_create(events, strlen(events), "story", &s.text));
	assert_ok(rt_lifetime_create(NULL, rt_text_namer(s.text), &s.lifetime));
	for (;;) {
		_cleanup_free_ struct rt_wire_stack *stack = NULL;

		assert_ok(rt_text_source(s.text)->next(rt_text_source(s.text), &record));
		if (!record)
			break;
		if (record->kind == RT_WIRE_STACK) {
			stack = memcpy(malloc(record->size), record, record->size);
			stack->frame[0].flags = 0;
		}
		assert_ok(rt_lifetime_record(s.lifetime, stack ? &stack->head : record));
	}
	assert_ok(rt_lifetime_verdict(s.lifetime, &s.verdict));
	assert_int_equal(s.verdict->finding_count, 1);
	assert_string_equal(s.verdict->findings[0].guilty.function, "free_module");
	story_end(&s);
}

TEST_MAIN();
