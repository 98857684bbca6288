/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the analysis costs per event.
 *
 *     analysis [N]           N events (10^7) straight into it, from memory; then from a spool, read and told
 *     analysis write N FILE  the same events as a recording; bench/report.py has the program report it
 *
 * Eight threads work on a pool of objects, one million operations per second each: a function takes an object at a
 * call site, works, and gives it back at another; one in ten references goes through a queue to another thread. Each
 * object has a budget of 5 to 50 operations, then the pool drops its own reference; one site forgets a put now and
 * then. Counters are read as probes read them: a little before the time is taken.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "capture/spool.h"
#include "lifetime/lifetime.h"

enum {
	THREADS = 8,
	POOL = 10000,
	PID = 4242,
	DEPTH = 16,
	SITES = 100, /* functions that take and give */
	QUEUES = 4,
	QUEUED_MAX = 64,
	LEAKS = 20,
	OPS_NEW = 1,
	OPS_GET,
	OPS_PUT,
	TEXT = 0x555555555000,
	PLACES = 3, /* per function: takes, gives, takes for a queue */
	BLOCK = 256,
	TURNS = 3
};

struct object {
	uint64_t address, ready_ns;
	uint32_t count, budget;
};

struct task {
	uint64_t time_ns, stack_top;
	uint32_t seq, object, site;
	bool holds, drops;
};

struct queue {
	uint32_t object[QUEUED_MAX], first, nr;
};

struct world {
	struct task tasks[THREADS];
	struct object pool[POOL];
	struct queue queues[QUEUES];
	uint64_t random, next_address;
	unsigned leaked;
	size_t events;
	void (*take)(void *arg, const struct rt_wire_head *record);
	void *arg;
};

static void check(struct rt_error *err)
{
	if (!err)
		return;
	fprintf(stderr, "analysis: %s\n", err->message);
	exit(1);
}

static uint32_t dice(struct world *w, uint32_t n)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (uint32_t)((w->random * UINT64_C(0x2545f4914f6cdd1d) >> 32) * n >> 32);
}

/* functions 0 to SITES - 1 take and give; the ones above call them */
static uint64_t pc_of(uint32_t function, uint32_t place)
{
	return TEXT + function * 0x200ull + 0x20 + place * 0x30;
}

/* the function at level `level` above site; more and more of them are shared */
static uint32_t caller(uint32_t site, unsigned level)
{
	return SITES + level * SITES + (level < 4 ? site : level < 8 ? site / 8 : 0);
}

static uint32_t frame_bytes(uint32_t function)
{
	return 0x30 + function % 7 * 0x10;
}

/* bytes of stack below a thread's first frame when site calls */
static uint32_t depth_of(uint32_t site)
{
	uint32_t sum = frame_bytes(site);

	for (unsigned i = 1; i < DEPTH; i++)
		sum += frame_bytes(caller(site, i));
	return sum;
}

static void give_stack(struct world *w, uint32_t site, uint32_t place)
{
	union {
		struct rt_wire_stack stack;
		uint8_t bytes[sizeof(struct rt_wire_stack) + DEPTH * sizeof(struct rt_wire_frame)];
	} u = { .stack = { .head = { .size = sizeof(u), .kind = RT_WIRE_STACK, .pid = PID, .time_ns = 2 },
			   .nr = DEPTH } };
	uint32_t cfa = 0;

	u.stack.id = 1 + site * PLACES + place;
	for (uint32_t i = 0; i < DEPTH; i++) {
		uint32_t function = i ? caller(site, i) : site;

		cfa += frame_bytes(function);
		u.stack.frame[i].cfa = cfa;
		u.stack.frame[i].pc = i ? pc_of(function, caller(site, i - 1) % 8) : pc_of(function, place);
	}
	w->take(w->arg, &u.stack.head);
}

