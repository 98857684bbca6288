/* SPDX-License-Identifier: GPL-2.0-only */
#include "spool-stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event/stream.h"

const struct spool_workload spool_workloads[] = {
	{ "reference", 8, 10000, 64, 1000, 100 },           /* 8 threads at 1 M/s each: 8 M/s */
	{ "one thread", 1, 10000, 64, 125, 20 },            /* the same rate from one */
	{ "a million objects", 8, 1000000, 64, 1000, 100 }, /* nearly each one is new to its chunk */
	{ "a thousand sites", 8, 10000, 1000, 1000, 100 },
	{ "two breakpoints", 2, 10000, 64, 2000, 200 }, /* what uprobes give on two CPUs */
	{ NULL },
};

enum { PID = 4242, DEPTH = 16, HELD_MAX = 4, DEATHS = 32, POINT_NEW = 1, POINT_GET, POINT_PUT, POINTS = 3 };

struct thread {
	uint64_t time_ns, sp;
	uint32_t seq;
	unsigned held;
	struct {
		uint32_t object, site;
	} hold[HELD_MAX];
};

struct world {
	const struct spool_workload *how;
	struct thread threads[SPOOL_THREADS_MAX];
	uint64_t *address;
	uint32_t *count;
	uint64_t random;
	size_t events;
	void (*take)(void *arg, const struct rt_wire_head *record);
	void *arg;
};

