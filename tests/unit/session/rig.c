/* SPDX-License-Identifier: GPL-2.0-only */
#include "rig.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "maps/maps.h"
#include "test.h"

/* ---- the engine ---- */

struct fake {
	struct rt_engine engine;
	struct rig *rig;
};

/* The ops have no argument of their own: one rig at a time. */
static struct rig *current;

static struct rig_call *note(struct rig *rig, enum rig_call_kind kind, uint32_t pid)
{
	struct rig_call *c = &rig->calls[rig->call_count++];

	assert_true(rig->call_count < RIG_CALLS);
	c->kind = kind;
	c->pid = pid;
	c->at = rig->record_count;
	return c;
}

static struct rt_error *fake_probe(const struct rt_engine_options *options)
{
	return NULL;
}

static const struct rt_engine_ops fake_ops;

static struct rt_error *fake_open(const struct rt_engine_options *options, struct rt_engine **ret)
{
	struct fake *f = calloc(1, sizeof(*f));

	f->engine.ops = &fake_ops;
	f->rig = current;
	*ret = &f->engine;
	return NULL;
}

/* In the tail of the linker's last code page: rt_tgsigqueueinfo(getpid(), gettid(), SIGSTOP, { SI_KERNEL }). */
static const uint8_t cave_code[] = {
	0x50, 0x51, 0x52, 0x56, 0x57, 0x41, 0x52, 0x41, 0x53,      /* push rax rcx rdx rsi rdi r10 r11 */
	0xb8, 39,   0,    0,    0,    0x0f, 0x05, 0x89, 0xc7,      /* getpid -> edi */
	0xb8, 186,  0,    0,    0,    0x0f, 0x05, 0x89, 0xc6,      /* gettid -> esi */
	0xba, 19,   0,    0,    0,                                 /* SIGSTOP -> edx */
	0x4c, 0x8d, 0x15, 17,   0,    0,    0,                     /* lea r10, [siginfo] */
	0xb8, 0x29, 0x01, 0,    0,    0x0f, 0x05,                  /* rt_tgsigqueueinfo */
	0x41, 0x5b, 0x41, 0x5a, 0x5f, 0x5e, 0x5a, 0x59, 0x58, 0xc3 /* pop, ret */
};

/* Hooks that were planted, to be taken out when the engine stops or forgets the process. */
struct planted {
	uint32_t pid;
	uint64_t hook, call; /* where the linker jumps away, where the signal is sent */
	uint8_t code[5];
};
static struct planted hooks[64];

static void remove_stop(struct planted *h)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/mem", h->pid);
	fd = open(path, O_RDWR);
	/* a thread may stand before the call: engine K sends its signal in one go with the hit */
	if (fd >= 0 && (pwrite(fd, h->code, 5, (off_t)h->hook) != 5 || pwrite(fd, "\x66\x90", 2, (off_t)h->call) != 2))
		print_message("process %u is gone\n", h->pid);
	if (fd >= 0)
		close(fd);
	h->pid = 0;
}

static struct planted *planted_in(uint32_t pid)
{
	for (size_t i = 0; i < 64; i++) {
		if (hooks[i].pid == pid)
			return &hooks[i];
	}
	fail_msg("too many processes");
	return NULL;
}

static void plant_stop(const struct rt_arm *arm)
{
	uint64_t hook = arm->stop_at.v + arm->bias, cave = 0;
	char path[64], text[65536], *cursor = text;
	uint8_t bytes[sizeof(cave_code) + 128] = { 0 };
	uint8_t jump[5] = { 0xe9 };
	struct rt_maps_line line;
	int32_t distance;
	struct planted *h = NULL;
	siginfo_t info = { .si_signo = SIGSTOP, .si_code = SI_KERNEL };
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/maps", arm->pid);
	fd = open(path, O_RDONLY);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	close(fd);
	if (n <= 0)
		return;
	text[n] = 0;
	while (rt_maps_parse_line(&cursor, &line)) {
		if (line.executable && hook >= line.start && hook < line.end)
			cave = line.end - 256;
	}
	assert_true(cave != 0);
	memcpy(bytes, cave_code, sizeof(cave_code));
	/* lea's operand: from behind it to the siginfo behind the code */
	bytes[35] = (uint8_t)(sizeof(cave_code) - 39);
	memcpy(bytes + sizeof(cave_code), &info, 128);
	for (size_t i = 0; i < 64 && !h; i++) {
		if (hooks[i].pid == arm->pid)
			h = &hooks[i];
	}
	if (!h)
		h = planted_in(0);
	h->hook = hook;
	h->call = cave + 44;
	distance = (int32_t)(cave - (hook + 5));
	memcpy(jump + 1, &distance, 4);
	snprintf(path, sizeof(path), "/proc/%u/mem", arm->pid);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	/* a forked child has its parent's jump there */
	assert_int_equal(pread(fd, h->code, 5, (off_t)hook), 5);
	h->code[0] = 0xc3;
	h->pid = arm->pid;
	assert_int_equal(pwrite(fd, bytes, sizeof(bytes), (off_t)cave), sizeof(bytes));
	assert_int_equal(pwrite(fd, jump, sizeof(jump), (off_t)hook), sizeof(jump));
	close(fd);
}

