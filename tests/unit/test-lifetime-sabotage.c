/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Streams that are damaged in the ways engines and files are: an event is
 * missing, records change places, counters are off, a point was not armed, the
 * end is cut. The analysis may lose the fault, but then it has to say that it
 * is not complete; it must never name another function with confidence, nor
 * call the stream clean and complete.
 */
#include "lifetime.h"

enum { RECORDS = 4096, ROUNDS = 1000 };

struct stream {
	struct rt_wire_head *records[RECORDS];
	unsigned n;
};

static uint64_t seed = 1;

static unsigned roll(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed % n);
}

static struct rt_wire_head *copy_of(const struct rt_wire_head *r)
{
	struct rt_wire_head *copy = malloc(r->size);

	assert_non_null(copy);
	memcpy(copy, r, r->size);
	return copy;
}

static void stream_read(struct rt_text *text, struct stream *ret)
{
	const struct rt_wire_head *r;

	ret->n = 0;
	for (;;) {
		assert_ok(rt_text_source(text)->next(rt_text_source(text), &r));
		if (!r)
			return;
		assert_true(ret->n < RECORDS);
		ret->records[ret->n++] = copy_of(r);
	}
}

static void stream_copy(const struct stream *from, struct stream *ret)
{
	ret->n = from->n;
	for (unsigned i = 0; i < from->n; i++)
		ret->records[i] = copy_of(from->records[i]);
}

static void stream_free(struct stream *s)
{
	for (unsigned i = 0; i < s->n; i++)
		free(s->records[i]);
	s->n = 0;
}

static void drop(struct stream *s, unsigned i)
{
	free(s->records[i]);
	memmove(&s->records[i], &s->records[i + 1], (s->n - i - 1) * sizeof(s->records[0]));
	s->n--;
}

static void insert(struct stream *s, unsigned i, struct rt_wire_head *r)
{
	assert_non_null(r);
	assert_true(s->n < RECORDS);
	memmove(&s->records[i + 1], &s->records[i], (s->n - i) * sizeof(s->records[0]));
	s->records[i] = r;
	s->n++;
}

static unsigned any_event(const struct stream *s)
{
	for (;;) {
		unsigned i = roll(s->n);

		if (s->records[i]->kind == RT_WIRE_EVENT)
			return i;
	}
}

static struct rt_wire_event *event_at(const struct stream *s, unsigned i)
{
	return (struct rt_wire_event *)(void *)s->records[i];
}

/* numbers without gaps, as if what is missing had never been sent */
static void renumber(struct stream *s)
{
	uint32_t next[4096] = { 0 };

	for (unsigned i = 0; i < s->n; i++) {
		uint32_t producer = s->records[i]->seq >> RT_SEQ_BITS;

		if (s->records[i]->seq)
			s->records[i]->seq = producer << RT_SEQ_BITS | ++next[producer];
	}
}

static void drop_hits(struct stream *s, uint32_t point)
{
	for (unsigned i = 0; i < s->n; i++) {
		const struct rt_wire_loss *r = (const struct rt_wire_loss *)(void *)s->records[i];

		if (r->head.kind == RT_WIRE_HITS && (!point || r->point == point))
			drop(s, i--);
	}
}

/* there is an event of the same producer before and after this one */
static bool numbers_show(const struct stream *s, unsigned at)
{
	bool before = false, after = false;

	for (unsigned i = 0; i < s->n; i++) {
		if (s->records[i]->seq >> RT_SEQ_BITS == s->records[at]->seq >> RT_SEQ_BITS && s->records[i]->seq) {
			before |= i < at;
			after |= i > at;
		}
	}
	return before && after;
}

/* one event is missing: the numbers show it, or a loss record does, or the hits do */
static const char *lose_one(struct stream *s)
{
	unsigned i = any_event(s), how = roll(3);
	uint32_t point = event_at(s, i)->point;

	if (how == 0 && !numbers_show(s, i))
		how = 1;
	drop(s, i);
	if (how == 0) {
		drop_hits(s, 0);
		return "gap";
	}
	renumber(s);
	if (how == 1)
		return "hits";
	insert(s, s->n, &rt_record_loss(RT_LOSS_RING, roll(2) ? point : 0, 1, "")->head);
	drop_hits(s, 0);
	return "loss";
}

static const char *swap_two(struct stream *s)
{
	unsigned i = any_event(s), j = any_event(s);
	struct rt_wire_head *r = s->records[i];

	s->records[i] = s->records[j];
	s->records[j] = r;
	return "swap";
}

