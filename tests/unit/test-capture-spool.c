/* SPDX-License-Identifier: GPL-2.0-only */
/* The spool through its public seam: what goes in comes out; cut, damaged and foreign input; a full disk. */
#include "test.h"

#include <fcntl.h>
#include <unistd.h>

#include <zlib.h>

#include "base/fs.h"
#include "capture/layout.h"
#include "capture/spool.h"

enum { CHUNKS = 4, PER_CHUNK = 5 };

/* A recording of CHUNKS chunks with PER_CHUNK records each; chunk_end[i] = bytes up to the end of chunk i. */
struct recording {
	struct rt_sink sink;
	size_t chunk_end[CHUNKS + 1]; /* [0]: end of the header */
};

static struct rt_wire_event event(uint64_t n)
{
	return (struct rt_wire_event){
		.head = { .size = sizeof(struct rt_wire_event),
			  .kind = RT_WIRE_EVENT,
			  .op = RT_OP_GET,
			  .seq = (uint32_t)n,
			  .time_ns = 1000 + n,
			  .pid = 42,
			  .tid = 43 },
		.object = 0x1000 * n,
		.count = (uint32_t)n,
		.point = 1,
		.delta = 1,
	};
}

static void record(struct recording *r, int status)
{
	static const char *const command[] = { "./leak", "", "100", NULL };
	_cleanup_(rt_spool_writer_destroyp) struct rt_spool_writer *w = NULL;

	rt_sink_init_memory(&r->sink);
	assert_ok(rt_spool_writer_create(&r->sink, command, &w));
	r->chunk_end[0] = r->sink.len;
	for (int c = 0; c < CHUNKS; c++) {
		struct rt_event_sink *sink = rt_spool_writer_sink(w);
		_cleanup_free_ struct rt_wire_type *type = rt_record_type(1, "obj", NULL);

		assert_ok(sink->record(sink, &type->head));
		for (uint64_t i = 1; i < PER_CHUNK; i++) {
			struct rt_wire_event e = event((uint64_t)c * PER_CHUNK + i);

			assert_ok(sink->record(sink, &e.head));
		}
		assert_ok(rt_spool_writer_flush(w));
		assert_ok(rt_spool_writer_flush(w)); /* nothing waits: writes nothing */
		r->chunk_end[c + 1] = r->sink.len;
	}
	assert_ok(rt_spool_writer_end(w, status));
}

struct seen {
	size_t records, cuts;
	char text[200]; /* of the LOSS record */
	bool after_cut; /* something came after it */
	bool ordered;   /* every record is the one that was written there */
	bool has_status;
	int status;
};

/* Reads it all. false: not even the header could be read. */
static bool read_all(const void *data, size_t size, struct seen *ret)
{
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *r = NULL;
	struct seen seen = { .ordered = true };
	struct rt_error *err = rt_spool_reader_create(rt_bytes_make(data, size), "leak.rt", &r);
	const struct rt_wire_head *h;

	if (err) {
		assert_true(err->code == RT_E_FORMAT || err->code == RT_E_TRUNCATED || err->code == RT_E_UNSUPPORTED);
		assert_non_null(strstr(err->message, "leak.rt"));
		rt_error_free(err);
		return false;
	}
	for (;;) {
		struct rt_source *source = rt_spool_reader_source(r);

		assert_ok(source->next(source, &h));
		if (!h)
			break;
		assert_int_equal((uintptr_t)h % 8, 0);
		assert_true(rt_record_valid(h, h->size));
		seen.after_cut |= seen.cuts > 0;
		if (h->kind == RT_WIRE_LOSS) {
			const struct rt_wire_loss *loss = (const struct rt_wire_loss *)(const void *)h;

			assert_int_equal(loss->cause, RT_LOSS_CUT);
			snprintf(seen.text, sizeof(seen.text), "%s", loss->text);
			seen.cuts++;
			continue;
		}
		if (seen.records % PER_CHUNK) {
			struct rt_wire_event want = event(seen.records);

			seen.ordered &= h->kind == RT_WIRE_EVENT && !memcmp(h, &want, sizeof(want));
		} else {
			seen.ordered &= h->kind == RT_WIRE_TYPE;
		}
		seen.records++;
	}
	seen.has_status = rt_spool_reader_status(r, &seen.status);
	*ret = seen;
	return true;
}

