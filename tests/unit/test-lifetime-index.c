/* SPDX-License-Identifier: GPL-2.0-only */
/* The index of lives against a plain list: random keys, and keys that all want the same bucket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lifetime/index.h"
#include "lifetime/state.h"

enum { LIVES = 3000, STEPS = 60000 };

static uint64_t state;

static uint32_t dice(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state * UINT64_C(0x2545f4914f6cdd1d) >> 32) * n >> 32);
}

static struct lt_inc *find(const struct rt_lifetime *lt, const struct lt_inc *like)
{
	return lt_inc_find(lt, like->pid, like->type, like->object);
}

/* puts, replaces and removes; twins[] have the same keys as lives[] */
static void go(struct rt_lifetime *lt, struct lt_inc **lives, struct lt_inc **twins)
{
	struct lt_inc **there = calloc(LIVES, sizeof(struct lt_inc *));
	uint32_t nr = 0;

	assert_non_null(there);
	assert_null(find(lt, lives[0]));
	for (unsigned step = 0; step < STEPS; step++) {
		uint32_t i = dice(step % 8 < 4 ? LIVES : LIVES / 8);

		/* it fills up, then it empties */
		if (dice(STEPS) > step) {
			struct lt_inc *now = dice(2) ? lives[i] : twins[i];

			assert_true(lt_index_put(lt, now));
			nr += !there[i];
			there[i] = now;
		} else if (there[i]) {
			lt_index_remove(lt, there[i]);
			there[i] = NULL;
			nr--;
		}
		assert_int_equal(lt->by_object.len, nr);
		assert_ptr_equal(find(lt, lives[i]), there[i]);
		i = dice(LIVES);
		assert_ptr_equal(find(lt, lives[i]), there[i]);
	}
	for (unsigned i = 0; i < LIVES; i++)
		assert_ptr_equal(find(lt, lives[i]), there[i]);
	lt_index_deinit(&lt->by_object);
	free(there);
}

static struct lt_inc *life(struct rt_lifetime *lt, uint64_t object, uint32_t pid, uint32_t type)
{
	struct lt_inc *inc = lt_inc_take(lt);

	assert_non_null(inc);
	*inc = (struct lt_inc){ .object = object, .pid = pid, .type = type };
	return inc;
}

static void run(uint32_t low_bits)
{
	struct rt_lifetime *lt = calloc(1, sizeof(*lt));
	struct lt_inc *lives[LIVES], *twins[LIVES];
	uint64_t object = 0x1000;

	assert_non_null(lt);
	state = 88172645463325252u;
	for (unsigned i = 0; i < LIVES; i++) {
		uint32_t pid = i % 3, type = i % 2;

		do
			object += 16;
		while (lt_index_hash(object, pid, type) & low_bits);
		lives[i] = life(lt, object, pid, type);
		twins[i] = life(lt, object, pid, type);
	}
	go(lt, lives, twins);
	rt_slabs_deinit(&lt->slabs);
	rt_vec_deinit(&lt->incs);
	free(lt);
}

static void test_random(void **unused)
{
	run(0);
}

/* 64 of 512 buckets, and more behind one than its count can tell */
static void test_crowded(void **unused)
{
	run(7);
	run(0x3ff);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random), cmocka_unit_test(test_crowded) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
