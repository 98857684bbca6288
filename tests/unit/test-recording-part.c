/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A stream that is cut into files at every place and read again: in their order it is the stream that went in, each
 * file alone has all that its events name, and files that do not go together are refused before their first event.
 */
#include "capture/spool.h"
#include "event/stream.h"
#include "recording/part.h"
#include "recording/recording.h"
#include "test.h"

enum { FILES = 3, MAX = 256, PID = 100, CHILD = 101, MODULE = 5, MS = 1000000, RUN = 77, OTHER_RUN = 78 };
#define CODE 0x400000ull
#define AFTER_EXEC RT_PID_MAKE(PID, 1)

/* Records in the order that they came; owned. */
struct records {
	struct rt_event_sink sink;
	struct rt_wire_head *at[MAX];
	size_t count;
};

static struct rt_error *keep(struct rt_event_sink *self, const struct rt_wire_head *record)
{
	struct records *r = (struct records *)(void *)self;
	struct rt_wire_head *copy = malloc(record->size);

	assert_non_null(copy);
	assert_true(r->count < MAX && rt_record_valid(record, record->size));
	r->at[r->count++] = memcpy(copy, record, record->size);
	return NULL;
}

static void records_clear(struct records *r)
{
	while (r->count)
		free(r->at[--r->count]);
	r->sink.record = keep;
}

static void give(struct records *r, const struct rt_wire_head *record, uint64_t time_ms)
{
	struct rt_wire_head *kept;

	assert_ok(keep(&r->sink, record));
	kept = r->at[r->count - 1];
	kept->time_ns = time_ms * MS;
}

static void give_task(struct records *r, enum rt_wire_kind kind, uint32_t pid, uint32_t other, int32_t value,
		      uint64_t time_ms)
{
	const struct rt_wire_task task = { .head = { .size = sizeof(task), .kind = kind, .pid = pid, .tid = PID },
					   .other = other,
					   .value = value };

	give(r, &task.head, time_ms);
}

static void give_map(struct records *r, uint32_t pid, uint64_t time_ms)
{
	const struct rt_wire_map map = { .head = { .size = sizeof(map), .kind = RT_WIRE_MAP, .pid = pid },
					 .start = CODE,
					 .end = CODE + 0x1000,
					 .module = MODULE };

	give(r, &map.head, time_ms);
}

/* Its frame lies in the module, at a place of its own. */
static void give_stack(struct records *r, uint32_t pid, uint32_t id, uint64_t time_ms)
{
	union {
		struct rt_wire_stack stack;
		uint8_t bytes[sizeof(struct rt_wire_stack) + sizeof(struct rt_wire_frame)];
	} s = { .stack = { .head = { .size = sizeof(s), .kind = RT_WIRE_STACK, .pid = pid, .seq = 3 },
			   .id = id,
			   .nr = 1 } };

	s.stack.frame[0].pc = CODE + 16 * id;
	give(r, &s.stack.head, time_ms);
}

static void give_event(struct records *r, uint32_t pid, uint32_t stack, uint64_t time_ms)
{
	static uint32_t seq;
	const struct rt_wire_event event = {
		.head = { .size = sizeof(event), .kind = RT_WIRE_EVENT, .op = RT_OP_GET, .seq = ++seq, .pid = pid },
		.object = 0x7000,
		.count = 2,
		.point = 1,
		.stack = stack,
		.delta = 1
	};

	give(r, &event.head, time_ms);
}

static void give_tables(struct records *r)
{
	_cleanup_free_ struct rt_wire_type *type = rt_record_type(1, "obj", NULL);
	_cleanup_free_ struct rt_wire_point *point = rt_record_point(1, "obj_get", NULL);
	_cleanup_free_ struct rt_wire_module *module = rt_record_module(MODULE, "/opt/prog");
	_cleanup_free_ struct rt_wire_loss *unarmed = rt_record_loss(RT_LOSS_UNARMED, 1, 1, "no probe");

	point->type = 1;
	give(r, &type->head, 0);
	give(r, &module->head, 0);
	give(r, &point->head, 0);
	give(r, &unarmed->head, 0);
}