TEST(round_trip)
{
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;
	struct recording r;
	struct seen seen;

	record(&r, 0x0700);
	assert_true(read_all(r.sink.buffer, r.sink.len, &seen));
	assert_int_equal(seen.records, CHUNKS * PER_CHUNK);
	assert_int_equal(seen.cuts, 0);
	assert_true(seen.ordered);
	assert_true(seen.has_status);
	assert_int_equal(seen.status, 0x0700);

	assert_ok(rt_spool_reader_create(rt_bytes_make(r.sink.buffer, r.sink.len), "x", &reader));
	assert_string_equal(rt_spool_reader_command(reader)[0], "./leak");
	assert_string_equal(rt_spool_reader_command(reader)[1], "");
	assert_string_equal(rt_spool_reader_command(reader)[2], "100");
	assert_null(rt_spool_reader_command(reader)[3]);
	assert_non_null(strstr(rt_spool_reader_origin(reader).machine, "Linux"));
	assert_true(rt_spool_reader_origin(reader).start_monotonic_ns > 0);
	assert_true(rt_spool_reader_origin(reader).start_realtime_ns > UINT64_C(1600000000000000000));
	assert_false(rt_spool_reader_status(reader, &seen.status)); /* not read so far */
	rt_sink_deinit(&r.sink);
}

/* The seed of the fuzz target was written by a script from docs/spool.md alone: the text is the layout. */
TEST(written_from_the_text)
{
	const char *root = getenv("RT_SOURCE_ROOT");
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;
	_cleanup_free_ char *path = NULL, *data = NULL;
	const struct rt_wire_head *h;
	static const int kinds[] = { RT_WIRE_TYPE, RT_WIRE_STACK, RT_WIRE_EVENT, RT_WIRE_EVENT, RT_WIRE_EVENT };
	size_t size, n = 0;
	int status;

	if (!root)
		skip();
	assert_true(asprintf(&path, "%s/tests/fuzz/corpus/spool/whole", root) > 0);
	assert_ok(rt_fs_read(AT_FDCWD, path, 65536, &data, &size));
	assert_ok(rt_spool_reader_create(rt_bytes_make(data, size), path, &reader));
	assert_string_equal(rt_spool_reader_command(reader)[0], "./leak");
	assert_string_equal(rt_spool_reader_origin(reader).machine, "Linux 6.1 x86_64");
	for (;; n++) {
		struct rt_source *source = rt_spool_reader_source(reader);

		assert_ok(source->next(source, &h));
		if (!h)
			break;
		assert_true(n < sizeof(kinds) / sizeof(*kinds));
		assert_int_equal(h->kind, kinds[n]);
	}
	assert_int_equal(n, sizeof(kinds) / sizeof(*kinds));
	assert_true(rt_spool_reader_status(reader, &status));
	assert_int_equal(status, 0);
}

TEST(status_may_stay_unknown)
{
	struct recording r;
	struct seen seen;

	record(&r, -1);
	assert_true(read_all(r.sink.buffer, r.sink.len, &seen));
	assert_int_equal(seen.cuts, 0);
	assert_false(seen.has_status);
	rt_sink_deinit(&r.sink);
}

