/* SPDX-License-Identifier: GPL-2.0-only */
/* The agent's clock against the kernel's: what lies between two moments is told exactly, and time does not go back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "engine/agent_priv.h"

enum { ROUNDS = 300, READINGS = 32, CLOSE_TICKS = 1000, EXACT_NS = 2000 };

/* Both clocks with little between them; a machine that is busy needs some tries. */
static struct rt_agent_moment reading(void)
{
	struct rt_agent_moment m;
	uint64_t before, after;

	do {
		struct timespec t;

		before = rt_agent_tsc();
		clock_gettime(CLOCK_MONOTONIC, &t);
		after = rt_agent_tsc();
		m.tsc = before + (after - before) / 2;
		m.ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	} while (after - before > CLOSE_TICKS);
	return m;
}

static void check(struct rt_agent_clock *clock, const struct rt_agent_moment *m, uint64_t *last)
{
	uint64_t ns = rt_agent_clock_at(clock, m->tsc), off = ns > m->ns ? ns - m->ns : m->ns - ns;
	const uint64_t before = *last;

	assert_in_range(off, 0, EXACT_NS);
	assert_true(rt_agent_clock_ns(clock, m->tsc, last) >= before);
	assert_true(*last >= before);
}

/* Rounds of very different lengths; the readings of some are told in a later one, as those of a hook that was left. */
static void test_exact(void **state)
{
	static struct rt_agent_clock clock;
	struct rt_agent_moment seen[2 * READINGS];
	size_t n = 0;
	uint64_t last = 0;

	(void)state;
	rt_agent_clock_init(&clock);
	for (unsigned round = 0; round < ROUNDS; round++) {
		const struct timespec apart = { .tv_nsec = round % 3 ? 50000 : 5000000 };

		for (size_t i = 0; i < READINGS; i++)
			seen[n++] = reading();
		nanosleep(&apart, NULL);
		rt_agent_clock_set(&clock);
		if (round % 4 == 1 && n == READINGS)
			continue;
		for (size_t i = 0; i < n; i++)
			check(&clock, &seen[i], &last);
		n = 0;
	}
}

/* Who was never seen anywhere has told of nothing "since 0": that is long ago, not far ahead. */
static void test_before_all(void **state)
{
	static struct rt_agent_clock clock;

	(void)state;
	rt_agent_clock_init(&clock);
	assert_true(rt_agent_clock_at(&clock, 0) < clock.first.ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_exact), cmocka_unit_test(test_before_all) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
