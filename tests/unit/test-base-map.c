/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/intern.h"
#include "base/map.h"

#include "test.h"

/* the map against a plain array that says the same */
TEST(random_operations)
{
	enum { KEYS = 500, STEPS = 200000 };
	static uint64_t have[KEYS];
	static bool in[KEYS];
	struct rt_map map = { 0 };
	uint64_t seed = 1;
	size_t len = 0;

	for (unsigned i = 0; i < STEPS; i++) {
		unsigned k;
		uint64_t *v, old;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		k = (unsigned)(seed >> 33) % KEYS;
		if (seed >> 60 < 9) {
			bool made;

			v = rt_map_put(&map, rt_key_make(k * 16, k % 3), &made);
			assert_non_null(v);
			assert_int_equal(made, !in[k]);
			len += made;
			in[k] = true;
			have[k] = *v = seed;
		} else {
			assert_int_equal(rt_map_remove(&map, rt_key_make(k * 16, k % 3), &old), in[k]);
			if (in[k])
				assert_int_equal(old, have[k]);
			len -= in[k];
			in[k] = false;
		}
		v = rt_map_get(&map, rt_key_make(k * 16, k % 3));
		assert_int_equal(v != NULL, in[k]);
	}
	assert_int_equal(map.len, len);
	for (unsigned k = 0; k < KEYS; k++) {
		uint64_t *v = rt_map_get(&map, rt_key_make(k * 16, k % 3));

		assert_int_equal(v != NULL, in[k]);
		if (v)
			assert_int_equal(*v, have[k]);
	}
	rt_map_deinit(&map);
}

TEST(intern_gives_equal_ids_to_equal_bytes)
{
	struct rt_intern in = { 0 };
	uint32_t a = rt_intern_string(&in, "alpha"), b = rt_intern_bytes(&in, "a\0b", 3);

	assert_int_equal(rt_intern_string(&in, "alpha"), a);
	assert_int_not_equal(rt_intern_bytes(&in, "a\0c", 3), b);
	assert_string_equal(rt_intern_text(&in, a), "alpha");
	assert_string_equal(rt_intern_text(&in, 99), "");
	assert_int_equal(rt_intern_bytes(&in, "", 0), rt_intern_string(&in, ""));
	rt_intern_deinit(&in);
}

TEST_MAIN();
