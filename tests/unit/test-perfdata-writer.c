/* SPDX-License-Identifier: GPL-2.0-only */
/* The bytes that are written, and what is refused. */
#include <linux/bpf.h>

#include "perfdata/encode.h"
#include "recorded.h"

static uint64_t u64_at(struct rt_bytes bytes, size_t offset)
{
	uint64_t value;

	assert_true(offset + sizeof(value) <= bytes.size);
	memcpy(&value, bytes.data + offset, sizeof(value));
	return value;
}

static uint32_t u32_at(struct rt_bytes bytes, size_t offset)
{
	uint32_t value;

	assert_true(offset + sizeof(value) <= bytes.size);
	memcpy(&value, bytes.data + offset, sizeof(value));
	return value;
}

/* A writer into memory with one event and one sample. */
struct written {
	struct rt_sink sink;
	struct rt_perf_writer *writer;
	struct rt_bytes header;
	struct rt_bytes bytes;
};

static void written_open(struct written *w, const struct rt_perf_writer_options *options,
			 const struct rt_perf_event *event)
{
	uint64_t id = 5;
	struct rt_perf_event usual = recorded_clock(&id, 0);

	*w = (struct written){ 0 };
	rt_sink_init_memory(&w->sink);
	assert_ok(rt_perf_writer_create(&w->sink, options, &w->writer));
	assert_ok(rt_perf_writer_event(w->writer, event ? event : &usual));
	assert_ok(rt_perf_writer_begin(w->writer));
}

static void written_sample(struct written *w)
{
	struct rt_perf_record record = recorded_at(RT_PERF_SAMPLE, 0, 1000, 7, 8);

	record.sample.ip = 0x401000;
	assert_ok(rt_perf_writer_record(w->writer, &record));
}

static void written_end(struct written *w)
{
	assert_ok(rt_perf_writer_end(w->writer));
	assert_ok(rt_sink_end(&w->sink));
	w->header = rt_perf_writer_header(w->writer);
	w->bytes = rt_bytes_make(w->sink.buffer, w->sink.len);
}

static void written_close(struct written *w)
{
	rt_perf_writer_destroy(w->writer);
	rt_sink_deinit(&w->sink);
}

TEST(file_layout)
{
	struct written w;
	struct rt_bytes data;

	written_open(&w, NULL, NULL);
	written_sample(&w);
	written_end(&w);
	assert_int_equal(w.header.size, 104);
	assert_memory_equal(w.header.data, "PERFILE2", 8);
	assert_int_equal(u64_at(w.header, 8), 104);
	assert_int_equal(u64_at(w.header, 16), 144);
	assert_int_equal(u64_at(w.header, 24), 112); /* attrs behind one id */
	assert_int_equal(u64_at(w.header, 32), 144);
	assert_int_equal(u64_at(w.header, 40), 256);
	assert_int_equal(u64_at(w.header, 48), 56);
	assert_int_equal(u64_at(w.header, 72), 1u << RT_PERF_FEAT_EVENT_DESC);
	/* what was written at first: the same, without the size of the data and the features */
	assert_memory_equal(w.bytes.data, w.header.data, 48);
	assert_int_equal(u64_at(w.bytes, 48), 0);
	assert_int_equal(u64_at(w.bytes, 72), 0);
	assert_int_equal(u64_at(w.bytes, 104), 5);
	assert_int_equal(u32_at(w.bytes, 112 + 4), 128); /* attr.size */
	assert_int_equal(u64_at(w.bytes, 112 + 128), 104);
	assert_int_equal(u64_at(w.bytes, 112 + 136), 8);
	/* header, IDENTIFIER, IP, TID, TIME, CPU, PERIOD */
	data = rt_bytes_make(w.bytes.data + 256, 56);
	assert_int_equal(u32_at(data, 0), RT_PERF_SAMPLE);
	assert_int_equal(u32_at(data, 4), 56u << 16 | RT_PERF_USER);
	assert_int_equal(u64_at(data, 8), 5);
	assert_int_equal(u64_at(data, 16), 0x401000);
	assert_int_equal(u64_at(data, 24), 8ull << 32 | 7);
	assert_int_equal(u64_at(data, 32), 1000);
	assert_int_equal(u64_at(data, 40), 1);
	/* the feature table */
	assert_int_equal(u64_at(w.bytes, 312), 312 + 16);
	assert_int_equal(u64_at(w.bytes, 320), 4 + 4 + 128 + 4 + 4 + 64 + 8);
	assert_int_equal(w.bytes.size, 328 + 216);
	written_close(&w);
}

