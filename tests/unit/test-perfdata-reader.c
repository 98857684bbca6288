/* SPDX-License-Identifier: GPL-2.0-only */
/* Files made by hand, each in both byte orders: every field comes back; what is damaged is said, never passed over. */
#include "perfdata-reading.h"

static void put_sample_head(void)
{
	begin(&file, RT_PERF_SAMPLE, RT_PERF_USER);
	put8(&file, 77);       /* identifier */
	put8(&file, 0x401000); /* ip */
	put4(&file, 5);
	put4(&file, 6);
	put8(&file, 123456789);
	put8(&file, 0xadd4);
	put8(&file, 77);
	put8(&file, 88); /* stream */
	put4(&file, 3);  /* cpu */
	put4(&file, 0);
	put8(&file, 250000);
	put8(&file, 2); /* read: nr */
	put8(&file, 100);
	put8(&file, 90);
	for (unsigned i = 0; i < 6; i++)
		put8(&file, i); /* value, id, lost; twice */
	put8(&file, 3);         /* chain */
	put8(&file, PERF_CONTEXT_USER);
	put8(&file, 0x401000);
	put8(&file, 0x402000);
	put4(&file, 9); /* raw, padded */
	put_bytes(&file, "nine byte\0\0\0", 12);
	put8(&file, 1); /* branches */
	put8(&file, 0x1d);
	put8(&file, 1);
	put8(&file, 2);
	put8(&file, 3);
}

static void put_sample_tail(void)
{
	put8(&file, 2); /* registers */
	put8(&file, 0xa1);
	put8(&file, 0xa2);
	put8(&file, 16); /* stack */
	put_bytes(&file, "0123456789abcdef", 16);
	put8(&file, 9);
	put8(&file, 0xffff000000000042); /* weight_struct */
	put8(&file, 0xd5);
	put8(&file, 0x77);
	put8(&file, 2); /* registers of the interrupted */
	put8(&file, 0xb1);
	put8(&file, 0xfee1);
	put8(&file, 0xc6);
	put8(&file, 4096);
	put8(&file, 8192);
	put8(&file, 8); /* AUX */
	put8(&file, 0);
	put8(&file, 0x7a11); /* of a field that nobody knows yet */
	end(&file);
}

static const struct perf_event_spec full = {
	.sample_type = 0x1ffffff & ~(uint64_t)PERF_SAMPLE_WEIGHT,
	.id = 77,
	.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
		       PERF_FORMAT_ID | 16,
	.branch = PERF_SAMPLE_BRANCH_HW_INDEX,
	.regs_user = 0x81,
	.regs_intr = 0x10,
};

TEST(every_field_of_a_sample)
{
	EACH_ORDER(big)
	{
		_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
		struct rt_perf_record r;
		struct rt_perf_sample *s = &r.sample;

		file_begin(&file, big, 128, &full, 1);
		put_sample_head();
		put_sample_tail();
		file_data_end(&file);
		reader = opened();
		assert_true(next(reader, &r));
		assert_int_equal(r.type, RT_PERF_SAMPLE);
		assert_int_equal(r.misc, RT_PERF_USER);
		assert_int_equal(r.offset, data_start(&file));
		assert_int_equal(r.id.id, 77);
		assert_int_equal(r.id.pid, 5);
		assert_int_equal(r.id.tid, 6);
		assert_true(r.id.has_time);
		assert_int_equal(r.id.time_ns, 123456789);
		assert_int_equal(r.id.stream, 88);
		assert_int_equal(r.id.cpu, 3);
		assert_int_equal(s->ip, 0x401000);
		assert_int_equal(s->addr, 0xadd4);
		assert_int_equal(s->period, 250000);
		assert_int_equal(s->read.size, 72);
		assert_int_equal(s->chain_count, 3);
		assert_int_equal(s->chain[0], PERF_CONTEXT_USER);
		assert_int_equal(s->chain[2], 0x402000);
		assert_int_equal(s->raw.size, 9);
		assert_memory_equal(s->raw.data, "nine byte", 9);
		assert_int_equal(s->user_abi, 2);
		assert_int_equal(s->user_reg_count, 2);
		assert_int_equal(s->user_regs[1], 0xa2);
		assert_int_equal(s->user_stack.size, 16);
		assert_int_equal(s->user_stack_size, 9);
		assert_int_equal(s->weight, 0x42);
		assert_int_equal(s->data_src, 0xd5);
		assert_int_equal(s->transaction, 0x77);
		assert_int_equal(s->phys_addr, 0xfee1);
		assert_int_equal(s->cgroup, 0xc6);
		assert_int_equal(s->data_page_size, 4096);
		assert_int_equal(s->code_page_size, 8192);
		assert_false(next(reader, &r));
		assert_null(rt_perf_reader_damage(reader));
	}
}

