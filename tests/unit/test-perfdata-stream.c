/* SPDX-License-Identifier: GPL-2.0-only */
/* Records that do not simply follow each other: compressed, from a pipe, put in the order of time. */
#include <zstd.h>

#include "perfdata-reading.h"

static void put_compressed(uint32_t type, const uint8_t *data, size_t size)
{
	begin(&file, type, 0);
	if (type == RT_PERF_COMPRESSED2)
		put8(&file, size);
	put_bytes(&file, data, size);
	while (type == RT_PERF_COMPRESSED2 && file.len % 8)
		put(&file, 0, 1);
	end(&file);
}

/* The records that lie in the file from start on become one zstd stream in pieces of at most piece bytes. */
static void compress_from(size_t start, size_t piece, uint32_t type)
{
	size_t size = file.len - start;
	uint8_t plain[4096], packed[8192];
	ZSTD_CStream *stream = ZSTD_createCStream();

	assert_true(size <= sizeof(plain));
	memcpy(plain, file.data + start, size);
	file.len = start;
	for (size_t at = 0; at < size; at += piece) {
		ZSTD_inBuffer in = { plain + at, size - at < piece ? size - at : piece, 0 };
		ZSTD_outBuffer out = { packed, sizeof(packed), 0 };

		assert_false(ZSTD_isError(ZSTD_compressStream(stream, &out, &in)));
		assert_int_equal(ZSTD_flushStream(stream, &out), 0);
		put_compressed(type, packed, out.pos);
	}
	ZSTD_freeCStream(stream);
}

TEST(compressed_records)
{
	EACH_ORDER(big)
	{
		/* of any length: a record may begin in one piece and end in the next */
		for (size_t piece = 1; piece < 100; piece += 7) {
			_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
			struct rt_perf_record r;
			size_t start;

			file_begin(&file, big, 128, &simple, 1);
			put_comm("plain", 1);
			start = file.len;
			put_comm("packed", 2);
			put_mmap2(true);
			compress_from(start, piece, piece % 2 ? RT_PERF_COMPRESSED : RT_PERF_COMPRESSED2);
			put_comm("behind", 3);
			file_data_end(&file);
			reader = opened();
			assert_true(next(reader, &r));
			assert_true(next(reader, &r));
			assert_string_equal(r.comm.comm, "packed");
			assert_true(r.offset >= start);
			assert_true(next(reader, &r));
			assert_string_equal(r.mmap.filename, "/usr/lib/libx.so");
			assert_int_equal(r.id.time_ns, 20);
			assert_true(next(reader, &r));
			assert_string_equal(r.comm.comm, "behind");
			assert_false(next(reader, &r));
			assert_null(rt_perf_reader_damage(reader));
			assert_true(rt_perf_reader_header(reader)->compressed);
		}
	}
}

TEST(compressed_records_damaged)
{
	struct rt_perf_record r;
	struct rt_perf_reader *reader;
	size_t start;

	file_begin(&file, false, 128, &simple, 1);
	start = file.len;
	put_comm("packed", 2);
	begin(&file, RT_PERF_HEADER_TRACING_DATA, 0);
	put8(&file, 8);
	end(&file);
	compress_from(start, 4096, RT_PERF_COMPRESSED2);
	file_data_end(&file);
	reader = opened();
	assert_true(next(reader, &r));
	assert_false(next(reader, &r));
	assert_non_null(strstr(rt_perf_reader_damage(reader), "cannot stand in compressed data"));
	rt_perf_reader_destroy(reader);

	file_begin(&file, false, 128, &simple, 1);
	start = file.len;
	put_comm("packed", 2);
	file.len -= 8;
	compress_from(start, 4096, RT_PERF_COMPRESSED2);
	file_data_end(&file);
	reader = opened();
	assert_false(next(reader, &r));
	assert_non_null(strstr(rt_perf_reader_damage(reader), "compressed data end inside a record"));
	rt_perf_reader_destroy(reader);

	file_begin(&file, false, 128, &simple, 1);
	put_comm("plain", 2);
	put_compressed(RT_PERF_COMPRESSED2, (const uint8_t *)"no zstd at all", 14);
	file_data_end(&file);
	reader = opened();
	assert_true(next(reader, &r));
	assert_false(next(reader, &r));
	assert_non_null(strstr(rt_perf_reader_damage(reader), "compressed data: "));
	rt_perf_reader_destroy(reader);
}