static void give_tables(struct world *w)
{
	static const char *const names[] = { "", "obj_new", "obj_get", "obj_put" };
	struct rt_wire_type *type = rt_record_type(1, "obj", NULL);
	struct rt_wire_module *module = rt_record_module(1, "/usr/bin/reference");
	struct rt_wire_map map = { .head = { .size = sizeof(map), .kind = RT_WIRE_MAP, .time_ns = 1, .pid = PID },
				   .start = TEXT - 0x1000,
				   .end = TEXT + 0x800000,
				   .module = 1 };

	if (!type || !module)
		exit(1);
	type->start = 1;
	type->counter_offset = 0;
	type->counter_size = 4;
	w->take(w->arg, &type->head);
	w->take(w->arg, &module->head);
	w->take(w->arg, &map.head);
	for (uint32_t i = OPS_NEW; i <= OPS_PUT; i++) {
		struct rt_wire_point *point = rt_record_point(i, names[i], NULL);

		if (!point)
			exit(1);
		point->head.op = (uint8_t)i;
		point->type = point->module = 1;
		point->delta = i == OPS_PUT ? -1 : 1;
		point->flags = i == OPS_NEW ? RT_EV_AT_RETURN : 0;
		point->address = point->function = 0x700000 + 0x100 * i;
		w->take(w->arg, &point->head);
		free(point);
	}
	for (uint32_t i = 0; i < SITES * PLACES; i++)
		give_stack(w, i / PLACES, i % PLACES);
	free(type);
	free(module);
}

static void give_event(struct world *w, struct task *t, struct object *o, uint32_t site, uint32_t place, uint32_t op)
{
	unsigned lane = (unsigned)(t - w->tasks);
	uint32_t count = o->count;
	struct rt_wire_event e = {
		.head = { .size = sizeof(e), .kind = RT_WIRE_EVENT, .op = (uint8_t)op, .pid = PID },
		.object = o->address,
		.sp = t->stack_top - depth_of(site),
		.point = op,
		.stack = 1 + site * PLACES + place,
		.delta = op == OPS_PUT ? -1 : 1,
		.flags = RT_EV_COUNT_READ,
	};

	o->count += op == OPS_PUT ? -1u : 1u;
	e.count = op == OPS_NEW ? o->count : count; /* what new made is read when it returns */
	e.flags |= op == OPS_NEW ? RT_EV_AT_RETURN : 0;
	e.head.tid = PID + 1 + lane;
	e.head.seq = lane << RT_SEQ_BITS | (++t->seq & RT_SEQ_MASK);
	e.head.time_ns = t->time_ns + dice(w, 100);
	w->events++;
	w->take(w->arg, &e.head);
	t->time_ns += 900 + dice(w, 200);
	if (!dice(w, 50000))
		t->time_ns += dice(w, 1000000); /* somebody else had the CPU */
}

/* half of the work is on a hundredth of the objects */
static uint32_t choose(struct world *w)
{
	return dice(w, 2) ? dice(w, POOL / 100) : dice(w, POOL);
}

/* the last user of an object whose budget is used up drops the pool's reference next */
static void give_back(struct world *w, struct task *t, uint32_t which, uint32_t site)
{
	struct object *o = &w->pool[which];

	give_event(w, t, o, site, 1, OPS_PUT);
	t->object = which;
	t->drops = !o->budget && o->count == 1;
}

static void act(struct world *w, struct task *t)
{
	struct queue *q = &w->queues[dice(w, QUEUES)];
	uint32_t which = choose(w), site = 2 + QUEUES + dice(w, SITES - 2 - QUEUES);
	struct object *o = &w->pool[which];

	if (t->drops) {
		t->drops = false;
		give_event(w, t, &w->pool[t->object], 1, 1, OPS_PUT);
		w->pool[t->object].ready_ns = t->time_ns;
	} else if (t->holds) {
		t->holds = false;
		if (t->site == SITES - 1 && w->leaked < LEAKS && w->pool[t->object].count == 2 && !dice(w, 1000)) {
			w->leaked++; /* its memory is never used again */
			w->pool[t->object] = (struct object){ .address = 0x555570000000 + w->leaked * 0x60ull };
			return;
		}
		give_back(w, t, t->object, t->site);
	} else if (q->nr == QUEUED_MAX || (q->nr > QUEUED_MAX / 4 && !dice(w, 20))) {
		which = q->object[q->first++ % QUEUED_MAX];
		q->nr--;
		give_back(w, t, which, 2 + (uint32_t)(q - w->queues));
	} else if (o->ready_ns > t->time_ns) {
		return;
	} else if (!o->count) {
		o->budget = 2 + dice(w, 23);
		o->address = o->address ?: 0x555560000000 + which * 0x60ull;
		give_event(w, t, o, 0, 0, OPS_NEW);
		o->ready_ns = t->time_ns;
	} else if (o->budget) {
		o->budget--;
		if (dice(w, 10)) {
			t->holds = true;
			t->object = which;
			t->site = site;
			give_event(w, t, o, site, 0, OPS_GET);
		} else if (q->nr < QUEUED_MAX) {
			q->object[(q->first + q->nr++) % QUEUED_MAX] = which;
			give_event(w, t, o, site, 2, OPS_GET);
		}
	}
}

