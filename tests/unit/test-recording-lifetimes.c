/* SPDX-License-Identifier: GPL-2.0-only */
/* Lifetimes that went through perf.data are the stream that went in, record by record, in its order. */
#include "capture/spool.h"
#include "event/blob.h"
#include "event/stream.h"
#include "perfdata/reader.h"
#include "perfdata/reftrace_events.h"
#include "recording/recording.h"
#include "recording/to_perf.h"
#include "test.h"

enum { EVENTS = 30000, THREADS = 5, STACKS = 40, DEPTH = 7 };

struct stream {
	struct rt_sink bytes, spool, file;
	struct rt_spool_writer *writer;
};

static uint64_t dice(void)
{
	static uint64_t random = 88172645463325252u;

	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	return random >> 11;
}

static void give(struct stream *s, const struct rt_wire_head *record)
{
	struct rt_event_sink *sink = rt_spool_writer_sink(s->writer);

	assert_ok(sink->record(sink, record));
}

static void give_stack(struct stream *s, uint32_t pid, uint32_t id)
{
	union {
		struct rt_wire_stack stack;
		uint8_t bytes[sizeof(struct rt_wire_stack) + DEPTH * sizeof(struct rt_wire_frame)];
	} r = { .stack = { .head = { .size = sizeof(r), .kind = RT_WIRE_STACK, .pid = pid }, .id = id, .nr = DEPTH } };

	for (unsigned i = 0; i < DEPTH; i++)
		r.stack.frame[i].pc = 0x401000 + id * 0x100 + i;
	give(s, &r.stack.head);
}

static void give_names(struct stream *s)
{
	struct rt_wire_type *type = rt_record_type(1, "obj", NULL);

	give(s, &type->head);
	free(type);
	for (uint32_t i = 1; i <= 2; i++) {
		struct rt_wire_point *point = rt_record_point(i, i == 1 ? "obj_get" : "obj_put", NULL);

		point->type = 1;
		point->head.op = i == 1 ? RT_OP_GET : RT_OP_PUT;
		give(s, &point->head);
		free(point);
	}
}

/* Two processes with several threads; times stand still, and threads come late. */
static struct rt_wire_event event_make(unsigned i)
{
	static uint64_t now = 1000000000, last[THREADS];
	unsigned thread = (unsigned)(dice() % THREADS);
	uint64_t time = dice() % 50 ? now : now - dice() % 100000;
	uint32_t pid = RT_PID_MAKE(100 + thread % 2, thread == 4 ? 3 : 0);

	if (dice() % 10)
		now += dice() % 300;
	last[thread] = time > last[thread] ? time : last[thread];
	return (struct rt_wire_event){
		.head = { .size = sizeof(struct rt_wire_event),
			  .kind = RT_WIRE_EVENT,
			  .op = i % 3 ? RT_OP_GET : RT_OP_PUT,
			  .seq = thread << RT_SEQ_BITS | i,
			  .time_ns = last[thread],
			  .pid = pid,
			  .tid = thread ? 100 + thread : 0 },
		.object = 0x7f0000000000 + dice() % 1000 * 16,
		.aux = dice() % 8 ? 0 : dice(),
		.sp = 0x7ffc00000000 + thread * 0x1000,
		.count = (uint32_t)(dice() % 9),
		.point = i % 3 ? 1 : 2,
		.stack = (uint32_t)(dice() % STACKS),
		.delta = i % 3 ? 1 : -1,
		.flags = (uint16_t)(dice() % 4),
	};
}

static void stream_open(struct stream *s, const struct rt_to_perf_options *how)
{
	uint8_t header[RT_PERF_HEADER_BYTES];

	rt_sink_init_memory(&s->spool);
	rt_sink_init_memory(&s->file);
	assert_ok(rt_spool_writer_create(&s->spool, NULL, &s->writer));
	give_names(s);
	for (unsigned i = 0; i < EVENTS; i++) {
		struct rt_wire_event event = event_make(i);

		/* in the second half nothing comes between, so that batches are full */
		if (i < EVENTS / 2 && dice() % 100 == 0)
			give_stack(s, event.head.pid, 1 + (uint32_t)(dice() % STACKS));
		give(s, &event.head);
	}
	assert_ok(rt_spool_writer_end(s->writer, 0));
	rt_spool_writer_destroy(s->writer);
	assert_ok(rt_to_perf(rt_bytes_make(s->spool.buffer, s->spool.len), "spool", how, &s->file, header, NULL));
	assert_ok(rt_sink_end(&s->file));
	if (!how->pipe)
		memcpy(s->file.buffer, header, sizeof(header));
}

