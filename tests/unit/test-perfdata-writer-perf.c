/* SPDX-License-Identifier: GPL-2.0-only */
/* What we write, as the real perf reads it: plain, compressed and through a pipe. */
#include <linux/bpf.h>

#include "recorded.h"

enum { PID = 4242, TID = 4243, CHILD = 4250, GETS = 2000, TICKS = 300 };

#define BASE 0x555555554000ull
#define BEGIN 1000000000ull

struct program {
	char *path, *id_text;
	uint8_t id[20];
	uint64_t work, outer, text_size;
};

static uint64_t symbol(const char *path, const char *name)
{
	char *text = built_output("nm %s | awk '$3 == \"%s\" { print $1 }'", path, name);
	uint64_t address = strtoull(text, NULL, 16);

	assert_true(address > 0);
	free(text);
	return address;
}

static struct program program_build(void)
{
	struct program p = { 0 };
	char *source = built_write("target.c", "volatile int x;\n"
					       "__attribute__((noinline)) void work(void) { x++; x++; x++; x++; }\n"
					       "__attribute__((noinline)) void outer(void) { work(); x++; x++; }\n"
					       "int main(void) { outer(); return 0; }\n");

	assert_true(built_run("gcc -O1 -g -Wl,--build-id=sha1 -Wl,-z,noseparate-code -o target target.c"));
	free(source);
	p.path = built_path("target");
	p.id_text = built_output("readelf -n target | awk '/Build ID/ { printf \"%%s\", $3 }'");
	assert_int_equal(strlen(p.id_text), 40);
	for (int i = 0; i < 20; i++) {
		unsigned byte;

		assert_int_equal(sscanf(p.id_text + 2 * i, "%2x", &byte), 1);
		p.id[i] = (uint8_t)byte;
	}
	p.work = symbol("target", "work");
	p.outer = symbol("target", "outer");
	p.text_size = 0x2000;
	return p;
}

static void program_free(struct program *p)
{
	free(p->path);
	free(p->id_text);
}

static struct rt_wire_event operation(unsigned i)
{
	return (struct rt_wire_event){
		.head = { .size = sizeof(struct rt_wire_event),
			  .kind = RT_WIRE_EVENT,
			  .op = RT_OP_GET,
			  .seq = 0x100000 + i,
			  .time_ns = BEGIN + 1000 + i * 1000,
			  .pid = RT_PID_MAKE(PID, 1),
			  .tid = TID },
		.object = 0x7f0000001000 + i * 64,
		.aux = 7,
		.sp = 0x7ffffffde000,
		.count = i,
		.point = 3,
		.stack = 9,
		.delta = i % 2 ? -1 : 1,
		.flags = RT_EV_COUNT_EXACT | RT_EV_HIDDEN,
	};
}

static void put_maps(struct rt_perf_writer *w, const struct program *p)
{
	struct rt_perf_record r = recorded_at(RT_PERF_COMM, 0, BEGIN, PID, PID);

	r.comm = (struct rt_perf_comm){ .pid = PID, .tid = PID, .exec = true, .comm = "target" };
	assert_ok(rt_perf_writer_record(w, &r));
	r = recorded_at(RT_PERF_COMM, 0, BEGIN + 1, PID, TID);
	r.comm = (struct rt_perf_comm){ .pid = PID, .tid = TID, .comm = "worker" };
	assert_ok(rt_perf_writer_record(w, &r));
	r = recorded_at(RT_PERF_MMAP2, 0, BEGIN + 2, PID, PID);
	r.mmap = (struct rt_perf_mmap){ .pid = PID,
					.tid = PID,
					.addr = BASE,
					.len = p->text_size,
					.build_id_size = 20,
					.prot = 5,
					.flags = 2,
					.filename = p->path };
	memcpy(r.mmap.build_id, p->id, 20);
	assert_ok(rt_perf_writer_record(w, &r));
}