/* A sample that ends in the middle of any of its fields is a fault, and does not read what follows. */
TEST(sample_cut_in_each_field)
{
	EACH_ORDER(big)
	{
		size_t start, whole;

		file_begin(&file, big, 128, &full, 1);
		start = file.len;
		put_sample_head();
		put_sample_tail();
		whole = file.len - 8; /* without the unknown field */
		for (size_t size = 8; size < whole - start; size++) {
			_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
			struct rt_perf_record r;

			poke(&file, start + 6, size, 2);
			file_data_end(&file);
			reader = opened();
			assert_false(next(reader, &r));
			assert_non_null(strstr(rt_perf_reader_damage(reader), "SAMPLE record: sample is too short"));
		}
	}
}

/* Counts that overflow when they are multiplied, or that promise more than there is. */
TEST(hostile_counts)
{
	static const uint64_t counts[] = { UINT64_MAX, UINT64_C(0x0aaaaaaaaaaaaaab), UINT64_C(1) << 61, 8192 };

	EACH_ORDER(big)
	{
		size_t chain, branches, stack;

		file_begin(&file, big, 128, &full, 1);
		put_sample_head();
		branches = file.len - 40;
		chain = branches - 16 - 32;
		stack = file.len + 48;
		put_sample_tail();
		file_data_end(&file);
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			for (int where = 0; where < 3; where++) {
				size_t at = where == 0 ? chain : where == 1 ? branches : chain - 72;
				struct rt_perf_reader *reader;
				struct rt_perf_record r;
				uint8_t saved[8];

				memcpy(saved, file.data + at, 8);
				poke(&file, at, counts[i], 8);
				reader = opened();
				assert_false(next(reader, &r));
				assert_non_null(strstr(rt_perf_reader_damage(reader), where == 0 ? "its call chain"
										      : where == 1
											      ? "its branch stack"
											      : "its counter values"));
				rt_perf_reader_destroy(reader);
				memcpy(file.data + at, saved, 8);
			}
		}
		poke(&file, stack, 99, 8); /* more of the stack is valid than there is */
		{
			struct rt_perf_reader *reader = opened();
			struct rt_perf_record r;

			assert_true(next(reader, &r));
			assert_int_equal(r.sample.user_stack_size, 16);
			rt_perf_reader_destroy(reader);
		}
	}
}

static void put_kernel_records(void)
{
	begin(&file, RT_PERF_KSYMBOL, 0);
	put8(&file, 0xffffffffc0000000);
	put4(&file, 65);
	put(&file, 1, 2);
	put(&file, 1, 2);
	put_text(&file, "bpf_prog_x", 8);
	put_trailer(30);
	end(&file);
	begin(&file, RT_PERF_BPF_EVENT, 0);
	put(&file, 2, 2);
	put(&file, 0, 2);
	put4(&file, 99);
	put_bytes(&file, "tagtagta", 8);
	put_trailer(31);
	end(&file);
	begin(&file, RT_PERF_TEXT_POKE, 0);
	put8(&file, 0xffffffff81000000);
	put(&file, 1, 2);
	put(&file, 3, 2);
	put_bytes(&file, "abbb", 4);
	put_trailer(32);
	end(&file);
	begin(&file, RT_PERF_LOST, 0);
	put8(&file, 7);
	put8(&file, 1000);
	put_trailer(33);
	end(&file);
	begin(&file, RT_PERF_LOST_SAMPLES, 0);
	put8(&file, 5);
	put_trailer(34);
	end(&file);
	begin(&file, 63, 0); /* of a kernel to come */
	put8(&file, 5);
	put_trailer(35);
	end(&file);
}

