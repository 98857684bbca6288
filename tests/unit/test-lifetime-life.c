/* SPDX-License-Identifier: GPL-2.0-only */
/* One life: birth, nesting, handing over, death, reuse, and what was not seen. */
#include <malloc.h>
#include <time.h>

#include "lifetime.h"

TEST(start_at_0)
{
	story_lives("type obj start=0\n"
		    "new obj 0x10 main@a.c:1\nget obj 0x10 main@a.c:2 count=0\nget obj 0x10 main;f@a.c:8 count=1\n"
		    "put obj 0x10 main;f@a.c:9 count=2\nput obj 0x10 main@a.c:4 count=1\nexit 0\n",
		    1, 0);
}

/* Nobody says that counts start at 0, and no constructor is known: pages that wait in a pool without a reference. */
TEST(pools_whose_objects_wait_at_0)
{
	char *events = story_loop("get obj $ main;fetch@a.c:2 read=0\nput obj $ main;drop@a.c:4 read=1\n"
				  "get obj $ main;fetch@a.c:2 read=0\nget obj $ main;hold@a.c:7 read=1\n"
				  "put obj $ main;drop@a.c:4 read=2\nput obj $ main;drop@a.c:4 read=1\n",
				  0, 3);

	events = story_join(events, NULL, "exit 0\n");
	story_lives(events, 6, 0);
	free(events);
}

TEST(start_is_learnt)
{
	char *turns =
		story_loop("new obj $ main@a.c:1\nget obj $ main@a.c:2 count=0\nput obj $ main@a.c:4 count=1\n", 0, 5);
	char *events = story_join(turns, NULL, "exit 0\n");

	story_lives(events, 5, 0);
	free(events);
}

TEST(constructors_that_give_different_counts)
{
	char *turns = story_loop("new obj $ main@a.c:1 read=1 flags=return\nput obj $ main@a.c:4 read=1\n", 0, 5);
	char *pairs = story_loop("new obj $ main@a.c:7 via=obj_new_pair read=2 flags=return\n"
				 "put obj $ main@a.c:8 read=2\nput obj $ main@a.c:9 read=1\n",
				 5, 5);
	char *events = story_join(turns, pairs, "exit 0\n");

	story_lives(events, 10, 0);
	free(events);
}

TEST(constructor_in_constructor)
{
	const char *one = "new obj $ main;make@j.c:3;obj_new_array@j.c:9 via=obj_alloc flags=return\n"
			  "new obj $ main;make@j.c:3 via=obj_new_array flags=return\n";
	char *events = story_join(story_loop(one, 0, 4), NULL, "");
	struct story s;
	bool seen = false;

	events = story_join(events, story_loop("put obj $ main;make@j.c:5 count=1\n", 0, 3),
			    "held 0x10c0 none\nmark census\nexit 0\n");
	s = story_run(events, NULL);
	assert_int_equal(s.verdict->types[0].incarnations, 4);
	assert_int_equal(s.verdict->finding_count, 1);
	assert_string_equal(s.verdict->findings[0].guilty.function, "make");
	for (size_t i = 0; i < s.verdict->site_count; i++)
		seen |= !strcmp(s.verdict->sites[i].api, "obj_new_array");
	assert_true(seen);
	story_end(&s);
	free(events);
}

TEST(gets_inside_the_constructor)
{
	story_lives("type obj start=1\n"
		    "get obj 0x10 main;make@j.c:3;obj_new@j.c:9;list_add@j.c:50 count=1\n"
		    "new obj 0x10 main;make@j.c:3 via=obj_new flags=return\n"
		    "put obj 0x10 main;list_del@j.c:60 count=2\n"
		    "put obj 0x10 main;make@j.c:8 count=1\nexit 0\n",
		    1, 0);
}

