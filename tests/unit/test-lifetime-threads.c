/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Made-up programs with threads. Each operation is probed a little before it
 * takes effect, and the probe loads the counter as it is at that moment: what
 * uprobes see. A healthy program must stay silent, a leak keep its function.
 */
#include <inttypes.h>

#include "lifetime.h"

enum { OBJECTS = 200, THREADS = 3, OPS = 16 };

struct op {
	uint64_t effect_ns, probe_ns;
	unsigned tid;
	const char *op, *stack;
	int delta, count;
	bool exact;
	uint64_t object;
};

static uint64_t seed;

static uint64_t roll(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

static int by_probe(const void *a, const void *b)
{
	const struct op *x = a, *y = b;

	return x->probe_ns < y->probe_ns ? -1 : x->probe_ns > y->probe_ns;
}

static void add(struct op *ops, unsigned *n, unsigned tid, uint64_t at, const char *op, const char *stack, int delta,
		uint64_t object)
{
	at = at / OPS * OPS + *n % OPS; /* no two at once */
	ops[*n] = (struct op){ .effect_ns = at, .probe_ns = at - roll(3000), .tid = tid, .op = op, .stack = stack };
	ops[*n].delta = delta;
	ops[(*n)++].object = object;
}

/* one object: made by main, handed to workers that take their own reference, put by all in any order */
static unsigned life(struct op *ops, uint64_t start, uint64_t object, bool leaks)
{
	unsigned n = 0;

	add(ops, &n, 1, start, "new", "main;produce@p.c:3", 1, object);
	for (unsigned t = 0; t < THREADS; t++) {
		add(ops, &n, 10 + t, start + 5000 + roll(4000), "get", "worker;work@p.c:20", 1, object);
		if (!leaks || t)
			add(ops, &n, 10 + t, start + 15000 + roll(9000), "put", "worker;work@p.c:29", -1, object);
	}
	add(ops, &n, 1, start + 15000 + roll(9000), "put", "main;produce@p.c:8", -1, object);
	return n;
}

static void counts(struct op *ops, unsigned n, bool exact)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t at = exact ? ops[i].effect_ns : ops[i].probe_ns;

		for (unsigned k = 0; k < n; k++) {
			if (ops[k].effect_ns < at)
				ops[i].count += ops[k].delta;
		}
		ops[i].exact = exact;
	}
}

static char *program(unsigned leaks, bool exact)
{
	struct op *all = calloc(OBJECTS * OPS, sizeof(*all));
	unsigned n = 0;
	char *out = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&out, &len);

	for (unsigned i = 0; i < OBJECTS; i++) {
		unsigned made = life(all + n, 100000 + i * 7000, 0x1000 + i * 0x40, i % 4 == 1 && i / 4 < leaks);

		counts(all + n, made, exact);
		n += made;
	}
	qsort(all, n, sizeof(*all), by_probe);
	fprintf(f, "type obj start=1\n");
	for (unsigned i = 0; i < n; i++) {
		fprintf(f, "tid=%u\nt=%" PRIu64 " %s obj 0x%" PRIx64 " %s", all[i].tid, all[i].probe_ns, all[i].op,
			all[i].object, all[i].stack);
		if (strcmp(all[i].op, "new"))
			fprintf(f, " %s=%d", exact ? "count" : "read", all[i].count);
		fputc('\n', f);
	}
	for (unsigned t = 0; t < THREADS; t++)
		fprintf(f, "thread %u end\n", 10 + t);
	fprintf(f, "hits\nexit 0\n");
	fclose(f);
	free(all);
	return out;
}

