/* SPDX-License-Identifier: GPL-2.0-only */
/* What the writer writes and the reader reads is the same; what perf wrote comes out of the encoder byte by byte. */
#include "base/fs.h"
#include "perfdata/encode.h"
#include "recorded.h"

enum { PID = 900, SAMPLES = 3000 };

static const uint64_t chain[] = { PERF_CONTEXT_USER, 0x401000, 0x402000 };

static struct rt_perf_record sample(unsigned event, unsigned i, struct rt_bytes raw)
{
	struct rt_perf_record r = recorded_at(RT_PERF_SAMPLE, event, 1000 + i, PID, PID + i % 3);

	r.sample = (struct rt_perf_sample){
		.ip = 0x401000 + i, .period = i, .chain = chain, .chain_count = 3, .raw = raw
	};
	return r;
}

/* The i-th record of the recording; false behind the last. */
static bool nth(unsigned i, uint8_t raw[RT_REFTRACE_OP_RAW], struct rt_perf_record *ret)
{
	struct rt_wire_event event = { .head = { sizeof(event), RT_WIRE_EVENT, RT_OP_GET, i, 1000 + i, PID, PID },
				       .object = 0x1000 + i };
	struct rt_perf_record r;

	switch (i) {
	case 0:
		r = recorded_at(RT_PERF_COMM, 0, 1, PID, PID);
		r.comm = (struct rt_perf_comm){ .pid = PID, .tid = PID, .exec = true, .comm = "a name" };
		break;
	case 1:
		r = recorded_at(RT_PERF_MMAP2, 0, 2, PID, PID);
		r.mmap = (struct rt_perf_mmap){ PID, PID, 0x1000, 0x2000, 0x3000, { 1, 2, 3, 255 }, 20, 0,
						0,   0,   0,      5,      2,      "/bin/with id" };
		break;
	case 2:
		r = recorded_at(RT_PERF_MMAP2, 0, 3, PID, PID);
		r.mmap = (struct rt_perf_mmap){ PID, PID, 0x1000, 0x2000, 0, { 0 }, 0,
						8,   1,   77,     78,     5, 2,     "/bin/without" };
		break;
	case 3:
		r = recorded_at(RT_PERF_FORK, 0, 4, PID, PID);
		r.task = (struct rt_perf_task){ 11, 12, 13, 14, 4 };
		break;
	case 4:
		r = recorded_at(RT_PERF_KSYMBOL, 0, 5, 0, 0);
		r.ksymbol = (struct rt_perf_ksymbol){ 0xffffffffc0000000, 64, 1, true, "bpf_prog_x" };
		break;
	case 5:
		r = recorded_at(RT_PERF_BPF_EVENT, 0, 6, 0, 0);
		r.bpf = (struct rt_perf_bpf_event){ 2, 0, 99, { 8, 7, 6, 5, 4, 3, 2, 1 } };
		break;
	case 6:
		r = recorded_at(RT_PERF_LOST, 0, 7, 0, 0);
		r.lost.id = 5;
		r.lost.count = 1000;
		break;
	default:
		if (i == SAMPLES)
			return false;
		rt_reftrace_op_raw(0xf000, &event, (struct rt_reftrace_place){ i, (int16_t)-i }, raw);
		r = sample(1, i, rt_bytes_make(raw, RT_REFTRACE_OP_RAW));
	}
	*ret = r;
	return true;
}

static void same_sample(const struct rt_perf_record *x, const struct rt_perf_record *y)
{
	const struct rt_perf_sample *a = &x->sample, *b = &y->sample;
	struct rt_reftrace_place x_place, y_place;
	struct rt_wire_event x_event, y_event;

	assert_int_equal(a->ip, b->ip);
	assert_int_equal(a->period, b->period);
	assert_int_equal(a->chain_count, b->chain_count);
	assert_memory_equal(a->chain, b->chain, a->chain_count * 8);
	assert_true(rt_reftrace_op_read(x, false, &x_event, &x_place));
	assert_true(rt_reftrace_op_read(y, false, &y_event, &y_place));
	assert_memory_equal(&x_event, &y_event, sizeof(x_event));
	assert_int_equal(x_place.batch, y_place.batch);
	assert_int_equal(x_place.turn, y_place.turn);
}