/* count records of size bytes, the latest first, as one piece of compressed data. */
static void put_packed(unsigned count, size_t size)
{
	uint8_t *record = calloc(1, size), packed[16384];
	ZSTD_CStream *stream = ZSTD_createCStream();
	ZSTD_outBuffer out = { packed, sizeof(packed), 0 };

	assert_non_null(record);
	record[0] = 63;
	memcpy(record + 6, &(uint16_t){ (uint16_t)size }, 2);
	for (unsigned i = 0; i < count; i++) {
		ZSTD_inBuffer in = { record, size, 0 };

		memcpy(record + size - 8, &(uint64_t){ count - i }, 8);
		assert_false(ZSTD_isError(ZSTD_compressStream(stream, &out, &in)));
		assert_int_equal(in.pos, size);
		if (out.pos > sizeof(packed) / 2 || i == count - 1) {
			assert_int_equal(ZSTD_flushStream(stream, &out), 0);
			put_compressed(RT_PERF_COMPRESSED2, packed, out.pos);
			out.pos = 0;
		}
	}
	ZSTD_freeCStream(stream);
	free(record);
}

/* Much more comes out of a piece than the buffer holds. */
TEST(compressed_well)
{
	_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
	struct rt_perf_record r;
	unsigned count = 0;

	file_begin(&file, false, 128, &simple, 1);
	put_packed(1000, 4096);
	file_data_end(&file);
	reader = opened();
	while (next(reader, &r))
		assert_int_equal(r.id.time_ns, 1000 - count++);
	assert_int_equal(count, 1000);
	assert_null(rt_perf_reader_damage(reader));
}

/* Without rounds everything would have to wait for the end: the memory for that is limited. */
TEST(by_time_in_bounded_memory)
{
	_cleanup_(rt_perf_order_destroyp) struct rt_perf_order *order = NULL;
	struct rt_perf_reader *reader;
	struct rt_perf_record r;
	unsigned count = 0;
	bool more;

	file_begin(&file, false, 128, &simple, 1);
	put_packed(2500, 65528);
	file_data_end(&file);
	reader = opened();
	assert_ok(rt_perf_order_create(reader, &order));
	assert_ok(rt_perf_order_next(order, &r, &more));
	assert_true(more);
	assert_true(r.id.time_ns > 1); /* the last record of the file, time 1, was not waited for */
	do {
		count++;
		assert_ok(rt_perf_order_next(order, &r, &more));
	} while (more);
	assert_int_equal(count, 2500);
	rt_perf_order_destroy(rt_take(order));
	rt_perf_reader_destroy(reader);
}

static void make_pipe(bool big)
{
	memset(&file, 0, sizeof(file));
	file.big = big;
	put8(&file, RT_PERF_MAGIC);
	put8(&file, RT_PERF_PIPE_HEADER_BYTES);
	begin(&file, RT_PERF_HEADER_ATTR, 0);
	put_attr(&file, 136, simple.sample_type, UINT64_C(1) << FLAG_SAMPLE_ID_ALL);
	put8(&file, 7);
	put8(&file, 8);
	end(&file);
	begin(&file, RT_PERF_EVENT_UPDATE, 0);
	put8(&file, 2);
	put8(&file, 8);
	put_text(&file, "named", 8);
	end(&file);
	begin(&file, RT_PERF_HEADER_FEATURE, 0);
	put8(&file, RT_PERF_FEAT_HOSTNAME);
	put_string(&file, "far");
	end(&file);
	begin(&file, RT_PERF_HEADER_TRACING_DATA, 0);
	put4(&file, 8);
	end(&file);
	put_bytes(&file, "tracing ", 8);
	put_comm("one", 1);
	begin(&file, RT_PERF_AUXTRACE, 0);
	put8(&file, 5);
	end(&file);
	put_bytes(&file, "aux..", 5);
	begin(&file, RT_PERF_HEADER_BUILD_ID, 0);
	put4(&file, UINT32_MAX);
	put_bytes(&file, "0123456789abcdefghij", 20);
	put4(&file, 0);
	put_text(&file, "/bin/y", 8);
	end(&file);
	put_comm("two", 2);
}