TEST(more_than_one_chunk_fits_without_flush)
{
	_cleanup_(rt_sink_deinit) struct rt_sink sink;
	_cleanup_(rt_spool_writer_destroyp) struct rt_spool_writer *w = NULL;
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;
	const struct rt_wire_head *h;
	size_t n = 0;
	_cleanup_free_ char *path = malloc(32001);
	_cleanup_free_ struct rt_wire_module *module = NULL;

	memset(path, 'p', 32000);
	path[32000] = 0;
	module = rt_record_module(7, path);
	rt_sink_init_memory(&sink);
	assert_ok(rt_spool_writer_create(&sink, NULL, &w));
	for (int i = 0; i < 100; i++) {
		struct rt_wire_event e = event(1);
		struct rt_event_sink *s = rt_spool_writer_sink(w);

		assert_ok(s->record(s, &module->head));
		assert_ok(s->record(s, &e.head));
	}
	assert_ok(rt_spool_writer_end(w, 0));
	assert_ok(rt_spool_reader_create(rt_bytes_make(sink.buffer, sink.len), "x", &reader));
	assert_null(rt_spool_reader_command(reader)[0]);
	for (;; n++) {
		struct rt_source *source = rt_spool_reader_source(reader);

		assert_ok(source->next(source, &h));
		if (!h)
			break;
		assert_int_equal(h->kind, n % 2 ? RT_WIRE_EVENT : RT_WIRE_MODULE);
	}
	assert_int_equal(n, 200);
}

/* No cut is silent, none loses a whole chunk before it, none invents a record. */
TEST(cut_at_every_byte)
{
	struct recording r;

	record(&r, 0);
	for (size_t size = 0; size < r.sink.len; size++) {
		/* a copy of its own, at an odd address: reading beyond the cut is a fault that ASan sees */
		_cleanup_free_ char *copy = malloc(size + 1);
		struct seen seen;
		size_t whole = 0;

		memcpy(copy + 1, r.sink.buffer, size);
		if (!read_all(copy + 1, size, &seen)) {
			assert_true(size < r.chunk_end[0]);
			continue;
		}
		while (whole < CHUNKS && r.chunk_end[whole + 1] <= size)
			whole++;
		assert_int_equal(seen.records, whole * PER_CHUNK);
		assert_true(seen.ordered);
		assert_int_equal(seen.cuts, 1);
		assert_false(seen.after_cut);
		assert_false(seen.has_status);
	}
	rt_sink_deinit(&r.sink);
}

TEST(cut_is_told_in_words)
{
	struct recording r;
	struct seen seen;
	char want[100];

	record(&r, 0);
	assert_true(read_all(r.sink.buffer, r.chunk_end[2] + 60, &seen));
	snprintf(want, sizeof(want), "ends inside chunk 3 (byte %zu); 2 chunks read", r.chunk_end[2] + 60);
	assert_string_equal(seen.text, want);
	assert_true(read_all(r.sink.buffer, r.chunk_end[1], &seen));
	snprintf(want, sizeof(want), "ends without its end mark (byte %zu); 1 chunk read", r.chunk_end[1]);
	assert_string_equal(seen.text, want);
	r.sink.buffer[r.chunk_end[2] + 50] ^= 1;
	assert_true(read_all(r.sink.buffer, r.sink.len, &seen));
	snprintf(want, sizeof(want), "chunk 3 is damaged (byte %zu: checksum differs); 2 chunks read", r.chunk_end[2]);
	assert_string_equal(seen.text, want);
	rt_sink_deinit(&r.sink);
}

/* Each flipped bit is found: the cut is told, and all records before it are what was written. */
TEST(flip_every_byte)
{
	struct recording r;

	record(&r, 0);
	for (size_t at = 0; at < r.sink.len; at++) {
		for (int bit = 0; bit < 8; bit += 7) {
			struct seen seen;
			size_t whole = 0;

			r.sink.buffer[at] ^= (char)(1 << bit);
			if (read_all(r.sink.buffer, r.sink.len, &seen)) {
				while (whole < CHUNKS && r.chunk_end[whole + 1] <= at)
					whole++;
				assert_int_equal(seen.cuts, 1);
				assert_int_equal(seen.records, whole * PER_CHUNK);
				assert_true(seen.ordered);
			} else {
				assert_true(at < r.chunk_end[0]);
			}
			r.sink.buffer[at] ^= (char)(1 << bit);
		}
	}
	rt_sink_deinit(&r.sink);
}