TEST(pipe_layout)
{
	struct rt_perf_writer_options options = { .pipe = true };
	struct written w;

	written_open(&w, &options, NULL);
	written_sample(&w);
	written_end(&w);
	assert_int_equal(w.header.size, 0);
	assert_memory_equal(w.bytes.data, "PERFILE2", 8);
	assert_int_equal(u64_at(w.bytes, 8), 16);
	assert_int_equal(u32_at(w.bytes, 16), RT_PERF_HEADER_ATTR);
	assert_int_equal(u32_at(w.bytes, 20), (8u + 128 + 8) << 16);
	written_close(&w);
}

/* Newer kernels' flags and fields: perf 6.1 refuses files that have them. */
TEST(attr_is_cut)
{
	uint64_t id = 5, flags;
	struct rt_perf_event event = recorded_clock(&id, 0);
	struct written w;

	event.attr.size = 144;
	memset((uint8_t *)&event.attr + 116, 0xff, 4);
	memcpy(&flags, (uint8_t *)&event.attr + 40, 8);
	flags |= 0xffull << 56;
	memcpy((uint8_t *)&event.attr + 40, &flags, 8);
	written_open(&w, NULL, &event);
	written_end(&w);
	assert_int_equal(u32_at(w.bytes, 112 + 4), 128);
	assert_int_equal(u64_at(w.bytes, 112 + 40), flags & ((1ull << 38) - 1));
	assert_int_equal(u32_at(w.bytes, 112 + 116), 0);
	written_close(&w);
	event.attr.sample_type |= 1ull << 30;
	rt_sink_init_memory(&w.sink);
	assert_ok(rt_perf_writer_create(&w.sink, NULL, &w.writer));
	assert_code(rt_perf_writer_event(w.writer, &event), RT_E_UNSUPPORTED);
	written_close(&w);
}

TEST(order_of_calls)
{
	struct rt_perf_record record = recorded_at(RT_PERF_SAMPLE, 0, 1, 2, 3);
	struct rt_perf_writer_options options = { .zstd_level = 99 };
	uint64_t id = 5;
	struct rt_perf_event event = recorded_clock(&id, 0);
	struct rt_perf_header header = { 0 };
	struct written w;

	rt_sink_init_memory(&w.sink);
	assert_code(rt_perf_writer_create(&w.sink, &options, &w.writer), RT_E_USAGE);
	assert_ok(rt_perf_writer_create(&w.sink, NULL, &w.writer));
	assert_code(rt_perf_writer_record(w.writer, &record), RT_E_INTERNAL);
	assert_code(rt_perf_writer_end(w.writer), RT_E_INTERNAL);
	assert_ok(rt_perf_writer_begin(w.writer));
	assert_code(rt_perf_writer_event(w.writer, &event), RT_E_INTERNAL);
	assert_code(rt_perf_writer_begin(w.writer), RT_E_INTERNAL);
	assert_code(rt_perf_writer_record(w.writer, &record), RT_E_INTERNAL); /* no such event */
	assert_ok(rt_perf_writer_end(w.writer));
	assert_code(rt_perf_writer_end(w.writer), RT_E_INTERNAL);
	assert_code(rt_perf_writer_features(w.writer, &header), RT_E_INTERNAL);
	written_close(&w);
}