TEST(wrapper_put_is_one_put)
{
	story_lives(
		"new obj 0x10 main@a.c:1\nget obj 0x10 main@a.c:2 count=1\n"
		"put obj 0x10 main@a.c:4 via=obj_release count=2\nput obj 0x10 main@a.c:4;obj_release@o.c:8 count=2\n"
		"put obj 0x10 main@a.c:5 via=obj_release count=1\nput obj 0x10 main@a.c:5;obj_release@o.c:8 "
		"count=1\nexit 0\n",
		1, 0);
	/* and without a counter */
	story_lives("type obj start=1\nnew obj 0x10 main@a.c:1\nget obj 0x10 main@a.c:2\n"
		    "put obj 0x10 main@a.c:4 via=obj_release\nput obj 0x10 main@a.c:4;obj_release@o.c:8\n"
		    "put obj 0x10 main@a.c:5 via=obj_release\nput obj 0x10 main@a.c:5;obj_release@o.c:8\nexit 0\n",
		    1, 0);
}

TEST(hidden_find_counts_once)
{
	char *one = story_loop("new obj $ main@a.c:1\n"
			       "get obj $ main;look@a.c:5;obj_find@t.c:9 count=1\n"
			       "find obj $ main;look@a.c:5 via=obj_find read=2\n"
			       "put obj $ main;look@a.c:8 count=2\n"
			       "put obj $ main@a.c:3 count=1\n",
			       0, 6);
	char *leak = story_loop("new obj $ main@a.c:1\n"
				"get obj $ main;look@a.c:5;obj_find@t.c:9 count=1\n"
				"find obj $ main;look@a.c:5 via=obj_find read=2\n"
				"put obj $ main@a.c:3 count=2\n",
				6, 2);
	char *healthy = strdup(one), *events;

	healthy = story_join(healthy, NULL, "exit 0\n");
	story_lives(healthy, 6, 0);
	free(healthy);
	events = story_join(one, leak, "exit 0\n");
	story_accuses(events, RT_LEAK, RT_ROLE_MISSING_PUT, "look", 2);
	free(events);
}

TEST(hidden_find_without_a_probed_get)
{
	story_lives("type obj start=1\nnew obj 0x10 main@a.c:1\n"
		    "find obj 0x10 main;look@a.c:5 via=obj_find read=2\n"
		    "put obj 0x10 main;look@a.c:8 count=2\nput obj 0x10 main@a.c:3 count=1\nexit 0\n",
		    1, 0);
	/* this one hands out a bare pointer: the counter says so */
	story_lives("type obj start=1\nnew obj 0x10 main@a.c:1\n"
		    "find obj 0x10 main;look@a.c:5 via=obj_find read=1\n"
		    "put obj 0x10 main@a.c:3 count=1\nexit 0\n",
		    1, 0);
}

TEST(slots_pair)
{
	char *events =
		story_join(story_loop("new obj $ main@a.c:1\nget obj $ main;open_it@a.c:5 slot=0x77 count=1\n"
				      "put obj $ main;other@a.c:9 slot=0x77 count=2\nput obj $ main@a.c:3 count=1\n",
				      0, 6),
			   story_loop("new obj $ main@a.c:1\nget obj $ main;open_it@a.c:5 slot=0x78 count=1\n"
				      "put obj $ main@a.c:3 count=2\nheld $ none\n",
				      6, 1),
			   "mark census\nexit 0\n");

	story_accuses(events, RT_LEAK, RT_ROLE_MISSING_PUT, "open_it", 1);
	free(events);
}

TEST(swap_drops_what_the_slot_held)
{
	story_lives("type obj start=1\n"
		    "new obj 0x10 main@a.c:1\nnew obj 0x20 main@a.c:2\n"
		    "swap obj 0x10 main@a.c:3 slot=0x99\nswap obj 0x20 main@a.c:4 slot=0x99\n"
		    "swap obj 0 main@a.c:5 slot=0x99\n"
		    "put obj 0x10 main@a.c:6\nput obj 0x20 main@a.c:7\nexit 0\n",
		    2, 0);
}