TEST(missing_and_foreign_parts)
{
	struct recording r;
	struct seen seen;
	char *b;
	size_t one, len;

	record(&r, 0);
	b = r.sink.buffer;
	len = r.sink.len;
	/* bytes after the end */
	rt_sink_write(&r.sink, "more", 4);
	b = r.sink.buffer;
	assert_true(read_all(b, r.sink.len, &seen));
	assert_int_equal(seen.cuts, 1);
	assert_int_equal(seen.records, CHUNKS * PER_CHUNK);
	/* chunk 2 is missing as a whole */
	one = r.chunk_end[2] - r.chunk_end[1];
	memmove(b + r.chunk_end[1], b + r.chunk_end[2], len - r.chunk_end[2]);
	assert_true(read_all(b, len - one, &seen));
	assert_int_equal(seen.cuts, 1);
	assert_int_equal(seen.records, PER_CHUNK);
	assert_non_null(strstr(seen.text, "out of order"));
	rt_sink_deinit(&r.sink);
}

static void refuses(const void *data, size_t size, enum rt_code code, const char *word)
{
	struct rt_spool_reader *reader = NULL;
	struct rt_error *err = rt_spool_reader_create(rt_bytes_make(data, size), "leak.rt", &reader);

	assert_non_null(err);
	assert_null(reader);
	if (err->code != code || !strstr(err->message, word))
		fail_msg("%s: %s (expected %s)", rt_code_text(err->code), err->message, word);
	rt_error_free(err);
}

TEST(foreign_formats_are_named)
{
	struct recording r;

	refuses("", 0, RT_E_FORMAT, "empty");
	refuses("RTSP", 4, RT_E_FORMAT, "cut");
	refuses("PERFILE2\0\0\0", 11, RT_E_FORMAT, "perf.data");
	refuses("\177ELF\2\1\1\0", 8, RT_E_FORMAT, "ELF");
	refuses("hello\nworld\n", 12, RT_E_FORMAT, "text");
	refuses("{\"schema\":1}", 12, RT_E_FORMAT, "JSON");
	refuses("\x1f\x8b\x08\0\0\0\0", 7, RT_E_FORMAT, "gzip");
	refuses("\1\2\3\4\5\6\7\0\1", 9, RT_E_FORMAT, "unknown format");
	refuses("RTSPOOL1........", 16, RT_E_FORMAT, "another version");

	record(&r, 0);
	refuses(r.sink.buffer, 20, RT_E_TRUNCATED, "ends inside its header");
	refuses(r.sink.buffer, 50, RT_E_TRUNCATED, "ends inside its header");
	r.sink.buffer[12] = 9;
	refuses(r.sink.buffer, r.sink.len, RT_E_UNSUPPORTED, "version 9");
	r.sink.buffer[12] = RT_SPOOL_VERSION;
	r.sink.buffer[14] = 4;
	refuses(r.sink.buffer, r.sink.len, RT_E_UNSUPPORTED, "word size");
	r.sink.buffer[14] = 8;
	memcpy(r.sink.buffer + 8, (char[]){ 1, 2, 3, 4 }, 4);
	refuses(r.sink.buffer, r.sink.len, RT_E_UNSUPPORTED, "byte order");
	rt_sink_deinit(&r.sink);
}

/* Computes the checksums of the chunk at `at` anew: what only a hostile file or a faulty writer has. */
static void reseal(char *at)
{
	struct rt_spool_chunk head;

	memcpy(&head, at, sizeof(head));
	if (head.payload_bytes <= RT_SPOOL_PAYLOAD_MAX)
		head.payload_crc = (uint32_t)crc32(0, (const Bytef *)at + sizeof(head), head.payload_bytes);
	head.header_crc = (uint32_t)crc32(0, (const Bytef *)&head, offsetof(struct rt_spool_chunk, header_crc));
	memcpy(at, &head, sizeof(head));
}