static void same_record(const struct rt_perf_record *a, const struct rt_perf_record *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->event, b->event);
	assert_int_equal(a->id.time_ns, b->id.time_ns);
	assert_int_equal(a->id.pid, b->id.pid);
	assert_int_equal(a->id.tid, b->id.tid);
	assert_int_equal(a->id.cpu, b->id.cpu);
	switch (a->type) {
	case RT_PERF_COMM:
		assert_int_equal(b->comm.exec, a->comm.exec);
		assert_string_equal(b->comm.comm, a->comm.comm);
		break;
	case RT_PERF_MMAP2:
		assert_int_equal(a->mmap.pid, b->mmap.pid);
		assert_int_equal(a->mmap.tid, b->mmap.tid);
		assert_int_equal(a->mmap.addr, b->mmap.addr);
		assert_int_equal(a->mmap.len, b->mmap.len);
		assert_int_equal(a->mmap.pgoff, b->mmap.pgoff);
		assert_int_equal(a->mmap.build_id_size, b->mmap.build_id_size);
		assert_memory_equal(a->mmap.build_id, b->mmap.build_id, sizeof(a->mmap.build_id));
		assert_int_equal(a->mmap.maj, b->mmap.maj);
		assert_int_equal(a->mmap.min, b->mmap.min);
		assert_int_equal(a->mmap.ino, b->mmap.ino);
		assert_int_equal(a->mmap.ino_gen, b->mmap.ino_gen);
		assert_int_equal(a->mmap.prot, b->mmap.prot);
		assert_int_equal(a->mmap.flags, b->mmap.flags);
		assert_string_equal(a->mmap.filename, b->mmap.filename);
		break;
	case RT_PERF_FORK:
		assert_memory_equal(&a->task, &b->task, sizeof(a->task));
		break;
	case RT_PERF_KSYMBOL:
		assert_memory_equal(&a->ksymbol, &b->ksymbol, 15);
		assert_string_equal(a->ksymbol.name, b->ksymbol.name);
		break;
	case RT_PERF_BPF_EVENT:
		assert_memory_equal(&a->bpf, &b->bpf, sizeof(a->bpf));
		break;
	case RT_PERF_LOST:
		assert_int_equal(a->lost.id, b->lost.id);
		assert_int_equal(a->lost.count, b->lost.count);
		break;
	default:
		same_sample(a, b);
	}
}

struct memory {
	struct rt_sink sink;
	struct rt_perf_writer *writer;
};

static const char *const command[] = { "reftrace", "record", "./a program" };

static struct rt_perf_header header_make(struct rt_perf_build_id *build_id, struct rt_perf_blob *btf,
					 struct rt_bytes tracing)
{
	*build_id = (struct rt_perf_build_id){ UINT32_MAX, RT_PERF_USER, { 9, 8, 7 }, 20, TEXT("/bin/with id") };
	*btf = (struct rt_perf_blob){ 5, { (const uint8_t *)"some BTF", 8 } };
	return (struct rt_perf_header){ .hostname = TEXT("host"),
					.osrelease = TEXT("6.1"),
					.version = TEXT("reftrace"),
					.arch = TEXT("x86_64"),
					.cpudesc = TEXT("a CPU"),
					.cpuid = TEXT("id"),
					.cpus_available = 4,
					.cpus_online = 3,
					.total_mem_kib = 1234,
					.command = (char **)(uintptr_t)command,
					.command_count = 3,
					.first_ns = 1,
					.last_ns = 5000,
					.has_clockid = true,
					.clockid = 1,
					.clock_data_id = CLOCK_MONOTONIC,
					.wall_clock_ns = 1700000000000000000,
					.clockid_time_ns = 1,
					.build_ids = build_id,
					.build_id_count = 1,
					.btfs = btf,
					.btf_count = 1,
					.tracing_data = tracing };
}

static void same_header(const struct rt_perf_header *h, struct rt_bytes tracing)
{
	assert_string_equal(h->hostname, "host");
	assert_string_equal(h->osrelease, "6.1");
	assert_string_equal(h->version, "reftrace");
	assert_string_equal(h->arch, "x86_64");
	assert_string_equal(h->cpudesc, "a CPU");
	assert_string_equal(h->cpuid, "id");
	assert_int_equal(h->cpus_available, 4);
	assert_int_equal(h->cpus_online, 3);
	assert_int_equal(h->total_mem_kib, 1234);
	assert_int_equal(h->command_count, 3);
	assert_string_equal(h->command[2], command[2]);
	assert_int_equal(h->first_ns, 1);
	assert_int_equal(h->last_ns, 5000);
	assert_true(h->has_clockid);
	assert_int_equal(h->clock_data_id, CLOCK_MONOTONIC);
	assert_int_equal(h->wall_clock_ns, 1700000000000000000);
	assert_int_equal(h->clockid_time_ns, 1);
	assert_int_equal(h->build_id_count, 1);
	assert_int_equal(h->build_ids[0].size, 20);
	assert_int_equal(h->build_ids[0].id[1], 8);
	assert_string_equal(h->build_ids[0].path, "/bin/with id");
	assert_int_equal(h->btf_count, 1);
	assert_int_equal(h->btfs[0].id, 5);
	assert_int_equal(h->btfs[0].bytes.size, 8);
	assert_true(h->tracing_data.size >= tracing.size);
	assert_memory_equal(h->tracing_data.data, tracing.data, tracing.size);
}

