/* SPDX-License-Identifier: GPL-2.0-only */
/* Sizes and record types at the edges of the format, judged by the real perf. */
#include "recorded.h"

enum { PID = 700, MANY = 20000, BLOCKS = 40 };

static uint64_t noise(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void need_perf(void)
{
	if (!built_have("perf"))
		skip();
}

static char *script(const char *perf, const char *name, const char *options)
{
	char *words, *out;

	assert_true(asprintf(&words, "script -i %s %s", name, options) > 0);
	out = recorded_ask(perf, words);
	free(words);
	return out;
}

/* Events of one recording in r, declared, with TRACING_DATA. */
static struct rt_reftrace_events *declare(struct recorded *r, unsigned *meta)
{
	struct rt_reftrace_events *ours;
	const struct rt_perf_event *list;
	struct rt_perf_header header = { 0 };
	struct rt_sink tracing;
	size_t count;

	rt_sink_init_memory(&tracing);
	assert_ok(rt_reftrace_events_create(&ours));
	assert_ok(rt_reftrace_events_meta(ours, "blob", meta));
	assert_ok(rt_reftrace_events_tracing_data(ours, &tracing));
	list = rt_reftrace_events_list(ours, &count);
	for (size_t i = 0; i < count; i++)
		assert_ok(rt_perf_writer_event(r->writer, &list[i]));
	header.tracing_data = rt_bytes_make(tracing.buffer, tracing.len);
	assert_ok(rt_perf_writer_features(r->writer, &header));
	rt_sink_deinit(&tracing);
	return ours;
}

static void put_meta(struct recorded *r, const struct rt_reftrace_events *ours, unsigned meta, uint64_t time_ns,
		     struct rt_bytes data)
{
	static uint8_t raw[RT_REFTRACE_META_HEAD + RT_REFTRACE_META_MAX];
	struct rt_perf_record record = recorded_at(RT_PERF_SAMPLE, meta, time_ns, PID, PID);
	size_t size, count;
	const struct rt_perf_event *list = rt_reftrace_events_list(ours, &count);

	assert_ok(rt_reftrace_meta_raw((uint16_t)list[meta].attr.config, "t", data, raw, sizeof(raw), &size));
	record.sample = (struct rt_perf_sample){ .period = 1, .raw = { raw, size } };
	assert_ok(rt_perf_writer_record(r->writer, &record));
}

/* Records that do not shrink, as large as they may be, among many small ones. */
static void check_stream(const char *name, const struct rt_perf_writer_options *options)
{
	static uint64_t data[(RT_REFTRACE_META_MAX - 2) / 8];
	struct recorded *r = recorded_open(name, options);
	uint64_t state = 88172645463325252ull;
	const char *const *perfs = recorded_perfs();
	struct rt_reftrace_events *ours;
	unsigned meta;
	char *out;

	need_perf();
	ours = declare(r, &meta);
	assert_ok(rt_perf_writer_begin(r->writer));
	for (unsigned i = 0; i < MANY; i++) {
		put_meta(r, ours, meta, 1000 + i * 10, rt_bytes_make("abc", 3));
		if (i % (MANY / BLOCKS))
			continue;
		for (size_t j = 0; j < sizeof(data) / sizeof(data[0]); j++)
			data[j] = noise(&state);
		put_meta(r, ours, meta, 1005 + i * 10, rt_bytes_make(data, sizeof(data)));
	}
	rt_reftrace_events_destroy(ours);
	free(recorded_close(r));
	for (; *perfs; perfs++) {
		out = script(*perfs, name, "");
		assert_int_equal(recorded_count(out, "t [3 bytes]"), MANY);
		assert_int_equal(recorded_count(out, "t [65016 bytes]"), BLOCKS);
		free(out);
	}
}

TEST(large_plain)
{
	check_stream("large.data", NULL);
}

TEST(large_compressed)
{
	check_stream("large-packed.data", &(struct rt_perf_writer_options){ .zstd_level = 1 });
}

TEST(large_compressed_hard)
{
	check_stream("large-packed-19.data", &(struct rt_perf_writer_options){ .zstd_level = 12 });
}

TEST(large_compressed_pipe)
{
	check_stream("large-packed-pipe.data", &(struct rt_perf_writer_options){ .pipe = true, .zstd_level = 1 });
}

/* Compressible data must fill the records: perf keeps a mapping for each. */
TEST(compressed_records_are_full)
{
	struct rt_perf_writer_options options = { .zstd_level = 1 };
	struct recorded *r = recorded_open("full.data", &options);
	struct rt_reftrace_events *ours;
	struct rt_bytes header;
	uint64_t data_size;
	unsigned meta;
	struct stat st;
	char *path;

	ours = declare(r, &meta);
	assert_ok(rt_perf_writer_begin(r->writer));
	for (unsigned i = 0; i < MANY; i++)
		put_meta(r, ours, meta, 1000 + i, rt_bytes_make("abc", 3));
	assert_ok(rt_perf_writer_end(r->writer));
	header = rt_perf_writer_header(r->writer);
	memcpy(&data_size, header.data + 48, sizeof(data_size));
	assert_true(data_size < MANY * 12);
	rt_perf_writer_destroy(r->writer);
	assert_ok(rt_sink_end(&r->sink));
	path = r->path;
	assert_int_equal(stat(path, &st), 0);
	assert_true((uint64_t)st.st_size > data_size);
	rt_sink_deinit(&r->sink);
	close(r->fd);
	free(r);
	free(path);
	rt_reftrace_events_destroy(ours);
}

/* Events with so many ids that their names do not fit into one record of a pipe. */
TEST(pipe_with_many_ids)
{
	enum { IDS = 5000 };
	struct recorded *r = recorded_open("ids.data", &(struct rt_perf_writer_options){ .pipe = true });
	const char *const *perfs = recorded_perfs();
	uint64_t *ids = calloc(2 * IDS, sizeof(*ids));
	char *out;

	need_perf();
	assert_non_null(ids);
	for (unsigned i = 0; i < 2 * IDS; i++)
		ids[i] = 100 + i;
	for (unsigned i = 0; i < 2; i++) {
		struct rt_perf_event event = recorded_clock(ids + i * IDS, 0);

		event.id_count = IDS;
		event.name = i ? TEXT("second") : TEXT("first");
		assert_ok(rt_perf_writer_event(r->writer, &event));
	}
	assert_ok(rt_perf_writer_begin(r->writer));
	for (unsigned i = 0; i < 10; i++) {
		struct rt_perf_record record = recorded_at(RT_PERF_SAMPLE, i % 2, 1000 + i, PID, PID);

		record.id.id = ids[i % 2 * IDS + i * 400];
		assert_ok(rt_perf_writer_record(r->writer, &record));
	}
	free(recorded_close(r));
	for (; *perfs; perfs++) {
		out = script(*perfs, "ids.data", "");
		assert_int_equal(recorded_count(out, " first: "), 5);
		assert_int_equal(recorded_count(out, " second: "), 5);
		free(out);
	}
	free(ids);
}

/* Every field of a sample that we can write, as perf dumps it. */
TEST(sample_fields)
{
	uint64_t id = 5, fields = PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_READ |
				  PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |
				  PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC |
				  PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR |
				  PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE;
	const uint64_t chain[] = { PERF_CONTEXT_USER, 0x401000, 0x402000 }, regs[] = { 0x11, 0x22 };
	uint64_t values[] = { 77, 5 }; /* PERF_FORMAT_ID: value, id */
	struct rt_perf_event event = recorded_clock(&id, fields);
	struct recorded *r = recorded_open("fields.data", NULL);
	struct rt_perf_record record = recorded_at(RT_PERF_SAMPLE, 0, 123456789, PID, PID + 1);
	const char *const *perfs = recorded_perfs();
	char *out;

	need_perf();
	event.attr.sample_regs_user = event.attr.sample_regs_intr = 1 << 7 | 1 << 8; /* sp, ip */
	event.attr.sample_stack_user = 16;
	event.attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HW_INDEX;
	assert_ok(rt_perf_writer_event(r->writer, &event));
	assert_ok(rt_perf_writer_begin(r->writer));
	record.id.stream = 9;
	record.sample = (struct rt_perf_sample){ .ip = 0x401000,
						 .addr = 0xabcd,
						 .period = 77,
						 .weight = 33,
						 .chain = chain,
						 .chain_count = 3,
						 .user_abi = 2,
						 .user_regs = regs,
						 .user_reg_count = 2,
						 .user_stack = { (const uint8_t *)"stack copy", 11 },
						 .user_stack_size = 11,
						 .transaction = 0x10,
						 .phys_addr = 0x5000,
						 .cgroup = 6,
						 .data_page_size = 4096,
						 .code_page_size = 8192 };
	record.sample.read = rt_bytes_make(values, sizeof(values));
	assert_ok(rt_perf_writer_record(r->writer, &record));
	record.id.time_ns = 123999999;
	values[0] += 78;
	assert_ok(rt_perf_writer_record(r->writer, &record));
	free(recorded_close(r));
	for (; *perfs; perfs++) {
		out = script(*perfs, "fields.data", "-D");
		recorded_says(out, "..... id 0000000000000005, value 000000000000009b");
		assert_int_equal(
			recorded_count(out, "PERF_RECORD_SAMPLE(IP, 0x2): 700/701: 0x401000 period: 77 addr: 0xabcd"),
			2);
		recorded_says(out, "... FP chain: nr:3");
		recorded_says(out, "... user regs: mask 0x180 ABI 64-bit");
		recorded_says(out, ".... SP 0x0000000000000011");
		recorded_says(out, ".... IP 0x0000000000000022");
		recorded_says(out, "... ustack: size 11, offset");
		recorded_says(out, "... weight: 33");
		recorded_says(out, ". data_src: 0x0");
		recorded_says(out, ".. phys_addr: 0x5000");
		recorded_says(out, " data page size: 4K");
		recorded_says(out, " code page size: 8K");
		free(out);
		out = script(*perfs, "fields.data", "-F tid,time,ip,addr,period,weight,phys_addr,code_page_size --ns");
		recorded_says(out, "701 0.123999999: 78 abcd 33");
		free(out);
	}
}

static void put_edges(struct rt_perf_writer *w)
{
	struct rt_perf_record record = recorded_at(RT_PERF_MMAP2, 0, 1000, PID, PID);
	uint8_t old[5] = { 0x0f, 0x1f, 0x44, 0, 0 }, new[5] = { 0xe8, 1, 2, 3, 4 };

	record.misc = RT_PERF_USER | RT_PERF_MISC_MMAP_BUILD_ID; /* without an id the flag has to go */
	record.mmap = (struct rt_perf_mmap){ .pid = PID,
					     .tid = PID,
					     .addr = 0x1000,
					     .len = 0x2000,
					     .pgoff = 0x3000,
					     .maj = 8,
					     .min = 1,
					     .ino = 1234,
					     .ino_gen = 5,
					     .prot = 1,
					     .flags = 2,
					     .filename = "/lib/inode.so" };
	assert_ok(rt_perf_writer_record(w, &record));
	record = recorded_at(RT_PERF_MMAP, 0, 1001, PID, PID);
	record.mmap = (struct rt_perf_mmap){
		.pid = PID, .tid = PID, .addr = 0x8000, .len = 0x1000, .filename = "/lib/old.so"
	};
	assert_ok(rt_perf_writer_record(w, &record));
	record = recorded_at(RT_PERF_LOST, 0, 1002, PID, PID);
	record.lost.id = 5;
	record.lost.count = 321;
	assert_ok(rt_perf_writer_record(w, &record));
	record = recorded_at(RT_PERF_LOST_SAMPLES, 0, 1003, PID, PID);
	record.lost.count = 654;
	assert_ok(rt_perf_writer_record(w, &record));
	record = recorded_at(RT_PERF_TEXT_POKE, 0, 1004, 0, 0);
	record.misc = RT_PERF_KERNEL;
	record.poke.addr = 0xffffffff81000010;
	record.poke.old = rt_bytes_make(old, sizeof(old));
	record.poke.new = rt_bytes_make(new, sizeof(new));
	assert_ok(rt_perf_writer_record(w, &record));
	record = recorded_at(RT_PERF_KSYMBOL, 0, 1005, 0, 0);
	record.misc = RT_PERF_KERNEL;
	record.ksymbol = (struct rt_perf_ksymbol){
		.addr = 0xffffffffc0000000, .len = 64, .type = 1, .unregister = true, .name = "bpf_prog_gone"
	};
	assert_ok(rt_perf_writer_record(w, &record));
}

TEST(side_band)
{
	struct recorded *r = recorded_open("edges.data", NULL);
	const char *const *perfs = recorded_perfs();
	uint64_t id = 5;
	struct rt_perf_event event = recorded_clock(&id, 0);
	char *out;

	need_perf();
	assert_ok(rt_perf_writer_event(r->writer, &event));
	assert_ok(rt_perf_writer_begin(r->writer));
	put_edges(r->writer);
	free(recorded_close(r));
	for (; *perfs; perfs++) {
		out = built_output("%s script -i edges.data -D 2>stderr | tr -s ' '", *perfs);
		recorded_says(out,
			      "PERF_RECORD_MMAP2 700/700: [0x1000(0x2000) @ 0x3000 08:01 1234 5]: r--p /lib/inode.so");
		recorded_says(out, "PERF_RECORD_MMAP 700/700: [0x8000(0x1000) @ 0]: x /lib/old.so");
		recorded_says(out, "PERF_RECORD_LOST: id:5: lost:321");
		recorded_says(out, "PERF_RECORD_LOST_SAMPLES: id:5: lost samples :654");
		recorded_says(out, "PERF_RECORD_TEXT_POKE ffffffff81000010 old len 5 new len 5");
		recorded_says(out,
			      "PERF_RECORD_KSYMBOL addr ffffffffc0000000 len 64 type 1 flags 0x1 name bpf_prog_gone");
		free(out);
	}
}

/* Formats that nobody wrote a print line for: numbers, signs, arrays, strings. */
TEST(any_raw_fields)
{
	static const struct rt_perf_field_spec fields[] = {
		{ .name = "small", .type = "s8", .offset = 8, .size = 1, .is_signed = true },
		{ .name = "word", .type = "u32", .offset = 12, .size = 4 },
		{ .name = "wide", .type = "s64", .offset = 16, .size = 8, .is_signed = true },
		{ .name = "comm", .type = "char", .offset = 24, .size = 8, .array = 8 },
		{ .name = "quad", .type = "u32", .offset = 32, .size = 16, .array = 4 },
		{ .name = "path", .type = "char", .offset = 48, .size = 4, .data_loc = true },
		{ .name = "bytes", .type = "u8", .offset = 52, .size = 4, .data_loc = true },
	};
	const struct rt_perf_format_spec formats[] = {
		{ .group = "one", .name = "event", .id = 300, .fields = fields, .field_count = 7 },
		{ .group = "two", .name = "event", .id = 301, .fields = fields, .field_count = 2 },
		{ .group = "one", .name = "other", .id = 302, .fields = fields, .field_count = 1 },
	};
	struct {
		uint8_t common[RT_PERF_RAW_COMMON];
		int8_t small;
		uint32_t word;
		int64_t wide;
		char comm[8];
		uint32_t quad[4], path, bytes;
		char tail[12];
	} raw = { .small = -3,
		  .word = 4000000000u,
		  .wide = -5000000000,
		  .comm = "worker",
		  .quad = { 1, 2, 3, 4 },
		  .path = 8 << 16 | 56,
		  .bytes = 3 << 16 | 64,
		  .tail = "/a/long\0\1\2\377" };
	const char *const names[] = { "one:event", "two:event", "one:other" };
	struct recorded *r = recorded_open("raw.data", NULL);
	const char *const *perfs = recorded_perfs();
	struct rt_perf_header header = { 0 };
	struct rt_sink tracing;
	char *out;

	need_perf();
	rt_sink_init_memory(&tracing);
	assert_ok(rt_perf_tracing_data_write(formats, 3, &tracing));
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t id = 50 + i;
		struct rt_perf_event event = recorded_clock(&id, PERF_SAMPLE_RAW);

		event.attr.type = PERF_TYPE_TRACEPOINT;
		event.attr.config = 300 + i;
		event.name = (char *)(uintptr_t)names[i];
		assert_ok(rt_perf_writer_event(r->writer, &event));
	}
	header.tracing_data = rt_bytes_make(tracing.buffer, tracing.len);
	assert_ok(rt_perf_writer_features(r->writer, &header));
	assert_ok(rt_perf_writer_begin(r->writer));
	for (unsigned i = 0; i < 3; i++) {
		struct rt_perf_record record = recorded_at(RT_PERF_SAMPLE, i, 1000 + i, PID, PID);

		rt_perf_raw_common((uint16_t)(300 + i), PID, raw.common);
		record.sample.raw = rt_bytes_make(&raw, sizeof(raw));
		assert_ok(rt_perf_writer_record(r->writer, &record));
	}
	free(recorded_close(r));
	for (; *perfs; perfs++) {
		out = script(*perfs, "raw.data", "");
		recorded_says(out, "one:event: small=-3 word=4000000000 wide=-5000000000 comm=worker quad=");
		recorded_says(out, " path=/a/long bytes=01 02 ff");
		recorded_says(out, "two:event: small=-3 word=4000000000");
		recorded_says(out, "one:other: small=-3");
		free(out);
	}
	rt_sink_deinit(&tracing);
}

TEST_MAIN();