/* Reads a copy of the recording whose chunk 2 was changed by `lie`: the rest is told as damaged. */
static void refuses_lie(const struct recording *r, void (*lie)(char *chunk), size_t records, const char *word)
{
	size_t at = r->chunk_end[1], size = r->chunk_end[2] - at;
	_cleanup_free_ char *copy = malloc(r->sink.len), *chunk = malloc(size);
	struct seen seen;

	memcpy(copy, r->sink.buffer, r->sink.len);
	memcpy(chunk, copy + at, size); /* aligned */
	lie(chunk);
	reseal(chunk);
	memcpy(copy + at, chunk, size);
	assert_true(read_all(copy, r->sink.len, &seen));
	assert_int_equal(seen.cuts, 1);
	assert_int_equal(seen.records, records);
	assert_non_null(strstr(seen.text, "; 1 chunk read"));
	if (!strstr(seen.text, word))
		fail_msg("%s (expected %s)", seen.text, word);
}

static struct rt_spool_chunk *chunk_head(char *chunk)
{
	return (struct rt_spool_chunk *)(void *)chunk;
}

static struct rt_spool_extent *extent(char *chunk, enum rt_spool_column column)
{
	return (struct rt_spool_extent *)(void *)(chunk + sizeof(struct rt_spool_chunk)) + column;
}

/* The stored bytes of a column; small ones are stored as they are. */
static char *column(char *chunk, enum rt_spool_column which)
{
	char *at = (char *)extent(chunk, RT_SPOOL_COLUMNS);

	for (int i = 0; i < (int)which; i++)
		at += extent(chunk, i)->stored;
	return at;
}

static void more_records(char *chunk)
{
	chunk_head(chunk)->records++;
}

static void fewer_records(char *chunk)
{
	chunk_head(chunk)->records--;
}

static void long_chunk(char *chunk)
{
	chunk_head(chunk)->payload_bytes = RT_SPOOL_PAYLOAD_MAX + 1;
}

static void long_column(char *chunk)
{
	extent(chunk, RT_SPOOL_RARE)->stored += 100000;
}

static void huge_column(char *chunk)
{
	extent(chunk, RT_SPOOL_CONTROL)->bytes = UINT32_MAX;
}

static void no_frame(char *chunk)
{
	extent(chunk, RT_SPOOL_VERBATIM)->bytes++;
}

static void fewer_events(char *chunk)
{
	extent(chunk, RT_SPOOL_SITE_LO)->bytes--;
	extent(chunk, RT_SPOOL_SITE_LO)->stored--;
	extent(chunk, RT_SPOOL_RARE)->bytes++;
	extent(chunk, RT_SPOOL_RARE)->stored++;
}

static void odd_objects(char *chunk)
{
	extent(chunk, RT_SPOOL_OBJECT_LO)->bytes = 7;
	extent(chunk, RT_SPOOL_OBJECT_LO)->stored = 1;
	extent(chunk, RT_SPOOL_RARE)->stored--;
	extent(chunk, RT_SPOOL_RARE)->bytes--;
}

static void long_record(char *chunk)
{
	/* its column becomes one byte, repeated: a size of 0xf8f8 */
	chunk_head(chunk)->payload_bytes -= extent(chunk, RT_SPOOL_VERBATIM)->stored - 1;
	extent(chunk, RT_SPOOL_VERBATIM)->stored = 1;
	*column(chunk, RT_SPOOL_VERBATIM) = (char)0xf8;
}

static void foreign_lane(char *chunk)
{
	column(chunk, RT_SPOOL_LANE)[2] = 77;
}

static void foreign_thread(char *chunk)
{
	column(chunk, RT_SPOOL_LANE)[2] = (char)RT_SPOOL_LANE_SWITCH;
}

TEST(lies_under_good_checksums)
{
	struct recording r;

	record(&r, 0);
	refuses_lie(&r, more_records, PER_CHUNK, "records are missing");
	refuses_lie(&r, fewer_records, PER_CHUNK, "records are missing");
	refuses_lie(&r, long_chunk, PER_CHUNK, "its length is impossible");
	refuses_lie(&r, long_column, PER_CHUNK, "a column has an impossible length");
	refuses_lie(&r, huge_column, PER_CHUNK, "a column has an impossible length");
	refuses_lie(&r, no_frame, PER_CHUNK, "a column cannot be unpacked");
	refuses_lie(&r, fewer_events, PER_CHUNK, "events are missing");
	refuses_lie(&r, odd_objects, PER_CHUNK, "objects are missing");
	refuses_lie(&r, long_record, PER_CHUNK, "a record is malformed");
	refuses_lie(&r, foreign_lane, PER_CHUNK + 2, "a record is malformed");
	refuses_lie(&r, foreign_thread, PER_CHUNK + 2, "a record is malformed");
	rt_sink_deinit(&r.sink);
}

