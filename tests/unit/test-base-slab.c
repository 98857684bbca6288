/* SPDX-License-Identifier: GPL-2.0-only */
/* Things of all sizes come and go: none lies over another one, numbers lead back, and empty slabs serve any size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/slab.h"

enum { THINGS = 4000, STEPS = 100000 };

static uint64_t state = 88172645463325252u;

static uint32_t dice(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state * UINT64_C(0x2545f4914f6cdd1d) >> 32) * n >> 32);
}

struct thing {
	uint8_t *at;
	size_t size;
	uint8_t fill;
};

static void drop(struct rt_slabs *slabs, struct thing *t)
{
	for (size_t i = 0; i < t->size; i++)
		assert_int_equal(t->at[i], t->fill);
	rt_slab_free(slabs, t->at);
	t->at = NULL;
}

static void come_and_go(void **unused)
{
	struct thing *things = calloc(THINGS, sizeof(*things));
	struct rt_slabs slabs = { 0 };

	assert_non_null(things);
	for (unsigned step = 0; step < STEPS; step++) {
		struct thing *t = &things[dice(THINGS)];

		if (t->at) {
			drop(&slabs, t);
			continue;
		}
		t->size = 1 + dice(step % 16 ? 300 : RT_SLAB_MOST);
		t->fill = (uint8_t)step;
		t->at = rt_slab_alloc(&slabs, t->size);
		assert_non_null(t->at);
		assert_in_range(rt_slab_room(t->at), t->size, t->size + t->size / 8 + RT_SLAB_UNIT);
		assert_ptr_equal(rt_slab_at(&slabs, rt_slab_ref(t->at)), t->at);
		assert_true(rt_slab_ref(t->at) < 1u << RT_SLAB_REF_BITS);
		memset(t->at, t->fill, t->size);
	}
	for (unsigned i = 0; i < THINGS; i++) {
		if (things[i].at)
			drop(&slabs, &things[i]);
	}
	rt_slabs_deinit(&slabs);
	free(things);
}

static void sizes(void **unused)
{
	struct rt_slabs slabs = { 0 };

	for (size_t size = 1; size <= RT_SLAB_MOST; size++) {
		void *thing = rt_slab_alloc(&slabs, size);

		assert_non_null(thing);
		assert_in_range(rt_slab_room(thing), size, size <= RT_SLAB_FINE ? size + 7 : size + size / 8);
		assert_int_equal((uintptr_t)thing % RT_SLAB_UNIT, 0);
		if (size == 256)
			assert_int_equal((uintptr_t)thing % 64, 0);
		rt_slab_free(&slabs, thing);
	}
	/* all of them were in one slab, one after the other */
	assert_int_equal(slabs.slabs.len, 2);
	assert_null(rt_slab_alloc(&slabs, 0));
	assert_null(rt_slab_alloc(&slabs, RT_SLAB_MOST + 1));
	rt_slabs_deinit(&slabs);
}

/* what is put into a slab's place afterwards is of another size */
static void used_again(void **unused)
{
	static void *things[10000];
	struct rt_slabs slabs = { 0 };
	size_t most = 0;

	for (size_t size = 8; size <= 64; size += 8) {
		for (unsigned i = 0; i < 10000; i++) {
			void *old = things[i];

			things[i] = rt_slab_alloc(&slabs, size);
			assert_non_null(things[i]);
			if (old)
				rt_slab_free(&slabs, old);
		}
		most = 10000 * size / RT_SLAB_BYTES + 4;
		assert_in_range(slabs.slabs.len, 1, most);
	}
	rt_slabs_deinit(&slabs);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(come_and_go), cmocka_unit_test(sizes),
					    cmocka_unit_test(used_again) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