static void stream(size_t events, void (*take)(void *arg, const struct rt_wire_head *record), void *arg)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		exit(1);
	w->random = 88172645463325252u;
	w->take = take;
	w->arg = arg;
	for (unsigned i = 0; i < THREADS; i++) {
		w->tasks[i].time_ns = UINT64_C(1000000000000) + dice(w, 1000);
		w->tasks[i].stack_top = 0x7ffff6bff000 - i * 0x801000ull;
	}
	give_tables(w);
	while (w->events < events) {
		struct task *first = &w->tasks[0];

		for (unsigned i = 1; i < THREADS; i++) {
			if (w->tasks[i].time_ns < first->time_ns)
				first = &w->tasks[i];
		}
		act(w, first);
	}
	free(w);
}

static size_t name(struct rt_namer *self, uint32_t pid, uint64_t time_ns, uint64_t pc, bool is_return,
		   struct rt_frame *ret, size_t max)
{
	static char names[SITES * (DEPTH + 1)][8];
	uint64_t function = (pc - TEXT) / 0x200;

	if (!max)
		return 0;
	*ret = (struct rt_frame){ .module = "/usr/bin/reference", .module_id = 1, .address = pc };
	if (pc < TEXT || function >= SITES * (DEPTH + 1))
		return 1;
	snprintf(names[function], sizeof(names[0]), "f%u", (unsigned)function);
	ret->function = names[function];
	ret->file = "reference.c";
	ret->line = (uint32_t)(pc - TEXT) / 16;
	ret->entry = TEXT + function * 0x200;
	return 1;
}