/* Killed at this moment by somebody else: its memory is gone, and with it what /proc says of its files. */
static bool is_dying(uint32_t pid)
{
	char path[64], byte;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	fd = open(path, O_RDONLY);
	n = fd >= 0 ? read(fd, &byte, 1) : 0;
	if (fd >= 0)
		close(fd);
	return n <= 0;
}

static struct rt_error *fake_extend(struct rt_engine *engine, const struct rt_arm *arm,
				    void (*failed)(const struct rt_arm_failure *failure, void *arg), void *arg)
{
	struct rig *rig = ((struct fake *)(void *)engine)->rig;
	struct rig_call *c = note(rig, arm->stop_at.v ? RIG_STOP_AT : RIG_EXTEND, arm->pid);
	char path[4096];
	ssize_t n = readlink(arm->path, path, sizeof(path) - 1);

	c->wire_pid = arm->wire_pid;
	c->points = arm->point_count;
	if (n > 0) {
		path[n] = 0;
		snprintf(c->file, sizeof(c->file), "%s", strrchr(path, '/') + 1);
	}
	if (access(arm->path, R_OK) < 0) {
		assert_true(is_dying(arm->pid));
		return rt_error_new(RT_E_UNREADABLE, "cannot open %s", arm->path); /* like a real engine */
	}
	if (arm->stop_at.v && !rig->no_stop)
		plant_stop(arm);
	if (rig->on_extend)
		rig->on_extend(rig, arm);
	if (rig->refuse && arm->point_count)
		return rt_error_new(RT_E_PRIVILEGE, "%s", rig->refuse);
	return NULL;
}

static struct rt_error *fake_drain(struct rt_engine *engine, struct rt_event_sink *sink)
{
	struct rig *rig = ((struct fake *)(void *)engine)->rig;
	struct rt_error *err = NULL;

	if (rig->queued_stack)
		err = sink->record(sink, &rig->queued_stack->head);
	if (!err && rig->queued.head.size)
		err = sink->record(sink, &rig->queued.head);
	rig->queued_stack = NULL;
	rig->queued.head.size = 0;
	return err;
}

static void fake_forget(struct rt_engine *engine, uint32_t pid)
{
	note(((struct fake *)(void *)engine)->rig, RIG_FORGET, pid);
	for (size_t i = 0; i < 64; i++) {
		if (hooks[i].pid == pid)
			hooks[i].pid = 0;
	}
}

static struct rt_error *fake_stop(struct rt_engine *engine, struct rt_event_sink *sink)
{
	note(((struct fake *)(void *)engine)->rig, RIG_STOP, 0);
	for (size_t i = 0; i < 64; i++) {
		if (hooks[i].pid)
			remove_stop(&hooks[i]);
	}
	return NULL;
}

static void fake_stats(struct rt_engine *engine, struct rt_engine_stats *ret)
{
	*ret = (struct rt_engine_stats){ .balanced = true };
}

static void fake_close(struct rt_engine *engine)
{
	note(((struct fake *)(void *)engine)->rig, RIG_CLOSE, 0);
	free(engine);
}

static const struct rt_engine_ops fake_ops = {
	.name = "fake",
	.probe = fake_probe,
	.open = fake_open,
	.extend = fake_extend,
	.drain = fake_drain,
	.forget = fake_forget,
	.stop = fake_stop,
	.stats = fake_stats,
	.close = fake_close,
};

/* ---- the owner ---- */