/* Writes all records; the header stays unwritten. */
static void write_all(struct memory *m, const struct rt_perf_writer_options *options, struct rt_sink *tracing)
{
	uint64_t id = 5;
	struct rt_perf_event clock = recorded_clock(&id, 0);
	uint8_t raw[RT_REFTRACE_OP_RAW];
	struct rt_reftrace_events *ours;
	struct rt_perf_build_id build_id;
	struct rt_perf_record record;
	struct rt_perf_header header;
	struct rt_perf_blob btf;
	unsigned get;
	size_t count;

	rt_sink_init_memory(&m->sink);
	rt_sink_init_memory(tracing);
	assert_ok(rt_perf_writer_create(&m->sink, options, &m->writer));
	assert_ok(rt_reftrace_events_create(&ours));
	assert_ok(rt_reftrace_events_op(ours, "obj", RT_OP_GET, &get));
	assert_ok(rt_reftrace_events_tracing_data(ours, tracing));
	assert_ok(rt_perf_writer_event(m->writer, &clock));
	assert_ok(rt_perf_writer_event(m->writer, rt_reftrace_events_list(ours, &count)));
	header = header_make(&build_id, &btf, rt_bytes_make(tracing->buffer, tracing->len));
	assert_ok(rt_perf_writer_features(m->writer, &header));
	assert_ok(rt_perf_writer_begin(m->writer));
	for (unsigned i = 0; nth(i, raw, &record); i++)
		assert_ok(rt_perf_writer_record(m->writer, &record));
	assert_ok(rt_perf_writer_end(m->writer));
	rt_reftrace_events_destroy(ours);
}

static void read_all(struct rt_bytes bytes, struct rt_bytes tracing, bool whole)
{
	const struct rt_perf_event *events;
	uint8_t raw[RT_REFTRACE_OP_RAW];
	struct rt_perf_reader *reader;
	struct rt_perf_record got, want;
	unsigned n = 0;
	size_t count;
	bool more;

	assert_ok(rt_perf_reader_create(bytes, "memory", &reader));
	for (;;) {
		assert_ok(rt_perf_reader_next(reader, &got, &more));
		if (!more)
			break;
		if (got.type >= RT_PERF_USER_FIRST)
			continue;
		assert_true(nth(n++, raw, &want));
		same_record(&want, &got);
	}
	assert_int_equal(n, SAMPLES);
	if (whole) {
		assert_null(rt_perf_reader_damage(reader));
		same_header(rt_perf_reader_header(reader), tracing);
		events = rt_perf_reader_events(reader, &count);
		assert_int_equal(count, 2);
		assert_string_equal(events[1].name, "reftrace:obj_get");
		assert_int_equal(events[1].attr.config, RT_REFTRACE_FIRST_ID);
		assert_int_equal(events[1].id_count, 1);
	}
	rt_perf_reader_destroy(reader);
}

static void there_and_back(const struct rt_perf_writer_options *options)
{
	struct rt_sink tracing;
	struct rt_bytes header;
	struct memory m;

	write_all(&m, options, &tracing);
	header = rt_perf_writer_header(m.writer);
	if (header.size)
		memcpy(m.sink.buffer, header.data, header.size);
	read_all(rt_bytes_make(m.sink.buffer, m.sink.len), rt_bytes_make(tracing.buffer, tracing.len), true);
	rt_perf_writer_destroy(m.writer);
	rt_sink_deinit(&m.sink);
	rt_sink_deinit(&tracing);
}

TEST(file)
{
	there_and_back(NULL);
}

TEST(compressed)
{
	there_and_back(&(struct rt_perf_writer_options){ .zstd_level = 3 });
}

TEST(pipe)
{
	there_and_back(&(struct rt_perf_writer_options){ .pipe = true });
}

TEST(compressed_pipe)
{
	there_and_back(&(struct rt_perf_writer_options){ .pipe = true, .zstd_level = 1 });
}