static void put_kernel(struct rt_perf_writer *w)
{
	struct rt_perf_record r = recorded_at(RT_PERF_MMAP, 0, 0, UINT32_MAX, 0);

	r.misc = RT_PERF_KERNEL;
	r.mmap = (struct rt_perf_mmap){ .pid = UINT32_MAX,
					.addr = 0xffffffff81000000,
					.len = 0x1000000,
					.pgoff = 0xffffffff81000000,
					.filename = "[kernel.kallsyms]_text" };
	assert_ok(rt_perf_writer_record(w, &r));
}

/* A BPF program as a newer kernel than perf's tells it: 8 bytes more of bpf_prog_info. */
static struct rt_bytes bpf_entry(void)
{
	static struct {
		uint32_t info_len, data_len;
		uint64_t arrays;
		uint8_t info[240];
		uint64_t ksym;
		uint32_t len, pad;
		uint8_t tag[8];
	} entry = { .info_len = 240,
		    .data_len = 24,
		    .arrays = 1 << 3 | 1 << 4 | 1 << 8,
		    .ksym = 0xffffffffc0000000,
		    .len = 256,
		    .tag = { 1, 2, 3, 4, 5, 6, 7, 8 } };
	struct bpf_prog_info info = { .id = 77, .tag = { 1, 2, 3, 4, 5, 6, 7, 8 }, .name = "probe", .btf_id = 5 };

	info.nr_jited_ksyms = info.nr_jited_func_lens = info.nr_prog_tags = 1;
	info.jited_prog_len = 256;
	info.jited_func_lens = 8;
	info.prog_tags = 16;
	memset(entry.info, 0xff, sizeof(entry.info));
	memcpy(entry.info, &info, 232);
	return rt_bytes_make(&entry, sizeof(entry));
}

static void put_tasks(struct rt_perf_writer *w)
{
	struct rt_perf_record r = recorded_at(RT_PERF_FORK, 0, BEGIN + 3, PID, PID);

	r.task = (struct rt_perf_task){ .pid = CHILD, .ppid = PID, .tid = CHILD, .ptid = PID, .time_ns = BEGIN + 3 };
	assert_ok(rt_perf_writer_record(w, &r));
	r.type = RT_PERF_EXIT;
	r.id.time_ns = r.task.time_ns = BEGIN + 4;
	assert_ok(rt_perf_writer_record(w, &r));
	r = recorded_at(RT_PERF_KSYMBOL, 0, BEGIN + 5, 0, 0);
	r.misc = RT_PERF_KERNEL;
	r.ksymbol = (struct rt_perf_ksymbol){
		.addr = 0xffffffffc0000000, .len = 256, .type = 1, .name = "bpf_prog_0102030405060708_probe"
	};
	assert_ok(rt_perf_writer_record(w, &r));
	r = recorded_at(RT_PERF_BPF_EVENT, 0, BEGIN + 6, 0, 0);
	r.misc = RT_PERF_KERNEL;
	r.bpf = (struct rt_perf_bpf_event){ .type = 1, .id = 77, .tag = { 1, 2, 3, 4, 5, 6, 7, 8 } };
	assert_ok(rt_perf_writer_record(w, &r));
}