/* nobody said who makes them: they are the program's all the same, and the answer says what it lacks */
TEST(made_unseen_and_kept)
{
	static const char events[] = "type obj\nget obj 0x10 main;f@a.c:3 read=1\nput obj 0x10 main;f@a.c:4 read=2\n"
				     "hits\nexit 0\n";
	struct story s = story_run(events, NULL);

	assert_int_equal(s.verdict->finding_count, 0);
	assert_false(s.verdict->trust.complete);
	assert_int_equal(s.verdict->trust.note_count, 1);
	assert_non_null(strstr(s.verdict->trust.notes[0], "1 object of type obj"));
	assert_string_equal(s.verdict->alive[0].reason, "creation not seen");
	story_end(&s);
}

/* where reftrace came late, nobody could have seen it */
TEST(made_before_the_attach)
{
	struct story s = story_run("type obj\nmark attach\nget obj 0x10 main;f@a.c:3 read=1\n"
				   "put obj 0x10 main;f@a.c:4 read=2\nhits\nexit 0\n",
				   NULL);

	assert_true(s.verdict->trust.complete);
	assert_string_equal(s.verdict->alive[0].reason, "born before attach");
	story_end(&s);
}

static bool wants_all(void *arg, const char *type, uint64_t serial, uint64_t object)
{
	(void)arg;
	(void)type;
	(void)serial;
	(void)object;
	return true;
}

/* a later file of several says what was there before it as an attach would; its objects are older than the file */
TEST(made_before_the_file)
{
	static const char events[] = "type obj\nmark attach\nget obj 0x10 main;f@a.c:3 read=1\n"
				     "put obj 0x10 main;f@a.c:4 read=2\nhits\nexit 0\n";
	const union {
		struct rt_wire_part part;
		uint8_t bytes[sizeof(struct rt_wire_part) + 8]; /* and an empty text */
	} begin = { .part = { .head = { .size = sizeof(begin), .kind = RT_WIRE_PART },
			      .recording = 7,
			      .number = 2,
			      .where = RT_PART_BEGIN } };
	const struct rt_watch watch = { .wants = wants_all };
	const struct rt_lifetime_options options = { .watch = &watch };
	struct story s = story_begun(&begin.part.head, events, &options);

	assert_int_equal(s.verdict->watched_count, 1);
	assert_true(s.verdict->watched[0].attached && s.verdict->watched[0].earlier);
	assert_string_equal(s.verdict->alive[0].reason, "born in an earlier file");
	story_end(&s);
	s = story_run(events, &options);
	assert_true(s.verdict->watched[0].attached && !s.verdict->watched[0].earlier);
	story_end(&s);
}

TEST(floating_and_sink)
{
	story_lives("type obj floating start=1\n"
		    "new obj 0x10 main@a.c:1\nsink obj 0x10 main;box_add@a.c:5 count=1\n"
		    "sink obj 0x10 main;keep@a.c:9 count=1\nput obj 0x10 main;keep@a.c:10 count=2\n"
		    "put obj 0x10 main;box_remove@a.c:7 count=1\nexit 0\n",
		    1, 0);
}

/* a sink that finds nothing floating calls the get: one reference, told twice */
TEST(sink_that_calls_the_get)
{
	story_lives("type obj floating start=1\n"
		    "new obj 0x10 main@a.c:1\nsink obj 0x10 main@a.c:2 count=1\n"
		    "sink obj 0x10 main;keep@a.c:9 count=1\nget obj 0x10 main;keep@a.c:9;obj_sink@o.c:5 count=1\n"
		    "put obj 0x10 main;keep@a.c:10 count=2\nput obj 0x10 main@a.c:7 count=1\nexit 0\n",
		    1, 0);
	/* one that always takes, and gives back what floated */
	story_lives("type obj start=1\nnew obj 0x10 main@a.c:1\n"
		    "sink obj 0x10 main@a.c:2 count=1\nget obj 0x10 main@a.c:2;obj_sink@o.c:5 count=1\n"
		    "put obj 0x10 main@a.c:2;obj_sink@o.c:7 count=2\nput obj 0x10 main@a.c:7 count=1\nexit 0\n",
		    1, 0);
	/* the get behind the sink is one more */
	story_lives(
		"type obj start=1\nnew obj 0x10 main@a.c:1\nsink obj 0x10 main@a.c:2 count=1\n"
		"get obj 0x10 main@a.c:3 count=2\nput obj 0x10 main@a.c:4 count=3\nput obj 0x10 main@a.c:5 count=2\n"
		"put obj 0x10 main@a.c:6 count=1\nexit 0\n",
		1, 0);
}

