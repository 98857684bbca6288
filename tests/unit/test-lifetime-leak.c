/* SPDX-License-Identifier: GPL-2.0-only */
/* Leaks: who is named, and that healthy programs stay silent. */
#include "lifetime.h"

#define HEALTHY \
	"new obj $ main@leak.c:38 count=0 flags=return\n" \
	"get obj $ main;handle@leak.c:39 count=1\n" \
	"get obj $ main;handle@leak.c:40;parse_header@leak.c:29 count=2\n" \
	"put obj $ main;handle@leak.c:40;parse_header@leak.c:32 count=3\n" \
	"put obj $ main;handle@leak.c:42 count=2\n" \
	"put obj $ main@leak.c:43 count=1\n"
#undef HEALTHY
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

TEST(missing_put_with_twins)
{
	char *events = story_join(story_loop(HEALTHY, 0, 80), story_loop(LEAKY, 80, 20), "exit 0\n");

	story_accuses(events, RT_LEAK, RT_ROLE_MISSING_PUT, "parse_header", 20);
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

TEST_MAIN();