static void check_mmaps(struct rt_perf_reader *reader)
{
	struct rt_perf_record r;

	assert_true(next(reader, &r));
	assert_int_equal(r.mmap.addr, 0x7f0000001000);
	assert_int_equal(r.mmap.build_id_size, 0);
	assert_int_equal(r.mmap.maj, 0xfe);
	assert_int_equal(r.mmap.ino, 4711);
	assert_int_equal(r.mmap.ino_gen, 3);
	assert_int_equal(r.mmap.prot, 5);
	assert_string_equal(r.mmap.filename, "/usr/lib/libx.so");
	assert_int_equal(r.id.time_ns, 20);
	assert_int_equal(r.id.tid, 12);
	assert_true(next(reader, &r));
	assert_int_equal(r.mmap.build_id_size, 8);
	assert_memory_equal(r.mmap.build_id, "\1\2\3\4\5\6\7\10\0\0", 10);
	assert_int_equal(r.mmap.flags, 2);
}

TEST(kernel_records)
{
	EACH_ORDER(big)
	{
		_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
		struct rt_perf_record r;

		file_begin(&file, big, 112, &simple, 1);
		put_mmap2(false);
		put_mmap2(true);
		put_comm("name", 21);
		put_kernel_records();
		file_data_end(&file);
		reader = opened();
		check_mmaps(reader);
		assert_true(next(reader, &r));
		assert_string_equal(r.comm.comm, "name");
		assert_true(next(reader, &r));
		assert_int_equal(r.ksymbol.len, 65);
		assert_true(r.ksymbol.unregister);
		assert_string_equal(r.ksymbol.name, "bpf_prog_x");
		assert_true(next(reader, &r));
		assert_int_equal(r.bpf.type, 2);
		assert_int_equal(r.bpf.id, 99);
		assert_memory_equal(r.bpf.tag, "tagtagta", 8);
		assert_true(next(reader, &r));
		assert_int_equal(r.poke.old.size, 1);
		assert_memory_equal(r.poke.new.data, "bbb", 3);
		assert_true(next(reader, &r));
		assert_int_equal(r.lost.count, 1000);
		assert_true(next(reader, &r));
		assert_int_equal(r.lost.count, 5);
		assert_true(next(reader, &r));
		assert_int_equal(r.type, 63);
		assert_int_equal(r.id.time_ns, 35);
		assert_false(next(reader, &r));
		assert_null(rt_perf_reader_damage(reader));
	}
}

/* MMAP2 whose flag promises a build-id. */
static void put_flagged(uint32_t maj, uint32_t min, uint64_t ino, uint64_t generation)
{
	begin(&file, RT_PERF_MMAP2, RT_PERF_USER | RT_PERF_MISC_MMAP_BUILD_ID);
	put4(&file, 11);
	put4(&file, 12);
	put8(&file, 0x7f0000001000);
	put8(&file, 0x2000);
	put8(&file, 0x1000);
	put4(&file, maj);
	put4(&file, min);
	put8(&file, ino);
	put8(&file, generation);
	put4(&file, 5);
	put4(&file, 2);
	put_text(&file, "/usr/lib/libx.so", 8);
	put_trailer(20);
	end(&file);
}

/* The flag is another recorder's: the device's numbers stand there. */
TEST(flag_of_another_recorder)
{
	static const struct {
		uint32_t maj, min;
		uint64_t ino, generation;
	} cases[] = { { 254, 0, 11076391, 996933882 },
		      { 8, 1, 332383, 0 },
		      { 0, 45, 7, 0 },
		      { 8, 0x12345, 7, 3 },
		      { 259, 5, 7, 0 } };

	EACH_ORDER(big)
	{
		_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
		struct rt_perf_record r;

		file_begin(&file, big, 112, &simple, 1);
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
			put_flagged(cases[i].maj, cases[i].min, cases[i].ino, cases[i].generation);
		file_data_end(&file);
		reader = opened();
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			assert_true(next(reader, &r));
			assert_int_equal(r.mmap.build_id_size, 0);
			assert_int_equal(r.mmap.maj, cases[i].maj);
			assert_int_equal(r.mmap.min, cases[i].min);
			assert_int_equal(r.mmap.ino, cases[i].ino);
			assert_string_equal(r.mmap.filename, "/usr/lib/libx.so");
		}
		assert_false(next(reader, &r));
		assert_null(rt_perf_reader_damage(reader));
	}
}