/* what the last put does on its way: a dispose that takes the object once more, with its frames or without */
TEST(last_put_that_takes_it_once_more)
{
	static const char *const insides[] = {
		"put obj 0x10 main@a.c:3 count=1\n"
		"get obj 0x10 main@a.c:3;obj_put@o.c:5;dispose@o.c:9 count=1\n"
		"put obj 0x10 main@a.c:3;obj_put@o.c:5;dispose@o.c:10 count=2\n",
		"put obj 0x10 main@a.c:3 count=1 sp=0x7100\nget obj 0x10 ...dispose@o.c:9 count=1 sp=0x7000\nput obj "
		"0x10 ...dispose@o.c:10 count=2 sp=0x7000\n",
	};
	struct story s;

	for (size_t i = 0; i < 2; i++) {
		char *events = story_join(strdup("type obj start=1\nnew obj 0x10 main@a.c:1\n"), strdup(insides[i]),
					  "new obj 0x10 main@a.c:1\nput obj 0x10 main@a.c:3 count=1\nexit 0\n");

		story_lives(events, 2, 0);
		free(events);
	}
	/* behind the put it is what it seems */
	s = story_run("type obj start=1\nnew obj 0x10 main@a.c:1\nput obj 0x10 main@a.c:3 count=1 sp=0x7100\n"
		      "put obj 0x10 main;f@a.c:9 count=0 sp=0x7100\nexit 0\n",
		      NULL);
	assert_int_equal(s.verdict->finding_count + s.verdict->suspect_count, 1);
	story_end(&s);
}

/* without frames the counter and the stack pointer tell that a constructor hands up what another one made */
TEST(constructor_that_hands_up_without_frames)
{
	struct story s;

	story_lives("type obj start=1\nnew obj 0x10 ?@a.c:1 via=obj_end flags=return count=1 sp=0x7000\n"
		    "new obj 0x10 main@a.c:1 via=obj_new_va flags=return count=1 sp=0x7100\n"
		    "put obj 0x10 main@a.c:3 count=1\nexit 0\n",
		    1, 0);
	/* another one, at the address of an object whose end was not seen */
	s = story_run("type obj start=1\nnew obj 0x10 main@a.c:1 via=obj_end flags=return count=1 sp=0x7100\n"
		      "new obj 0x10 main@a.c:2 via=obj_new_va flags=return count=1 sp=0x7100\n"
		      "put obj 0x10 main@a.c:3 count=1\nexit 0\n",
		      NULL);
	assert_int_equal(s.verdict->types[0].incarnations, 2);
	assert_false(s.verdict->trust.complete);
	story_end(&s);
}

/* a thread gives its own reference back before its constructor has returned, at an address that was used before */
TEST(another_thread_is_faster_than_new)
{
	story_lives("type obj start=2\n"
		    "new obj 0x10 main@a.c:1 flags=return read=2\nput obj 0x10 tid=2 work@a.c:20 count=2\n"
		    "put obj 0x10 tid=1 main@a.c:3 count=1\n"
		    "put obj 0x10 tid=2 work@a.c:20 count=2\nnew obj 0x10 tid=1 main@a.c:1 flags=return read=1\n"
		    "put obj 0x10 tid=1 main@a.c:3 count=1\nexit 0\n",
		    2, 0);
}

/* a find that makes what it hands out, at an address that was used before */
TEST(find_that_makes)
{
	story_lives("type obj start=1\nnew obj 0x10 main@a.c:1\nput obj 0x10 main@a.c:2 count=1\n"
		    "find obj 0x10 main;look@a.c:5 via=obj_find read=1\nput obj 0x10 main;look@a.c:8 count=1\nexit 0\n",
		    2, 0);
}

