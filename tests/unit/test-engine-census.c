/* SPDX-License-Identifier: GPL-2.0-only */
/* The census against a real, stopped program that says where it keeps what. */
#include "engine/census.h"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "census-program.h"
#include "test.h"

enum { MAX_OBJECTS = 64, MAX_RECORDS = 512 };

struct program {
	pid_t pid;
	int tids[8];
	size_t tid_count;
	char names[MAX_OBJECTS][32];
	struct rt_census_object objects[MAX_OBJECTS];
	size_t count;
};

struct taken {
	struct rt_event_sink sink;
	struct rt_wire_held held[MAX_RECORDS];
	size_t count;
	int mark;
};

static struct rt_error *take(struct rt_event_sink *self, const struct rt_wire_head *record)
{
	struct taken *t = (struct taken *)(void *)self;

	assert_true(rt_record_valid(record, record->size));
	if (record->kind == RT_WIRE_MARK) {
		t->mark = ((const struct rt_wire_task *)(const void *)record)->value;
		return NULL;
	}
	assert_true(record->kind == RT_WIRE_HELD || record->kind == RT_WIRE_COUNT);
	assert_true(t->count < MAX_RECORDS);
	memcpy(&t->held[t->count++], record, sizeof(t->held[0]));
	return NULL;
}

static void build(const char *dir, const char *flags, char *exe, size_t size)
{
	char source[300], command[1000];
	FILE *f;

	snprintf(source, sizeof(source), "%s/p.c", dir);
	snprintf(exe, size, "%s/p", dir);
	f = fopen(source, "w");
	assert_non_null(f);
	fputs(census_program, f);
	fclose(f);
	snprintf(command, sizeof(command), "gcc -O1 -pthread %s -o %s %s", flags, exe, source);
	assert_int_equal(system(command), 0);
}