static void put_samples(struct rt_perf_writer *w, const struct program *p, unsigned get, unsigned meta, uint16_t get_id,
			uint16_t meta_id)
{
	uint64_t chain[] = { PERF_CONTEXT_USER, BASE + p->work + 4, BASE + p->outer + 5 };
	uint8_t raw[RT_REFTRACE_OP_RAW], note[256];
	struct rt_perf_record r = recorded_at(RT_PERF_SAMPLE, meta, BEGIN + 10, PID, PID);
	size_t size;

	assert_ok(
		rt_reftrace_meta_raw(meta_id, "type 1 obj", rt_bytes_make("\0\1\2\377", 4), note, sizeof(note), &size));
	r.sample.period = 1;
	r.sample.raw = rt_bytes_make(note, size);
	assert_ok(rt_perf_writer_record(w, &r));
	for (unsigned i = 0; i < GETS; i++) {
		struct rt_wire_event event = operation(i);

		rt_reftrace_op_raw(get_id, &event, (struct rt_reftrace_place){ 0 }, raw);
		r = recorded_at(RT_PERF_SAMPLE, get, event.head.time_ns, PID, TID);
		r.sample = (struct rt_perf_sample){
			.ip = chain[1], .period = 1, .chain = chain, .chain_count = 3, .raw = { raw, sizeof(raw) }
		};
		assert_ok(rt_perf_writer_record(w, &r));
		if (i % 500 == 499) {
			r = (struct rt_perf_record){ .type = RT_PERF_FINISHED_ROUND };
			assert_ok(rt_perf_writer_record(w, &r));
		}
	}
	for (unsigned i = 0; i < TICKS; i++) {
		r = recorded_at(RT_PERF_SAMPLE, 0, BEGIN + 5000000 + i * 1000, PID, PID);
		r.sample = (struct rt_perf_sample){ .ip = BASE + p->outer + 5, .period = 1000000 };
		if (i % 3 == 0) {
			r.misc = RT_PERF_KERNEL;
			r.sample.ip = 0xffffffffc0000010;
		}
		assert_ok(rt_perf_writer_record(w, &r));
	}
}

/* A whole recording; caller frees the path. */
static char *record(const char *name, const struct program *p, const struct rt_perf_writer_options *options)
{
	char *command[] = { TEXT("reftrace"), TEXT("record"), TEXT("./target arg") };
	uint64_t clock_id = 11;
	struct rt_perf_event clock = recorded_clock(&clock_id, 0);
	struct rt_perf_build_id build_id = { .pid = UINT32_MAX, .misc = RT_PERF_USER, .size = 20, .path = p->path };
	struct rt_perf_header header = { .hostname = TEXT("fancyhost"),
					 .osrelease = TEXT("6.1.0-x"),
					 .version = TEXT("reftrace 0.1"),
					 .arch = TEXT("x86_64"),
					 .cpudesc = TEXT("Fancy CPU"),
					 .cpuid = TEXT("GenuineFancy,6,1,2"),
					 .cpus_available = 4,
					 .cpus_online = 3,
					 .total_mem_kib = 123456,
					 .command = command,
					 .command_count = 3,
					 .first_ns = BEGIN,
					 .last_ns = BEGIN + 9000000,
					 .has_clockid = true,
					 .clockid = 1,
					 .clock_data_id = CLOCK_MONOTONIC,
					 .wall_clock_ns = 1700000000000000000ull,
					 .clockid_time_ns = BEGIN,
					 .build_ids = &build_id,
					 .build_id_count = 1 };
	struct rt_perf_blob program = { .bytes = bpf_entry() },
			    btf = { .id = 5, .bytes = { (const uint8_t *)"BTF", 4 } };
	struct recorded *r = recorded_open(name, options);
	struct rt_reftrace_events *ours;
	const struct rt_perf_event *list;
	unsigned get, put, meta;
	struct rt_sink tracing;
	size_t count;

	header.bpf_progs = &program;
	header.btfs = &btf;
	header.bpf_prog_count = header.btf_count = 1;
	memcpy(build_id.id, p->id, 20);
	rt_sink_init_memory(&tracing);
	assert_ok(rt_reftrace_events_create(&ours));
	assert_ok(rt_reftrace_events_op(ours, "struct obj", RT_OP_GET, &get));
	assert_ok(rt_reftrace_events_op(ours, "struct obj", RT_OP_PUT, &put));
	assert_ok(rt_reftrace_events_meta(ours, "type", &meta));
	assert_ok(rt_reftrace_events_tracing_data(ours, &tracing));
	assert_ok(rt_sink_end(&tracing));
	list = rt_reftrace_events_list(ours, &count);
	assert_int_equal(count, 3);
	assert_ok(rt_perf_writer_event(r->writer, &clock));
	for (size_t i = 0; i < count; i++)
		assert_ok(rt_perf_writer_event(r->writer, &list[i]));
	header.tracing_data = rt_bytes_make(tracing.buffer, tracing.len);
	assert_ok(rt_perf_writer_features(r->writer, &header));
	assert_ok(rt_perf_writer_begin(r->writer));
	put_kernel(r->writer);
	put_maps(r->writer, p);
	put_tasks(r->writer);
	put_samples(r->writer, p, get + 1, meta + 1, (uint16_t)list[get].attr.config, (uint16_t)list[meta].attr.config);
	rt_sink_deinit(&tracing);
	rt_reftrace_events_destroy(ours);
	return recorded_close(r);
}