TEST(fork_inherits)
{
	story_lives("pid=1\nnew obj 0x10 main@a.c:1\nfork 2\n"
		    "pid=2\nput obj 0x10 main@a.c:9 count=1\nexit 0\n"
		    "pid=1\nput obj 0x10 main@a.c:3 count=1\nexit 0\n",
		    2, 0);
	story_silent("pid=1\nnew obj 0x10 main@a.c:1\nget obj 0x10 main;f@a.c:2 count=1\nfork 2\n"
		     "pid=2\nget obj 0x10 main;g@a.c:9 count=2\nexit 0\n"
		     "pid=1\nput obj 0x10 main;f@a.c:3 count=2\nput obj 0x10 main@a.c:4 count=1\nexit 0\n");
}

TEST(attach_mid_life)
{
	char *events = story_join(story_loop("get obj $ main;f@a.c:2 count=3\nput obj $ main;f@a.c:3 count=4\n", 0, 8),
				  NULL, "exit 0\n");
	char *marked = story_join(strdup("mark attach\n"), events, "");

	story_silent(marked);
	free(marked);
}

TEST(address_is_used_again)
{
	story_lives(
		"new obj 0x10 main@a.c:1\nput obj 0x10 main@a.c:2 count=1\n"
		"free obj 0x10 main@a.c:2;obj_put\n"
		"new obj 0x10 main@a.c:1\nput obj 0x10 main@a.c:2 count=1\nfree obj 0x10 main@a.c:2;obj_put\nexit 0\n",
		2, 0);
}

TEST(racing_puts_out_of_order)
{
	/* the clock says 7 before 1, the exact counts say 1 before 7 */
	story_lives("tid=1\nnew obj 0x10 main@a.c:1 t=100\nget obj 0x10 main@a.c:2 count=1 t=200\n"
		    "tid=7\nput obj 0x10 work@a.c:9 count=1 t=1000\n"
		    "tid=1\nput obj 0x10 main@a.c:3 count=2 t=1010\nexit 0\n",
		    1, 0);
	/* both loaded the same value before either wrote */
	story_lives("tid=1\nnew obj 0x10 main@a.c:1 t=100\nget obj 0x10 main@a.c:2 read=1 t=200\n"
		    "tid=7\nput obj 0x10 work@a.c:9 read=2 t=1000\n"
		    "tid=1\nput obj 0x10 main@a.c:3 read=2 t=1010\nexit 0\n",
		    1, 0);
	/* and the records themselves come out of order */
	story_lives("tid=1\nnew obj 0x10 main@a.c:1 t=100\n"
		    "put obj 0x10 main@a.c:3 count=1 t=3000\n"
		    "tid=7\nget obj 0x10 work@a.c:8 count=1 t=1000\nput obj 0x10 work@a.c:9 count=2 t=2000\nexit 0\n",
		    1, 0);
}

TEST(unseen_operations_make_it_incomplete)
{
	struct story s = story_run("type obj start=1\nnew obj 0x10 main@a.c:1\nput obj 0x10 main;f@a.c:2 count=2\n"
				   "held 0x10 none\nmark census\nexit 0\n",
				   NULL);

	assert_int_equal(s.verdict->finding_count, 0);
	assert_false(s.verdict->trust.complete);
	assert_int_equal(s.verdict->trust.incomplete_objects, 1);
	story_end(&s);
}

TEST(final_count_0_is_a_missed_death)
{
	struct story s = story_run("type obj start=1\nnew obj 0x10 main@a.c:1\nfinal 0x10 count=0\nheld 0x10 none\n"
				   "mark census\nexit 0\n",
				   NULL);

	assert_int_equal(s.verdict->finding_count, 0);
	assert_false(s.verdict->trust.complete);
	story_end(&s);
}