static void stream_close(struct stream *s)
{
	rt_sink_deinit(&s->spool);
	rt_sink_deinit(&s->file);
}

struct comparison {
	struct rt_recording_sink sink;
	struct rt_source *want;
	unsigned events, losses;
	bool same;
};

static struct rt_error *compare(struct rt_recording_sink *self, const struct rt_wire_head *record)
{
	struct comparison *c = (struct comparison *)(void *)self;
	const struct rt_wire_head *want;

	c->events += record->kind == RT_WIRE_EVENT;
	c->losses += record->kind == RT_WIRE_LOSS;
	if (!c->want)
		return NULL;
	assert_ok(c->want->next(c->want, &want));
	assert_non_null(want);
	c->same &= record->size == want->size && !memcmp(record, want, want->size);
	return NULL;
}

static void same_stream(const struct rt_to_perf_options *how)
{
	struct comparison c = { .sink = { .wire = compare }, .same = true };
	struct rt_spool_reader *spool;
	struct rt_recording *recording;
	const struct rt_wire_head *more;
	struct stream s;

	stream_open(&s, how);
	assert_ok(rt_spool_reader_create(rt_bytes_make(s.spool.buffer, s.spool.len), "spool", &spool));
	c.want = rt_spool_reader_source(spool);
	assert_ok(rt_recording_open(rt_bytes_make(s.file.buffer, s.file.len), "perf.data", &recording));
	assert_ok(rt_recording_drain(recording, &c.sink));
	assert_int_equal(c.events, EVENTS);
	assert_true(c.same);
	assert_ok(c.want->next(c.want, &more));
	assert_null(more);
	assert_null(rt_recording_damage(recording));
	rt_recording_close(recording);
	rt_spool_reader_destroy(spool);
	stream_close(&s);
}

TEST(file)
{
	same_stream(&(struct rt_to_perf_options){ .zstd_level = 0 });
}

TEST(compressed)
{
	same_stream(&(struct rt_to_perf_options){ .zstd_level = RT_TO_PERF_ZSTD_LEVEL });
}

TEST(pipe)
{
	same_stream(&(struct rt_to_perf_options){ .pipe = true });
}

struct seen {
	struct rt_recording_sink sink;
	struct rt_wire_event last[THREADS];
	unsigned samples, out_of_order;
};

static struct rt_error *see(struct rt_recording_sink *self, const struct rt_perf_event *events,
			    const struct rt_perf_record *record)
{
	struct seen *s = (struct seen *)(void *)self;
	struct rt_wire_event event, *last;

	if (record->type != RT_PERF_SAMPLE || !rt_reftrace_op_read(record, false, &event, NULL) ||
	    rt_reftrace_name(events[record->event].name, NULL, NULL, NULL) != RT_REFTRACE_OP)
		return NULL;
	last = &s->last[event.head.seq >> RT_SEQ_BITS];
	s->out_of_order += event.head.time_ns == last->head.time_ns && event.head.seq < last->head.seq;
	assert_true(event.head.time_ns >= last->head.time_ns);
	*last = event;
	s->samples++;
	return NULL;
}

/* perf and ours take samples by time, and those of one time as they stand: a thread's own order comes out. */
TEST(same_time_in_a_thread)
{
	struct seen seen = { .sink = { .perf = see, .all = true } };
	struct rt_recording *recording;
	struct stream s;

	stream_open(&s, &(struct rt_to_perf_options){ .zstd_level = 0 });
	assert_ok(rt_recording_open(rt_bytes_make(s.file.buffer, s.file.len), "perf.data", &recording));
	assert_ok(rt_recording_drain(recording, &seen.sink));
	assert_int_equal(seen.samples, EVENTS);
	assert_int_equal(seen.out_of_order, 0);
	rt_recording_close(recording);
	stream_close(&s);
}