/* A process that is attached to, forks, executes something else and ends before its child. */
static void make_stream(struct records *r)
{
	records_clear(r);
	give_tables(r);
	give_task(r, RT_WIRE_MARK, PID, 0, RT_MARK_ATTACH, 5000);
	give_map(r, PID, 5000);
	give_task(r, RT_WIRE_THREAD, PID, 102, 0, 5001);
	give_stack(r, PID, 1, 5002);
	give_event(r, PID, 1, 5002);
	give_stack(r, PID, 2, 5003);
	for (uint64_t i = 0; i < 4; i++)
		give_event(r, PID, 1 + i % 2, 5004 + i);
	give_task(r, RT_WIRE_FORK, PID, CHILD, 0, 5010);
	give_stack(r, CHILD, 1, 5011);
	give_event(r, CHILD, 1, 5012);
	give_event(r, PID, 2, 5013);
	give_event(r, PID, 0, 5013);
	give_task(r, RT_WIRE_EXEC, AFTER_EXEC, 0, 0, 5014);
	give_map(r, AFTER_EXEC, 5014);
	/* the same number as before, of another stack */
	give_stack(r, AFTER_EXEC, 1, 5015);
	give_event(r, AFTER_EXEC, 1, 5015);
	give_task(r, RT_WIRE_THREAD, PID, 102, 1, 5016);
	give_event(r, CHILD, 1, 5017);
	give_task(r, RT_WIRE_EXIT, AFTER_EXEC, 0, 0, 5018);
	give_event(r, CHILD, 1, 5019);
	give_task(r, RT_WIRE_EXIT, CHILD, 0, 0, 5020);
}

/* The stream in files that begin before its records first and second, as the command does it. */
static void cut(const struct records *stream, size_t first, size_t second, uint64_t run, struct records file[FILES])
{
	static const char *const names[] = { "/tmp/r.1", "/tmp/r.2" };
	_cleanup_(rt_part_writer_destroyp) struct rt_part_writer *writer = NULL;
	_cleanup_(rt_maps_destroyp) struct rt_maps *maps = NULL;
	size_t now = 0;

	assert_ok(rt_maps_create(&maps));
	assert_ok(rt_part_writer_create(maps, run, &writer));
	for (size_t i = 0; i < FILES; i++)
		records_clear(&file[i]);
	for (size_t i = 0; i < stream->count; i++) {
		/* both at once: a file in which nothing happens */
		for (; now < FILES - 1 && i == (now ? second : first); now++) {
			uint64_t now_ns = stream->at[i]->time_ns;

			assert_ok(rt_part_writer_end(writer, now_ns, &file[now].sink));
			assert_ok(rt_part_writer_begin(writer, now_ns, names, now + 1, &file[now + 1].sink));
		}
		assert_ok(rt_maps_record(maps, stream->at[i]));
		assert_ok(rt_part_writer_record(writer, stream->at[i], &file[now].sink));
		assert_ok(keep(&file[now].sink, stream->at[i]));
	}
}

/* Reads files in an order: the joined stream, and the first error. */
static struct rt_error *join(const struct records *const *files, size_t count, struct records *ret)
{
	struct rt_part_join state = { 0 };
	struct rt_error *err = NULL;
	bool belongs;

	records_clear(ret);
	for (size_t i = 0; i < count && !err; i++) {
		err = rt_part_join_file(&state, i + 1 < count);
		for (size_t n = 0; n < files[i]->count && !err; n++) {
			err = rt_part_join_record(&state, files[i]->at[n], &belongs);
			if (!err && belongs)
				assert_ok(keep(&ret->sink, files[i]->at[n]));
		}
	}
	return err;
}

static size_t count_of(const struct records *r, enum rt_wire_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < r->count; i++)
		n += r->at[i]->kind == kind;
	return n;
}

/* A stack that is said again is the one addition, and it has no number: none looks missing. */
static void expect_stream(const struct records *got, const struct records *want)
{
	size_t n = 0;

	for (size_t i = 0; i < got->count; i++) {
		const struct rt_wire_head *g = got->at[i];

		if (g->kind == RT_WIRE_STACK && !g->seq)
			continue;
		assert_true(n < want->count);
		assert_int_equal(g->size, want->at[n]->size);
		assert_memory_equal(g, want->at[n], g->size);
		n++;
	}
	assert_int_equal(n, want->count);
}