static void run(unsigned leaks, bool exact)
{
	for (seed = 1; seed < 60; seed += 3) {
		uint64_t old = seed;
		char *events = program(leaks, exact);
		struct story s = story_run(events, NULL);
		bool wrong = s.verdict->finding_count != (leaks != 0) || !s.verdict->trust.complete;

		if (!wrong && leaks)
			wrong = strcmp(s.verdict->findings[0].guilty.function, "work") != 0 ||
				s.verdict->findings[0].objects != leaks;
		if (wrong || s.verdict->types[0].live != leaks) {
			story_print(s.verdict);
			fail_msg("seed %" PRIu64 ": %zu findings, %" PRIu64 " alive", old, s.verdict->finding_count,
				 s.verdict->types[0].live);
		}
		story_end(&s);
		free(events);
		seed = old;
	}
}

TEST(healthy_with_read_counts)
{
	run(0, false);
}

TEST(healthy_with_exact_counts)
{
	run(0, true);
}

TEST(leaky_with_read_counts)
{
	run(20, false);
}

TEST(leaky_with_exact_counts)
{
	run(20, true);
}

/*
 * Thread 11 lost the processor between its put and the probe behind it: its event
 * comes long after the others saw the counter go down.
 */
static const char late[] =
	"type obj start=1\n"
	"tid=1\nt=1000 new obj 0x10 main@p.c:1\n"
	"tid=11\nt=2000 get obj 0x10 worker@p.c:20 read=1\n"
	"tid=12\nt=500000 get obj 0x10 worker@p.c:20 read=%d\n"
	"t=900000 put obj 0x10 worker@p.c:29 read=%d\n"
	"tid=11\nt=30000000 put obj 0x10 worker@p.c:29 read=2\n"
	"thread 11 end\nthread 12 end\ntid=1\nt=40000000 put obj 0x10 main@p.c:2 read=%d\nhits\nexit 0\n";

static bool complete(int second, int third, int last)
{
	_cleanup_free_ char *events = NULL;
	struct story s;
	bool ret;

	assert_true(asprintf(&events, late, second, third, last) > 0);
	s = story_run(events, NULL);
	ret = s.verdict->trust.complete;
	story_end(&s);
	return ret;
}

TEST(a_put_that_was_told_late)
{
	assert_true(complete(2, 3, 1));
	assert_true(complete(1, 2, 1));
	/* what no thread can have done, and what all have spoken of since */
	assert_false(complete(7, 8, 1));
	assert_false(complete(1, 2, 2));
}

/*
 * Thread 11 puts first and tells of it last: the other's put took the last reference, so what 11 reads behind its own
 * is memory that is free, whatever lies in it by then.
 */
TEST(the_last_put_is_told_first)
{
	static const char events[] =
		"type obj start=1\n"
		"tid=11\nt=1000 new obj 0x10 produce@p.c:1\nt=2000 get obj 0x10 produce@p.c:2 read=1\n"
		"tid=12\nt=500000 put obj 0x10 consume@p.c:9 read=1\n"
		"tid=11\nt=505000 put obj 0x10 produce@p.c:3 read=%d\n"
		"t=600000 new obj 0x10 produce@p.c:1\nt=601000 put obj 0x10 produce@p.c:3 read=1\n"
		"thread 12 end\nhits\nexit 0\n";

	for (int garbage = 0; garbage < 40; garbage += 3) {
		_cleanup_free_ char *text = NULL;
		struct story s;

		assert_true(asprintf(&text, events, garbage) > 0);
		s = story_run(text, NULL);
		assert_true(s.verdict->trust.complete);
		assert_int_equal(s.verdict->finding_count, 0);
		assert_int_equal(s.verdict->types[0].live, 0);
		story_end(&s);
	}
}

struct acts {
	struct rt_life_observer observer;
	uint32_t act[16];
	unsigned n;
};

static void step(struct rt_life_observer *self, const struct rt_life_step *step)
{
	struct acts *a = (struct acts *)(void *)self;

	assert_in_range(a->n, 0, 15);
	a->act[a->n++] = step->act;
}

static void moved(struct rt_life_observer *self, const struct rt_life_step *from, const struct rt_life_step *to)
{
	fail_msg("nothing is nested here");
}

static void end(struct rt_life_observer *self, uint32_t type, uint64_t serial, uint64_t time_ns, bool died)
{
}