/* Killed before the end: no final header, no features; every record that was written is read. */
TEST(never_ended)
{
	const struct rt_perf_writer_options kinds[] = { { .zstd_level = 0 }, { .zstd_level = 1 } };

	for (int i = 0; i < 2; i++) {
		struct rt_sink tracing;
		struct rt_bytes header;
		uint64_t data_end;
		struct memory m;

		write_all(&m, &kinds[i], &tracing);
		header = rt_perf_writer_header(m.writer);
		data_end = *(const uint64_t *)(const void *)(header.data + 40) +
			   *(const uint64_t *)(const void *)(header.data + 48);
		assert_true(data_end < m.sink.len);
		read_all(rt_bytes_make(m.sink.buffer, data_end), rt_bytes_make(NULL, 0), false);
		rt_perf_writer_destroy(m.writer);
		rt_sink_deinit(&m.sink);
		rt_sink_deinit(&tracing);
	}
}

static bool encodable(uint32_t type)
{
	switch (type) {
	case RT_PERF_MMAP:
	case RT_PERF_MMAP2:
	case RT_PERF_COMM:
	case RT_PERF_FORK:
	case RT_PERF_EXIT:
	case RT_PERF_SAMPLE:
	case RT_PERF_KSYMBOL:
	case RT_PERF_BPF_EVENT:
	case RT_PERF_FINISHED_ROUND:
	case RT_PERF_FINISHED_INIT:
		return true;
	default:
		return false;
	}
}

/* The same but for zeroes behind a name: perf gives some more of them than the kernel does. */
static bool same_but_padding(const struct perf_event_attr *attr, struct rt_bytes had, const uint8_t *out, size_t size)
{
	size_t trailer =
		8 * (size_t)__builtin_popcountll(attr->sample_type &
						 (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
						  PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER));

	if (size == had.size)
		return memcmp(out, had.data, size) == 0;
	return size < had.size && memcmp(out + 8, had.data + 8, size - 8 - trailer) == 0 &&
	       memcmp(out + size - trailer, had.data + had.size - trailer, trailer) == 0;
}

/* Records that perf and the kernel wrote come out of the encoder as they went in. */
static void same_bytes(const char *options)
{
	static uint8_t out[RT_PERF_RECORD_MAX];
	unsigned samples = 0, others = 0;
	struct rt_perf_reader *reader;
	struct rt_perf_record record;
	const struct rt_perf_event *events;
	size_t size, count;
	struct rt_bytes file;
	char *path = built_path("real.data");
	bool more;
	int fd;

	if (!built_have("perf") || !built_run("perf record -q -o real.data %s sh -c 'i=0; while [ $i -lt 50000 ]; do "
					      "i=$((i+1)); done; (true); sleep 0' >/dev/null 2>&1",
					      options))
		skip();
	assert_ok(rt_fs_open_file(AT_FDCWD, path, false, &fd));
	assert_ok(rt_fs_map(fd, path, &file));
	assert_ok(rt_perf_reader_create(file, path, &reader));
	for (;;) {
		assert_ok(rt_perf_reader_next(reader, &record, &more));
		if (!more)
			break;
		if (!encodable(record.type))
			continue;
		events = rt_perf_reader_events(reader, &count);
		assert_true(record.event < count);
		assert_ok(rt_perf_encode(&events[record.event].attr, &record, out, sizeof(out), &size));
		if (record.type == RT_PERF_SAMPLE
			    ? size != record.bytes.size || memcmp(out, record.bytes.data, size)
			    : !same_but_padding(&events[record.event].attr, record.bytes, out, size))
			fail_msg("%s at 0x%llx comes out differently", rt_perf_type_name(record.type),
				 (unsigned long long)record.offset);
		samples += record.type == RT_PERF_SAMPLE;
		others += record.type != RT_PERF_SAMPLE;
	}
	assert_true(samples > 0);
	assert_true(others > 5);
	rt_perf_reader_destroy(reader);
	rt_fs_unmap(file);
	close(fd);
	free(path);
}

TEST(records_of_perf)
{
	same_bytes("-e cpu-clock -c 1000000 -g");
}

TEST(records_of_perf_with_stacks)
{
	same_bytes("-e cpu-clock -c 1000000 --call-graph dwarf,4096 -d -W --sample-cpu");
}

TEST(records_of_perf_with_build_ids)
{
	same_bytes("-e cpu-clock/period=1000000/,page-faults/period=1/ --buildid-mmap");
}

TEST(records_of_tracepoints)
{
	same_bytes("-e sched:sched_switch -e syscalls:sys_enter_clone -e cpu-clock -g");
}

TEST_MAIN();
