/* SPDX-License-Identifier: GPL-2.0-only */
/* Engine K against real programs: counts are exact, callers and stacks right. Needs root. */
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

/* frame 0 of every stack of these events lies in this function */
static void assert_called_from(const struct records *r, uint32_t point, const struct program *p, uint64_t bias,
			       const char *function)
{
	for (size_t i = 0; i < r->events.len; i++) {
		const struct rt_wire_event *e = &r->events.data[i];
		const struct rt_wire_stack *s = rig_stack(r, e->stack);

		if (e->point != point)
			continue;
		assert_non_null(s);
		assert_true(s->nr >= 1);
		assert_string_equal(rig_function(p, s->frame[0].pc - bias), function);
		assert_int_equal(s->frame[0].flags, 0);
	}
}

TEST(caller_is_right_at_several_instructions)
{
	/* push %rbx; mov %rdi,%rbx; push %r12; nop; incl 8(%rbx) */
	static const struct {
		unsigned plus;
		int cfa;
		uint8_t reg;
	} at[] = { { 0, 8, RT_REG_RDI }, { 1, 16, RT_REG_RDI }, { 4, 16, RT_REG_RBX }, { 6, 24, RT_REG_RBX } };
	for (int i = 0; i < 2; i++) {
		struct rt_engine *e = rig_open(paths[i], 0, 0);
		struct target t = rig_start(program(), "pushed", 20);
		struct rt_point points[4];
		struct records r;

		rig_records_init(&r);
		for (int k = 0; k < 4; k++) {
			points[k] = rig_point(program(), k + 1, "pushed_get", at[k].plus);
			points[k].cfa_delta = at[k].cfa;
			points[k].reg = at[k].reg;
			points[k].counter_offset = 8;
			points[k].counter_size = 4;
		}
		assert_int_equal(rig_arm(e, &t, points, 4).failures, 0);
		rig_continue(&t);
		assert_int_equal(rig_wait(&t), 0);
		assert_ok(e->ops->stop(e, &r.sink));
		assert_int_equal(r.events.len, 80);
		for (int k = 0; k < 4; k++) {
			assert_int_equal(rig_count(&r, k + 1), 20);
			assert_called_from(&r, k + 1, program(), t.bias, "run");
		}
		for (size_t k = 0; k < r.events.len; k++) {
			const struct rt_wire_event *v = &r.events.data[k];

			assert_int_equal(v->object, t.bias + rig_symbol(program(), "objects") + 16);
			assert_int_equal(v->flags, RT_EV_COUNT_READ);
			assert_int_equal(v->count, 8 + k / 4);
			assert_int_equal(v->sp, r.events.data[0].sp);
			assert_int_equal(v->head.pid, t.pid);
			assert_int_equal(v->head.tid, t.pid);
			assert_true(!k || v->head.time_ns >= r.events.data[k - 1].head.time_ns);
		}
		e->ops->close(e);
		rig_records_deinit(&r);
	}
}

TEST(instruction_point_shows_itself)
{
	struct rt_engine *e = rig_open(RT_ATTACH_AUTO, 0, 0);
	struct target t = rig_start(program(), "pushed", 3);
	struct rt_point points[] = { rig_point(program(), 1, "pushed_get", 6),
				     rig_point(program(), 2, "pushed_get", 6) };
	struct records r;

	rig_records_init(&r);
	for (int k = 0; k < 2; k++) {
		points[k].kind = RT_POINT_INSN;
		points[k].flags = RT_EV_INLINE;
		points[k].reg = RT_REG_RBX;
		points[k].cfa_delta = k ? 0 : 24;
	}
	assert_int_equal(rig_arm(e, &t, points, 2).failures, 0);
	rig_continue(&t);
	assert_int_equal(rig_wait(&t), 0);
	assert_ok(e->ops->stop(e, &r.sink));
	assert_int_equal(r.events.len, 6);
	for (size_t i = 0; i < r.events.len; i++) {
		const struct rt_wire_stack *s = rig_stack(&r, r.events.data[i].stack);

		assert_int_equal(r.events.data[i].flags, RT_EV_INLINE);
		assert_non_null(s);
		assert_int_equal(s->frame[0].pc, t.bias + rig_symbol(program(), "pushed_get") + 6);
		assert_int_equal(s->frame[0].flags, RT_FRAME_SITE);
		if (r.events.data[i].point == 1) {
			assert_int_equal(s->frame[0].cfa, 24);
			assert_true(s->nr >= 2);
			assert_string_equal(rig_function(program(), s->frame[1].pc - t.bias), "run");
		}
	}
	e->ops->close(e);
	rig_records_deinit(&r);
}

/* Records of one get in target.c's mode "deep", compiled with these flags. */
static void run_deep(struct program *p, const char *name, const char *flags, struct records *r, uint64_t *ret_bias)
{
	struct rt_engine *e = rig_open(RT_ATTACH_AUTO, 0, 16);
	struct rt_point point;
	struct target t;

	rig_compile(p, name, flags);
	t = rig_start(p, "deep", 50);
	point = rig_point(p, 1, "obj_get", 0);
	rig_records_init(r);
	assert_int_equal(rig_arm(e, &t, &point, 1).failures, 0);
	rig_continue(&t);
	assert_int_equal(rig_wait(&t), 0);
	assert_ok(e->ops->stop(e, &r->sink));
	assert_int_equal(r->events.len, 50);
	assert_int_equal(r->stacks.len, 1); /* sent once */
	*ret_bias = t.bias;
	e->ops->close(e);
}