/* What an event names stands before it in the same file: the kinds, and the place of its stack. */
static void expect_complete(const struct records *file)
{
	_cleanup_(rt_maps_destroyp) struct rt_maps *maps = NULL;
	const struct rt_wire_stack *stacks[3] = { NULL };
	unsigned tables = 0;

	assert_ok(rt_maps_create(&maps));
	for (size_t i = 0; i < file->count; i++) {
		const struct rt_wire_head *r = file->at[i];
		const struct rt_wire_event *event = rt_record_event(r);
		unsigned who = r->pid == PID ? 0 : r->pid == CHILD ? 1 : 2;
		struct rt_mapping mapping;

		assert_ok(rt_maps_record(maps, r));
		if (r->kind == RT_WIRE_TYPE || r->kind == RT_WIRE_POINT || r->kind == RT_WIRE_MODULE)
			tables |= 1u << r->kind;
		if (r->kind == RT_WIRE_STACK)
			stacks[who] = (const void *)r;
		if (r->kind != RT_WIRE_EVENT || !event->stack)
			continue;
		assert_int_equal(tables, 1 << RT_WIRE_TYPE | 1 << RT_WIRE_POINT | 1 << RT_WIRE_MODULE);
		for (size_t n = 0;; n++) {
			const struct rt_wire_stack *s = (const void *)file->at[n];

			assert_true(n < i);
			if (s->head.kind == RT_WIRE_STACK && s->head.pid == r->pid && s->id == event->stack)
				break;
		}
		assert_true(rt_maps_find(maps, r->pid, r->time_ns, (struct rt_vaddr){ stacks[who]->frame[0].pc },
					 &mapping));
		assert_int_equal(mapping.module, MODULE);
	}
}

static size_t marks_of(const struct records *file, uint32_t pid, enum rt_mark what)
{
	size_t n = 0;

	for (size_t i = 0; i < file->count; i++) {
		const struct rt_wire_task *task = (const void *)file->at[i];

		n += task->head.kind == RT_WIRE_MARK && task->head.pid == pid && task->value == (int32_t)what;
	}
	return n;
}

/* A file leaves, and the next one takes up, exactly those that live where the stream is cut. */
static void expect_taken_up(const struct records *stream, size_t at, const struct records *left,
			    const struct records *taken)
{
	static const uint32_t who[] = { PID, CHILD, AFTER_EXEC };
	bool lives[3] = { false };

	for (size_t i = 0; i < at; i++) {
		const struct rt_wire_task *task = (const void *)stream->at[i];

		lives[0] |= task->head.kind == RT_WIRE_MARK;
		lives[1] |= task->head.kind == RT_WIRE_FORK;
		lives[2] |= task->head.kind == RT_WIRE_EXEC;
		lives[0] &= task->head.kind != RT_WIRE_EXEC;
		lives[1] &= task->head.kind != RT_WIRE_EXIT || task->head.pid != CHILD;
		lives[2] &= task->head.kind != RT_WIRE_EXIT || task->head.pid != AFTER_EXEC;
	}
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(marks_of(left, who[i], RT_MARK_DETACH), lives[i]);
		assert_int_equal(marks_of(taken, who[i], RT_MARK_ATTACH), lives[i]);
	}
}

/* Files cut at two places of the stream of make_stream(), and of another run. */
struct rig {
	struct records stream, file[FILES], other[FILES], joined;
};

static void rig_make(struct rig *rig)
{
	make_stream(&rig->stream);
	records_clear(&rig->joined);
	cut(&rig->stream, 11, 20, RUN, rig->file);
	cut(&rig->stream, 11, 20, OTHER_RUN, rig->other);
}

static void rig_free(struct rig *rig)
{
	records_clear(&rig->stream);
	records_clear(&rig->joined);
	for (size_t i = 0; i < FILES; i++) {
		records_clear(&rig->file[i]);
		records_clear(&rig->other[i]);
	}
}