static const char *source_line(struct rt_namer *self, uint32_t module_id, const char *file, uint32_t line,
			       bool *ret_stale)
{
	return NULL;
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static struct rt_namer namer = { .name = name, .source_line = source_line };

/* Records are made and told in turns: what is told is in the cache, as it is behind a decoder. */
struct portion {
	struct rt_lifetime *lifetime;
	size_t len;
	double fed_s;
	_Alignas(64) uint8_t bytes[1 << 18];
};

static void feed(struct portion *p)
{
	double start = cpu_s();

	for (size_t at = 0; at < p->len;) {
		const struct rt_wire_head *record = (const struct rt_wire_head *)(const void *)(p->bytes + at);
		size_t n = 0;

		/* as many at once as a decoder gives */
		while (record[0].kind == RT_WIRE_EVENT && n < BLOCK && at < p->len &&
		       ((const struct rt_wire_head *)(const void *)(p->bytes + at))->kind == RT_WIRE_EVENT) {
			at += sizeof(struct rt_wire_event);
			n++;
		}
		if (n) {
			check(rt_lifetime_events(p->lifetime, rt_record_event(record), n));
		} else {
			check(rt_lifetime_record(p->lifetime, record));
			at += record->size;
		}
	}
	p->fed_s += cpu_s() - start;
	p->len = 0;
}

static void keep(void *arg, const struct rt_wire_head *record)
{
	struct portion *p = arg;

	if (p->len + record->size > sizeof(p->bytes))
		feed(p);
	memcpy(p->bytes + p->len, record, record->size);
	p->len += record->size;
}

static void measure(size_t events)
{
	static struct portion portion;
	struct rt_lifetime *lifetime = NULL;
	const struct rt_verdict *verdict;
	double judged;

	check(rt_lifetime_create(NULL, &namer, &lifetime));
	portion.lifetime = lifetime;
	stream(events, keep, &portion);
	feed(&portion);
	judged = cpu_s();
	check(rt_lifetime_verdict(lifetime, &verdict));
	judged = cpu_s() - judged;
	printf("%.3g events: %.1f ns each (%.1f M/s), verdict %.0f ms, %ld MiB at most\n", (double)events,
	       portion.fed_s * 1e9 / (double)events, (double)events / portion.fed_s / 1e6, judged * 1e3,
	       peak_kib() / 1024);
	printf("%llu objects, %zu finding%s", (unsigned long long)verdict->types[0].incarnations,
	       verdict->finding_count, verdict->finding_count ? ":" : "");
	for (size_t i = 0; i < verdict->finding_count; i++)
		printf(" %s %llu", verdict->findings[i].guilty.function ?: "?",
		       (unsigned long long)verdict->findings[i].objects);
	printf("; %zu suspects, %llu live, %s\n", verdict->suspect_count, (unsigned long long)verdict->types[0].live,
	       verdict->trust.complete ? "complete" : "incomplete");
	for (size_t i = 0; i < verdict->trust.note_count; i++)
		printf("    %s\n", verdict->trust.notes[i]);
	rt_lifetime_destroy(lifetime);
}

static void put(void *arg, const struct rt_wire_head *record)
{
	struct rt_event_sink *sink = rt_spool_writer_sink(arg);

	check(sink->record(sink, record));
}

static void write_spool(size_t events, struct rt_sink *sink)
{
	struct rt_spool_writer *writer = NULL;

	check(rt_spool_writer_create(sink, NULL, &writer));
	stream(events, put, writer);
	check(rt_spool_writer_end(writer, 0));
	rt_spool_writer_destroy(writer);
	check(rt_sink_end(sink));
}

static int write_recording(size_t events, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	struct rt_sink sink;

	if (fd < 0) {
		perror(path);
		return 1;
	}
	rt_sink_init_fd(&sink, fd, path);
	write_spool(events, &sink);
	rt_sink_deinit(&sink);
	return 0;
}

/* from the first byte of the spool to the verdict; lifetime NULL: read only */
static double read_spool(struct rt_bytes bytes, struct rt_lifetime *lifetime)
{
	struct rt_spool_reader *reader = NULL;
	const struct rt_verdict *verdict;
	double start = cpu_s(), spent;

	check(rt_spool_reader_create(bytes, "spool", &reader));
	for (;;) {
		const struct rt_wire_head *record;
		size_t n;

		check(rt_spool_reader_next(reader, &record, &n));
		if (!record)
			break;
		if (lifetime && record->kind == RT_WIRE_EVENT)
			check(rt_lifetime_events(lifetime, rt_record_event(record), n));
		else if (lifetime)
			check(rt_lifetime_record(lifetime, record));
	}
	if (lifetime)
		check(rt_lifetime_verdict(lifetime, &verdict));
	spent = cpu_s() - start;
	rt_spool_reader_destroy(reader);
	return spent;
}

/* the least of some turns, as others use the machine, too */
static void measure_spool(size_t events)
{
	double reading = 1e9, all = 1e9;
	struct rt_sink spool;
	struct rt_bytes bytes;

	rt_sink_init_memory(&spool);
	write_spool(events, &spool);
	bytes = rt_bytes_make(spool.buffer, spool.len);
	for (int i = 0; i < TURNS; i++) {
		struct rt_lifetime *lifetime = NULL;
		double spent = read_spool(bytes, NULL);

		reading = spent < reading ? spent : reading;
		check(rt_lifetime_create(NULL, &namer, &lifetime));
		spent = read_spool(bytes, lifetime);
		all = spent < all ? spent : all;
		rt_lifetime_destroy(lifetime);
	}
	printf("spool -> verdict: %.1f ns an event (%.1f M/s), of which reading the spool %.1f ns; the least of %d\n",
	       all * 1e9 / (double)events, (double)events / all / 1e6, reading * 1e9 / (double)events, TURNS);
	rt_sink_deinit(&spool);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "write"))
		return write_recording((size_t)atof(argv[2]), argv[3]);
	measure(argc > 1 ? (size_t)atof(argv[1]) : 10000000);
	measure_spool(argc > 1 ? (size_t)atof(argv[1]) : 10000000);
	return 0;
}