static void check_script(const char *perf, const char *input)
{
	char *words, *out;

	assert_true(asprintf(&words, "script %s", input) > 0);
	out = recorded_ask(perf, words);
	free(words);
	assert_int_equal(recorded_count(out, "reftrace:struct_obj_get:"), GETS);
	assert_int_equal(recorded_count(out, " cpu-clock:"), TICKS);
	assert_int_equal(recorded_count(out, "bpf_prog_0102030405060708_probe"), 2 * (TICKS / 3));
	recorded_says(out, "reftrace:meta_type: type 1 obj [4 bytes]");
	recorded_says(out,
		      "worker 4243 [001] 1.000002: reftrace:struct_obj_get: object=0x7f0000001040 count=1 delta=-1 "
		      "flags=count-exact|hidden aux=0x7\n");
	assert_int_equal(recorded_count(out, " work"), GETS);
	assert_int_equal(recorded_count(out, " outer"), GETS + TICKS - TICKS / 3);
	free(out);
	assert_true(asprintf(&words, "script %s -F comm,tid,time,event,trace,ip,sym,dso", input) > 0);
	out = recorded_ask(perf, words);
	free(words);
	assert_int_equal(recorded_count(out, "delta="), GETS);
	assert_int_equal(recorded_count(out, "/target)"), 2 * GETS + TICKS - TICKS / 3);
	free(out);
}

static void check_sideband(const char *perf, const char *input, const struct program *p)
{
	char *words, *out;

	assert_true(asprintf(&words, "script %s --show-task-events --show-mmap-events --show-bpf-events", input) > 0);
	out = recorded_ask(perf, words);
	free(words);
	recorded_says(out, "PERF_RECORD_COMM exec: target:4242/4242");
	recorded_says(out, "PERF_RECORD_COMM: worker:4242/4243");
	recorded_says(out, "PERF_RECORD_FORK(4250:4250):(4242:4242)");
	recorded_says(out, "PERF_RECORD_EXIT(4250:4250):(4242:4242)");
	recorded_says(out, "PERF_RECORD_KSYMBOL addr ffffffffc0000000 len 256 type 1 flags 0x0 name "
			   "bpf_prog_0102030405060708_probe");
	recorded_says(out, "PERF_RECORD_BPF_EVENT type 1, flags 0, id 77");
	recorded_says(out, "PERF_RECORD_MMAP2 4242/4242: [0x555555554000(0x2000) @ 0 <");
	recorded_says(out, p->id_text);
	free(out);
}

static void check_report(const char *perf, const char *input)
{
	char *words, *out;

	assert_true(asprintf(&words, "report --stdio --no-children -g none --sort comm,dso,sym %s", input) > 0);
	out = recorded_ask(perf, words);
	free(words);
	recorded_says(out, "66.67% target target [.] outer");
	recorded_says(out, "33.33% target bpf_prog_0102030405060708_probe [k] bpf_prog_0102030405060708_probe");
	recorded_says(out, "100.00% worker target [.] work");
	free(out);
}