/* Two events with different samples: whose record it is stands at different places. */
TEST(event_by_id)
{
	static const struct perf_event_spec two[] = {
		{ .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_ID, .id = 501 },
		{ .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME, .id = 502 },
	};

	EACH_ORDER(big)
	{
		_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
		struct rt_perf_record r;

		file_begin(&file, big, 64, two, 2);
		begin(&file, RT_PERF_SAMPLE, 0);
		put8(&file, 502);
		put8(&file, 10);
		end(&file);
		begin(&file, RT_PERF_SAMPLE, 0);
		put8(&file,
		     502); /* an ip that looks like the other's id would be the worst case; here it is not asked */
		put8(&file, 11);
		put8(&file, 501);
		end(&file);
		begin(&file, RT_PERF_SAMPLE, 0);
		put8(&file, 0x999);
		put8(&file, 12);
		put8(&file, 501);
		end(&file);
		begin(&file, RT_PERF_LOST_SAMPLES, 0);
		put8(&file, 1);
		put8(&file, 13);
		put8(&file, 502);
		end(&file);
		begin(&file, RT_PERF_SAMPLE, 0);
		put8(&file, 0x999);
		put8(&file, 12);
		put8(&file, 503);
		end(&file);
		file_data_end(&file);
		reader = opened();
		assert_true(next(reader, &r));
		assert_int_equal(r.event, 1);
		assert_int_equal(r.id.time_ns, 10);
		assert_true(next(reader, &r));
		assert_int_equal(r.event, 0);
		assert_true(next(reader, &r));
		assert_int_equal(r.event, 0);
		assert_int_equal(r.sample.ip, 0x999);
		assert_int_equal(r.sample.period, 1000);
		assert_true(next(reader, &r));
		assert_int_equal(r.event, 1);
		assert_int_equal(r.id.time_ns, 13);
		assert_int_equal(r.lost.count, 1);
		assert_false(next(reader, &r));
		assert_non_null(strstr(rt_perf_reader_damage(reader), "has the id 503"));
	}
}

TEST(attributes_of_every_size)
{
	static const uint32_t sizes[] = { 64, 72, 80, 96, 104, 112, 120, 128, 136, 144, 4096 };

	EACH_ORDER(big)
	{
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
			const struct rt_perf_event *events;
			size_t count;
			struct rt_perf_record r;

			file_begin(&file, big, sizes[i], &simple, 1);
			put_comm("x", 1);
			file_data_end(&file);
			reader = opened();
			events = rt_perf_reader_events(reader, &count);
			assert_int_equal(count, 1);
			assert_int_equal(events->attr.size, sizes[i]);
			assert_int_equal(events->attr.type, 1);
			assert_int_equal(events->attr.config, 9);
			assert_int_equal(events->attr.sample_period, 1000);
			assert_int_equal(events->attr.sample_id_all, 1);
			assert_int_equal(events->attr.disabled, 0);
			assert_int_equal(events->attr.precise_ip, 0);
			assert_int_equal(events->attr.config2, 0);
			assert_int_equal(events->attr.sig_data, 0);
			assert_int_equal(events->ids[0], 7);
			assert_true(next(reader, &r));
			assert_string_equal(r.comm.comm, "x");
		}
	}
}