static const char *shift_counts(struct stream *s)
{
	unsigned i = any_event(s);
	int by = (int)roll(5) - 2;
	uint64_t object = event_at(s, i)->object;
	bool one = roll(2);

	by = by ? by : 3;
	for (unsigned k = one ? i : 0; k < (one ? i + 1 : s->n); k++) {
		if (s->records[k]->kind == RT_WIRE_EVENT && event_at(s, k)->object == object)
			event_at(s, k)->count += (uint32_t)by;
	}
	return "shift";
}

static const char *unarm(struct stream *s)
{
	uint32_t point = event_at(s, any_event(s))->point;

	for (unsigned i = 0; i < s->n; i++) {
		if (s->records[i]->kind == RT_WIRE_EVENT && event_at(s, i)->point == point)
			drop(s, i--);
	}
	drop_hits(s, point);
	renumber(s);
	insert(s, s->n, &rt_record_loss(RT_LOSS_UNARMED, point, 0, "another breakpoint is there")->head);
	return "unarm";
}

static const char *cut(struct stream *s)
{
	unsigned at = any_event(s);

	while (s->n > at)
		drop(s, s->n - 1);
	insert(s, s->n, &rt_record_loss(RT_LOSS_CUT, 0, 0, "")->head);
	return "cut";
}

/* runs the damaged stream; what is wrong about the verdict, or NULL */
static const char *verdict_fault(struct rt_text *text, const struct stream *s, const char *guilty, bool print)
{
	struct rt_lifetime *lt = NULL;
	const struct rt_verdict *v = NULL;
	const char *fault = NULL;

	assert_ok(rt_lifetime_create(NULL, rt_text_namer(text), &lt));
	for (unsigned i = 0; i < s->n; i++)
		assert_ok(rt_lifetime_record(lt, s->records[i]));
	assert_ok(rt_lifetime_verdict(lt, &v));
	for (size_t i = 0; i < v->finding_count; i++) {
		const char *name = v->findings[i].guilty.function;

		if (!name || strcmp(name, guilty))
			fault = "names another function";
	}
	if (!v->finding_count && v->trust.complete)
		fault = "calls it clean and complete";
	if (print)
		story_print(v);
	rt_lifetime_destroy(lt);
	return fault;
}

static void sabotage(char *events, const char *guilty)
{
	static const char *(*const ways[])(struct stream *) = { lose_one, swap_two, shift_counts, unarm, cut };
	struct rt_text *text = NULL;
	static struct stream whole, damaged;

	assert_ok(rt_text_create(events, strlen(events), "sabotage", &text));
	stream_read(text, &whole);
	if (verdict_fault(text, &whole, guilty, false)) {
		verdict_fault(text, &whole, guilty, true);
		fail_msg("the whole stream: %s is not named", guilty);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		const char *way, *fault;

		stream_copy(&whole, &damaged);
		way = ways[round % 5](&damaged);
		fault = verdict_fault(text, &damaged, guilty, false);
		if (fault) {
			verdict_fault(text, &damaged, guilty, true);
			for (unsigned i = 0; i < damaged.n && getenv("SABOTAGE_DUMP"); i++) {
				const struct rt_wire_event *e = event_at(&damaged, i);

				if (e->head.kind == RT_WIRE_EVENT)
					print_message("%s 0x%llx tid %u count %d t %llu stack %u seq %x\n",
						      rt_op_name(e->head.op), (unsigned long long)e->object,
						      e->head.tid, (int)e->count, (unsigned long long)e->head.time_ns,
						      e->stack, e->head.seq);
			}
			fail_msg("round %u, %s: %s (guilty is %s)", round, way, fault, guilty);
		}
		stream_free(&damaged);
	}
	stream_free(&whole);
	rt_text_destroy(text);
	free(events);
}

#define OK_TURN(c1, c2, c3, c4, c5) \
	"new obj $ main@leak.c:38\n" \
	"get obj $ main;handle@leak.c:39 " c1 "\n" \
	"get obj $ main;handle@leak.c:40;parse_header@leak.c:29 " c2 "\n" \
	"put obj $ main;handle@leak.c:40;parse_header@leak.c:32 " c3 "\n" \
	"put obj $ main;handle@leak.c:42 " c4 "\n" \
	"put obj $ main@leak.c:43 " c5 "\n"
#define BAD_TURN(c1, c2, c3, c4) \
	"new obj $ main@leak.c:38\n" \
	"get obj $ main;handle@leak.c:39 " c1 "\n" \
	"get obj $ main;handle@leak.c:40;parse_header@leak.c:29 " c2 "\n" \
	"put obj $ main;handle@leak.c:42 " c3 "\n" \
	"put obj $ main@leak.c:43 " c4 "\n"

static char *with_type(char *events)
{
	return story_join(strdup("type obj start=1\n"), events, "");
}