TEST(every_cut)
{
	__attribute__((cleanup(rig_free))) struct rig rig = { 0 };
	const struct records *const files[] = { &rig.file[0], &rig.file[1], &rig.file[2] };

	rig_make(&rig);
	/* behind the attachment, which would be counted as one that is said again */
	for (size_t first = 5; first < rig.stream.count; first++) {
		for (size_t second = first; second < rig.stream.count; second++) {
			cut(&rig.stream, first, second, RUN, rig.file);
			assert_ok(join(files, FILES, &rig.joined));
			expect_stream(&rig.joined, &rig.stream);
			for (size_t i = 0; i < FILES; i++)
				expect_complete(&rig.file[i]);
			expect_taken_up(&rig.stream, first, &rig.file[0], &rig.file[1]);
			expect_taken_up(&rig.stream, second, &rig.file[1], &rig.file[2]);
		}
	}
}

/* A file by itself, or the last two: what is said again is theirs, and what ends is left, not lost. */
TEST(some_of_the_files)
{
	__attribute__((cleanup(rig_free))) struct rig rig = { 0 };
	const struct records *const last[] = { &rig.file[1], &rig.file[2] }, *const first[] = { &rig.file[0] };

	rig_make(&rig);
	assert_ok(join(last, 2, &rig.joined));
	assert_int_equal(rig.joined.at[0]->kind, RT_WIRE_PART);
	assert_int_equal(count_of(&rig.joined, RT_WIRE_TYPE), 1);
	assert_int_equal(count_of(&rig.joined, RT_WIRE_EVENT),
			 count_of(&rig.file[1], RT_WIRE_EVENT) + count_of(&rig.file[2], RT_WIRE_EVENT));
	expect_complete(&rig.joined);
	/* the file before is named in it */
	assert_string_equal(((const struct rt_wire_part *)(const void *)rig.joined.at[0])->text, "r.1");
	assert_string_equal(((const struct rt_wire_part *)(const void *)rig.file[2].at[0])->text, "r.1, r.2");
	assert_ok(join(first, 1, &rig.joined));
	assert_int_equal(rig.joined.count, rig.file[0].count);
	assert_int_equal(rig.joined.at[rig.joined.count - 1]->kind, RT_WIRE_MARK);
}

static void expect_refused(struct rig *rig, const struct records *const *files, size_t count, const char *why)
{
	struct rt_error *err = join(files, count, &rig->joined);
	size_t events = 0;

	assert_non_null(err);
	assert_string_equal(rt_code_text(err->code), rt_code_text(RT_E_FORMAT));
	if (!strstr(err->message, why))
		fail_msg("'%s', not '%s'", err->message, why);
	rt_error_free(err);
	/* nothing of the file that does not belong */
	for (size_t i = 0; i + 1 < count; i++)
		events += count_of(files[i], RT_WIRE_EVENT);
	assert_true(count_of(&rig->joined, RT_WIRE_EVENT) <= events);
}

TEST(files_that_do_not_go_together)
{
	__attribute__((cleanup(rig_free))) struct rig rig = { 0 };
	const struct records *a = &rig.file[0], *b = &rig.file[1], *c = &rig.file[2];

	rig_make(&rig);
	expect_refused(&rig, (const struct records *const[]){ b, a }, 2, "does not go on with the file before");
	expect_refused(&rig, (const struct records *const[]){ a, a }, 2, "does not go on with the file before");
	expect_refused(&rig, (const struct records *const[]){ b, b }, 2, "it is part 2, and the file before it part 2");
	expect_refused(&rig, (const struct records *const[]){ a, c }, 2, "it is part 3, and the file before it part 1");
	expect_refused(&rig, (const struct records *const[]){ c, b }, 2, "it is part 2, and the file before it part 3");
	expect_refused(&rig, (const struct records *const[]){ a, c, b }, 3, "it is part 3");
	expect_refused(&rig, (const struct records *const[]){ a, &rig.other[1] }, 2, "of another recording");
	expect_refused(&rig, (const struct records *const[]){ a, b, &rig.other[2] }, 3, "of another recording");
	expect_refused(&rig, (const struct records *const[]){ a, b, &rig.stream }, 3, "does not go on with the file");
	expect_refused(&rig, (const struct records *const[]){ &rig.stream, a }, 2, "does not say that another one");
	expect_refused(&rig, (const struct records *const[]){ &rig.stream, b }, 2, "does not say that another one");
}