static void put_features(void)
{
	static const unsigned features[] = {
		RT_PERF_FEAT_BUILD_ID,
		RT_PERF_FEAT_HOSTNAME,
		RT_PERF_FEAT_NRCPUS,
		RT_PERF_FEAT_TOTAL_MEM,
		RT_PERF_FEAT_CMDLINE,
		RT_PERF_FEAT_EVENT_DESC,
		RT_PERF_FEAT_SAMPLE_TIME,
		RT_PERF_FEAT_BPF_PROG_INFO,
		RT_PERF_FEAT_BPF_BTF,
		RT_PERF_FEAT_CLOCK_DATA,
		200,
	};

	file_data_end(&file);
	file_features(&file, features, sizeof(features) / sizeof(features[0]));
	feature_begin(&file);
	put4(&file, 0);
	put(&file, 0x8002, 2);
	put(&file, 8 + 28 + 8, 2);
	put4(&file, UINT32_MAX);
	put_bytes(&file, "0123456789abcdefghij", 20);
	put(&file, 8, 1);
	put(&file, 0, 3);
	put_text(&file, "/bin/x", 8);
	feature_end(&file);
	feature_begin(&file);
	put_string(&file, "machine");
	feature_end(&file);
	feature_begin(&file);
	put4(&file, 8);
	put4(&file, 6);
	feature_end(&file);
	feature_begin(&file);
	put8(&file, 123456);
	feature_end(&file);
	feature_begin(&file);
	put4(&file, 2);
	put_string(&file, "/usr/bin/perf");
	put_string(&file, "record");
	feature_end(&file);
	feature_begin(&file);
	put4(&file, 1);
	put4(&file, 64);
	put_attr(&file, 64, 0, 0);
	put4(&file, 1);
	put_string(&file, "my-event");
	put8(&file, 7);
	feature_end(&file);
	feature_begin(&file);
	put8(&file, 1);
	put8(&file, 2);
	feature_end(&file);
	feature_begin(&file);
	put4(&file, 1);
	put4(&file, 8);
	put4(&file, 4);
	put8(&file, 1);
	put_bytes(&file, "infoinfodata", 12);
	feature_end(&file);
	feature_begin(&file);
	put4(&file, 1);
	put4(&file, 42);
	put4(&file, 3);
	put_bytes(&file, "btf", 3);
	feature_end(&file);
	feature_begin(&file);
	put4(&file, 1);
	put4(&file, 4);
	put8(&file, 1000);
	put8(&file, 2000);
	feature_end(&file);
	feature_begin(&file);
	put_bytes(&file, "unknown", 7);
	feature_end(&file);
}

/* A small file with everything in it. */
static void make_whole(bool big)
{
	file_begin(&file, big, 128, &simple, 1);
	put_comm("one", 1);
	put_mmap2(true);
	begin(&file, RT_PERF_SAMPLE, 0);
	put_trailer(2);
	end(&file);
	put_comm("two", 3);
	put_features();
}

TEST(features)
{
	EACH_ORDER(big)
	{
		_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
		const struct rt_perf_header *h;
		size_t count;

		make_whole(big);
		reader = opened();
		h = rt_perf_reader_header(reader);
		assert_null(rt_perf_reader_damage(reader));
		assert_int_equal(h->big_endian, big);
		assert_int_equal(h->build_id_count, 1);
		assert_int_equal(h->build_ids[0].size, 8);
		assert_int_equal(h->build_ids[0].pid, UINT32_MAX);
		assert_string_equal(h->build_ids[0].path, "/bin/x");
		assert_string_equal(h->hostname, "machine");
		assert_null(h->arch);
		assert_int_equal(h->cpus_available, 8);
		assert_int_equal(h->cpus_online, 6);
		assert_int_equal(h->total_mem_kib, 123456);
		assert_int_equal(h->command_count, 2);
		assert_string_equal(h->command[1], "record");
		assert_string_equal(rt_perf_reader_events(reader, &count)->name, "my-event");
		assert_int_equal(h->first_ns, 1);
		assert_int_equal(h->last_ns, 2);
		assert_int_equal(h->bpf_prog_count, 1);
		assert_int_equal(h->bpf_progs[0].bytes.size, 28);
		assert_int_equal(h->btfs[0].id, 42);
		assert_memory_equal(h->btfs[0].bytes.data, "btf", 3);
		assert_int_equal(h->clock_data_id, 4);
		assert_int_equal(h->clockid_time_ns, 2000);
		assert_int_equal(h->features[200 / 64] >> 200 % 64 & 1, 1);
	}
}

