/* SPDX-License-Identifier: GPL-2.0-only */
/* Puts that nobody owed, and uses of dead objects: the culprit, not the victim. */
#include "lifetime.h"

#define TWINS \
	"new obj $ main;setup@d.c:5\n" \
	"get obj $ main;worker@d.c:10 count=1\n" \
	"put obj $ main;worker@d.c:15 count=2\n" \
	"put obj $ main;shutdown_all@d.c:9 count=1\n"

static void extra(const char *twins, unsigned n, const char *bad, enum rt_finding_kind kind, enum rt_role role,
		  const char *function)
{
	char *events = story_join(story_loop(twins, 1, n), NULL, bad);

	story_accuses(events, kind, role, function, 1);
	free(events);
}

TEST(same_function_puts_twice)
{
	const char *bad = "new obj 0x10 main;setup@d.c:5\n"
			  "get obj 0x10 main;worker@d.c:10 count=1\n"
			  "put obj 0x10 main;worker@d.c:15 count=2\n"
			  "put obj 0x10 main;worker@d.c:16 count=1\n"
			  "put obj 0x10 main;shutdown_all@d.c:9 count=0\n"
			  "exit 0\n";

	extra(TWINS, 0, bad, RT_EXTRA_PUT, RT_ROLE_EXTRA_PUT, "worker");
	extra(TWINS, 10, bad, RT_EXTRA_PUT, RT_ROLE_EXTRA_PUT, "worker");
}

TEST(put_never_owed)
{
	const char *bad = "new obj 0x10 main;setup@d.c:5\n"
			  "get obj 0x10 main;worker@d.c:10 count=1\n"
			  "put obj 0x10 main;worker@d.c:12;on_error@d.c:30 count=2\n"
			  "put obj 0x10 main;worker@d.c:15 count=1\n"
			  "put obj 0x10 main;shutdown_all@d.c:9 count=0\n"
			  "exit 0\n";

	extra(TWINS, 0, bad, RT_EXTRA_PUT, RT_ROLE_EXTRA_PUT, "on_error");
	extra(TWINS, 10, bad, RT_EXTRA_PUT, RT_ROLE_EXTRA_PUT, "on_error");
}

TEST(freed_memory_has_another_count)
{
	extra(TWINS, 5,
	      "new obj 0x10 main;setup@d.c:5\n"
	      "put obj 0x10 main;on_error@d.c:30 read=1\n"
	      "put obj 0x10 main;shutdown_all@d.c:9 read=21893\n"
	      "exit signal=11\n",
	      RT_EXTRA_PUT, RT_ROLE_EXTRA_PUT, "on_error");
}

TEST(put_never_owed_crash)
{
	const char *bad = "new obj 0x10 main;setup@d.c:5\n"
			  "put obj 0x10 main;on_error@d.c:30 count=1\n"
			  "put obj 0x10 main;shutdown_all@d.c:9 count=0\n"
			  "exit signal=6\n";

	extra(TWINS, 5, bad, RT_EXTRA_PUT, RT_ROLE_EXTRA_PUT, "on_error");
}

TEST(extra_put_without_counter)
{
	extra("", 0,
	      "type obj start=1\n"
	      "new obj 0x10 main;setup@d.c:5\n"
	      "put obj 0x10 main;setup@d.c:7\n"
	      "put obj 0x10 main;setup@d.c:8\n"
	      "exit 0\n",
	      RT_EXTRA_PUT, RT_ROLE_EXTRA_PUT, "setup");
}

TEST(use_after_own_put)
{
	extra(TWINS, 5,
	      "new obj 0x10 main;setup@d.c:5\n"
	      "get obj 0x10 main;worker@d.c:10 count=1\n"
	      "put obj 0x10 main;shutdown_all@d.c:9 count=2\n"
	      "put obj 0x10 main;worker@d.c:15 count=1\n"
	      "use obj 0x10 main;worker@d.c:16\n"
	      "exit signal=11\n",
	      RT_USE_AFTER_PUT, RT_ROLE_USE, "worker");
}

TEST(get_of_a_dead_object)
{
	extra(TWINS, 5,
	      "new obj 0x10 main;setup@d.c:5\n"
	      "put obj 0x10 main;shutdown_all@d.c:9 count=1\n"
	      "get obj 0x10 main;late@d.c:50 count=0\n"
	      "exit 0\n",
	      RT_USE_AFTER_PUT, RT_ROLE_USE, "late");
}

TEST(story_has_three_stacks)
{
	struct story s = story_run("new obj 0x10 main;setup@d.c:5\n"
				   "get obj 0x10 main;worker@d.c:10 count=1\n"
				   "put obj 0x10 main;worker@d.c:15 count=2\n"
				   "put obj 0x10 main;worker@d.c:16 count=1\n"
				   "put obj 0x10 main;shutdown_all@d.c:9 count=0\n"
				   "exit 0\n",
				   NULL);
	const struct rt_finding *f = s.verdict->findings;

	assert_int_equal(s.verdict->finding_count, 1);
	assert_true(f->stack_count >= 2);
	assert_string_equal(f->stacks[0].label, "taken");
	assert_string_equal(f->stacks[1].label, "extra put");
	assert_int_equal(f->guilty.line, 16);
	story_end(&s);
}

TEST(victim_is_the_next_object_at_the_address)
{
	const char *bad = "new obj 0x10 main;setup@d.c:5\n"
			  "get obj 0x10 main;worker@d.c:10 count=1\n"
			  "put obj 0x10 main;worker@d.c:12;on_error@d.c:30 count=2\n"
			  "put obj 0x10 main;worker@d.c:15 count=1\n"
			  "new obj 0x10 main;setup@d.c:5\n"
			  "put obj 0x10 main;shutdown_all@d.c:9 count=1\n"
			  "put obj 0x10 main;shutdown_all@d.c:9 count=0\n"
			  "exit 0\n";

	extra(TWINS, 10, bad, RT_EXTRA_PUT, RT_ROLE_EXTRA_PUT, "on_error");
}

TEST(double_free_of_a_heap_block)
{
	extra("new blk $ main;a@h.c:1\nfree blk $ main;a@h.c:2\n", 5,
	      "type blk heap\n"
	      "new blk 0x10 main;a@h.c:1\n"
	      "free blk 0x10 main;a@h.c:2\n"
	      "free blk 0x10 main;b@h.c:9\n"
	      "exit 0\n",
	      RT_EXTRA_PUT, RT_ROLE_EXTRA_PUT, "b");
}

TEST_MAIN();