struct dice {
	uint64_t state;
};

static uint64_t dice(struct dice *d)
{
	d->state ^= d->state << 13;
	d->state ^= d->state >> 7;
	d->state ^= d->state << 17;
	return d->state * UINT64_C(0x2545f4914f6cdd1d);
}

/* A number of any size: as many ones as zeroes in its length. */
static uint64_t any(struct dice *d)
{
	static const uint64_t edges[] = { 0, 1, 127, 128, 255, 65535, 65536, UINT32_MAX, INT64_MAX, UINT64_MAX };

	if (dice(d) % 4 == 0)
		return edges[dice(d) % (sizeof(edges) / sizeof(*edges))];
	return dice(d) >> dice(d) % 64;
}

static void any_bytes(struct dice *d, void *to, size_t size)
{
	for (uint8_t *p = to; size--; p++)
		*p = (uint8_t)any(d);
}

/* An event that keeps what the one before had, but for `change` of 16: from quite predictable to quite random. */
static void any_event(struct dice *d, struct rt_wire_event *e, unsigned change)
{
	void *const fields[] = { &e->head.op, &e->head.seq, &e->head.time_ns, &e->head.pid, &e->head.tid,
				 &e->object,  &e->aux,      &e->sp,           &e->count,    &e->point,
				 &e->stack,   &e->delta,    &e->flags };
	static const size_t sizes[] = { 1, 4, 8, 4, 4, 8, 8, 8, 4, 4, 4, 2, 2 };

	e->head.size = sizeof(*e);
	e->head.kind = RT_WIRE_EVENT;
	e->head.seq++;
	e->head.time_ns += 100 + dice(d) % 50;
	e->count += (uint32_t)e->delta;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t value = any(d);

		if (dice(d) % 16 >= change)
			continue;
		if (dice(d) % 2)
			value %= 4; /* few of a kind: numbers come back */
		memcpy(fields[i], &value, sizes[i]);
	}
}

/* A valid record of this kind with any contents in 8-aligned bytes. */
static void any_record(struct dice *d, uint8_t kind, struct rt_wire_head *head)
{
	uint8_t *bytes = (uint8_t *)head;
	size_t size = 80 + dice(d) % 40 * 8;

	any_bytes(d, bytes, size);
	head->size = (uint16_t)size;
	head->kind = kind;
	bytes[size - 1] = 0;
	if (kind == RT_WIRE_STACK)
		((struct rt_wire_stack *)(void *)head)->nr = 3;
	if (kind == RT_WIRE_MODULE)
		((struct rt_wire_module *)(void *)head)->build_id_size = RT_BUILD_ID_MAX;
	if (kind == RT_WIRE_ATTR) {
		struct rt_wire_attr *attr = (struct rt_wire_attr *)(void *)head;

		attr->attr_bytes = 16;
		attr->ids = 1;
		attr->name_bytes = (uint32_t)(size - sizeof(*attr) - 24);
	}
	if (kind == RT_WIRE_TALLY)
		((struct rt_wire_tally *)(void *)head)->nr = 0;
	if (kind == RT_WIRE_BLOB) {
		struct rt_wire_blob *blob = (struct rt_wire_blob *)(void *)head;

		blob->total = 1000;
		blob->offset = 500;
		blob->bytes = 20;
	}
	assert_true(rt_record_valid(head, size));
}