static uint64_t dice(struct world *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

static double share(struct world *w)
{
	return (double)(dice(w) & 0xffffffff) / 4294967296.0;
}

/* 0 to n - 1; the lower ones more often: half of all draws fall on a tenth */
static uint32_t skewed(struct world *w, uint32_t n)
{
	return (uint32_t)((double)n * pow(share(w), 3.3));
}

/* About `mean`, never less than half of it, with a long tail */
static uint64_t step(struct world *w)
{
	double sum = 0;
	uint64_t ns = w->how->step_ns * 9 / 10;

	for (int i = 0; i < 4; i++)
		sum += share(w);
	ns += (uint64_t)((double)w->how->jitter_ns * sum / 2);
	if (dice(w) % 50 == 0)
		ns += (uint64_t)(-log(share(w) + 1e-9) * w->how->step_ns); /* a miss, a lock */
	if (dice(w) % 20000 == 0)
		ns += 50000 + dice(w) % 2000000; /* another one had the CPU */
	return ns;
}

static void give_names(struct world *w)
{
	static const char *const names[] = { "", "obj_new", "obj_get", "obj_put" };
	static const uint8_t ops[] = { 0, RT_OP_NEW, RT_OP_GET, RT_OP_PUT };
	struct rt_wire_type *type = rt_record_type(1, "obj", NULL);
	struct rt_wire_module *module = rt_record_module(1, "/usr/bin/reference");
	struct rt_wire_map map = { .head = { .size = sizeof(map), .kind = RT_WIRE_MAP, .time_ns = 1, .pid = PID },
				   .start = 0x555555554000,
				   .end = 0x555555754000,
				   .module = 1 };

	if (!type || !module)
		exit(1);
	type->start = 1;
	type->counter_offset = 0;
	type->counter_size = 4;
	type->flags = 0;
	w->take(w->arg, &type->head);
	w->take(w->arg, &module->head);
	w->take(w->arg, &map.head);
	for (uint32_t i = 1; i <= POINTS; i++) {
		struct rt_wire_point *point = rt_record_point(i, names[i], NULL);

		if (!point)
			exit(1);
		point->head.op = ops[i];
		point->type = 1;
		point->module = 1;
		point->delta = ops[i] == RT_OP_PUT ? -1 : 1;
		point->address = point->function = 0x1000 + 0x100 * i;
		w->take(w->arg, &point->head);
		free(point);
	}
	free(type);
	free(module);
}

/* Stack of a place: places of one site share all but the innermost frame. */
static void give_stacks(struct world *w)
{
	union {
		struct rt_wire_stack stack;
		uint8_t bytes[sizeof(struct rt_wire_stack) + DEPTH * sizeof(struct rt_wire_frame)];
	} u = { .stack = { .head = { .size = sizeof(u), .kind = RT_WIRE_STACK, .pid = PID }, .nr = DEPTH } };

	for (uint32_t id = 1; id <= w->how->sites * 2; id++) {
		uint32_t site = (id - 1) / 2;

		u.stack.id = id;
		for (uint32_t i = 0; i < DEPTH; i++) {
			uint32_t fork = i < 6 ? site * 7 + i : i < 10 ? site / 8 * 5 + i : i;

			u.stack.frame[i] = (struct rt_wire_frame){ .pc = 0x555555555000 + fork * 0x120 + 0x23,
								   .cfa = (i + 1) * 0x40 };
		}
		u.stack.frame[0].pc += id % 2 ? 0 : 0x31;
		w->take(w->arg, &u.stack.head);
	}
}

static void give_event(struct world *w, struct thread *t, uint32_t object, uint32_t site, enum rt_op op)
{
	unsigned lane = (unsigned)(t - w->threads);
	struct rt_wire_event e = {
		.head = { .size = sizeof(e),
			  .kind = RT_WIRE_EVENT,
			  .op = (uint8_t)op,
			  .seq = lane << RT_SEQ_BITS | (t->seq++ & RT_SEQ_MASK),
			  .time_ns = t->time_ns,
			  .pid = PID,
			  .tid = PID + 1 + lane },
		.object = w->address[object],
		.sp = t->sp - 0x400 - site % 16 * 0x50,
		.count = w->count[object],
		.point = op == RT_OP_NEW   ? POINT_NEW
			 : op == RT_OP_GET ? POINT_GET
					   : POINT_PUT,
		.stack = 1 + site * 2 + (op == RT_OP_PUT),
		.delta = op == RT_OP_PUT ? -1 : 1,
		.flags = RT_EV_COUNT_READ,
	};

	w->count[object] += op == RT_OP_PUT ? -1u : 1u;
	w->events++;
	w->take(w->arg, &e.head);
}

static void act(struct world *w, struct thread *t)
{
	uint32_t object, site;

	if (t->held == HELD_MAX || (t->held && dice(w) % 3)) {
		object = t->hold[--t->held].object;
		site = t->hold[t->held].site;
		give_event(w, t, object, site, RT_OP_PUT);
		/* the pool gives its own reference back, too: the object dies */
		if (w->count[object] == 1 && dice(w) % DEATHS == 0)
			give_event(w, t, object, 0, RT_OP_PUT);
		return;
	}
	object = skewed(w, w->how->objects);
	site = 1 + skewed(w, w->how->sites - 1);
	if (!w->count[object]) {
		give_event(w, t, object, 0, RT_OP_NEW); /* the pool's own reference */
		return;
	}
	t->hold[t->held].object = object;
	t->hold[t->held++].site = site;
	give_event(w, t, object, site, RT_OP_GET);
}

void spool_stream(const struct spool_workload *how, size_t events,
		  void (*take)(void *arg, const struct rt_wire_head *record), void *arg)
{
	struct world w = { .how = how, .random = 88172645463325252u, .take = take, .arg = arg };
	uint64_t at = 0x5555559c2a0;

	w.address = calloc(how->objects, sizeof(*w.address));
	w.count = calloc(how->objects, sizeof(*w.count));
	if (!w.address || !w.count)
		exit(1);
	/* which one is popular has nothing to do with where it lies */
	for (unsigned i = 0; i < how->objects; i++) {
		unsigned other = (unsigned)(dice(&w) % (i + 1));

		at += 0x50 + (dice(&w) % 8 ? 0 : 0x10 * (dice(&w) % 40));
		w.address[i] = w.address[other];
		w.address[other] = at;
	}
	for (unsigned i = 0; i < how->threads; i++) {
		w.threads[i].time_ns = UINT64_C(1000000000000) + dice(&w) % 1000;
		w.threads[i].sp = 0x7ffff6bff000 - i * 0x801000;
	}
	give_names(&w);
	give_stacks(&w);
	while (w.events < events) {
		struct thread *first = &w.threads[0];

		for (unsigned i = 1; i < how->threads; i++) {
			if (w.threads[i].time_ns < first->time_ns)
				first = &w.threads[i];
		}
		/* a producer that was interrupted between clock and ring comes a little late */
		if (dice(&w) % 1000 == 0)
			first = &w.threads[dice(&w) % how->threads];
		act(&w, first);
		first->time_ns += step(&w);
	}
	free(w.address);
	free(w.count);
}