TEST(raw_records)
{
	struct perf_event_header header = { .type = RT_PERF_FINISHED_ROUND, .size = 8 };
	uint8_t longer[16] = { 0 };
	struct written w;

	written_open(&w, NULL, NULL);
	assert_ok(rt_perf_writer_raw(w.writer, rt_bytes_make(&header, 8)));
	assert_code(rt_perf_writer_raw(w.writer, rt_bytes_make(&header, 7)), RT_E_FORMAT);
	memcpy(longer, &header, 8);
	assert_code(rt_perf_writer_raw(w.writer, rt_bytes_make(longer, 16)), RT_E_FORMAT);
	header.size = 12;
	memcpy(longer, &header, 8);
	assert_code(rt_perf_writer_raw(w.writer, rt_bytes_make(longer, 12)), RT_E_FORMAT);
	written_end(&w);
	assert_int_equal(u64_at(w.header, 48), 8);
	written_close(&w);
}

TEST(too_large)
{
	static uint8_t big[RT_PERF_RECORD_MAX], out[RT_PERF_RECORD_MAX];
	uint64_t id = 5, chain = 0;
	struct rt_perf_event event = recorded_clock(&id, PERF_SAMPLE_RAW | PERF_SAMPLE_CALLCHAIN);
	struct rt_perf_record record = recorded_at(RT_PERF_SAMPLE, 0, 1, 2, 3);
	size_t size = 0;

	/* header 8, six fields 48, chain 8, u32 size: 65528 - 68 is what raw may have */
	record.sample.raw = rt_bytes_make(big, RT_PERF_RECORD_MAX - 68);
	assert_ok(rt_perf_encode(&event.attr, &record, out, sizeof(out), &size));
	assert_int_equal(size, RT_PERF_RECORD_MAX);
	record.sample.raw.size++;
	assert_code(rt_perf_encode(&event.attr, &record, out, sizeof(out), &size), RT_E_LIMIT);
	record.sample.raw.size = SIZE_MAX;
	assert_code(rt_perf_encode(&event.attr, &record, out, sizeof(out), &size), RT_E_LIMIT);
	record.sample.raw.size = 0;
	record.sample.chain = &chain;
	record.sample.chain_count = UINT64_MAX / 8 + 2; /* times 8 this is small again */
	assert_code(rt_perf_encode(&event.attr, &record, out, sizeof(out), &size), RT_E_LIMIT);
	record.sample.chain_count = 1;
	assert_code(rt_perf_encode(&event.attr, &record, out, 60, &size), RT_E_LIMIT);
	assert_int_equal(size, RT_PERF_RECORD_MAX);
}

TEST(records_that_cannot_be_made)
{
	uint64_t id = 5;
	struct rt_perf_event event = recorded_clock(&id, PERF_SAMPLE_REGS_USER);
	struct rt_perf_record record = recorded_at(RT_PERF_SAMPLE, 0, 1, 2, 3);
	uint8_t out[512];
	size_t size = 0;

	event.attr.sample_regs_user = 0xff;
	record.sample.user_abi = 2;
	assert_code(rt_perf_encode(&event.attr, &record, out, sizeof(out), &size), RT_E_FORMAT);
	record.sample.user_abi = 0;
	assert_ok(rt_perf_encode(&event.attr, &record, out, sizeof(out), &size));
	event.attr.sample_type |= PERF_SAMPLE_READ;
	assert_code(rt_perf_encode(&event.attr, &record, out, sizeof(out), &size), RT_E_FORMAT);
	record.type = RT_PERF_AUXTRACE;
	assert_code(rt_perf_encode(&event.attr, &record, out, sizeof(out), &size), RT_E_UNSUPPORTED);
	record.type = 1000000;
	assert_code(rt_perf_encode(&event.attr, &record, out, sizeof(out), &size), RT_E_UNSUPPORTED);
}

TEST(damaged_bpf_entries)
{
	uint8_t entry[300] = { 0 };
	uint32_t lengths[2] = { 232, 40 };
	struct rt_perf_blob blob = { .bytes = { entry, sizeof(entry) } };
	struct rt_perf_header header = { .bpf_progs = &blob, .bpf_prog_count = 1 };
	struct written w;

	written_open(&w, NULL, NULL);
	memcpy(entry, lengths, sizeof(lengths));
	assert_ok(rt_perf_writer_features(w.writer, &header)); /* 288 bytes and 12 of our own */
	blob.bytes.size = 287;
	assert_code(rt_perf_writer_features(w.writer, &header), RT_E_FORMAT);
	blob.bytes.size = 15;
	assert_code(rt_perf_writer_features(w.writer, &header), RT_E_FORMAT);
	blob.bytes.size = sizeof(entry);
	memset(entry, 0xff, sizeof(entry));
	assert_code(rt_perf_writer_features(w.writer, &header), RT_E_FORMAT);
	written_close(&w);
}