/* Runs the program up to its pause; reads "name address size" lines until "ready". */
static void start(struct program *p, const char *exe)
{
	int out[2], status;
	char line[200];
	FILE *f;

	assert_int_equal(pipe(out), 0);
	p->pid = fork();
	if (p->pid == 0) {
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		execl(exe, exe, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	while (fgets(line, sizeof(line), f) && strncmp(line, "ready", 5) != 0) {
		unsigned long address;
		unsigned tid;

		if (sscanf(line, "tid %u", &tid) == 1) {
			p->tids[p->tid_count++] = (int)tid;
			continue;
		}
		assert_int_equal(sscanf(line, "%31s %lx", p->names[p->count], &address), 2);
		p->objects[p->count++] = (struct rt_census_object){ address, 64, 0, 4 };
	}
	fclose(f);
	for (size_t i = 0; i < p->tid_count; i++) {
		assert_int_equal(ptrace(PTRACE_SEIZE, p->tids[i], 0, 0), 0);
		assert_int_equal(ptrace(PTRACE_INTERRUPT, p->tids[i], 0, 0), 0);
		assert_int_equal(waitpid(p->tids[i], &status, __WALL), p->tids[i]);
		assert_true(WIFSTOPPED(status));
	}
}

static void end(struct program *p)
{
	kill(p->pid, SIGKILL);
	for (size_t i = p->tid_count; i-- > 0;)
		waitpid(p->tids[i], NULL, __WALL);
}

static const struct rt_wire_held *find(const struct program *p, const struct taken *t, const char *name,
				       enum rt_wire_kind kind, uint32_t where)
{
	for (size_t i = 0; i < p->count; i++) {
		if (strcmp(p->names[i], name) != 0)
			continue;
		for (size_t k = 0; k < t->count; k++) {
			const struct rt_wire_held *h = &t->held[k];

			if (h->object == p->objects[i].address && h->head.kind == kind &&
			    (kind == RT_WIRE_COUNT || h->where == where))
				return h;
		}
		return NULL;
	}
	fail_msg("no object %s", name);
	return NULL;
}

static uint64_t address(const struct program *p, const char *name)
{
	for (size_t i = 0; i < p->count; i++) {
		if (!strcmp(p->names[i], name))
			return p->objects[i].address;
	}
	fail_msg("no object %s", name);
	return 0;
}

/* Exactly this kind of holder, with this many pointers. */
static void held_only(const struct program *p, const struct taken *t, const char *name, enum rt_holder where,
		      uint32_t pointers)
{
	for (uint32_t w = RT_HOLDER_NONE; w <= RT_HOLDER_OBJECT; w++) {
		const struct rt_wire_held *h = find(p, t, name, RT_WIRE_HELD, w);

		if (!!h != (w == where))
			fail_msg("%s: holder kind %u %s", name, w, h ? "was found" : "is missing");
		if (h && w != RT_HOLDER_NONE && h->value != pointers)
			fail_msg("%s: %u pointers, not %u", name, h->value, pointers);
	}
}

static void census(struct program *p, struct taken *t, uint64_t max_bytes)
{
	struct rt_census_options options = { .max_bytes = max_bytes, .tids = p->tids, .tid_count = p->tid_count };

	*t = (struct taken){ .sink.record = take };
	assert_ok(rt_census((uint32_t)p->pid, (uint32_t)p->pid, 1, p->objects, p->count, &options, &t->sink));
}

static void check_all(const char *flags)
{
	char dir[] = "/tmp/rt-census-XXXXXX", exe[300], command[300];
	struct program p = { 0 };
	struct taken t;

	assert_non_null(mkdtemp(dir));
	build(dir, flags, exe, sizeof(exe));
	start(&p, exe);
	census(&p, &t, 0);
	assert_int_equal(t.mark, RT_MARK_CENSUS);
	held_only(&p, &t, "global", RT_HOLDER_GLOBAL, 1);
	held_only(&p, &t, "twice", RT_HOLDER_GLOBAL, 2);
	held_only(&p, &t, "bss", RT_HOLDER_GLOBAL, 1);
	held_only(&p, &t, "tls", RT_HOLDER_GLOBAL, 1);
	held_only(&p, &t, "interior", RT_HOLDER_GLOBAL, 1);
	held_only(&p, &t, "flagged", RT_HOLDER_GLOBAL, 1);
	held_only(&p, &t, "no_member", RT_HOLDER_NONE, 0);
	held_only(&p, &t, "list", RT_HOLDER_HEAP, 1);
	held_only(&p, &t, "chain", RT_HOLDER_HEAP, 1);
	held_only(&p, &t, "mapped", RT_HOLDER_HEAP, 1);
	held_only(&p, &t, "arena", RT_HOLDER_HEAP, 1);
	held_only(&p, &t, "cycle_a", RT_HOLDER_OBJECT, 1);
	held_only(&p, &t, "cycle_b", RT_HOLDER_OBJECT, 1);
	held_only(&p, &t, "nobody", RT_HOLDER_NONE, 0);
	held_only(&p, &t, "itself", RT_HOLDER_NONE, 0);
	held_only(&p, &t, "freed_cache", RT_HOLDER_NONE, 0);
	held_only(&p, &t, "freed_fast", RT_HOLDER_NONE, 0);
	held_only(&p, &t, "freed_large", RT_HOLDER_NONE, 0);
	held_only(&p, &t, "dead_stack", RT_HOLDER_NONE, 0);
	held_only(&p, &t, "parent", RT_HOLDER_NONE, 0);
	held_only(&p, &t, "child", RT_HOLDER_OBJECT, 1);
	held_only(&p, &t, "grandchild", RT_HOLDER_OBJECT, 1);
	held_only(&p, &t, "member", RT_HOLDER_OBJECT, 1);
	assert_non_null(find(&p, &t, "stack", RT_WIRE_HELD, RT_HOLDER_STACK));
	assert_non_null(find(&p, &t, "thread", RT_WIRE_HELD, RT_HOLDER_STACK));
	assert_int_equal(find(&p, &t, "child", RT_WIRE_HELD, RT_HOLDER_OBJECT)->holder, address(&p, "parent"));
	/* through a block of nobody's */
	assert_int_equal(find(&p, &t, "grandchild", RT_WIRE_HELD, RT_HOLDER_OBJECT)->holder, address(&p, "child"));
	assert_int_equal(find(&p, &t, "member", RT_WIRE_HELD, RT_HOLDER_OBJECT)->holder, address(&p, "global"));
	assert_int_equal(find(&p, &t, "global", RT_WIRE_COUNT, 0)->value, 7);
	assert_int_equal(find(&p, &t, "global", RT_WIRE_COUNT, 0)->where, 4);
	end(&p);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

TEST(dynamic_program)
{
	check_all("");
}

TEST(static_program)
{
	check_all("-static");
}

TEST(too_much_memory_is_given_up)
{
	char dir[] = "/tmp/rt-census-XXXXXX", exe[300], command[300];
	struct program p = { 0 };
	struct taken t;

	assert_non_null(mkdtemp(dir));
	build(dir, "", exe, sizeof(exe));
	start(&p, exe);
	census(&p, &t, 65536);
	assert_int_equal(t.mark, RT_MARK_CENSUS_SKIPPED);
	assert_int_equal(t.count, 0);
	end(&p);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

TEST(process_that_is_gone)
{
	struct program p = { .count = 1, .objects = { { 0x1000, 64, RT_COUNTER_UNKNOWN, 0 } } };
	struct taken t;

	p.pid = fork();
	if (p.pid == 0)
		_exit(0);
	waitpid(p.pid, NULL, 0);
	census(&p, &t, 0);
	assert_int_equal(t.mark, RT_MARK_CENSUS_SKIPPED);
}

/* Ids and file descriptors are objects too, but no addresses. */
TEST(objects_that_are_no_addresses)
{
	char dir[] = "/tmp/rt-census-XXXXXX", exe[300], command[300];
	struct program p = { 0 };
	struct taken t;

	assert_non_null(mkdtemp(dir));
	build(dir, "", exe, sizeof(exe));
	start(&p, exe);
	p.count = 3;
	p.objects[0] = (struct rt_census_object){ 3, 0, 0, 4 };
	p.objects[1] = (struct rt_census_object){ UINT64_MAX - 3, 64, 0, 4 };
	p.objects[2] = (struct rt_census_object){ 0x1000, UINT32_MAX, 0, 8 };
	census(&p, &t, 0);
	assert_int_equal(t.mark, RT_MARK_CENSUS);
	assert_int_equal(t.count, 0);
	end(&p);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

TEST_MAIN();