TEST(pipe_mode)
{
	EACH_ORDER(big)
	{
		_cleanup_(rt_perf_reader_destroyp) struct rt_perf_reader *reader = NULL;
		const struct rt_perf_header *h;
		struct rt_perf_record r;
		unsigned comms = 0;
		size_t count;

		make_pipe(big);
		reader = opened();
		while (next(reader, &r))
			comms += r.type == RT_PERF_COMM && r.id.has_time;
		assert_null(rt_perf_reader_damage(reader));
		assert_int_equal(comms, 2);
		h = rt_perf_reader_header(reader);
		assert_true(h->pipe);
		assert_string_equal(h->hostname, "far");
		assert_int_equal(h->tracing_data.size, 8);
		assert_memory_equal(h->tracing_data.data, "tracing ", 8);
		assert_int_equal(h->build_ids[0].size, 20);
		assert_string_equal(rt_perf_reader_events(reader, &count)->name, "named");
		assert_int_equal(count, 1);
	}
}

TEST(pipe_cut_at_every_byte)
{
	size_t last = 0;

	make_pipe(true);
	for (size_t size = 0; size <= file.len; size++) {
		uint64_t ends[16];
		uint8_t *copy = malloc(size ? size : 1);
		bool damaged;
		size_t got;

		assert_non_null(copy);
		memcpy(copy, file.data, size);
		got = walk(rt_bytes_make(copy, size), ends, 16, &damaged);
		assert_true(got >= last);
		/* a stream that ends behind a record may be whole */
		assert_true(damaged || !got || size == ends[got - 1] || size == file.len || size == ends[got - 1] + 8 ||
			    size == ends[got - 1] + 5);
		last = got;
		free(copy);
	}
	assert_int_equal(last, 8);
}

static void expect_order(const char *want)
{
	_cleanup_(rt_perf_order_destroyp) struct rt_perf_order *order = NULL;
	struct rt_perf_reader *reader = opened();
	char got[256] = "";
	bool more = true;

	assert_ok(rt_perf_order_create(reader, &order));
	for (;;) {
		struct rt_perf_record r;

		assert_ok(rt_perf_order_next(order, &r, &more));
		if (!more)
			break;
		strncat(got, r.type == RT_PERF_COMM ? r.comm.comm : "|", sizeof(got) - strlen(got) - 1);
	}
	assert_string_equal(got, want);
	rt_perf_order_destroy(rt_take(order));
	rt_perf_reader_destroy(reader);
}

static void put_round(void)
{
	begin(&file, RT_PERF_FINISHED_ROUND, 0);
	end(&file);
}

TEST(by_time)
{
	size_t start;

	/* equal times keep their order; time 0 is no time */
	for (int packed = 0; packed < 2; packed++) {
		file_begin(&file, packed, 128, &simple, 1);
		start = file.len;
		put_comm("d", 40);
		put_comm("b", 20);
		put_comm("0", 0);
		put_comm("c", 20);
		put_comm("a", 10);
		if (packed)
			compress_from(start, 60, RT_PERF_COMPRESSED2);
		file_data_end(&file);
		expect_order("0abcd");
	}
	file_begin(&file, false, 128, &simple, 1);
	put_comm("b", 20);
	put_comm("0", 0);
	put_round();
	file_data_end(&file);
	expect_order("0|b");
	/* what the second round brings may be earlier than the latest of the first, but not than that before it */
	file_begin(&file, false, 128, &simple, 1);
	put_comm("b", 20);
	put_comm("a", 10);
	put_round();
	put_comm("d", 40);
	put_comm("c", 15);
	put_round();
	put_comm("e", 30);
	put_round();
	put_comm("f", 50);
	file_data_end(&file);
	expect_order("|acb|ed|f");
}

TEST_MAIN();