/* In a pipe what is larger than a record is counted, the rest arrives. */
TEST(pipe_says_what_is_lost)
{
	static uint8_t large[70000];
	struct rt_perf_blob btfs[] = { { .id = 1, .bytes = { large, 100 } },
				       { .id = 2, .bytes = { large, sizeof(large) } } };
	struct rt_perf_header header = { .btfs = btfs, .btf_count = 2 };
	struct written w;

	written_open(&w, &(struct rt_perf_writer_options){ .pipe = true }, NULL);
	assert_ok(rt_perf_writer_features(w.writer, &header));
	written_end(&w);
	assert_int_equal(rt_perf_writer_lost(w.writer), 1);
	written_close(&w);
	written_open(&w, NULL, NULL);
	assert_ok(rt_perf_writer_features(w.writer, &header));
	written_end(&w);
	assert_int_equal(rt_perf_writer_lost(w.writer), 0);
	assert_int_equal(u64_at(w.header, 72), 1u << RT_PERF_FEAT_EVENT_DESC | 1u << RT_PERF_FEAT_BPF_BTF);
	written_close(&w);
}

TEST(formats_are_checked)
{
	struct rt_perf_field_spec field = { .name = "x", .type = "unsigned int *", .offset = 8, .size = 8 };
	struct rt_perf_format_spec format = { .group = "g", .name = "n", .id = 1, .fields = &field, .field_count = 1 };
	struct rt_sink sink;

	rt_sink_init_memory(&sink);
	assert_ok(rt_perf_tracing_data_write(&format, 1, &sink));
	field.name = "x;y";
	assert_code(rt_perf_tracing_data_write(&format, 1, &sink), RT_E_FORMAT);
	field.name = "x";
	field.type = "u8 y;\n";
	assert_code(rt_perf_tracing_data_write(&format, 1, &sink), RT_E_FORMAT);
	field.type = "u8";
	format.name = "a b";
	assert_code(rt_perf_tracing_data_write(&format, 1, &sink), RT_E_FORMAT);
	format.name = "";
	assert_code(rt_perf_tracing_data_write(&format, 1, &sink), RT_E_FORMAT);
	format.name = "n";
	format.print = "\"a\"\nname: b";
	assert_code(rt_perf_tracing_data_write(&format, 1, &sink), RT_E_FORMAT);
	rt_sink_deinit(&sink);
}

static const struct rt_perf_event *named(const struct rt_reftrace_events *events, unsigned index, const char *name)
{
	size_t count;
	const struct rt_perf_event *list = rt_reftrace_events_list(events, &count);

	assert_true(index < count);
	assert_string_equal(list[index].name, name);
	return &list[index];
}