static struct rt_error *take(struct rt_event_sink *self, const struct rt_wire_head *record)
{
	struct rig *rig = (struct rig *)(void *)self;

	assert_true(rt_record_valid(record, record->size));
	assert_true(rig->record_count < RIG_RECORDS);
	rig->records[rig->record_count] = malloc(record->size);
	memcpy(rig->records[rig->record_count++], record, record->size);
	return NULL;
}

static struct rt_error *tick(void *arg)
{
	struct rig *rig = arg;

	rig->ticks++;
	if (rig->on_tick)
		rig->on_tick(rig);
	return NULL;
}

static void live(void *arg, uint32_t pid, bool (*visit)(const struct rt_live *live, void *visit_arg), void *visit_arg)
{
	struct rig *rig = arg;

	if (rig->on_live)
		rig->on_live(rig, pid, visit, visit_arg);
}

void rig_init(struct rig *rig, const char *spec)
{
	/* left by a test that failed: its guardian is not to be taken for a fault of this one */
	if (current)
		rig_end_session(current);
	memset(rig, 0, sizeof(*rig));
	snprintf(rig->dir, sizeof(rig->dir), "/tmp/rt-session-XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	chmod(rig->dir, 0777);
	if (spec)
		assert_ok(rt_spec_parse(spec, strlen(spec), "-P", &rig->spec));
	rig->sink.record = take;
	rig->hooks = (struct rt_session_hooks){ .sink = &rig->sink, .live = live, .tick = tick, .arg = rig };
	rig->options.spec = &rig->spec;
	rig->options.scan = !spec;
	rig->options.ops = &fake_ops;
	rig->options.as_root = true;
	rig->options.engine.root_fd = AT_FDCWD;
	current = rig;
}

void rig_deinit(struct rig *rig)
{
	char command[200];

	for (size_t i = 0; i < rig->record_count; i++)
		free(rig->records[i]);
	rt_spec_deinit(&rig->spec);
	snprintf(command, sizeof(command), "rm -rf %s", rig->dir);
	assert_int_equal(system(command), 0);
}

const char *rig_path(const struct rig *rig, const char *name)
{
	static char paths[8][200];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", rig->dir, name);
	return path;
}

void rig_build(struct rig *rig, const char *name, const char *source, const char *flags)
{
	char command[1000];
	FILE *f;

	snprintf(command, sizeof(command), "%s/%s.c", rig->dir, name);
	f = fopen(command, "w");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	snprintf(command, sizeof(command), "cd %s && gcc -g -O1 -pthread -o %s %s.c %s", rig->dir, name, name, flags);
	assert_int_equal(system(command), 0);
}

struct rt_error *rig_run(struct rig *rig, const char *const *command)
{
	struct rt_error *err;

	rig->options.command = command;
	err = rt_session_create(&rig->options, &rig->hooks, &rig->session);
	if (err)
		return err;
	return rt_session_run(rig->session);
}

void rig_end_session(struct rig *rig)
{
	if (rig->session)
		rt_session_destroy(rig->session);
	rig->session = NULL;
}

const char *rig_file(const struct rig *rig, const char *name)
{
	static char text[65536];
	FILE *f = fopen(rig_path(rig, name), "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = 0;
	return text;
}

const void *rig_record(const struct rig *rig, enum rt_wire_kind kind, uint32_t pid, size_t nth)
{
	for (size_t i = 0; i < rig->record_count; i++) {
		if (rig->records[i]->kind == kind && (!pid || rig->records[i]->pid == pid) && !nth--)
			return rig->records[i];
	}
	return NULL;
}

size_t rig_count(const struct rig *rig, enum rt_wire_kind kind, uint32_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < rig->record_count; i++)
		n += rig->records[i]->kind == kind && (!pid || rig->records[i]->pid == pid);
	return n;
}

size_t rig_index(const struct rig *rig, const void *record)
{
	for (size_t i = 0; i < rig->record_count; i++) {
		if ((const void *)rig->records[i] == record)
			return i;
	}
	fail_msg("no such record");
	return 0;
}

const struct rig_call *rig_call(const struct rig *rig, enum rig_call_kind kind, uint32_t pid, const char *file)
{
	for (size_t i = 0; i < rig->call_count; i++) {
		const struct rig_call *c = &rig->calls[i];

		if (c->kind == kind && (!pid || c->pid == pid) && (!file || !strcmp(c->file, file)))
			return c;
	}
	return NULL;
}
