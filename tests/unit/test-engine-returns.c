/* SPDX-License-Identifier: GPL-2.0-only */
/* Engine K: objects, slots and results at entry and return. Needs root. */
#include "engine/rig.h"

static struct program plain; /* -O2, no frame pointers */

/* Compiled once, on first use. */
static const struct program *program(void)
{
	if (!plain.loads)
		rig_compile(&plain, "plain", "-O2");
	return &plain;
}

static const enum rt_attach_path paths[] = { RT_ATTACH_MULTI, RT_ATTACH_TRACEFS };

TEST(slots_and_nulls)
{
	for (int i = 0; i < 2; i++) {
		struct rt_point drop = rig_point(program(), 3, "obj_drop", 0);
		struct rt_point made = rig_point(program(), 4, "obj_new", 0);
		struct records r;

		drop.place = RT_PLACE_ARG_PTR;
		drop.deref = 1;
		drop.op = RT_OP_PUT;
		rig_run(program(), paths[i], "drop", 8, &drop, 1, &r);
		assert_int_equal(r.events.len, 8);
		for (size_t k = 0; k < 8; k++) {
			assert_true(r.events.data[k].aux > r.events.data[k].sp); /* a local of the caller */
			assert_int_equal(r.events.data[k].object - r.events.data[0].object, (k & 3) * 16);
		}
		rig_records_deinit(&r);

		/* NULL results are no events and no loss */
		made.kind = RT_POINT_RETURN;
		made.place = RT_PLACE_RET;
		made.op = RT_OP_NEW;
		rig_run(program(), paths[i], "null", 10, &made, 1, &r);
		assert_int_equal(rig_count(&r, 4), 5);
		assert_int_equal(rig_loss(&r, RT_WIRE_HITS, 0, 4), 5);
		assert_int_equal(rig_loss(&r, RT_WIRE_LOSS, RT_LOSS_RETURNS, 4), 0);
		rig_records_deinit(&r);
	}
}

TEST(unreadable_slot_is_an_event_without_object)
{
	/* argument 1 points to a long that is 0 and to a count, which is no address: loading there faults */
	struct rt_point point = rig_point(program(), 1, "obj_get", 0);
	struct records r;

	point.deref = 2;
	point.reg_offset = 8;
	rig_run(program(), RT_ATTACH_AUTO, "calls", 4, &point, 1, &r);
	assert_int_equal(r.events.len, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(r.events.data[i].object, 0);
		assert_int_equal(r.events.data[i].flags, RT_EV_NO_OBJECT);
	}
	assert_int_equal(rig_loss(&r, RT_WIRE_LOSS, RT_LOSS_FAULT, 1), 4);
	rig_records_deinit(&r);
	/* a pointer that is NULL leads to no object */
	point.reg_offset = 0;
	rig_run(program(), RT_ATTACH_AUTO, "calls", 4, &point, 1, &r);
	assert_int_equal(r.events.len, 0);
	assert_int_equal(rig_loss(&r, RT_WIRE_LOSS, RT_LOSS_FAULT, 1), 0);
	rig_records_deinit(&r);
}

TEST(conditions_and_outputs_at_return)
{
	for (int i = 0; i < 2; i++) {
		struct rt_point try = rig_point(program(), 1, "obj_try_get", 0);
		struct rt_point find = rig_point(program(), 2, "obj_find", 0);
		struct records r;

		/* refs of objects[1] is 8, of objects[0] 7: only the calls on objects[0] get it */
		try.condition = RT_IF_NONZERO;
		try.counter_offset = 8;
		try.counter_size = 4;
		rig_run(program(), paths[i], "null", 10, &try, 1, &r);
		assert_int_equal(r.events.len, 5);
		for (size_t k = 0; k < r.events.len; k++) {
			assert_int_equal(r.events.data[k].flags, RT_EV_AT_RETURN | RT_EV_COUNT_READ);
			assert_int_equal(r.events.data[k].count, 7);
		}
		rig_records_deinit(&r);

		find.kind = RT_POINT_RETURN;
		find.place = RT_PLACE_OUT;
		find.reg = RT_REG_RSI;
		find.condition = RT_IF_POSITIVE;
		rig_run(program(), paths[i], "find", 10, &find, 1, &r);
		assert_int_equal(r.events.len, 4);
		for (size_t k = 0; k < r.events.len; k++) {
			assert_int_equal(r.events.data[k].object - r.events.data[0].object, k * 16);
			assert_true(r.events.data[k].aux > r.events.data[k].sp);
		}
		assert_int_equal(rig_loss(&r, RT_WIRE_HITS, 0, 2), 4);
		rig_records_deinit(&r);
	}
}

