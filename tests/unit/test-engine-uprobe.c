/* SPDX-License-Identifier: GPL-2.0-only */
/* Engine K against real programs: counts are exact, callers right, nothing else is touched. Needs root. */
#include "engine/rig.h"

static struct program plain; /* -O2, no frame pointers */

/* Compiled once, on first use. */
static const struct program *program(void)
{
	if (!plain.loads)
		rig_compile(&plain, "plain", "-O2");
	return &plain;
}

__attribute__((constructor)) static void need_root(void)
{
	if (geteuid())
		_exit(77);
}

static const enum rt_attach_path paths[] = { RT_ATTACH_MULTI, RT_ATTACH_TRACEFS };

TEST(threads_are_counted_exactly)
{
	for (int i = 0; i < 2; i++) {
		struct rt_point points[] = { rig_point(program(), 1, "obj_get", 0),
					     rig_point(program(), 2, "obj_put", 0) };
		struct records r;

		points[1].op = RT_OP_PUT;
		points[1].delta = -1;
		rig_run(program(), paths[i], "threads", 500, points, 2, &r);
		assert_int_equal(rig_count(&r, 1), 2000);
		assert_int_equal(rig_count(&r, 2), 2000);
		assert_int_equal(rig_loss(&r, RT_WIRE_HITS, 0, 1), 2000);
		assert_int_equal(rig_loss(&r, RT_WIRE_HITS, 0, 2), 2000);
		rig_records_deinit(&r);
	}
}

TEST_MAIN();
