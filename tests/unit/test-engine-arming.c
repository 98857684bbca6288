/* SPDX-License-Identifier: GPL-2.0-only */
/* Engine K: what is armed, where, and what is left behind. Needs root. */
#include <linux/perf_event.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "engine/rig.h"
#include "engine/uprobe_tracefs.h"

static struct program plain; /* -O2, no frame pointers */

/* Compiled once, on first use. */
static const struct program *program(void)
{
	if (!plain.loads)
		rig_compile(&plain, "plain", "-O2");
	return &plain;
}

static const enum rt_attach_path paths[] = { RT_ATTACH_MULTI, RT_ATTACH_TRACEFS };

TEST(unprobeable_instruction_is_reported_and_the_rest_armed)
{
	for (int i = 0; i < 2; i++) {
		struct rt_engine *e = rig_open(paths[i], 0, 0);
		struct target t = rig_start(program(), "locked", 9);
		struct rt_point points[] = { rig_point(program(), 1, "obj_get", 0),
					     rig_point(program(), 2, "locked_get", 0),
					     rig_point(program(), 3, "obj_put", 0),
					     rig_point(program(), 4, "locked_get", 4) };
		struct arming a;
		struct records r;

		rig_records_init(&r);
		a = rig_arm(e, &t, points, 4);
		assert_int_equal(a.failures, 1);
		assert_int_equal(a.last.point, 2);
		rig_continue(&t);
		assert_int_equal(rig_wait(&t), 0);
		assert_ok(e->ops->stop(e, &r.sink));
		assert_int_equal(rig_count(&r, 1), 9);
		assert_int_equal(rig_count(&r, 4), 9);
		assert_int_equal(r.events.len, 18);
		e->ops->close(e);
		rig_records_deinit(&r);
	}
}

TEST(foreign_breakpoint_is_left_alone)
{
	struct rt_engine *e = rig_open(RT_ATTACH_AUTO, 0, 0);
	struct target t = rig_start(program(), "calls", 5);
	struct rt_point points[] = { rig_point(program(), 1, "obj_get", 0), rig_point(program(), 2, "obj_put", 0) };
	char path[32];
	int fd;
	struct arming a;

	snprintf(path, sizeof(path), "/proc/%d/mem", t.pid);
	fd = open(path, O_RDWR);
	assert_int_equal(pwrite(fd, "\xcc", 1, t.bias + points[0].address.v), 1);
	a = rig_arm(e, &t, points, 2);
	assert_int_equal(a.failures, 1);
	assert_int_equal(a.last.point, 1);
	assert_non_null(strstr(a.last.why, "breakpoint"));
	close(fd);
	kill(t.pid, SIGKILL);
	rig_wait(&t);
	e->ops->close(e);
}

TEST(forked_child_without_link_is_unharmed_and_not_counted)
{
	for (int i = 0; i < 2; i++) {
		struct rt_point points[] = { rig_point(program(), 1, "obj_get", 0),
					     rig_point(program(), 2, "obj_put", 0) };
		struct records r;

		rig_run(program(), paths[i], "fork", 10, points, 2, &r);
		assert_int_equal(rig_count(&r, 1), 20);
		assert_int_equal(rig_count(&r, 2), 20);
		rig_records_deinit(&r);
	}
}

TEST(forked_child_gets_its_own_links)
{
	for (int i = 0; i < 2; i++) {
		struct rt_engine *e = rig_open(paths[i], 0, 0);
		struct target t = rig_start(program(), "child", 10), child = t;
		struct rt_point points[] = { rig_point(program(), 1, "obj_get", 0),
					     rig_point(program(), 2, "obj_put", 0) };
		struct records r;
		size_t mine = 0;
		char text[32] = "";

		rig_records_init(&r);
		assert_int_equal(rig_arm(e, &t, points, 2).failures, 0);
		rig_continue(&t);
		assert_true(read(t.out, text, sizeof(text) - 1) > 0);
		child.pid = strtol(text, NULL, 10);
		/* not our child: wait until /proc says that it has stopped */
		for (char now = 0; now != 'T';) {
			char path[64], line[256];
			FILE *f;

			snprintf(path, sizeof(path), "/proc/%d/stat", child.pid);
			f = fopen(path, "r");
			assert_non_null(f);
			assert_non_null(fgets(line, sizeof(line), f));
			fclose(f);
			now = strrchr(line, ')')[2];
		}
		assert_int_equal(rig_arm(e, &child, points, 2).failures, 0);
		rig_continue(&child);
		assert_int_equal(rig_wait(&t), 0);
		assert_ok(e->ops->stop(e, &r.sink));
		assert_int_equal(r.events.len, 20);
		for (size_t k = 0; k < r.events.len; k++)
			mine += r.events.data[k].head.pid == (uint32_t)child.pid;
		assert_int_equal(mine, 20);
		e->ops->close(e);
		rig_records_deinit(&r);
	}
}

