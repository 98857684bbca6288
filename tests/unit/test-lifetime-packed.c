/* SPDX-License-Identifier: GPL-2.0-only */
/* Lives that are packed and unpacked are what they were, bit by bit: with lives before them, slots, and odd stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "event/stream.h"
#include "lifetime/life.h"
#include "lifetime/order.h"

enum { NEW = 1, GET, PUT, STORE, PID = 77, KEPT = 3000, OTHERS = 5 * LT_LOOSE, BASE = 0x10000 };

static uint64_t state = 88172645463325252u, time_ns = 1000000;
static int32_t counts[KEPT + OTHERS];
static uint32_t seq;

static uint32_t dice(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state * UINT64_C(0x2545f4914f6cdd1d) >> 32) * n >> 32);
}

static void tell(struct rt_lifetime *lt, const struct rt_wire_head *record)
{
	assert_null(rt_lifetime_record(lt, record));
}

static void give_tables(struct rt_lifetime *lt)
{
	static const char *const names[] = { "", "obj_new", "obj_get", "obj_put", "keep" };
	static const uint8_t ops[] = { 0, RT_OP_NEW, RT_OP_GET, RT_OP_PUT, RT_OP_MOVE };
	struct rt_wire_type *type = rt_record_type(1, "obj", NULL);
	struct rt_wire_module *module = rt_record_module(1, "/usr/bin/program");

	assert_non_null(type);
	assert_non_null(module);
	type->start = 1;
	type->counter_size = 4;
	tell(lt, &type->head);
	tell(lt, &module->head);
	for (uint32_t i = NEW; i <= STORE; i++) {
		struct rt_wire_point *point = rt_record_point(i, names[i], NULL);

		assert_non_null(point);
		point->head.op = ops[i];
		point->type = point->module = 1;
		point->delta = i == PUT ? -1 : i == STORE ? 0 : 1;
		point->flags = i == NEW ? RT_EV_AT_RETURN : i == STORE ? RT_EV_HIDDEN : 0;
		point->aux = i == STORE ? RT_AUX_STORED : 0;
		point->address = point->function = 0x700000 + 0x100 * i;
		tell(lt, &point->head);
		free(point);
	}
	free(type);
	free(module);
}

static uint64_t object(uint32_t i)
{
	return BASE + 64ull * i;
}

static void event(struct rt_lifetime *lt, uint32_t i, uint32_t point)
{
	struct rt_wire_event e = { .head = { .size = sizeof(e), .kind = RT_WIRE_EVENT, .pid = PID } };

	e.head.op = point == STORE ? RT_OP_MOVE : (uint8_t)point; /* RT_OP_NEW is 1, and so on */
	e.head.tid = PID + dice(5);
	e.head.seq = ++seq & RT_SEQ_MASK;
	e.head.time_ns = time_ns += 200000 + dice(1000);
	e.object = object(i);
	e.sp = 0x7ffff0000000 - 16ull * dice(1 << 16);
	e.point = point;
	e.delta = point == PUT ? -1 : point == STORE ? 0 : 1;
	e.flags = point == NEW ? RT_EV_AT_RETURN : point == STORE ? RT_EV_HIDDEN : 0;
	e.aux = point == STORE ? 0xffff800000000000 * dice(2) + 8ull * dice(1 << 20) + 8 : 0;
	if (point != STORE && dice(8)) {
		e.flags |= RT_EV_COUNT_READ;
		e.count = (uint32_t)(point == NEW ? 1 : counts[i]);
	}
	counts[i] = point == NEW ? 1 : counts[i] + e.delta;
	tell(lt, &e.head);
}

/* what became of a life, without pointers */
struct copy {
	struct lt_inc inc, before;
	struct lt_event *events, *before_events;
};

static struct lt_event *copy_events(const struct lt_inc *inc)
{
	struct lt_event *events = malloc((inc->nr + 1u) * sizeof(*events));

	assert_non_null(events);
	memcpy(events, inc->ledger, inc->nr * sizeof(*events));
	return events;
}