#define DEEP(line) "main@a.c:1;a@a.c:11;b@a.c:12;c@a.c:13;d@a.c:14;e@a.c:15;i@a.c:16;j@a.c:17;k@a.c:" line ";"

/* a run of a function lasts until something else stands in its place, or was called from elsewhere */
TEST(activations_of_deep_stacks)
{
	static const char events[] =
		"type obj start=1\nnew obj 0x10 main@a.c:1\n"
		"get obj 0x10 " DEEP(
			"18") "f@a.c:20\n"
			      "get obj 0x10 " DEEP(
				      "18") "f@a.c:22;g@a.c:30\n"
					    "put obj 0x10 " DEEP(
						    "18") "f@a.c:23\n"
							  "get obj 0x10 " DEEP(
								  "18") "h@a.c:40\n"
									"put obj 0x10 " DEEP(
										"18") "f@a.c:23\n"
										      "put obj 0x10 " DEEP(
											      "19") "f@a.c:23\n";
	struct acts acts = { .observer = { step, moved, end } };
	const struct rt_wire_head *record;
	const uint32_t *act = acts.act;
	struct story s = { 0 };

	assert_ok(rt_text_create(events, strlen(events), "story", &s.text));
	assert_ok(rt_lifetime_create(NULL, rt_text_namer(s.text), &s.lifetime));
	rt_lifetime_observe(s.lifetime, &acts.observer);
	do {
		assert_ok(rt_text_source(s.text)->next(rt_text_source(s.text), &record));
		if (record)
			assert_ok(rt_lifetime_record(s.lifetime, record));
	} while (record);
	assert_ok(rt_lifetime_verdict(s.lifetime, &s.verdict));
	assert_int_equal(acts.n, 7);
	for (unsigned i = 0; i < 7; i++) {
		assert_int_not_equal(act[i], 0);
		for (unsigned k = 0; k < i; k++)
			assert_int_equal(act[i] == act[k], k == 1 && i == 3);
	}
	story_end(&s);
}

/* 40 000 events of main between the two texts, 1 us each: more than the analysis keeps in order */
static char *far_apart(const char *before, const char *after)
{
	char *out = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&out, &len);

	fputs(before, f);
	fprintf(f, "tid=1 pid=1\n");
	for (unsigned i = 0; i < 20000; i++)
		fprintf(f, "get obj 0x10 main;f@a.c:2\nput obj 0x10 main;f@a.c:3\n");
	fputs(after, f);
	fclose(f);
	return out;
}

/* What a new thread does first takes long, and is told behind it: the other one has seen by then that it was done. */
TEST(first_put_of_a_thread)
{
	story_lives("tid=1\nnew obj 0x20 main;make@w.c:5 read=1 flags=return\nget obj 0x20 main;make@w.c:6 read=1\n"
		    "put obj 0x20 main;make@w.c:8 read=2\nput obj 0x20 main;stop@w.c:9 read=1\n"
		    "new obj 0x10 main;make@w.c:5 read=1 flags=return\nget obj 0x10 main;make@w.c:6 read=1\n"
		    "thread 7\nput obj 0x10 main;make@w.c:8 read=1\n"
		    "t=+300000 put obj 0x10 loop;work@w.c:22 read=6 tid=7\nthread 7 end\nhits\nexit 0\n",
		    2, 0);
}

/*
 * A put is told so late that the memory of its object has another one by then, which the first thread was already at.
 */
