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

static void put_folder(const struct tree *t, const char *folder)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", t->path, folder);
	mkdir(path, 0755);
}

static void put_file(const struct tree *t, const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	put_folder(t, folder);
	snprintf(path, sizeof(path), "%s/%s/%s", t->path, folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void put(const struct tree *t, const char *group, const char *name, const char *id)
{
	char folder[128];

	snprintf(folder, sizeof(folder), "events/%s", group);
	put_folder(t, folder);
	snprintf(folder, sizeof(folder), "events/%s/%s", group, name);
	put_file(t, folder, "id", id);
}

static void tree_make(struct tree *t)
{
	snprintf(t->path, sizeof(t->path), "/tmp/rt-events-XXXXXX");
	assert_non_null(mkdtemp(t->path));
	put_folder(t, "events");
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

/* A PMU as a CPU has it; the values are what the manual of perf-record(1) and the formats say. */
TEST(pmu_terms)
{
	static const struct {
		const char *text;
		uint64_t config, config1, config2;
	} want[] = {
		{ "cpu/event=0x3c/", 0x3c, 0, 0 },
		{ "cpu/event=0x13c,umask=0x1f/", 0x100001f3c, 0, 0 },
		{ "cpu/cache-misses/", 0x412e, 0, 0 },
		{ "cpu/cache-misses,umask=2/", 0x22e, 0, 0 },
		{ "cpu/event=60,inv,edge=0,cmask=3/", 0x380003c, 0, 0 },
		{ "cpu/ldlat=30,event=1/", 1, 30, 0 },
		{ "cpu/config=0xffff,config1=7,config2=8/", 0xffff, 7, 8 },
		{ "cpu/r1a8/", 0x1a8, 0, 0 },
	};
	struct rt_event_list list = { 0 };
	struct tree t;

	tree_make(&t);
	put_file(&t, "cpu", "type", "4\n");
	put_file(&t, "cpu/format", "event", "config:0-7,32-35\n");
	put_file(&t, "cpu/format", "umask", "config:8-15\n");
	put_file(&t, "cpu/format", "edge", "config:18\n");
	put_file(&t, "cpu/format", "inv", "config:23\n");
	put_file(&t, "cpu/format", "cmask", "config:24-31\n");
	put_file(&t, "cpu/format", "ldlat", "config1:0-15\n");
	put_file(&t, "cpu/format", "broken", "config:70-80\n");
	put_file(&t, "cpu/events", "cache-misses", "event=0x2e,umask=0x41\n");
	put_file(&t, "cpu/events", "itself", "itself\n");
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_ok(rt_event_names_parse(want[i].text, &(struct rt_event_places){ -1, ENOENT, t.fd }, &list));
		assert_int_equal(list.data[0].type, 4);
		assert_int_equal(list.data[0].config, want[i].config);
		assert_int_equal(list.data[0].config1, want[i].config1);
		assert_int_equal(list.data[0].config2, want[i].config2);
		assert_string_equal(list.data[0].name, want[i].text);
		rt_event_list_deinit(&list);
		list = (struct rt_event_list){ 0 };
	}
	assert_ok(rt_event_names_parse("cpu/event=1,umask=2,period=7,name=mine/u,cpu-clock,cpu/r2/:kpp",
				       &(struct rt_event_places){ -1, ENOENT, t.fd }, &list));
	assert_int_equal(list.len, 3);
	assert_int_equal(list.data[0].period, 7);
	assert_string_equal(list.data[0].name, "mine");
	assert_true(list.data[0].exclude_kernel && !list.data[0].exclude_user);
	assert_string_equal(list.data[1].name, "cpu-clock");
	assert_true(list.data[2].exclude_user && list.data[2].precise == 2);
	rt_event_list_deinit(&list);
	list = (struct rt_event_list){ 0 };
#define REFUSED(text_, code_, message_, fix_) \
	assert_says(rt_event_names_parse(text_, &(struct rt_event_places){ -1, ENOENT, t.fd }, &list), code_, \
		    message_, fix_)
	REFUSED("cpu/event=1", RT_E_USAGE, "no second slash", "cpu/TERM=VALUE");
	REFUSED("cpu/umsk=1/", RT_E_USAGE, "no term 'umsk'", "umask");
	REFUSED("cpu/cache-mises/", RT_E_USAGE, "'cache-mises'", "cache-misses");
	REFUSED("cpu/umask=0x100/", RT_E_USAGE, "'0x100' is no value of umask", "bits");
	REFUSED("cpu/umask=x/", RT_E_USAGE, "'x' is no value", NULL);
	REFUSED("cpu/broken=1/", RT_E_USAGE, "broken", NULL);
	REFUSED("cpu/itself/", RT_E_FORMAT, "names itself", NULL);
	REFUSED("cpu/event=1,,umask=2/", RT_E_USAGE, "empty term", NULL);
	REFUSED("cpu/event=1/z", RT_E_USAGE, "'z'", "u (user");
	REFUSED("cpu/../type/", RT_E_USAGE, "cpu", NULL);
	REFUSED("cpu_core/event=1/", RT_E_UNSUPPORTED, "no PMU 'cpu_core'", "cpu-clock");
	REFUSED("../cpu/", RT_E_UNSUPPORTED, "no PMU '..'", NULL);
	REFUSED("uncore_imc/x/", RT_E_UNSUPPORTED, "it has", "ls ");
	rt_event_list_deinit(&list);
	tree_end(&t);
}

/* perf 6.1's own words for the attr of a name, whether the machine can count it or not. */
static bool of_perf(const char *name, const char *key, uint64_t *ret)
{
	char command[256], line[256], word[64];
	bool inside = false, seen = false;
	FILE *f;

	snprintf(command, sizeof(command), "perf stat -vv -e '%s' true 2>&1", name);
	f = popen(command, "r");
	assert_non_null(f);
	*ret = 0;
	while (fgets(line, sizeof(line), f)) {
		unsigned long long value;

		if (!strncmp(line, "perf_event_attr:", 16)) {
			inside = !seen; /* the first try: what follows gives things up */
			seen = true;
		} else if (!strncmp(line, "----", 4) || !strncmp(line, "sys_perf", 8)) {
			inside = false;
		} else if (inside && sscanf(line, " %63s %lli", word, (long long *)&value) == 2 && !strcmp(word, key)) {
			*ret = value;
		}
	}
	pclose(f);
	return seen;
}

TEST(as_perf_understands_them)
{
	static const char *const names[] = {
		"cpu-clock:u", "cpu-clock:k",      "cpu-clock:uk",          "cpu-clock:h", "page-faults:G",
		"LLC-stores",  "cycles:uH",        "L1-dcache-load-misses", "dTLB-loads",  "branch-load-misses:u",
		"r1a8",        "iTLB-load-misses", "node-prefetches"
	};
	struct rt_event_list list = { 0 };
	uint64_t value;

	if (!of_perf("cpu-clock", "type", &value))
		skip();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct rt_event_desc *d;

		assert_ok(rt_event_names_parse(names[i], &(struct rt_event_places){ -1, ENOENT, -1 }, &list));
		d = &list.data[0];
#define SAME(key_, ours_) \
	do { \
		if (!of_perf(names[i], key_, &value) || value != (ours_)) \
			fail_msg("%s: %s is %llx, perf's %llx", names[i], key_, (unsigned long long)(ours_), \
				 (unsigned long long)value); \
	} while (0)
		SAME("type", d->type);
		SAME("config", d->config);
		SAME("exclude_user", d->exclude_user);
		SAME("exclude_kernel", d->exclude_kernel);
		SAME("exclude_hv", d->exclude_hv);
		SAME("exclude_host", d->exclude_host);
		SAME("exclude_guest", d->exclude_guest);
		rt_event_list_deinit(&list);
		list = (struct rt_event_list){ 0 };
	}
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

		assert_ok(rt_event_names_parse(want[i].name, &(struct rt_event_places){ -1, ENOENT, -1 }, &list));
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

	assert_ok(rt_event_names_parse("cpu-clock:u,cycles:kpp,task-clock:uk",
				       &(struct rt_event_places){ -1, ENOENT, -1 }, &list));
	assert_int_equal(list.len, 3);
	assert_true(list.data[0].exclude_kernel && list.data[0].exclude_hv && !list.data[0].exclude_user);
	assert_string_equal(list.data[0].name, "cpu-clock:u");
	assert_true(list.data[1].exclude_user && !list.data[1].exclude_kernel);
	assert_int_equal(list.data[1].precise, 2);
	assert_false(list.data[2].exclude_user || list.data[2].exclude_kernel);
	assert_says(rt_event_names_parse("cycles:z", &(struct rt_event_places){ -1, 0, -1 }, &list), RT_E_USAGE, "'z'",
		    "u (user");
	assert_says(rt_event_names_parse("cycles:", &(struct rt_event_places){ -1, 0, -1 }, &list), RT_E_USAGE,
		    "modifier", NULL);
	assert_says(rt_event_names_parse("cycles:pppp", &(struct rt_event_places){ -1, 0, -1 }, &list), RT_E_USAGE,
		    "pppp", NULL);
	rt_event_list_deinit(&list);
}

TEST(tracepoints)
{
	struct rt_event_list list = { 0 };
	struct tree t;

	tree_make(&t);
	assert_ok(rt_event_names_parse("sched:sched_switch:k,cpu-clock", &(struct rt_event_places){ t.fd, 0, -1 },
				       &list));
	assert_int_equal(list.len, 2);
	assert_int_equal(list.data[0].type, PERF_TYPE_TRACEPOINT);
	assert_int_equal(list.data[0].config, 317);
	assert_true(list.data[0].exclude_user && !list.data[0].exclude_kernel);
	assert_string_equal(list.data[0].group, "sched");
	assert_string_equal(list.data[0].tracepoint, "sched_switch");
	assert_ok(rt_event_names_parse("sched:sched_*", &(struct rt_event_places){ t.fd, 0, -1 }, &list));
	assert_int_equal(list.len, 4);
	assert_ok(rt_event_names_parse("sys*:*getppid", &(struct rt_event_places){ t.fd, 0, -1 }, &list));
	assert_int_equal(list.data[4].config, 99);
	rt_event_list_deinit(&list);
	tree_end(&t);
}

TEST(unknown_names)
{
	struct rt_event_list list = { 0 };
	struct tree t;

	tree_make(&t);
	assert_says(rt_event_names_parse("cycels", &(struct rt_event_places){ t.fd, 0, -1 }, &list), RT_E_USAGE,
		    "'cycels'", "cycles");
	assert_says(rt_event_names_parse("cpu-clok", &(struct rt_event_places){ t.fd, 0, -1 }, &list), RT_E_USAGE,
		    "'cpu-clok'", "cpu-clock");
	assert_says(rt_event_names_parse("qqqqqqqq", &(struct rt_event_places){ t.fd, 0, -1 }, &list), RT_E_USAGE,
		    "'qqqqqqqq'", "SYS:NAME");
	assert_says(rt_event_names_parse("", &(struct rt_event_places){ t.fd, 0, -1 }, &list), RT_E_USAGE, "empty",
		    NULL);
	assert_says(rt_event_names_parse("cycles,,", &(struct rt_event_places){ t.fd, 0, -1 }, &list), RT_E_USAGE,
		    "empty", NULL);
	assert_says(rt_event_names_parse("sched:sched_swich", &(struct rt_event_places){ t.fd, 0, -1 }, &list),
		    RT_E_USAGE, "sched:sched_swich", "sched:sched_switch");
	assert_says(rt_event_names_parse("shed:sched_switch", &(struct rt_event_places){ t.fd, 0, -1 }, &list),
		    RT_E_USAGE, "shed:", "sched:sched_switch");
	assert_says(rt_event_names_parse("../x:y", &(struct rt_event_places){ t.fd, 0, -1 }, &list), RT_E_USAGE,
		    "../x:y", NULL);
	assert_says(
		rt_event_names_parse("sched:../sched/sched_switch", &(struct rt_event_places){ t.fd, 0, -1 }, &list),
		RT_E_USAGE, "no event", NULL);
	assert_says(rt_event_names_parse("sched:nothing*", &(struct rt_event_places){ t.fd, 0, -1 }, &list), RT_E_USAGE,
		    "sched:nothing*", NULL);
	assert_says(rt_event_names_parse("sched:sched_switch", &(struct rt_event_places){ -1, EACCES, -1 }, &list),
		    RT_E_PRIVILEGE, "sched_switch", "sudo");
	assert_says(rt_event_names_parse("sched:sched_switch", &(struct rt_event_places){ -1, ENOENT, -1 }, &list),
		    RT_E_KERNEL, "sched_switch", "mount -t tracefs");
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
	assert_ok(rt_event_names_parse(text, &(struct rt_event_places){ -1, ENOENT, -1 }, &list));
	assert_int_equal(list.len, 4);
	assert_int_equal(list.data[0].kind, RT_EVENT_UPROBE);
	assert_string_equal(list.data[0].path, self);
	assert_int_equal(list.data[0].config, 0);
	assert_int_equal(list.data[1].config, 1);
	assert_int_equal(list.data[1].offset, list.data[0].offset + 4);
	assert_int_equal(list.data[2].offset, 0x40);
	assert_int_equal(list.data[3].offset, 64);
	snprintf(text, sizeof(text), "u:%s:test_event_targte", self);
	assert_says(rt_event_names_parse(text, &(struct rt_event_places){ -1, 0, -1 }, &list), RT_E_NOT_FOUND,
		    "test_event_targte", "test_event_target");
	assert_says(rt_event_names_parse("u:/nothing/here:f", &(struct rt_event_places){ -1, 0, -1 }, &list),
		    RT_E_NOT_FOUND, "/nothing/here", NULL);
	assert_says(rt_event_names_parse("u:noplace", &(struct rt_event_places){ -1, 0, -1 }, &list), RT_E_USAGE,
		    "u:noplace", "u:PATH:FUNCTION");
	assert_says(rt_event_names_parse("u:", &(struct rt_event_places){ -1, 0, -1 }, &list), RT_E_USAGE, "u:", NULL);
	assert_says(rt_event_names_parse("u:/bin/sh:", &(struct rt_event_places){ -1, 0, -1 }, &list), RT_E_USAGE,
		    "u:/bin/sh:", NULL);
	rt_event_list_deinit(&list);
}

TEST_MAIN();