TEST(event_names)
{
	struct rt_reftrace_events *events;
	unsigned get, again, other, tricky, bare, empty, kind;
	enum rt_op op = RT_OP_NONE;
	const char *word;
	size_t len;

	assert_ok(rt_reftrace_events_create(&events));
	assert_ok(rt_reftrace_events_op(events, "std::map<int>", RT_OP_GET, &get));
	assert_ok(rt_reftrace_events_op(events, "std::map<int>", RT_OP_GET, &again));
	assert_ok(rt_reftrace_events_op(events, "std..map[int]", RT_OP_GET, &other));
	assert_ok(rt_reftrace_events_op(events, "meta_type", RT_OP_GET, &tricky));
	assert_ok(rt_reftrace_events_op(events, "meta", RT_OP_PUT, &bare));
	assert_ok(rt_reftrace_events_op(events, "", RT_OP_FREE, &empty));
	assert_ok(rt_reftrace_events_meta(events, "type_get", &kind));
	assert_code(rt_reftrace_events_op(events, "x", RT_OP_NR, &kind), RT_E_INTERNAL);
	assert_int_equal(get, again);
	named(events, get, "reftrace:std__map_int__get");
	named(events, other, "reftrace:std__map_int__2_get");
	named(events, tricky, "reftrace:_meta_type_get");
	named(events, bare, "reftrace:_meta_put");
	named(events, empty, "reftrace:__free");
	assert_int_equal(named(events, kind, "reftrace:meta_type_get")->attr.config, RT_REFTRACE_FIRST_ID + kind);
	rt_reftrace_events_destroy(events);

	assert_int_equal(rt_reftrace_name("reftrace:a_b_put", &op, &word, &len), RT_REFTRACE_OP);
	assert_int_equal(op, RT_OP_PUT);
	assert_int_equal(len, 3);
	assert_memory_equal(word, "a_b_put", 7);
	assert_int_equal(rt_reftrace_name("reftrace:meta_x_get", NULL, &word, &len), RT_REFTRACE_META);
	assert_string_equal(word, "x_get");
	assert_int_equal(rt_reftrace_name("reftrace:a_bolt", NULL, NULL, NULL), RT_REFTRACE_NONE);
	assert_int_equal(rt_reftrace_name("reftrace:", NULL, NULL, NULL), RT_REFTRACE_NONE);
	assert_int_equal(rt_reftrace_name("cycles", NULL, NULL, NULL), RT_REFTRACE_NONE);
	assert_int_equal(rt_reftrace_name(NULL, NULL, NULL, NULL), RT_REFTRACE_NONE);
}

TEST(too_many_events)
{
	struct rt_reftrace_events *events;
	char name[16];
	unsigned index;

	assert_ok(rt_reftrace_events_create(&events));
	for (unsigned i = 0; i < 4096; i++) {
		snprintf(name, sizeof(name), "t%u", i);
		assert_ok(rt_reftrace_events_meta(events, name, &index));
		assert_int_equal(index, i);
	}
	assert_code(rt_reftrace_events_meta(events, "more", &index), RT_E_LIMIT);
	assert_ok(rt_reftrace_events_meta(events, "t4095", &index));
	rt_reftrace_events_destroy(events);
}

TEST(operations_come_back)
{
	const struct rt_wire_event event = { .head = { sizeof(event), RT_WIRE_EVENT, RT_OP_SWAP, 0xabcd1234,
						       1234567890123, RT_PID_MAKE(77, 3), 78 },
					     .object = 0x1122334455667788,
					     .aux = 0x99aabbccddeeff00,
					     .sp = 0x7ffffffffff0,
					     .count = UINT32_MAX,
					     .point = 12,
					     .stack = 13,
					     .delta = -2,
					     .flags = 0x8001 };
	static const uint8_t sizes[] = { 2, 1, 1, 4, 4, 4, 4, 2, 2, 2, 2, 1, 1, 1, 1, 8, 8, 8, 4, 4 };
	const struct rt_reftrace_place place = { .batch = 0x01020304, .turn = -5 };
	uint8_t raw[RT_REFTRACE_OP_RAW], swapped[RT_REFTRACE_OP_RAW];
	struct rt_perf_record sample = { .id = { .time_ns = event.head.time_ns, .pid = 77, .tid = 78 },
					 .sample = { .raw = { raw, sizeof(raw) } } };
	struct rt_reftrace_place place_back;
	struct rt_wire_event back;
	size_t at = 0;

	rt_reftrace_op_raw(0xf001, &event, place, raw);
	assert_int_equal(raw[0] | raw[1] << 8, 0xf001);
	assert_int_equal(raw[4], 78);
	assert_true(rt_reftrace_op_read(&sample, false, &back, &place_back));
	assert_memory_equal(&event, &back, sizeof(event));
	assert_int_equal(place_back.batch, place.batch);
	assert_int_equal(place_back.turn, place.turn);
	for (size_t i = 0; i < sizeof(sizes); at += sizes[i++])
		for (size_t j = 0; j < sizes[i]; j++)
			swapped[at + j] = raw[at + sizes[i] - 1 - j];
	assert_int_equal(at, sizeof(raw));
	memset(&back, 0, sizeof(back));
	sample.sample.raw.data = swapped;
	assert_true(rt_reftrace_op_read(&sample, true, &back, NULL));
	assert_memory_equal(&event, &back, sizeof(event));
	sample.sample.raw.data = raw;
	for (size_t i = 0; i < sizeof(raw); i++) {
		sample.sample.raw.size = i;
		assert_false(rt_reftrace_op_read(&sample, false, &back, NULL));
	}
}