/* The bits are C longs: 32-bit big-endian machines write the halves of a word the other way round. */
TEST(features_of_a_32_bit_recorder)
{
	_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;

	make_whole(true);
	for (size_t at = 72; at < 104; at += 8) {
		uint8_t half[4];

		memcpy(half, file.data + at, 4);
		memmove(file.data + at, file.data + at + 4, 4);
		memcpy(file.data + at + 4, half, 4);
	}
	reader = opened();
	assert_string_equal(rt_perf_reader_header(reader)->hostname, "machine");
	assert_null(rt_perf_reader_damage(reader));
}

TEST(cut_at_every_byte)
{
	EACH_ORDER(big)
	{
		uint64_t whole[8], ends[8];
		bool damaged;
		size_t count;

		make_whole(big);
		count = walk(rt_bytes_make(file.data, file.len), whole, 8, &damaged);
		assert_int_equal(count, 4);
		assert_false(damaged);
		for (size_t size = 0; size < file.len; size++) {
			uint8_t *copy = malloc(size ? size : 1);
			size_t want = 0, got;

			assert_non_null(copy);
			memcpy(copy, file.data, size);
			got = walk(rt_bytes_make(copy, size), ends, 8, &damaged);
			while (want < count && whole[want] <= size)
				want++;
			assert_int_equal(got, want);
			assert_memory_equal(ends, whole, want * sizeof(ends[0]));
			assert_true(damaged);
			free(copy);
		}
	}
}

/* Whatever byte is wrong: no fault of ours, and the records before it are as they were. */
TEST(every_byte_changed)
{
	static const uint8_t masks[] = { 0x01, 0x80, 0xff };

	EACH_ORDER(big)
	{
		uint64_t whole[8], ends[64];
		bool damaged;
		size_t count;

		make_whole(big);
		count = walk(rt_bytes_make(file.data, file.len), whole, 8, &damaged);
		for (size_t at = 0; at < file.len; at++) {
			for (size_t m = 0; m < sizeof(masks); m++) {
				size_t got, before = 0;

				file.data[at] ^= masks[m];
				got = walk(rt_bytes_make(file.data, file.len), ends, 64, &damaged);
				while (at >= data_start(&file) && before < count && whole[before] <= at)
					before++;
				assert_true(got >= before);
				assert_memory_equal(ends, whole, before * sizeof(ends[0]));
				file.data[at] ^= masks[m];
			}
		}
	}
}

TEST(damage_says_where)
{
	_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
	struct rt_perf_record r;
	char want[100];
	size_t at;

	file_begin(&file, false, 128, &simple, 1);
	put_comm("one", 1);
	at = file.len;
	put_comm("two", 2);
	poke(&file, at + 6, 65528, 2);
	file_data_end(&file);
	reader = opened();
	assert_true(next(reader, &r));
	assert_false(next(reader, &r));
	assert_false(next(reader, &r));
	snprintf(want, sizeof(want), "at 0x%zx: a record says 65528 bytes, %zu are left", at, file.len - at);
	assert_string_equal(rt_perf_reader_damage(reader), want);
}

/* A feature that does not fit costs only itself. */
TEST(damaged_feature)
{
	_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
	size_t table;

	make_whole(false);
	table = data_start(&file) + (size_t)(file.data[48] | file.data[49] << 8);
	poke(&file, table + 8, 30, 8);            /* the first: BUILD_ID, cut */
	poke(&file, table + 5 * 16, 1u << 31, 8); /* EVENT_DESC: behind the end */
	reader = opened();
	assert_string_equal(rt_perf_reader_header(reader)->hostname, "machine");
	assert_int_equal(rt_perf_reader_header(reader)->build_id_count, 0);
	assert_int_equal(rt_perf_reader_header(reader)->features[0] >> RT_PERF_FEAT_EVENT_DESC & 1, 0);
	assert_non_null(strstr(rt_perf_reader_damage(reader), "feature 2 at 0x"));
	assert_non_null(strstr(rt_perf_reader_damage(reader), "; feature 12 at 0x80000000: it is not in the file"));
}

