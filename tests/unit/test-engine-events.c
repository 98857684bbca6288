/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of perf events: what they stand for, and what is said about those that are none. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/event_name.h"

/* A small tracefs of our own. */
struct tree {
	char path[64];
	int fd;
};

static void put(struct tree *t, const char *group, const char *name, const char *id)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/events/%s", t->path, group);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/events/%s/%s", t->path, group, name);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/events/%s/%s/id", t->path, group, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(id, f);
	fclose(f);
}

static void tree_make(struct tree *t)
{
	char path[128];

	snprintf(t->path, sizeof(t->path), "/tmp/rt-events-XXXXXX");
	assert_non_null(mkdtemp(t->path));
	snprintf(path, sizeof(path), "%s/events", t->path);
	mkdir(path, 0755);
	put(t, "sched", "sched_switch", "317\n");
	put(t, "sched", "sched_wakeup", "318\n");
	put(t, "syscalls", "sys_enter_getppid", "99\n");
	t->fd = open(t->path, O_RDONLY | O_DIRECTORY);
	assert_true(t->fd >= 0);
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void tree_end(struct tree *t)
{
	close(t->fd);
	nftw(t->path, drop, 8, FTW_DEPTH | FTW_PHYS);
}

/* The error's message and fix hold these words. */
static void assert_says(struct rt_error *err, enum rt_code code, const char *message, const char *fix)
{
	assert_non_null(err);
	assert_string_equal(rt_code_text(err->code), rt_code_text(code));
	if (!strstr(err->message, message) || (fix && (!err->fix || !strstr(err->fix, fix))))
		fail_msg("message '%s', fix '%s': wanted '%s', '%s'", err->message, err->fix ? err->fix : "", message,
			 fix ? fix : "");
	rt_error_free(err);
}

TEST(generic_names)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
	} want[] = {
		{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
		{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
		{ "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
		{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
		{ "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
		{ "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
		{ "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
		{ "r1a8", PERF_TYPE_RAW, 0x1a8 },
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct rt_event_list list = { 0 };

		assert_ok(rt_event_names_parse(want[i].name, -1, ENOENT, &list));
		assert_int_equal(list.len, 1);
		assert_string_equal(list.data[0].name, want[i].name);
		assert_int_equal(list.data[0].kind, RT_EVENT_CPU);
		assert_int_equal(list.data[0].type, want[i].type);
		assert_int_equal(list.data[0].config, want[i].config);
		rt_event_list_deinit(&list);
	}
}

TEST(modifiers)
{
	struct rt_event_list list = { 0 };

	assert_ok(rt_event_names_parse("cpu-clock:u,cycles:kpp,task-clock:uk", -1, ENOENT, &list));
	assert_int_equal(list.len, 3);
	assert_true(list.data[0].user_only && !list.data[0].kernel_only);
	assert_string_equal(list.data[0].name, "cpu-clock:u");
	assert_true(list.data[1].kernel_only && !list.data[1].user_only);
	assert_int_equal(list.data[1].precise, 2);
	assert_false(list.data[2].user_only || list.data[2].kernel_only);
	assert_says(rt_event_names_parse("cycles:z", -1, 0, &list), RT_E_USAGE, "'z'", "u (user");
	assert_says(rt_event_names_parse("cycles:", -1, 0, &list), RT_E_USAGE, "modifier", NULL);
	assert_says(rt_event_names_parse("cycles:pppp", -1, 0, &list), RT_E_USAGE, "pppp", NULL);
	rt_event_list_deinit(&list);
}

TEST(tracepoints)
{
	struct rt_event_list list = { 0 };
	struct tree t;

	tree_make(&t);
	assert_ok(rt_event_names_parse("sched:sched_switch:k,cpu-clock", t.fd, 0, &list));
	assert_int_equal(list.len, 2);
	assert_int_equal(list.data[0].type, PERF_TYPE_TRACEPOINT);
	assert_int_equal(list.data[0].config, 317);
	assert_true(list.data[0].kernel_only);
	assert_string_equal(list.data[0].group, "sched");
	assert_string_equal(list.data[0].tracepoint, "sched_switch");
	assert_ok(rt_event_names_parse("sched:sched_*", t.fd, 0, &list));
	assert_int_equal(list.len, 4);
	assert_ok(rt_event_names_parse("sys*:*getppid", t.fd, 0, &list));
	assert_int_equal(list.data[4].config, 99);
	rt_event_list_deinit(&list);
	tree_end(&t);
}

TEST(unknown_names)
{
	struct rt_event_list list = { 0 };
	struct tree t;

	tree_make(&t);
	assert_says(rt_event_names_parse("cycels", t.fd, 0, &list), RT_E_USAGE, "'cycels'", "cycles");
	assert_says(rt_event_names_parse("cpu-clok", t.fd, 0, &list), RT_E_USAGE, "'cpu-clok'", "cpu-clock");
	assert_says(rt_event_names_parse("qqqqqqqq", t.fd, 0, &list), RT_E_USAGE, "'qqqqqqqq'", "SYS:NAME");
	assert_says(rt_event_names_parse("", t.fd, 0, &list), RT_E_USAGE, "empty", NULL);
	assert_says(rt_event_names_parse("cycles,,", t.fd, 0, &list), RT_E_USAGE, "empty", NULL);
	assert_says(rt_event_names_parse("sched:sched_swich", t.fd, 0, &list), RT_E_USAGE, "sched:sched_swich",
		    "sched:sched_switch");
	assert_says(rt_event_names_parse("shed:sched_switch", t.fd, 0, &list), RT_E_USAGE,
		    "shed:", "sched:sched_switch");
	assert_says(rt_event_names_parse("../x:y", t.fd, 0, &list), RT_E_USAGE, "../x:y", NULL);
	assert_says(rt_event_names_parse("sched:../sched/sched_switch", t.fd, 0, &list), RT_E_USAGE, "no event", NULL);
	assert_says(rt_event_names_parse("sched:nothing*", t.fd, 0, &list), RT_E_USAGE, "sched:nothing*", NULL);
	assert_says(rt_event_names_parse("sched:sched_switch", -1, EACCES, &list), RT_E_PRIVILEGE, "sched_switch",
		    "sudo");
	assert_says(rt_event_names_parse("sched:sched_switch", -1, ENOENT, &list), RT_E_KERNEL, "sched_switch",
		    "mount -t tracefs");
	rt_event_list_deinit(&list);
	tree_end(&t);
}

/* Ours to be found. */
__attribute__((noinline, used)) int test_event_target(int n);
int test_event_target(int n)
{
	return n + 1;
}

TEST(uprobes)
{
	struct rt_event_list list = { 0 };
	char self[512], text[2400];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(len > 0);
	self[len] = 0;
	snprintf(text, sizeof(text), "u:%s:test_event_target,ur:%s:test_event_target+0x4,u:%s:0x40,u:%s:64", self, self,
		 self, self);
	assert_ok(rt_event_names_parse(text, -1, ENOENT, &list));
	assert_int_equal(list.len, 4);
	assert_int_equal(list.data[0].kind, RT_EVENT_UPROBE);
	assert_string_equal(list.data[0].path, self);
	assert_int_equal(list.data[0].config, 0);
	assert_int_equal(list.data[1].config, 1);
	assert_int_equal(list.data[1].offset, list.data[0].offset + 4);
	assert_int_equal(list.data[2].offset, 0x40);
	assert_int_equal(list.data[3].offset, 64);
	snprintf(text, sizeof(text), "u:%s:test_event_targte", self);
	assert_says(rt_event_names_parse(text, -1, 0, &list), RT_E_NOT_FOUND, "test_event_targte", "test_event_target");
	assert_says(rt_event_names_parse("u:/nothing/here:f", -1, 0, &list), RT_E_NOT_FOUND, "/nothing/here", NULL);
	assert_says(rt_event_names_parse("u:noplace", -1, 0, &list), RT_E_USAGE, "u:noplace", "u:PATH:FUNCTION");
	assert_says(rt_event_names_parse("u:", -1, 0, &list), RT_E_USAGE, "u:", NULL);
	assert_says(rt_event_names_parse("u:/bin/sh:", -1, 0, &list), RT_E_USAGE, "u:/bin/sh:", NULL);
	rt_event_list_deinit(&list);
}

TEST_MAIN();