TEST(immortal_object)
{
	/* a count that never moves: gets are not unseen puts of ours to blame */
	char *events = story_join(story_loop("get obj 0x10 main;f@a.c:$ count=100000\n", 0, 20), NULL, "exit 0\n");

	story_silent(events);
	free(events);
}

TEST(nothing_seen_is_not_clean)
{
	struct story s = story_run("exit 0\n", NULL);

	assert_true(s.verdict->trust.nothing_seen);
	assert_false(s.verdict->trust.complete);
	story_end(&s);
}

TEST(long_life_is_folded)
{
	char *turns = story_loop("get obj 0x10 main;f@a.c:2\nuse obj 0x10 main;f@a.c:3\nput obj 0x10 main;f@a.c:4\n", 0,
				 3000);
	char *events = story_join(strdup("type obj start=1\nnew obj 0x10 main@a.c:1\n"), turns,
				  "put obj 0x10 main@a.c:9\nexit 0\n");

	story_lives(events, 1, 0);
	free(events);
}

/*
 * So many long lives after each other, all of them dead; then the one at number `late` is put: lives that were seen.
 * What another function gives back is not folded.
 */
static uint64_t long_lives(uint64_t objects, uint64_t late)
{
	char *turns = story_loop("get obj 0x10 main;f@a.c:2\nput obj 0x10 main;g@a.c:4\n", 0, 140), *events;
	const struct rt_wire_head *record;
	struct rt_wire_event life[300], e;
	struct story s = { 0 };
	uint64_t ret;
	size_t n = 0;

	events = story_join(strdup("type obj start=1\nnew obj 0x10 main@a.c:1\n"), turns, "put obj 0x10 main@a.c:9\n");
	assert_ok(rt_text_create(events, strlen(events), "story", &s.text));
	assert_ok(rt_lifetime_create(NULL, rt_text_namer(s.text), &s.lifetime));
	do {
		assert_ok(rt_text_source(s.text)->next(rt_text_source(s.text), &record));
		if (record && record->kind == RT_WIRE_EVENT)
			life[n++] = *rt_record_event(record);
		else if (record)
			assert_ok(rt_lifetime_record(s.lifetime, record));
	} while (record);
	for (uint64_t i = 0; i <= objects; i++) {
		for (size_t k = i == objects ? n - 1 : 0; k < n; k++) {
			e = life[k];
			e.object += (i == objects ? late : i) * 0x40;
			e.head.time_ns += i * 1000000;
			e.head.seq = 0;
			assert_ok(rt_lifetime_record(s.lifetime, &e.head));
		}
	}
	assert_ok(rt_lifetime_verdict(s.lifetime, &s.verdict));
	ret = s.verdict->types[0].incarnations;
	story_end(&s);
	free(events);
	return ret;
}

TEST(dead_objects_are_forgotten_by_the_size_of_their_ledgers)
{
	assert_int_equal(long_lives(100, 0), 100);
	assert_int_equal(long_lives(4300, 4299), 4300);
	/* 4096 of them fill the graveyard: what is put is taken for the next life there */
	assert_int_equal(long_lives(4300, 0), 4301);
}

/* taken from malloc; 0 under a sanitizer, which has an allocator of its own */
static size_t bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/*
 * So many objects that their lives are folded long before they are full: each is taken and given back 150 times, then
 * five are taken once more and stay, and all others end.
 */