TEST(put_behind_the_next_birth)
{
	static const char *const others[] = {
		"put obj 0x10 loop;work@w.c:22 read=2 tid=7\nget obj 0x10 main;make@w.c:6 read=1\n"
		"put obj 0x10 main;make@w.c:8 read=2\n",
		"get obj 0x10 main;make@w.c:6 read=1\nput obj 0x10 main;make@w.c:8 read=2\n"
		"t=+400000 put obj 0x10 loop;work@w.c:22 read=2 tid=7\n",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		char *life = story_loop("tid=1\nnew obj $ main;make@w.c:5 read=1 flags=return\n"
					"get obj $ main;make@w.c:6 read=1\nput obj $ main;make@w.c:8 read=2\n"
					"tid=7\nput obj $ loop;work@w.c:22 read=1\n",
					0, 6);
		char *told_late = NULL, *events;

		assert_true(asprintf(&told_late,
				     "tid=1\nnew obj 0x10 main;make@w.c:5 read=1 flags=return\n"
				     "get obj 0x10 main;make@w.c:6 read=1\nput obj 0x10 main;make@w.c:8 read=1\n"
				     "new obj 0x10 main;make@w.c:5 read=1 flags=return\n%s"
				     "put obj 0x10 loop;work@w.c:22 read=1 tid=7\n",
				     others[i]) > 0);
		events = story_join(life, told_late, "thread 7 end\nhits\nexit 0\n");
		story_lives(events, 8, 0);
		free(events);
	}
}

/* Times say where a thread lived: an event outside is damage, and a record that only comes late is none. */
TEST(lives_of_threads)
{
	static const struct {
		const char *what, *before, *after;
		bool damaged;
	} cases[] = {
		{ "at its end", "t=2000 thread 7 end\nt=12000 get obj 0x10 a@a.c:9 tid=7", "", false },
		{ "after its end", "t=2000 thread 7 end\nt=12001 get obj 0x10 a@a.c:9 tid=7", "", true },
		{ "long after its end", "t=2000 thread 7 end\n", "get obj 0x10 a@a.c:9 tid=7", true },
		{ "late, of before its end", "t=2000 thread 7 end\n", "t=1500 get obj 0x10 a@a.c:9 tid=7", false },
		{ "end of another process's", "t=2000 thread 7 end pid=2 tid=2", "get obj 0x10 a@a.c:9 pid=1 tid=7",
		  false },
		{ "at its beginning", "t=2000 get obj 0x10 a@a.c:9 tid=7\nt=12000 thread 7 tid=1", "", false },
		{ "before its beginning", "t=2000 get obj 0x10 a@a.c:9 tid=7\nt=12001 thread 7 tid=1", "", true },
		{ "late, of before its beginning", "t=90000 thread 7", "t=2000 get obj 0x10 a@a.c:9 tid=7", true },
		{ "a number again", "t=2000 thread 7\nt=3000 thread 7 end\nt=30000 thread 7\n",
		  "get obj 0x10 a@a.c:9 tid=7", false },
		{ "a number again, late of the first", "t=2000 thread 7\nt=3000 thread 7 end\nt=30000 thread 7\n",
		  "t=2500 get obj 0x10 a@a.c:9 tid=7", false },
		{ "a number again, after its end",
		  "t=2000 thread 7 end\nt=30000 thread 7\nt=40000 thread 7 end\nt=60000 get obj 0x10 a@a.c:9 tid=7", "",
		  true },
		{ "after the end of its process", "t=2000 exit pid=2 tid=2", "get obj 0x20 a@a.c:9 pid=2 tid=2", true },
		{ "a process again", "t=2000 exit pid=2 tid=2\nt=3000 fork 2 pid=1 tid=1",
		  "get obj 0x20 a@a.c:9 pid=2 tid=2", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *before = NULL, *events;
		struct story s;
		bool said = false;

		assert_true(asprintf(&before, "t=1000 new obj 0x10 main@a.c:1\n%s\n", cases[i].before) > 0);
		events = far_apart(before, cases[i].after);
		s = story_run(events, NULL);
		for (size_t k = 0; k < s.verdict->trust.note_count; k++)
			said |= strstr(s.verdict->trust.notes[k], "did not live") != NULL;
		if (said != cases[i].damaged || (said && s.verdict->trust.complete))
			fail_msg("%s: %s", cases[i].what, said ? "called damaged" : "believed");
		story_end(&s);
		free(events);
		free(before);
	}
}

TEST_MAIN();