/* What no writer of ours can have written. */
TEST(operations_of_strangers)
{
	const struct rt_wire_event event = { .head = { .op = RT_OP_GET, .pid = 77, .tid = 78 } };
	uint8_t raw[RT_REFTRACE_OP_RAW];
	struct rt_perf_record sample = { .id = { .pid = RT_PID_MASK }, .sample = { .raw = { raw, sizeof(raw) } } };
	const size_t op = RT_PERF_RAW_COMMON + __builtin_offsetof(struct rt_reftrace_op, op);
	const size_t generation = RT_PERF_RAW_COMMON + __builtin_offsetof(struct rt_reftrace_op, generation);
	struct rt_wire_event back;

	rt_reftrace_op_raw(1, &event, (struct rt_reftrace_place){ 0 }, raw);
	assert_true(rt_reftrace_op_read(&sample, false, &back, NULL));
	sample.id.pid++;
	assert_false(rt_reftrace_op_read(&sample, false, &back, NULL));
	sample.id.pid = 1;
	raw[op] = RT_OP_NR;
	assert_false(rt_reftrace_op_read(&sample, false, &back, NULL));
	raw[op] = RT_OP_NONE;
	assert_false(rt_reftrace_op_read(&sample, false, &back, NULL));
	raw[op] = RT_OP_PUT;
	assert_true(rt_reftrace_op_read(&sample, false, &back, NULL));
	raw[generation + 1] = 4;
	assert_false(rt_reftrace_op_read(&sample, false, &back, NULL));
}

TEST(meta_comes_back)
{
	static uint8_t raw[RT_REFTRACE_META_HEAD + RT_REFTRACE_META_MAX], data[RT_REFTRACE_META_MAX];
	struct rt_bytes back;
	const char *text;
	size_t size;

	memset(data, 0x5a, sizeof(data));
	assert_ok(rt_reftrace_meta_raw(1, "text", rt_bytes_make(data, sizeof(data) - 5), raw, sizeof(raw), &size));
	assert_int_equal(size, sizeof(raw));
	assert_true(rt_reftrace_meta_read(rt_bytes_make(raw, size), false, &text, &back));
	assert_string_equal(text, "text");
	assert_int_equal(back.size, sizeof(data) - 5);
	assert_memory_equal(back.data, data, back.size);
	assert_code(rt_reftrace_meta_raw(1, "text", rt_bytes_make(data, sizeof(data) - 4), raw, sizeof(raw), &size),
		    RT_E_LIMIT);
	assert_ok(rt_reftrace_meta_raw(1, "", rt_bytes_make(NULL, 0), raw, sizeof(raw), &size));
	assert_true(rt_reftrace_meta_read(rt_bytes_make(raw, size), false, &text, &back));
	assert_string_equal(text, "");
	assert_int_equal(back.size, 0);
	for (size_t i = 0; i < size; i++)
		assert_false(rt_reftrace_meta_read(rt_bytes_make(raw, i), false, &text, &back));
	memset(raw, 0xff, sizeof(raw));
	assert_false(rt_reftrace_meta_read(rt_bytes_make(raw, sizeof(raw)), false, &text, &back));
}

/* The disk is full: the sink keeps the error, the writer goes on without harm. */
TEST(disk_full)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct rt_perf_writer *writer;
	struct rt_sink sink;

	if (fd < 0)
		skip();
	rt_sink_init_fd(&sink, fd, "/dev/full");
	assert_ok(rt_perf_writer_create(&sink, NULL, &writer));
	assert_ok(rt_perf_writer_begin(writer));
	assert_ok(rt_perf_writer_end(writer));
	assert_code(rt_sink_end(&sink), RT_E_DISK_FULL);
	rt_perf_writer_destroy(writer);
	rt_sink_deinit(&sink);
	close(fd);
}

TEST_MAIN();