TEST(many_long_lives_in_little_memory)
{
	enum { OBJECTS = 3000, LEAKED = 5 };
	char *turns = story_loop("get obj 0x10 main;f@a.c:2\nput obj 0x10 main;f@a.c:4\n", 0, 150), *events;
	const struct rt_wire_head *record;
	struct rt_wire_event life[400], e;
	struct rt_wire_task end = { 0 };
	struct story s = { 0 };
	size_t n = 0, before;

	events = story_join(strdup("type obj start=1\nnew obj 0x10 main@a.c:1\n"), turns,
			    "get obj 0x10 main;leaky@a.c:20\nput obj 0x10 main@a.c:9\nexit 0\n");
	assert_ok(rt_text_create(events, strlen(events), "story", &s.text));
	assert_ok(rt_lifetime_create(NULL, rt_text_namer(s.text), &s.lifetime));
	do {
		assert_ok(rt_text_source(s.text)->next(rt_text_source(s.text), &record));
		if (record && record->kind == RT_WIRE_EVENT)
			life[n++] = *rt_record_event(record);
		else if (record && record->kind == RT_WIRE_EXIT)
			memcpy(&end, record, sizeof(end));
		else if (record)
			assert_ok(rt_lifetime_record(s.lifetime, record));
	} while (record);
	before = bytes();
	for (size_t k = 0; k < n; k++) {
		for (uint64_t i = 0; i < OBJECTS; i++) {
			if (k == n - 2 && i >= LEAKED)
				continue;
			e = life[k];
			e.object += i * 0x40;
			e.head.time_ns = 1000000 + (k * OBJECTS + i) * 1000;
			e.head.seq = 0;
			assert_ok(rt_lifetime_record(s.lifetime, &e.head));
		}
	}
	end.head.time_ns = e.head.time_ns + 1;
	end.head.seq = 0;
	assert_ok(rt_lifetime_record(s.lifetime, &end.head));
	assert_ok(rt_lifetime_verdict(s.lifetime, &s.verdict));
	assert_int_equal(s.verdict->types[0].incarnations, OBJECTS);
	/* there was no census */
	assert_int_equal(s.verdict->suspect_count, 1);
	assert_string_equal(s.verdict->suspects[0].guilty.function, "leaky");
	assert_int_equal(s.verdict->suspects[0].objects, LEAKED);
	assert_true(bytes() - before < 48 << 20);
	story_end(&s);
	free(events);
}

static bool count_live(const struct rt_live *live, void *arg)
{
	assert_int_equal(live->object, 0x20);
	++*(int *)arg;
	return true;
}

TEST(live_objects_for_the_census)
{
	struct story s = story_run("new obj 0x10 main@a.c:1\nput obj 0x10 main@a.c:2\nnew obj 0x20 main@a.c:1\n", NULL);
	int n = 0;

	rt_lifetime_live(s.lifetime, 1, count_live, &n);
	assert_int_equal(n, 1);
	story_end(&s);
}

enum { MANY = 6000, SHORT = 4000, STAYS = 20 }; /* every STAYS-th of MANY stays, or every second of these */

struct crowd {
	unsigned seen[MANY], others;
};

static bool see_live(const struct rt_live *live, void *arg)
{
	struct crowd *crowd = arg;
	uint64_t i = live->object / 0x40 - 1;

	if (i < MANY)
		crowd->seen[i]++;
	else
		crowd->others++;
	return true;
}

/*
 * Most of many lives end, in any order, then there are many short ones, and half of those that stayed end: the others
 * are told, each once.
 */
TEST(many_end_and_few_stay)
{
	_cleanup_free_ char *events = NULL;
	struct crowd crowd = { .others = 0 };
	struct story s;
	size_t size;
	FILE *f = open_memstream(&events, &size);

	assert_non_null(f);
	for (unsigned i = 0; i < MANY; i++)
		fprintf(f, "new obj 0x%x main@a.c:1\n", (i + 1) * 0x40);
	for (unsigned i = 0, which = 0; i < MANY; i++, which = (which + 2357) % MANY) {
		if (which % STAYS)
			fprintf(f, "put obj 0x%x main@a.c:2\n", (which + 1) * 0x40);
	}
	for (unsigned i = MANY; i < MANY + SHORT; i++)
		fprintf(f, "new obj 0x%x main@a.c:1\nput obj 0x%x main@a.c:2\n", (i + 1) * 0x40, (i + 1) * 0x40);
	for (unsigned i = 0; i < MANY; i += 2 * STAYS)
		fprintf(f, "put obj 0x%x main@a.c:2\n", (i + 1) * 0x40);
	assert_int_equal(fclose(f), 0);
	s = story_run(events, NULL);
	rt_lifetime_live(s.lifetime, 0, see_live, &crowd);
	assert_int_equal(crowd.others, 0);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(crowd.seen[i], i % (2 * STAYS) == STAYS);
	assert_int_equal(s.verdict->types[0].incarnations, MANY + SHORT);
	assert_int_equal(s.verdict->types[0].live, MANY / STAYS / 2);
	story_end(&s);
}

