/* SPDX-License-Identifier: GPL-2.0-only */
/* An archive cut at every byte, with every byte changed, and by a writer that lies: nothing wrong is handed out. */
#include "archive/archive.h"
#include "test.h"

static const char recording[] = "the recording itself, the recording itself, the recording itself";
static const char binary[] = "\177ELF and so on";

static struct rt_bytes bytes_of(const char *text)
{
	return rt_bytes_make(text, strlen(text));
}

static void make(struct rt_sink *sink)
{
	struct rt_archive_writer *writer = NULL;

	rt_sink_init_memory(sink);
	assert_ok(rt_archive_writer_create(sink, &writer));
	assert_ok(rt_archive_add(writer, "perf.data", NULL, "/tmp/perf.data", bytes_of(recording)));
	assert_ok(rt_archive_add(writer, "objects/abcd/elf", "abcd", "/usr/bin/a b", bytes_of(binary)));
	assert_ok(rt_archive_miss(writer, "ef", "/usr/lib/gone", "no such file"));
	assert_ok(rt_archive_end(writer));
	rt_archive_writer_destroy(writer);
	assert_ok(rt_sink_end(sink));
}

/* What is handed out under a name is what was put in under it; counts. */
static struct rt_error *take(void *arg, const struct rt_archive_item *item, struct rt_bytes bytes)
{
	size_t *count = arg;
	const char *want = strcmp(item->path, "perf.data") ? binary : recording;

	assert_int_equal(bytes.size, strlen(want));
	assert_memory_equal(bytes.data, want, bytes.size);
	++*count;
	return NULL;
}

/* Of a copy that is exactly as long: reading beyond it is seen by ASan. */
static struct rt_error *read_copy(const char *data, size_t size, size_t *ret_count)
{
	_cleanup_(rt_archive_closep) struct rt_archive *archive = NULL;
	_cleanup_free_ char *copy = malloc(size + !size);

	assert_non_null(copy);
	memcpy(copy, data, size);
	*ret_count = 0;
	RT_TRY(rt_archive_open(rt_bytes_make(copy, size), "x", NULL, &archive));
	return rt_archive_each(archive, take, ret_count);
}

TEST(whole)
{
	struct rt_sink sink;
	size_t count;

	make(&sink);
	assert_ok(read_copy(sink.buffer, sink.len, &count));
	assert_int_equal(count, 2);
	rt_sink_deinit(&sink);
}

/* The last bytes are the tar's own end: without them everything that counts is there. */
TEST(cut_at_every_byte)
{
	size_t whole = 0, count;
	struct rt_sink sink;

	make(&sink);
	for (size_t size = 0; size < sink.len; size++) {
		struct rt_error *err = read_copy(sink.buffer, size, &count);

		assert_true(err || count == 2);
		assert_true(!err || err->code == RT_E_TRUNCATED || err->code == RT_E_FORMAT);
		whole += !err;
		rt_error_free(err);
	}
	assert_true(whole < 8);
	rt_sink_deinit(&sink);
}

TEST(every_byte_changed)
{
	size_t refused = 0, count;
	struct rt_sink sink;

	make(&sink);
	for (size_t at = 0; at < sink.len; at++) {
		for (unsigned bit = 0; bit < 8; bit += 3) {
			struct rt_error *err;

			sink.buffer[at] ^= (char)(1 << bit);
			err = read_copy(sink.buffer, sink.len, &count);
			sink.buffer[at] ^= (char)(1 << bit);
			assert_true(err || count == 2);
			refused += err != NULL;
			rt_error_free(err);
		}
	}
	/* what is left are words about files: where they were seen, why one is missing; and padding */
	assert_true(refused > sink.len / 2);
	rt_sink_deinit(&sink);
}

TEST(limits)
{
	static const struct rt_archive_limits small = { .bytes = 64 }, few = { .files = 2 };
	struct rt_archive *archive = NULL;
	struct rt_sink sink;

	make(&sink);
	assert_code(rt_archive_open(rt_bytes_make(sink.buffer, sink.len), "x", &small, &archive), RT_E_LIMIT);
	assert_code(rt_archive_open(rt_bytes_make(sink.buffer, sink.len), "x", &few, &archive), RT_E_LIMIT);
	assert_null(archive);
	rt_sink_deinit(&sink);
}

TEST_MAIN();
