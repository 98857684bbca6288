/* SPDX-License-Identifier: GPL-2.0-only */
/* Events that wait outside of the agent's rings: first in, first out, and never more memory than was allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/agent_held.h"

static void put(struct rt_agent_held_pool *pool, struct rt_agent_held *held, uint64_t number)
{
	struct rt_wire_event *e = rt_agent_held_add(pool, held);

	assert_non_null(e);
	*e = (struct rt_wire_event){ .object = number };
}

static void get(struct rt_agent_held_pool *pool, struct rt_agent_held *held, uint64_t number)
{
	assert_non_null(rt_agent_held_next(held));
	assert_int_equal(rt_agent_held_next(held)->object, number);
	rt_agent_held_take(pool, held);
}

static void test_first_in_first_out(void **state)
{
	struct rt_agent_held_pool pool = { 0 };
	struct rt_agent_held a = { 0 }, b = { 0 };
	uint64_t in = 0, out = 0;

	assert_null(rt_agent_held_next(&a));
	/* more in than out, over the ends of blocks; b has all blocks between */
	for (unsigned round = 0; round < 4 * RT_AGENT_HELD_EVENTS; round++) {
		put(&pool, &a, in++);
		put(&pool, &b, round);
		put(&pool, &a, in++);
		get(&pool, &a, out++);
	}
	while (out < in)
		get(&pool, &a, out++);
	assert_null(rt_agent_held_next(&a));
	for (unsigned round = 0; round < 4 * RT_AGENT_HELD_EVENTS; round++)
		get(&pool, &b, round);
	assert_null(rt_agent_held_next(&b));
	/* one at a time: a block that is empty is used again */
	for (unsigned round = 0; round < 2 * RT_AGENT_HELD_EVENTS; round++) {
		put(&pool, &a, round);
		get(&pool, &a, round);
		assert_null(rt_agent_held_next(&a));
	}
	assert_true(pool.made <= 16);
	rt_agent_held_deinit(&pool);
}

static void test_bounded(void **state)
{
	struct rt_agent_held_pool pool = { 0 };
	struct rt_agent_held a = { 0 }, b = { 0 };

	put(&pool, &b, 7);
	for (uint64_t n = 0; n < (RT_AGENT_HELD_BLOCKS - 1) * (uint64_t)RT_AGENT_HELD_EVENTS; n++)
		put(&pool, &a, n);
	assert_null(rt_agent_held_add(&pool, &a));
	put(&pool, &b, 8); /* its block has room */
	get(&pool, &b, 7);
	/* room again, after a whole block */
	for (uint64_t n = 0; n < RT_AGENT_HELD_EVENTS; n++)
		get(&pool, &a, n);
	put(&pool, &a, 0);
	rt_agent_held_clear(&pool, &a);
	assert_null(rt_agent_held_next(&a));
	get(&pool, &b, 8);
	put(&pool, &a, 9);
	get(&pool, &a, 9);
	rt_agent_held_deinit(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_first_in_first_out), cmocka_unit_test(test_bounded) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