TEST(missing_put_exact_counts)
{
	sabotage(with_type(story_join(story_loop(OK_TURN("count=1", "count=2", "count=3", "count=2", "count=1"), 0, 12),
				      story_loop(BAD_TURN("count=1", "count=2", "count=3", "count=2"), 12, 4),
				      "hits\nexit 0\n")),
		 "parse_header");
}

TEST(missing_put_read_counts)
{
	sabotage(with_type(story_join(story_loop(OK_TURN("read=1", "read=2", "read=3", "read=2", "read=1"), 0, 12),
				      story_loop(BAD_TURN("read=1", "read=2", "read=3", "read=2"), 12, 4),
				      "hits\nexit 0\n")),
		 "parse_header");
}

TEST(missing_put_without_counter)
{
	sabotage(with_type(story_join(story_loop(OK_TURN("", "", "", "", ""), 0, 12),
				      story_loop(BAD_TURN("", "", "", ""), 12, 4), "hits\nexit 0\n")),
		 "parse_header");
}

TEST(missing_put_with_census)
{
	char *end =
		story_join(story_loop("final $ count=1\nheld $ none\n", 12, 4), NULL, "mark census\nhits\nexit 0\n");

	sabotage(with_type(story_join(
			 story_join(story_loop(OK_TURN("count=1", "count=2", "count=3", "count=2", "count=1"), 0, 12),
				    story_loop(BAD_TURN("count=1", "count=2", "count=3", "count=2"), 12, 4), ""),
			 end, "")),
		 "parse_header");
}

TEST(extra_put)
{
	char *twins = story_loop("new obj $ main;setup@d.c:5\n"
				 "get obj $ main;worker@d.c:10 count=1\n"
				 "put obj $ main;worker@d.c:15 count=2\n"
				 "put obj $ main;shutdown_all@d.c:9 count=1\n",
				 0, 12);
	char *bad = story_loop("new obj $ main;setup@d.c:5\n"
			       "get obj $ main;worker@d.c:10 count=1\n"
			       "put obj $ main;worker@d.c:12;on_error@d.c:30 count=2\n"
			       "put obj $ main;worker@d.c:15 count=1\n"
			       "put obj $ main;shutdown_all@d.c:9 count=0\n",
			       12, 2);

	sabotage(with_type(story_join(twins, bad, "hits\nexit 0\n")), "on_error");
}

TEST(handed_to_a_thread)
{
	const char *turn = "tid=1\nnew obj $ main;produce@q.c:5\n"
			   "tid=7\nget obj $ thread_main;consume@q.c:20 count=1\n"
			   "put obj $ thread_main;consume@q.c:25 count=2\n"
			   "put obj $ thread_main;consume@q.c:26 count=1\n";
	char *events = story_join(story_loop(turn, 0, 8),
				  story_loop("tid=1\nnew obj $ main;produce@q.c:5\n"
					     "tid=7\nget obj $ thread_main;consume@q.c:20 count=1\n"
					     "put obj $ thread_main;consume@q.c:22 count=2\n",
					     8, 3),
				  "");

	sabotage(with_type(story_join(events, story_loop(turn, 11, 8), "thread 7 end\nhits\nexit 0\n")), "consume");
}

TEST(any_bit)
{
	char *events = story_join(story_loop(OK_TURN("count=1", "count=2", "count=3", "count=2", "count=1"), 0, 4),
				  story_loop(BAD_TURN("count=1", "count=2", "count=3", "count=2"), 4, 2),
				  "held 0x1100 none\nmark census\nhits\nexit 0\n");
	struct rt_text *text = NULL;
	static struct stream whole, damaged;

	assert_ok(rt_text_create(events, strlen(events), "bits", &text));
	stream_read(text, &whole);
	for (unsigned round = 0; round < 3000; round++) {
		struct rt_lifetime *lt = NULL;
		const struct rt_verdict *v = NULL;

		stream_copy(&whole, &damaged);
		for (unsigned flips = 1 + roll(4); flips; flips--) {
			struct rt_wire_head *r = damaged.records[roll(damaged.n)];
			unsigned size = r->size, byte = roll(size);

			((uint8_t *)r)[byte] ^= (uint8_t)(1u << roll(8));
			if (!rt_record_valid(r, size))
				((uint8_t *)r)[byte] = 0, r->size = (uint16_t)size;
		}
		assert_ok(rt_lifetime_create(NULL, rt_text_namer(text), &lt));
		for (unsigned i = 0; i < damaged.n; i++) {
			if (rt_record_valid(damaged.records[i], whole.records[i]->size))
				assert_ok(rt_lifetime_record(lt, damaged.records[i]));
		}
		assert_ok(rt_lifetime_verdict(lt, &v));
		rt_lifetime_destroy(lt);
		stream_free(&damaged);
	}
	stream_free(&whole);
	rt_text_destroy(text);
	free(events);
}

TEST_MAIN();