TEST(bystander_carries_no_breakpoint)
{
	for (int i = 0; i < 2; i++) {
		struct rt_engine *e = rig_open(paths[i], 0, 0);
		struct target bystander = rig_start(program(), "calls", 5), t = rig_start(program(), "calls", 5);
		struct rt_point point = rig_point(program(), 1, "obj_get", 0);
		int before = rig_peek(bystander.pid, bystander.bias + point.address.v);
		struct records r;

		rig_records_init(&r);
		assert_int_equal(rig_arm(e, &t, &point, 1).failures, 0);
		assert_int_equal(rig_peek(t.pid, t.bias + point.address.v), 0xcc);
		assert_int_equal(rig_peek(bystander.pid, bystander.bias + point.address.v), before);
		assert_int_not_equal(before, 0xcc);
		rig_continue(&bystander);
		rig_continue(&t);
		assert_int_equal(rig_wait(&bystander), 0);
		assert_int_equal(rig_wait(&t), 0);
		assert_ok(e->ops->stop(e, &r.sink));
		assert_int_equal(r.events.len, 5);
		e->ops->close(e);
		rig_records_deinit(&r);
	}
}

TEST(killed_engine_leaves_no_breakpoints)
{
	for (int i = 0; i < 2; i++) {
		struct target t = rig_start(program(), "calls", 5);
		struct rt_point point = rig_point(program(), 1, "obj_get", 0);
		uint64_t address = t.bias + point.address.v;
		int status, ready[2], before = rig_peek(t.pid, address);
		char c, group[64];
		size_t busy;
		FILE *f;
		pid_t engine;

		assert_int_equal(pipe(ready), 0);
		engine = fork();
		if (!engine) {
			struct rt_engine *e = rig_open(paths[i], 0, 0);

			rig_arm(e, &t, &point, 1);
			(void)!write(ready[1], "", 1);
			pause();
			_exit(0);
		}
		assert_int_equal(read(ready[0], &c, 1), 1);
		assert_int_equal(rig_peek(t.pid, address), 0xcc);
		kill(engine, SIGKILL);
		waitpid(engine, &status, 0);
		/* the kernel does it while the engine dies, or just after */
		for (int k = 0; k < 3000 && rig_peek(t.pid, address) != before; k++)
			usleep(1000);
		assert_int_equal(rig_peek(t.pid, address), before);
		rig_continue(&t);
		assert_int_equal(rig_wait(&t), 0);
		/* definitions of the dead are removed by the next one */
		assert_ok(rt_tracefs_cleanup_stale(AT_FDCWD, &busy));
		assert_int_equal(busy, 0);
		snprintf(group, sizeof(group), "grep -q reftrace_%d_ /sys/kernel/tracing/uprobe_events", engine);
		f = popen(group, "r");
		assert_true(WEXITSTATUS(pclose(f)) == 1);
		close(ready[0]);
		close(ready[1]);
	}
}

/* Somebody's perf event keeps a definition of the dead: said, so that one may try again. */
TEST(stale_definition_in_use)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .disabled = 1 };
	struct rt_point point = rig_point(program(), 1, "obj_get", 0);
	char path[128];
	unsigned long long id;
	uint64_t start;
	pid_t owner = fork(); /* lives until the event is open: any reftrace on this machine removes what is stale */
	size_t busy;
	int fd;
	FILE *f;

	if (!owner) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	assert_true(rt_tracefs_start_time((uint32_t)owner, &start));
	f = fopen("/sys/kernel/tracing/uprobe_events", "r+");
	assert_non_null(f);
	fprintf(f, "p:reftrace_%d_%llu/e %s:0x%llx\n", owner, (unsigned long long)start, program()->path,
		(unsigned long long)point.offset.v);
	assert_int_equal(fclose(f), 0);
	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/reftrace_%d_%llu/e/id", owner,
		 (unsigned long long)start);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llu", &id), 1);
	fclose(f);
	attr.config = id;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	assert_true(fd >= 0);
	kill(owner, SIGKILL);
	waitpid(owner, NULL, 0);
	assert_ok(rt_tracefs_cleanup_stale(AT_FDCWD, &busy));
	assert_int_equal(busy, 1);
	assert_int_equal(access(path, F_OK), 0);
	close(fd);
	assert_ok(rt_tracefs_cleanup_stale(AT_FDCWD, &busy));
	assert_int_equal(busy, 0);
	assert_int_equal(access(path, F_OK), -1);
}

