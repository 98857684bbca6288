/* SPDX-License-Identifier: GPL-2.0-only */
/* What was stored in slots against a plain list: few processes, and slots that share their parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lifetime/state.h"
#include "lifetime/stored.h"

enum { SLOTS = 5000, PROCESSES = 2, STEPS = 200000 };

static uint64_t state = 88172645463325252u;

static uint32_t dice(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state * UINT64_C(0x2545f4914f6cdd1d) >> 32) * n >> 32);
}

static void check(const struct rt_lifetime *lt, uint32_t i, uint32_t domain, const uint32_t *there)
{
	const struct lt_stored_in *in = lt_stored_get(&lt->stored, lt, 8 + 8ull * i, lt->domains.data[domain - 1].pid);

	assert_int_equal(in ? in->serial : 0, *there);
	if (in)
		assert_int_equal(in->domain, domain);
}

/* puts, replaces and removes */
static void as_a_list(void **unused)
{
	struct rt_lifetime *lt = calloc(1, sizeof(*lt));
	uint32_t(*there)[PROCESSES] = calloc(SLOTS, sizeof(*there)), nr = 0;

	assert_non_null(lt);
	assert_non_null(there);
	for (uint32_t step = 1; step < STEPS; step++) {
		uint32_t i = dice(step % 8 < 4 ? SLOTS : SLOTS / 8), p = dice(PROCESSES);
		uint32_t domain = lt_domain(lt, 100 + p, 3);
		struct lt_stored_in now = { 8 + 8ull * i, domain, step }, *was;

		was = lt_stored_get(&lt->stored, lt, now.slot, 100 + p);
		/* it fills up, then it empties */
		if (dice(STEPS) > step) {
			if (was)
				*was = now;
			else
				assert_true(lt_stored_add(&lt->stored, lt, now));
			nr += !there[i][p];
			there[i][p] = step;
		} else if (was) {
			lt_stored_remove(&lt->stored, lt, was);
			there[i][p] = 0;
			nr--;
		}
		assert_int_equal(lt->stored.nr, nr);
		check(lt, i, domain, &there[i][p]);
		i = dice(SLOTS);
		check(lt, i, domain, &there[i][p]);
	}
	lt_stored_deinit(&lt->stored);
	rt_vec_deinit(&lt->domains);
	rt_map_deinit(&lt->domain_by_key);
	free(lt);
	free(there);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(as_a_list) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