/* Writes records, and reads them back one by one. */
static void round_trip_of(uint64_t seed, size_t records, unsigned change, unsigned verbatim)
{
	_cleanup_(rt_sink_deinit) struct rt_sink file, all;
	_cleanup_(rt_spool_writer_destroyp) struct rt_spool_writer *w = NULL;
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;
	struct dice d = { seed * 0x9e3779b9 + 1 };
	struct rt_wire_event e[2] = { 0 };
	uint64_t buffer[64];
	size_t at = 0;

	rt_sink_init_memory(&file);
	rt_sink_init_memory(&all);
	assert_ok(rt_spool_writer_create(&file, NULL, &w));
	for (size_t i = 0; i < records; i++) {
		struct rt_event_sink *sink = rt_spool_writer_sink(w);
		struct rt_wire_head *head = &e[dice(&d) % 2].head;

		if (dice(&d) % 1000 < verbatim) {
			head = (struct rt_wire_head *)(void *)buffer;
			any_record(&d, (uint8_t)(dice(&d) % 8 ? 1 + dice(&d) % 19 : dice(&d)), head);
		} else {
			any_event(&d, (struct rt_wire_event *)(void *)head, change);
		}
		assert_ok(sink->record(sink, head));
		rt_sink_write(&all, head, head->size);
		if (dice(&d) % 5000 == 0)
			assert_ok(rt_spool_writer_flush(w));
	}
	assert_ok(rt_spool_writer_end(w, 0));
	assert_ok(rt_spool_reader_create(rt_bytes_make(file.buffer, file.len), "x", &reader));
	for (;;) {
		struct rt_source *source = rt_spool_reader_source(reader);
		const struct rt_wire_head *h;

		assert_ok(source->next(source, &h));
		if (!h)
			break;
		assert_int_equal((uintptr_t)h % 8, 0);
		assert_true(at + h->size <= all.len);
		assert_memory_equal(h, all.buffer + at, h->size);
		at += h->size;
	}
	assert_int_equal(at, all.len);
}

TEST(every_field_comes_back)
{
	for (uint64_t seed = 0; seed < 40; seed++)
		round_trip_of(seed, 2000, (unsigned)(seed % 17), seed % 3 ? 30 : 0);
}

TEST(every_kind_comes_back)
{
	for (uint64_t seed = 0; seed < 20; seed++)
		round_trip_of(seed, 500, 1, 1000);
}

/* As many different threads, sites and objects as a chunk can hold records, and more: numbers do not run out. */
TEST(full_chunks_of_strangers)
{
	round_trip_of(1, 100000, 16, 0);
	round_trip_of(2, 100000, 1, 0);
}

/* More producers than a lane byte can name, and all that seq can name. */
TEST(every_producer)
{
	_cleanup_(rt_sink_deinit) struct rt_sink sink;
	_cleanup_(rt_spool_writer_destroyp) struct rt_spool_writer *w = NULL;
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;
	struct rt_wire_event e = event(1);
	const struct rt_wire_head *h;

	rt_sink_init_memory(&sink);
	assert_ok(rt_spool_writer_create(&sink, NULL, &w));
	for (uint32_t i = 0; i < 8192; i++) {
		struct rt_event_sink *s = rt_spool_writer_sink(w);

		e.head.seq = i % 4096 << RT_SEQ_BITS | RT_SEQ_MASK;
		e.head.tid = i % 4096;
		assert_ok(s->record(s, &e.head));
	}
	assert_ok(rt_spool_writer_end(w, 0));
	assert_ok(rt_spool_reader_create(rt_bytes_make(sink.buffer, sink.len), "x", &reader));
	for (uint32_t i = 0; i < 8192; i++) {
		struct rt_source *source = rt_spool_reader_source(reader);

		assert_ok(source->next(source, &h));
		e.head.seq = i % 4096 << RT_SEQ_BITS | RT_SEQ_MASK;
		e.head.tid = i % 4096;
		assert_non_null(h);
		assert_memory_equal(h, &e, sizeof(e));
	}
}