TEST(sixteen_frames_are_the_call_chain)
{
	/* within one copy of the stack; spanning three; longer than is copied at all */
	static const char *const flags[] = { "-O2", "-O2 -DROOM=700", "-O2 -DROOM=2000" };
	for (int i = 0; i < 3; i++) {
		const struct rt_wire_stack *s;
		struct program p;
		struct records r;
		uint64_t bias;

		run_deep(&p, "deep", flags[i], &r, &bias);
		s = r.stacks.data[0];
		assert_int_equal(s->end, i == 2 ? RT_STACK_COPY : RT_STACK_DEPTH);
		if (i < 2)
			assert_int_equal(s->nr, 16);
		assert_true(s->nr >= 8);
		for (unsigned k = 0; k < s->nr; k++) {
			char want[16];

			snprintf(want, sizeof(want), "deep_%u", k);
			assert_string_equal(rig_function(&p, s->frame[k].pc - bias), want);
			/* CFAs grow; only that of a cut stack's last frame is unknown */
			if (k)
				assert_true(s->frame[k].cfa > s->frame[k - 1].cfa || (i == 2 && k + 1 == s->nr));
		}
		rig_records_deinit(&r);
		rig_free(&p);
	}
}

/* A thread's first frames lie just below memory that is not the stack's, or not there. */
TEST(stacks_of_threads_reach_their_start)
{
	struct rt_engine *e = rig_open(RT_ATTACH_AUTO, 0, 0);
	struct rt_point point;
	struct program p;
	struct records r;
	struct target t;

	rig_compile(&p, "threads", "-O2 -fno-omit-frame-pointer");
	t = rig_start(&p, "threads", 100);
	point = rig_point(&p, 1, "obj_get", 0);
	rig_records_init(&r);
	assert_int_equal(rig_arm(e, &t, &point, 1).failures, 0);
	rig_continue(&t);
	assert_int_equal(rig_wait(&t), 0);
	assert_ok(e->ops->stop(e, &r.sink));
	assert_int_equal(r.events.len, 400);
	assert_int_equal(rig_loss(&r, RT_WIRE_LOSS, RT_LOSS_FAULT, 1), 0);
	assert_true(r.stacks.len >= 1 && r.stacks.len <= 4);
	for (size_t i = 0; i < r.stacks.len; i++) {
		assert_true(r.stacks.data[i]->nr >= 2);
		assert_true(r.stacks.data[i]->end != RT_STACK_FAULT);
		assert_string_equal(rig_function(&p, r.stacks.data[i]->frame[0].pc - t.bias), "run_thread");
	}
	e->ops->close(e);
	rig_records_deinit(&r);
	rig_free(&p);
}

/* Behind the change of the counter: the plan says by how much it is off. */
TEST(counter_is_as_before_the_operation)
{
	struct rt_point point = rig_point(program(), 1, "pushed_get", 10);
	struct records r;

	point.cfa_delta = 24;
	point.reg = RT_REG_RBX;
	point.counter_offset = 8;
	point.counter_size = 4;
	point.counter_bias = -1;
	rig_run(program(), RT_ATTACH_AUTO, "pushed", 10, &point, 1, &r);
	assert_int_equal(r.events.len, 10);
	for (size_t k = 0; k < 10; k++)
		assert_int_equal(r.events.data[k].count, 8 + k);
	rig_records_deinit(&r);
}

TEST(full_ring_is_counted_exactly)
{
	struct rt_engine *e = rig_open(RT_ATTACH_AUTO, 4096, 0);
	struct target t = rig_start(program(), "calls", 5000);
	struct rt_point points[] = { rig_point(program(), 1, "obj_get", 0), rig_point(program(), 2, "obj_put", 0) };
	struct rt_engine_stats stats;
	struct records r;
	uint64_t lost;

	rig_records_init(&r);
	assert_int_equal(rig_arm(e, &t, points, 2).failures, 0);
	rig_continue(&t);
	assert_int_equal(rig_wait(&t), 0);
	assert_ok(e->ops->stop(e, &r.sink));
	e->ops->stats(e, &stats);
	lost = rig_loss(&r, RT_WIRE_LOSS, RT_LOSS_RING, 1) + rig_loss(&r, RT_WIRE_LOSS, RT_LOSS_RING, 2);
	assert_true(lost > 9000);
	assert_int_equal(lost + r.events.len, 10000);
	assert_int_equal(stats.dropped, lost);
	assert_true(stats.balanced);
	assert_int_equal(rig_loss(&r, RT_WIRE_HITS, 0, 1), 5000);
	e->ops->close(e);
	rig_records_deinit(&r);
}

TEST_MAIN();