static void copy_life(const struct rt_lifetime *lt, uint32_t i, struct copy *ret)
{
	const struct lt_inc *inc = lt_inc_find(lt, PID, 0, object(i));

	assert_non_null(inc);
	*ret = (struct copy){ 0 };
	memcpy(&ret->inc, inc, sizeof(*inc));
	ret->events = copy_events(inc);
	ret->inc.ledger = NULL;
	ret->inc.before = NULL;
	if (!inc->before)
		return;
	memcpy(&ret->before, inc->before, sizeof(*inc));
	ret->before_events = copy_events(inc->before);
	ret->before.ledger = NULL;
	ret->before.before = NULL;
}

static void free_copy(struct copy *copy)
{
	free(copy->events);
	free(copy->before_events);
}

static void check(const struct rt_lifetime *lt, uint32_t i, struct copy *was)
{
	struct copy is;

	copy_life(lt, i, &is);
	assert_memory_equal(&is.inc, &was->inc, sizeof(is.inc));
	assert_memory_equal(is.events, was->events, is.inc.nr * sizeof(*is.events));
	assert_int_equal(!is.before_events, !was->before_events);
	assert_memory_equal(&is.before, &was->before, sizeof(is.before));
	if (is.before_events)
		assert_memory_equal(is.before_events, was->before_events, is.before.nr * sizeof(*is.events));
	free_copy(&is);
	free_copy(was);
}

static void live_on(struct rt_lifetime *lt, uint32_t i)
{
	event(lt, i, NEW);
	for (uint32_t n = dice(dice(4) ? 6 : 60); n; n--) {
		if (counts[i] > 1 && dice(3) == 0)
			event(lt, i, PUT);
		else
			event(lt, i, dice(2) ? GET : STORE);
	}
}

/* activations as stacks would prove them: none, one for both, any */
static void number_acts(const struct rt_lifetime *lt, uint32_t i)
{
	const struct lt_inc *inc = lt_inc_find(lt, PID, 0, object(i));

	for (const struct lt_inc *of = inc; of; of = of->before) {
		for (uint32_t k = 0; k < of->nr; k++) {
			of->ledger[k].act = dice(3) ? dice(UINT32_MAX) : 0;
			of->ledger[k].up = dice(2) ? of->ledger[k].act : dice(UINT32_MAX);
		}
	}
}

static uint32_t ref_of(const struct rt_lifetime *lt, uint32_t i)
{
	return lt_index_find(lt, lt_index_hash(object(i), PID, 0), object(i), PID, 0);
}

static void bit_by_bit(void **unused)
{
	struct copy *copies = calloc(KEPT, sizeof(*copies));
	struct rt_lifetime *lt = NULL;
	unsigned packed = 0, with_before = 0;

	assert_non_null(copies);
	assert_null(rt_lifetime_create(NULL, NULL, &lt));
	give_tables(lt);
	for (uint32_t i = 0; i < KEPT; i++) {
		live_on(lt, i);
		for (bool again = dice(3) == 0; again; again = dice(3) == 0) {
			while (counts[i])
				event(lt, i, PUT);
			live_on(lt, i);
		}
	}
	lt_order_flush(lt);
	for (uint32_t i = 0; i < KEPT; i++) {
		number_acts(lt, i);
		copy_life(lt, i, &copies[i]);
	}
	for (uint32_t i = KEPT; i < KEPT + OTHERS; i++)
		event(lt, i, NEW);
	lt_order_flush(lt);
	assert_in_range(lt->live.nr - lt->packing.packed, LT_LOOSE, LT_LOOSE + LT_LOOSE / 4);
	for (uint32_t i = 0; i < KEPT; i++) {
		packed += (ref_of(lt, i) & LT_PACKED) != 0;
		with_before += copies[i].before_events != NULL;
		check(lt, i, &copies[i]);
		assert_false(ref_of(lt, i) & LT_PACKED);
	}
	assert_in_range(packed, KEPT - KEPT / 10, KEPT);
	assert_in_range(with_before, KEPT / 10, KEPT);
	assert_int_equal(lt->packing.contexts.len, LT_CONTEXTS);
	rt_lifetime_destroy(lt);
	free(copies);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(bit_by_bit) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