TEST(nested_returns_and_repaired_stacks)
{
	for (int i = 0; i < 2; i++) {
		struct program p;
		struct rt_point points[2];
		struct records r;
		size_t repaired = 0;

		rig_compile(&p, "frames", "-O2 -fno-omit-frame-pointer -fno-optimize-sibling-calls");
		points[0] = rig_point(&p, 1, "obj_nested", 0);
		points[0].kind = RT_POINT_RETURN;
		points[0].place = RT_PLACE_RET;
		points[1] = rig_point(&p, 2, "obj_get", 0);
		{
			struct rt_engine *e = rig_open(paths[i], 0, 16);
			struct target t = rig_start(&p, "nested", 6);

			rig_records_init(&r);
			assert_int_equal(rig_arm(e, &t, points, 2).failures, 0);
			rig_continue(&t);
			assert_int_equal(rig_wait(&t), 0);
			assert_ok(e->ops->stop(e, &r.sink));
			assert_int_equal(rig_count(&r, 1), 66);
			assert_int_equal(rig_count(&r, 2), 6);
			assert_int_equal(rig_loss(&r, RT_WIRE_LOSS, RT_LOSS_RETURNS, 1), 0);
			for (size_t k = 0; k < r.events.len; k++) {
				const struct rt_wire_stack *s = rig_stack(&r, r.events.data[k].stack);
				unsigned n = 0;

				assert_non_null(s);
				/* get <- nested x 11 <- run <- main; nested <- nested ... */
				while (n < s->nr && !strcmp(rig_function(&p, s->frame[n].pc - t.bias), "obj_nested"))
					repaired += s->frame[n++].flags == RT_FRAME_TRAMP;
				assert_true(n + 2 <= s->nr);
				assert_string_equal(rig_function(&p, s->frame[n].pc - t.bias), "run");
				assert_string_equal(rig_function(&p, s->frame[n + 1].pc - t.bias), "main");
				if (r.events.data[k].point == 2)
					assert_int_equal(n, 11);
			}
			assert_true(repaired > 0);
			e->ops->close(e);
		}
		rig_records_deinit(&r);
		rig_free(&p);
	}
}

TEST(returns_beyond_the_kernels_depth_are_missed_aloud)
{
	struct rt_point point = rig_point(program(), 1, "obj_nested", 0);
	struct records r;

	point.kind = RT_POINT_RETURN;
	point.place = RT_PLACE_RET;
	rig_run(program(), RT_ATTACH_AUTO, "abyss", 3, &point, 1, &r);
	assert_int_equal(r.events.len, 3 * 64);
	assert_int_equal(rig_loss(&r, RT_WIRE_LOSS, RT_LOSS_RETURNS, 1), 3 * 37);
	rig_records_deinit(&r);
}

TEST(tail_calls_and_jumps)
{
	for (int i = 0; i < 2; i++) {
		struct rt_point points[] = { rig_point(program(), 1, "obj_tail", 0),
					     rig_point(program(), 2, "obj_new", 0),
					     rig_point(program(), 3, "obj_jump", 0) };
		struct records r;

		for (int k = 0; k < 3; k++) {
			points[k].kind = RT_POINT_RETURN;
			points[k].place = RT_PLACE_RET;
		}
		rig_run(program(), paths[i], "tail", 7, points, 3, &r);
		assert_int_equal(rig_count(&r, 1), 7);
		assert_int_equal(rig_count(&r, 2), 7);
		assert_int_equal(rig_loss(&r, RT_WIRE_LOSS, RT_LOSS_RETURNS, 1), 0);
		for (size_t k = 0; k < r.stacks.len; k++)
			assert_int_equal(r.stacks.data[k]->frame[0].pc, r.stacks.data[0]->frame[0].pc);
		rig_records_deinit(&r);

		/* half of the calls leave by longjmp(): no result, and nothing lost */
		rig_run(program(), paths[i], "jump", 20, points, 3, &r);
		assert_int_equal(rig_count(&r, 3), 10);
		assert_int_equal(rig_loss(&r, RT_WIRE_LOSS, RT_LOSS_RETURNS, 3), 0);
		rig_records_deinit(&r);
	}
}

TEST_MAIN();