TEST(stop_at_stops_the_thread)
{
	for (int i = 0; i < 2; i++) {
		struct rt_engine *e = rig_open(paths[i], 0, 0);
		struct target t = rig_start(program(), "hook", 2);
		struct rt_point point = rig_point(program(), 1, "hook", 0);
		char path[64];
		struct rt_arm arm = { .pid = t.pid,
				      .path = path,
				      .bias = t.bias,
				      .stop_at = point.address,
				      .stop_offset = point.offset };
		int status;

		snprintf(path, sizeof(path), "/proc/%d/exe", t.pid);
		assert_ok(e->ops->extend(e, &arm, NULL, NULL));
		rig_continue(&t);
		for (int k = 0; k < 2; k++) {
			assert_int_equal(waitpid(t.pid, &status, WUNTRACED), t.pid);
			assert_true(WIFSTOPPED(status));
			assert_int_equal(WSTOPSIG(status), SIGSTOP);
			rig_continue(&t);
		}
		assert_int_equal(rig_wait(&t), 0);
		e->ops->close(e);
	}
	assert_true(rt_engine_is_stop(0x80));
	assert_false(rt_engine_is_stop(SI_USER));
}

TEST(forgotten_process_is_silent_and_named_anew)
{
	struct rt_engine *e = rig_open(RT_ATTACH_AUTO, 0, 0);
	struct rt_point point = rig_point(program(), 1, "obj_get", 0);
	struct target t = rig_start(program(), "calls", 5);
	const struct rt_point *list[] = { &point };
	struct rt_arm arm = { .pid = t.pid,
			      .wire_pid = RT_PID_MAKE(t.pid, 3),
			      .path = program()->path,
			      .points = list,
			      .point_count = 1,
			      .bias = t.bias };
	struct records r;

	rig_records_init(&r);
	assert_int_equal(rig_arm(e, &t, &point, 1).failures, 0);
	e->ops->forget(e, t.pid);
	assert_ok(e->ops->extend(e, &arm, NULL, NULL));
	assert_ok(e->ops->extend(e, &arm, NULL, NULL)); /* twice is once */
	rig_continue(&t);
	assert_int_equal(rig_wait(&t), 0);
	assert_ok(e->ops->stop(e, &r.sink));
	assert_int_equal(r.events.len, 5);
	assert_int_equal(r.events.data[0].head.pid, RT_PID_MAKE(t.pid, 3));
	assert_int_equal(r.stacks.data[0]->head.pid, RT_PID_MAKE(t.pid, 3));
	e->ops->close(e);
	rig_records_deinit(&r);
}

TEST(gone_process_and_bad_points_are_errors)
{
	struct rt_engine *e = rig_open(RT_ATTACH_MULTI, 0, 0);
	struct target t = rig_start(program(), "calls", 1);
	struct rt_point point = rig_point(program(), 1, "obj_get", 0);
	const struct rt_point *list[] = { &point };
	struct rt_arm arm = { .pid = t.pid, .path = program()->path, .points = list, .point_count = 1, .bias = t.bias };
	struct rt_engine_options options = { .root_fd = AT_FDCWD };
	struct arming a;

	point.reg = RT_REG_NONE;
	a = rig_arm(e, &t, &point, 1);
	assert_int_equal(a.failures, 1);
	assert_non_null(strstr(a.last.why, "register"));
	kill(t.pid, SIGKILL);
	rig_wait(&t);
	e->ops->forget(e, t.pid);
	point.reg = RT_REG_RDI;
	assert_code(e->ops->extend(e, &arm, NULL, NULL), RT_E_NO_PROCESS);
	e->ops->close(e);
	assert_ok(rt_engine_uprobe.probe(&options));
	options.attach = RT_ATTACH_TRACEFS;
	assert_ok(rt_engine_uprobe.probe(&options));
}

TEST(without_privilege_the_missing_one_is_named)
{
	struct rt_engine_options options = { .root_fd = AT_FDCWD };
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct rt_error *err;

		if (setgid(65534) || setuid(65534))
			_exit(1);
		err = rt_engine_uprobe.probe(&options);
		if (!err || err->code != RT_E_PRIVILEGE || !strstr(err->message, "CAP_BPF") || !err->fix ||
		    !strstr(err->fix, "sudo"))
			_exit(2);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

TEST_MAIN();