/* The place of field turn in the n-th operation of the file, which is not compressed. */
static uint8_t *turn_of(struct stream *s, unsigned n)
{
	struct rt_perf_reader *reader;
	struct rt_perf_record record;
	struct rt_wire_event event;
	uint8_t *found = NULL;
	unsigned seen = 0;
	bool more = true;

	assert_ok(rt_perf_reader_create(rt_bytes_make(s->file.buffer, s->file.len), "perf.data", &reader));
	while (!found && more) {
		assert_ok(rt_perf_reader_next(reader, &record, &more));
		if (more && record.type == RT_PERF_SAMPLE && record.sample.chain_count &&
		    rt_reftrace_op_read(&record, false, &event, NULL) && seen++ == n)
			found = (uint8_t *)s->file.buffer + (record.sample.raw.data - (uint8_t *)s->file.buffer) +
				RT_PERF_RAW_COMMON + __builtin_offsetof(struct rt_reftrace_op, turn);
	}
	rt_perf_reader_destroy(reader);
	return found;
}

/* Places that cannot be: every event is there, by time, and it is said. */
TEST(order_is_damaged)
{
	static const int16_t wrong[] = { 1, -1, INT16_MAX, INT16_MIN };

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct comparison c = { .sink = { .wire = compare } };
		struct rt_recording *recording;
		struct stream s;
		int16_t turn;
		uint8_t *at;

		stream_open(&s, &(struct rt_to_perf_options){ .zstd_level = 0 });
		at = turn_of(&s, EVENTS / 3);
		assert_non_null(at);
		memcpy(&turn, at, sizeof(turn));
		turn = (int16_t)(turn + wrong[i]);
		memcpy(at, &turn, sizeof(turn));
		assert_ok(rt_recording_open(rt_bytes_make(s.file.buffer, s.file.len), "perf.data", &recording));
		assert_ok(rt_recording_drain(recording, &c.sink));
		assert_int_equal(c.events, EVENTS);
		assert_int_equal(c.losses, 1);
		assert_string_equal(rt_recording_damage(recording), "the order of some events cannot be read");
		rt_recording_close(recording);
		stream_close(&s);
	}
}

/* What is cut of one BPF program costs that program, not the recording. */
TEST(cut_bpf_program)
{
	/* info and data of 8 bytes each, of which the data ends early */
	const uint32_t cut[] = { 8, 8, 0, 0, 0, 0, 0 }, whole[] = { 8, 8, 0, 0, 0, 0, 0, 0 };
	uint8_t header[RT_PERF_HEADER_BYTES];
	struct rt_to_perf_result result;
	struct rt_recording *recording;
	const char *const *texts;
	struct rt_chain *chain;
	struct rt_maps *maps;
	struct stream s;
	size_t count;

	rt_sink_init_memory(&s.spool);
	rt_sink_init_memory(&s.file);
	assert_ok(rt_spool_writer_create(&s.spool, NULL, &s.writer));
	give_names(&s);
	assert_ok(rt_blob_emit(rt_spool_writer_sink(s.writer), RT_BLOB_BPF_PROG, 1, rt_bytes_make(cut, sizeof(cut))));
	assert_ok(
		rt_blob_emit(rt_spool_writer_sink(s.writer), RT_BLOB_BPF_PROG, 2, rt_bytes_make(whole, sizeof(whole))));
	assert_ok(rt_spool_writer_end(s.writer, 0));
	rt_spool_writer_destroy(s.writer);
	assert_ok(rt_to_perf(rt_bytes_make(s.spool.buffer, s.spool.len), "spool", &(struct rt_to_perf_options){ 0 },
			     &s.file, header, &result));
	assert_int_equal(result.bpf_programs, 1);
	assert_int_equal(result.bpf_lost, 1);
	free(result.damage);
	memcpy(s.file.buffer, header, sizeof(header));
	assert_ok(rt_recording_open(rt_bytes_make(s.file.buffer, s.file.len), "perf.data", &recording));
	assert_ok(rt_maps_create(&maps));
	assert_ok(rt_chain_create(maps, NULL, &chain));
	assert_ok(rt_recording_code(recording, chain));
	rt_recording_bpf(recording, &count);
	assert_int_equal(count, 1);
	assert_int_equal(rt_recording_bpf_lost(recording, &texts), 1);
	assert_string_equal(texts[0], "program 1: its entry is cut");
	rt_recording_close(recording);
	rt_chain_destroy(chain);
	rt_maps_destroy(maps);
	stream_close(&s);
}

TEST_MAIN();