/* A file whose first record is not its BEGIN, but another seam with the number that fits: foreign bytes. */
TEST(seams_without_a_beginning)
{
	__attribute__((cleanup(rig_free))) struct rig rig = { 0 };

	for (uint32_t where = 0; where <= RT_PART_END + 1; where++) {
		struct rt_wire_part *part;

		rig_make(&rig);
		part = (struct rt_wire_part *)(void *)rig.file[1].at[0];
		part->where = where;
		if (where != RT_PART_BEGIN)
			expect_refused(&rig, (const struct records *const[]){ &rig.file[0], &rig.file[1] }, 2,
				       "does not go on with the file before");
	}
}

/* Drains the first bytes of a spool into a joined stream. */
struct drain {
	struct rt_recording_sink sink;
	struct rt_part_join join;
	struct records *to;
};

static struct rt_error *take(struct rt_recording_sink *self, const struct rt_wire_head *record)
{
	struct drain *d = (struct drain *)(void *)self;
	bool belongs;

	RT_TRY(rt_part_join_record(&d->join, record, &belongs));
	return belongs ? keep(&d->to->sink, record) : NULL;
}

static void spool_of(const struct records *file, struct rt_sink *ret)
{
	struct rt_spool_writer *writer;

	rt_sink_init_memory(ret);
	assert_ok(rt_spool_writer_create(ret, NULL, &writer));
	for (size_t i = 0; i < file->count; i++)
		assert_ok(rt_spool_writer_sink(writer)->record(rt_spool_writer_sink(writer), file->at[i]));
	assert_ok(rt_spool_writer_end(writer, 0));
	rt_spool_writer_destroy(writer);
}

/* RT_E_FORMAT is told apart; *ret_damage: the recording itself says that it is not whole. */
static bool drain(struct drain *d, const struct rt_sink *spool, size_t bytes, bool more, bool *ret_damage)
{
	struct rt_recording *recording;
	struct rt_error *err = rt_recording_open(rt_bytes_make(spool->buffer, bytes), "part", &recording);

	*ret_damage = true;
	if (err) {
		rt_error_free(err);
		return false;
	}
	err = rt_part_join_file(&d->join, more);
	if (!err)
		err = rt_recording_drain(recording, &d->sink);
	*ret_damage = rt_recording_damage(recording) != NULL;
	rt_recording_close(recording);
	if (err)
		assert_int_equal(err->code, RT_E_FORMAT);
	rt_error_free(err);
	return !err;
}

/* The second of three files is cut at every byte: what is lost is said, whether the third one can follow or not. */
TEST(a_damaged_part)
{
	__attribute__((cleanup(rig_free))) struct rig rig = { 0 };
	struct rt_sink spool[FILES];
	size_t whole = 0, followed = 0;

	rig_make(&rig);
	for (size_t i = 0; i < FILES; i++)
		spool_of(&rig.file[i], &spool[i]);
	for (size_t bytes = 0; bytes <= spool[1].len; bytes++) {
		struct drain d = { .sink = { .wire = take }, .to = &rig.joined };
		bool damage;

		records_clear(&rig.joined);
		assert_true(drain(&d, &spool[0], spool[0].len, true, &damage));
		assert_false(damage);
		if (!drain(&d, &spool[1], bytes, true, &damage)) {
			assert_true(damage);
			continue;
		}
		assert_int_equal(damage, bytes < spool[1].len);
		if (!drain(&d, &spool[2], spool[2].len, false, &damage))
			continue;
		followed += bytes < spool[1].len;
		if (bytes == spool[1].len) {
			expect_stream(&rig.joined, &rig.stream);
			whole++;
		} else {
			assert_true(count_of(&rig.joined, RT_WIRE_EVENT) <= count_of(&rig.stream, RT_WIRE_EVENT));
			assert_int_equal(count_of(&rig.joined, RT_WIRE_LOSS), count_of(&rig.stream, RT_WIRE_LOSS) + 1);
		}
	}
	assert_int_equal(whole, 1);
	assert_true(followed > 0);
	for (size_t i = 0; i < FILES; i++)
		rt_sink_deinit(&spool[i]);
}

TEST_MAIN();