static bool any(void *arg, const char *type, uint64_t serial, uint64_t object)
{
	return true;
}

/* what g took itself is closed by g for certain; what a constructor took and handed up to f, by f */
TEST(certain_pairs)
{
	static const struct rt_watch watch = { .wants = any };
	struct story s = story_run("new obj 0x20 main@a.c:7 via=obj_copy\n"
				   "put obj 0x20 main@a.c:8 count=1\n"
				   "new obj 0x10 main@a.c:1\n"
				   "get obj 0x10 main;f@a.c:2;obj_copy@a.c:30 count=1\n"
				   "get obj 0x10 main;f@a.c:3;g@a.c:13 count=2\n"
				   "put obj 0x10 main;f@a.c:3;g@a.c:14 count=3\n"
				   "put obj 0x10 main;f@a.c:5 count=2\n"
				   "put obj 0x10 main@a.c:6 count=1\nexit 0\n",
				   &(struct rt_lifetime_options){ .watch = &watch });
	const struct rt_watched_event *e = s.verdict->watched[1].events;

	assert_int_equal(s.verdict->watched_count, 2);
	assert_int_equal(s.verdict->watched[1].event_count, 6);
	assert_int_equal(e[1].mate, 4);
	assert_int_equal(e[2].mate, 3);
	assert_int_equal(e[3].mate, 2);
	assert_int_equal(e[4].mate, 1);
	story_end(&s);
}

/* thread 0 is a thread: what a short life has not seen yet is not its */
TEST(thread_0)
{
	story_lives(
		"tid=0\nnew obj 0x10 main@a.c:1\nget obj 0x10 main;f@a.c:2 count=1\nput obj 0x10 main;f@a.c:3 count=2\n"
		"tid=7\nget obj 0x10 main;g@a.c:2 count=1\ntid=0\nput obj 0x10 main;g@a.c:3 count=2\n"
		"put obj 0x10 main@a.c:4 count=1\nexit 0\n",
		1, 0);
}

/* no limit is asserted: machines differ */
TEST(speed)
{
	char *turns = story_loop("new obj $ main@a.c:1\nget obj $ main;f@a.c:2 count=1\n"
				 "get obj $ main;f@a.c:3;g@a.c:9 count=2\nput obj $ main;f@a.c:3;g@a.c:10 count=3\n"
				 "put obj $ main;f@a.c:4 count=2\nput obj $ main@a.c:6 count=1\n",
				 0, 20000);
	char *events = story_join(turns, NULL, "exit 0\n");
	struct timespec a, b;
	struct story s;
	struct rt_text *text = NULL;
	struct rt_lifetime *lt = NULL;
	const struct rt_wire_head *r = NULL;
	const struct rt_verdict *v;
	double seconds;

	assert_ok(rt_text_create(events, strlen(events), "speed", &text));
	assert_ok(rt_lifetime_create(NULL, rt_text_namer(text), &lt));
	clock_gettime(CLOCK_MONOTONIC, &a);
	do {
		assert_ok(rt_text_source(text)->next(rt_text_source(text), &r));
		if (r)
			assert_ok(rt_lifetime_record(lt, r));
	} while (r);
	assert_ok(rt_lifetime_verdict(lt, &v));
	clock_gettime(CLOCK_MONOTONIC, &b);
	seconds = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
	print_message("%.2f million events a second\n", (double)v->trust.events / seconds / 1e6);
	assert_int_equal(v->types[0].live, 0);
	s = (struct story){ text, lt, v };
	story_end(&s);
	free(events);
}

TEST_MAIN();