static void check_header(const char *perf, const char *input)
{
	char *words, *out;

	assert_true(asprintf(&words, "report --header-only -I %s", input) > 0);
	out = recorded_ask(perf, words);
	free(words);
	recorded_says(out, "# hostname : fancyhost\n");
	recorded_says(out, "# os release : 6.1.0-x\n");
	recorded_says(out, "# perf version : reftrace 0.1\n");
	recorded_says(out, "# arch : x86_64\n");
	recorded_says(out, "# nrcpus online : 3\n# nrcpus avail : 4\n");
	recorded_says(out, "# cpudesc : Fancy CPU\n# cpuid : GenuineFancy,6,1,2\n# total memory : 123456 kB\n");
	recorded_says(out, "# cmdline : reftrace record ./target arg");
	recorded_says(out, "# event : name = reftrace:struct_obj_put, , id = {");
	recorded_says(out, "# time of first sample : 1.000000\n# time of last sample : 1.009000\n");
	recorded_says(out, "# clockid frequency: 1000 MHz\n");
	recorded_says(
		out,
		"# reference time: 2023-11-14 22:13:20.000000 = 1700000000.000000 (TOD) = 1.000000000 (monotonic)");
	recorded_says(out, "# bpf_prog_info 77: bpf_prog_0102030405060708_probe addr 0xffffffffc0000000 size 256");
	recorded_says(out, "# btf info of id 5\n");
	free(out);
}

static void check_events(const char *perf, const char *input)
{
	char *words, *out;

	assert_true(asprintf(&words, "evlist -v %s", input) > 0);
	out = recorded_ask(perf, words);
	free(words);
	assert_int_equal(recorded_count(out, "size: 128"), 4);
	recorded_says(out, "config: 0xf000, { sample_period, sample_freq }: 1, "
			   "sample_type: IP|TID|TIME|CALLCHAIN|CPU|PERIOD|RAW|IDENTIFIER");
	if (!strstr(input, "pipe")) {
		recorded_says(out, "cpu-clock: type: 1");
		recorded_says(out, "reftrace:struct_obj_get: type: 2");
		recorded_says(out, "reftrace:meta_type: type: 2");
	}
	free(out);
}

static void check(const char *name, const struct rt_perf_writer_options *options)
{
	const char *const *perfs = recorded_perfs();
	struct program p;
	char *input, *words, *ids;

	if (!built_have("perf"))
		skip();
	p = program_build();
	free(record(name, &p, options));
	assert_true(asprintf(&input, "-i %s", name) > 0);
	for (int i = 0; perfs[i]; i++) {
		check_script(perfs[i], input);
		check_sideband(perfs[i], input, &p);
		check_report(perfs[i], input);
		check_header(perfs[i], input);
		check_events(perfs[i], input);
		if (options && options->pipe) {
			assert_true(asprintf(&words, "cat %s | %s", name, perfs[i]) > 0);
			check_script(words, "-i -");
			check_report(words, "-i -");
		} else {
			assert_true(asprintf(&words, "buildid-list -i %s", name) > 0);
			ids = recorded_ask(perfs[i], words);
			assert_int_equal(strncmp(ids, p.id_text, 40), 0);
			recorded_says(ids, p.path);
			free(ids);
		}
		free(words);
	}
	free(input);
	program_free(&p);
}

TEST(plain_file)
{
	check("plain.data", NULL);
}

TEST(compressed_file)
{
	check("packed.data", &(struct rt_perf_writer_options){ .zstd_level = 1 });
}

TEST(pipe)
{
	check("pipe.data", &(struct rt_perf_writer_options){ .pipe = true });
}

TEST(compressed_pipe)
{
	check("packed-pipe.data", &(struct rt_perf_writer_options){ .pipe = true, .zstd_level = 3 });
}

TEST_MAIN();