TEST(not_finished)
{
	_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
	static const unsigned feature = RT_PERF_FEAT_HOSTNAME;
	struct rt_perf_record r;

	file_begin(&file, false, 128, &simple, 1);
	put_comm("one", 1);
	put_comm("two", 2);
	file_features(&file, &feature, 0);
	file.data[72] |= 1 << RT_PERF_FEAT_HOSTNAME;
	reader = opened();
	assert_true(rt_perf_reader_header(reader)->unfinished);
	assert_true(next(reader, &r));
	assert_true(next(reader, &r));
	assert_string_equal(r.comm.comm, "two");
	assert_false(next(reader, &r));
	assert_non_null(strstr(rt_perf_reader_damage(reader), "never finished it"));
}

/* A recording in which nothing happened is whole. */
TEST(finished_without_data)
{
	_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
	static const unsigned feature = RT_PERF_FEAT_HOSTNAME;
	struct rt_perf_record r;

	file_begin(&file, false, 128, &simple, 1);
	file_features(&file, &feature, 1);
	feature_begin(&file);
	put_string(&file, "idle");
	feature_end(&file);
	reader = opened();
	assert_false(rt_perf_reader_header(reader)->unfinished);
	assert_false(next(reader, &r));
	assert_null(rt_perf_reader_damage(reader));
	assert_string_equal(rt_perf_reader_header(reader)->hostname, "idle");
}

static void refused(const char *bytes, size_t size, enum rt_code code, const char *words)
{
	struct rt_perf_reader *reader = NULL;
	struct rt_error *err = rt_perf_reader_create(rt_bytes_make(bytes, size), "the-file", &reader);

	assert_non_null(err);
	assert_null(reader);
	assert_int_equal(err->code, code);
	assert_non_null(strstr(err->message, words));
	assert_non_null(strstr(err->message, "the-file"));
	rt_error_free(err);
}

TEST(no_perf_data)
{
	static const unsigned folder = 24;

	refused("", 0, RT_E_FORMAT, "empty");
	refused("\177ELF\2\1\1", 7, RT_E_FORMAT, "ELF");
	refused("PERFFILE", 8, RT_E_FORMAT, "first format");
	refused("PERF", 4, RT_E_FORMAT, "cut");
	refused("hello, world", 12, RT_E_FORMAT, "unknown");
	refused("PERFILE2", 8, RT_E_TRUNCATED, "ends inside");
	refused("PERFILE2\x21\0\0\0\0\0\0\0", 16, RT_E_FORMAT, "header of 33 bytes");
	refused("PERFILE2\x68\0\0\0\0\0\0\0", 16, RT_E_TRUNCATED, "ends inside");
	file_begin(&file, false, 128, &simple, 1);
	file_features(&file, &folder, 1);
	refused((const char *)file.data, file.len, RT_E_UNSUPPORTED, "folder");
	file_begin(&file, false, 128, &simple, 1);
	poke(&file, 16, 8, 8);
	refused((const char *)file.data, file.len, RT_E_FORMAT, "an event has 8 bytes");
	file_begin(&file, false, 128, &simple, 1);
	poke(&file, 104 + 8 + 4, 256, 4);
	refused((const char *)file.data, file.len, RT_E_TRUNCATED, "256 bytes");
}

/* Many events whose ids all lie in the same bytes must not be copied for each of them. */
TEST(ids_that_overlap)
{
	struct perf_event_spec many[300];

	for (size_t i = 0; i < 300; i++)
		many[i] = (struct perf_event_spec){ .sample_type = PERF_SAMPLE_TIME, .id = i };
	file_begin(&file, false, 64, many, 300);
	for (size_t i = 0; i < 300; i++) {
		poke(&file, 104 + 2400 + i * 80 + 64, 0, 8);
		poke(&file, 104 + 2400 + i * 80 + 72, file.len, 8);
	}
	refused((const char *)file.data, file.len, RT_E_TRUNCATED, "more events or ids");
}

TEST_MAIN();