/* Nothing that a chunk says needs another chunk. */
TEST(each_chunk_alone)
{
	struct recording r;

	record(&r, 0);
	for (size_t c = 0; c < CHUNKS; c++) {
		size_t chunk = r.chunk_end[c + 1] - r.chunk_end[c], end = r.sink.len - r.chunk_end[CHUNKS];
		_cleanup_free_ char *file = malloc(r.chunk_end[0] + chunk + end);
		char *at = file + r.chunk_end[0];
		_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;
		const struct rt_wire_head *h;

		memcpy(file, r.sink.buffer, r.chunk_end[0]);
		memcpy(at, r.sink.buffer + r.chunk_end[c], chunk);
		memcpy(at + chunk, r.sink.buffer + r.chunk_end[CHUNKS], end);
		memcpy(at + offsetof(struct rt_spool_chunk, number), &(uint32_t){ 1 }, 4);
		reseal(at);
		memcpy(at + chunk + offsetof(struct rt_spool_chunk, number), &(uint32_t){ 2 }, 4);
		reseal(at + chunk);
		assert_ok(rt_spool_reader_create(rt_bytes_make(file, r.chunk_end[0] + chunk + end), "x", &reader));
		for (size_t i = 0; i < PER_CHUNK; i++) {
			struct rt_source *source = rt_spool_reader_source(reader);
			struct rt_wire_event want = event(c * PER_CHUNK + i);

			assert_ok(source->next(source, &h));
			assert_non_null(h);
			assert_true(i ? !memcmp(h, &want, sizeof(want)) : h->kind == RT_WIRE_TYPE);
		}
	}
	rt_sink_deinit(&r.sink);
}

TEST(malformed_records_are_not_written)
{
	_cleanup_(rt_sink_deinit) struct rt_sink sink;
	_cleanup_(rt_spool_writer_destroyp) struct rt_spool_writer *w = NULL;
	struct rt_wire_event e = event(1);
	struct rt_event_sink *s;

	rt_sink_init_memory(&sink);
	assert_ok(rt_spool_writer_create(&sink, NULL, &w));
	s = rt_spool_writer_sink(w);
	e.head.size = 32;
	assert_code(s->record(s, &e.head), RT_E_INTERNAL);
	e = event(1);
	assert_ok(s->record(s, &e.head));
	assert_ok(rt_spool_writer_end(w, 0));
	assert_code(s->record(s, &e.head), RT_E_INTERNAL);
	assert_code(rt_spool_writer_end(w, 0), RT_E_INTERNAL);
}

TEST(full_disk_at_the_start)
{
	_cleanup_close_ int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	_cleanup_(rt_sink_deinit) struct rt_sink sink;
	struct rt_spool_writer *w = NULL;

	assert_true(fd >= 0);
	rt_sink_init_fd(&sink, fd, "/dev/full");
	assert_code(rt_spool_writer_create(&sink, NULL, &w), RT_E_DISK_FULL);
	assert_null(w);
}

/* The disk fills up later: the failure is told again and again, and no byte follows the torn chunk. */
TEST(full_disk_is_final)
{
	char path[] = "/tmp/rt-spool-XXXXXX";
	_cleanup_close_ int fd = mkostemp(path, O_CLOEXEC);
	_cleanup_close_ int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	_cleanup_(rt_sink_deinit) struct rt_sink sink;
	_cleanup_(rt_spool_writer_destroyp) struct rt_spool_writer *w = NULL;
	struct rt_wire_event e = event(1);
	struct rt_event_sink *s;
	off_t good;

	assert_true(fd >= 0 && full >= 0);
	unlink(path);
	rt_sink_init_fd(&sink, fd, "leak.rt");
	assert_ok(rt_spool_writer_create(&sink, NULL, &w));
	s = rt_spool_writer_sink(w);
	assert_ok(s->record(s, &e.head));
	assert_ok(rt_spool_writer_flush(w));
	good = lseek(fd, 0, SEEK_END);
	sink.fd = full;
	assert_ok(s->record(s, &e.head));
	assert_code(rt_spool_writer_flush(w), RT_E_DISK_FULL);
	sink.fd = fd;
	assert_code(s->record(s, &e.head), RT_E_DISK_FULL);
	assert_code(rt_spool_writer_flush(w), RT_E_DISK_FULL);
	assert_code(rt_spool_writer_end(w, 0), RT_E_DISK_FULL);
	assert_int_equal(lseek(fd, 0, SEEK_END), good);
}

TEST_MAIN();
