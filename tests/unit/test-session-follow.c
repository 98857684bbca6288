/* SPDX-License-Identifier: GPL-2.0-only */
/* Children, threads and new images: each is armed before it runs, each end is told. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/rig.h"
#include "test.h"

#define SPEC "type=obj get=obj_get:1 put=obj_put:1"
#define HEAD \
	"#define _GNU_SOURCE\n#include <pthread.h>\n#include <sched.h>\n#include <signal.h>\n#include <spawn.h>\n" \
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/syscall.h>\n" \
	"#include <sys/wait.h>\n#include <unistd.h>\n" \
	"struct obj { int refs; } o = { 1 };\n" \
	"__attribute__((noinline)) void obj_get(struct obj *p) { p->refs++; }\n" \
	"__attribute__((noinline)) void obj_put(struct obj *p) { p->refs--; }\n" \
	"extern char **environ;\n"

static struct rig rig;

static int run(const char *body, const char *arg)
{
	const char *command[3] = { NULL, arg, NULL };
	static char source[20000];
	int status = -1;

	snprintf(source, sizeof(source), "%s%s", HEAD, body);
	rig_build(&rig, "prog", source, "");
	command[0] = rig_path(&rig, "prog");
	assert_ok(rig_run(&rig, command));
	assert_true(rt_session_status(rig.session, &status));
	return status;
}

static void end(void)
{
	int left;

	rig_end_session(&rig);
	rig_deinit(&rig);
	left = waitpid(-1, NULL, WNOHANG | __WALL);
	if (left != -1)
		fail_msg("a child is left: %d", left);
}

static const struct rt_wire_task *task(enum rt_wire_kind kind, uint32_t pid, size_t nth)
{
	const struct rt_wire_task *t = rig_record(&rig, kind, pid, nth);

	assert_non_null(t);
	return t;
}

TEST(forked_child)
{
	uint32_t pid, child;

	rig_init(&rig, SPEC);
	assert_int_equal(WEXITSTATUS(run("int main(void) { int st; if (!fork()) { obj_get(&o); _exit(4); }\n"
					 "wait(&st); return WEXITSTATUS(st) + 1; }",
					 NULL)),
			 5);
	pid = rt_session_pid(rig.session);
	assert_int_equal(rig_count(&rig, RT_WIRE_FORK, pid), 1);
	child = task(RT_WIRE_FORK, pid, 0)->other;
	assert_int_equal(rig_call(&rig, RIG_EXTEND, child, "prog")->points, 2);
	assert_non_null(rig_call(&rig, RIG_STOP_AT, child, NULL));
	/* armed after the child was told of, and before it ended */
	assert_true(rig_call(&rig, RIG_EXTEND, child, "prog")->at > rig_index(&rig, task(RT_WIRE_FORK, pid, 0)));
	assert_true(rig_call(&rig, RIG_EXTEND, child, "prog")->at <= rig_index(&rig, task(RT_WIRE_EXIT, child, 0)));
	assert_int_equal(WEXITSTATUS(task(RT_WIRE_EXIT, child, 0)->value), 4);
	assert_true(rig_index(&rig, task(RT_WIRE_EXIT, child, 0)) < rig_index(&rig, task(RT_WIRE_EXIT, pid, 0)));
	assert_non_null(rig_call(&rig, RIG_FORGET, child, NULL));
	/* the points are the same ones: planned once */
	assert_int_equal(rig_count(&rig, RT_WIRE_POINT, 0), 2);
	end();
}

TEST(spawned_program)
{
	uint32_t pid, child;

	rig_init(&rig, SPEC);
	assert_int_equal(
		WEXITSTATUS(run("int main(int c, char **v) { if (c > 1) { obj_get(&o); return 6; } pid_t p; int st;\n"
				"char *a[] = { v[0], \"again\", 0 }; posix_spawn(&p, v[0], 0, 0, a, environ);\n"
				"waitpid(p, &st, 0); return WEXITSTATUS(st); }",
				NULL)),
		6);
	pid = rt_session_pid(rig.session);
	child = task(RT_WIRE_FORK, pid, 0)->other;
	assert_int_equal(task(RT_WIRE_EXEC, 0, 0)->head.pid, RT_PID_MAKE(child, 1));
	assert_true(rig_count(&rig, RT_WIRE_MAP, RT_PID_MAKE(child, 1)) >= 3);
	assert_int_equal(WEXITSTATUS(task(RT_WIRE_EXIT, RT_PID_MAKE(child, 1), 0)->value), 6);
	assert_int_equal(rig_count(&rig, RT_WIRE_POINT, 0), 2);
	end();
}

TEST(exec_in_place_and_script)
{
	uint32_t pid;

	rig_init(&rig, SPEC);
	assert_int_equal(WEXITSTATUS(run("int main(int c, char **v) { char f[300]; if (c > 2) return 9;\n"
					 "snprintf(f, 300, \"%s.sh\", v[0]); FILE *s = fopen(f, \"w\");\n"
					 "fprintf(s, \"#!/bin/sh\\nexec %s x y\\n\", v[0]); fclose(s); char m[400];\n"
					 "snprintf(m, 400, \"chmod +x %s\", f); if (system(m)) return 1;\n"
					 "execl(f, f, (char *)0); return 1; }",
					 NULL)),
			 9);
	pid = rt_session_pid(rig.session);
	/* the script's interpreter, then the program again */
	assert_non_null(rig_record(&rig, RT_WIRE_EXEC, RT_PID_MAKE(pid, 1), 0));
	assert_non_null(rig_record(&rig, RT_WIRE_EXEC, RT_PID_MAKE(pid, 2), 0));
	assert_int_equal(WEXITSTATUS(task(RT_WIRE_EXIT, RT_PID_MAKE(pid, 2), 0)->value), 9);
	end();
}

TEST(threads_and_exec_from_a_thread)
{
	uint32_t pid;

	rig_init(&rig, SPEC);
	assert_int_equal(
		WEXITSTATUS(
			run("static char *self; static void *idle(void *a) { for (;;) pause(); return a; }\n"
			    "static void *go(void *a) { execl(self, self, \"again\", (char *)0); return a; }\n"
			    "static void *brief(void *a) { obj_get(&o); return a; }\n"
			    "int main(int c, char **v) { pthread_t t; if (c > 1) return 8; self = v[0];\n"
			    "for (int i = 0; i < 20; i++) { pthread_create(&t, 0, brief, 0); pthread_join(t, 0); }\n"
			    "for (int i = 0; i < 3; i++) pthread_create(&t, 0, idle, 0);\n"
			    "pthread_create(&t, 0, go, 0); for (;;) pause(); }",
			    NULL)),
		8);
	pid = rt_session_pid(rig.session);
	assert_true(rig_count(&rig, RT_WIRE_THREAD, pid) >= 24 + 20);
	assert_int_equal(rig_count(&rig, RT_WIRE_EXEC, RT_PID_MAKE(pid, 1)), 1);
	assert_int_equal(rig_count(&rig, RT_WIRE_EXIT, 0), 1);
	assert_int_equal(rig_count(&rig, RT_WIRE_FORK, 0), 0);
	end();
}

static bool asked;

static void one_object(struct rig *r, uint32_t pid, bool (*visit)(const struct rt_live *live, void *arg), void *arg)
{
	asked = true;
	visit(&(struct rt_live){ 0x1000, 1, RT_COUNTER_UNKNOWN, 0, 8 }, arg);
}

/* The first thread ends early; the memory is looked through when the last one does. */
TEST(first_thread_leaves)
{
	rig_init(&rig, SPEC);
	asked = false;
	rig.on_live = one_object;
	assert_int_equal(run("static void *last(void *a) { char t[300]; do { char f[64]; sprintf(f, \"/proc/%d/stat\", "
			     "getpid());\n"
			     "FILE *s = fopen(f, \"r\"); t[fread(t, 1, 299, s)] = 0; fclose(s); sched_yield(); } while "
			     "(!strstr(t, \") Z\"));\n"
			     "return a; }\n"
			     "int main(void) { pthread_t t; pthread_create(&t, 0, last, 0); pthread_exit(0); }",
			     NULL),
			 0);
	assert_true(asked);
	assert_int_equal(rig_count(&rig, RT_WIRE_MARK, 0), 1);
	assert_int_equal(task(RT_WIRE_MARK, 0, 0)->value, RT_MARK_CENSUS);
	end();
}

TEST(threads_at_the_end_are_stopped_for_the_census)
{
	rig_init(&rig, SPEC);
	asked = false;
	rig.on_live = one_object;
	assert_int_equal(
		WEXITSTATUS(run(
			"static void *spin(void *a) { for (;;) sched_yield(); return a; }\n"
			"int main(void) { pthread_t t; for (int i = 0; i < 4; i++) pthread_create(&t, 0, spin, 0);\n"
			"exit(3); }",
			NULL)),
		3);
	assert_true(asked);
	assert_int_equal(task(RT_WIRE_MARK, 0, 0)->value, RT_MARK_CENSUS);
	end();
}

TEST(daemon_is_followed_to_its_end)
{
	rig_init(&rig, SPEC);
	assert_int_equal(
		run("int main(int c, char **v) { if (fork()) return 0; setsid(); if (fork()) _exit(0);\n"
		    "while (getppid() != 1) usleep(1000); obj_get(&o); fclose(fopen(v[1], \"w\")); return 11; }",
		    rig_path(&rig, "mark")),
		0);
	assert_int_equal(access(rig_path(&rig, "mark"), F_OK), 0);
	assert_int_equal(rig_count(&rig, RT_WIRE_FORK, 0), 2);
	assert_int_equal(rig_count(&rig, RT_WIRE_EXIT, 0), 3);
	/* whichever of the three the machine lets end last */
	assert_int_equal(WEXITSTATUS(task(RT_WIRE_EXIT, task(RT_WIRE_FORK, 0, 1)->other, 0)->value), 11);
	end();
}

TEST(many_short_children)
{
	rig_init(&rig, SPEC);
	assert_int_equal(run("int main(void) { for (int i = 0; i < 300; i++) { if (!fork()) _exit(i & 1); if (i % 8 == "
			     "0) while (wait(0) > 0); }\n"
			     "while (wait(0) > 0); return 0; }",
			     NULL),
			 0);
	assert_int_equal(rig_count(&rig, RT_WIRE_FORK, 0), 300);
	assert_int_equal(rig_count(&rig, RT_WIRE_EXIT, 0), 301);
	end();
}

TEST(children_that_kill_and_are_killed)
{
	rig_init(&rig, SPEC);
	assert_int_equal(run("int main(void) { for (int i = 0; i < 30; i++) { pid_t p = fork(); if (!p) { setpgid(0, "
			     "0); for (;;) if "
			     "(fork() == 0) pause(); else usleep(100); }\n"
			     "usleep(500 * (i % 5)); kill(-p, SIGKILL); kill(p, SIGKILL); waitpid(p, 0, "
			     "0); kill(-p, SIGKILL); } return 0; }",
			     NULL),
			 0);
	/* children whose parent died before it could tell of them are taken in later */
	assert_int_equal(rig_count(&rig, RT_WIRE_FORK, 0) + 1 + rig_count(&rig, RT_WIRE_MARK, 0),
			 rig_count(&rig, RT_WIRE_EXIT, 0));
	end();
}

TEST(not_followed)
{
	rig_init(&rig, SPEC);
	rig.options.no_follow = true;
	assert_int_equal(
		WEXITSTATUS(run("int main(void) { int st, n = 0; if (!fork()) { execl(\"/bin/sh\", \"sh\", \"-c\", "
				"\"exit 4\", (char *)0); }\n"
				"wait(&st); n += WEXITSTATUS(st); pid_t p = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);\n"
				"if (!p) _exit(3); waitpid(p, &st, 0); p = syscall(SYS_clone, 0, 0, 0, 0, 0); if "
				"(!p) _exit(2);\n"
				"waitpid(p, &st, __WALL); return n + WEXITSTATUS(st); }",
				NULL)),
		6);
	assert_int_equal(rig_count(&rig, RT_WIRE_FORK, 0), 0);
	assert_int_equal(rig_count(&rig, RT_WIRE_EXIT, 0), 1);
	assert_int_equal(rig_count(&rig, RT_WIRE_EXEC, 0), 0);
	end();
}

/* Records of the engine carry the generation of the image that made them. */
static void queue_event(struct rig *r, const struct rt_arm *arm)
{
	if (!arm->point_count)
		return;
	r->queued = (struct rt_wire_event){
		.head = { .size = sizeof(r->queued),
			  .kind = RT_WIRE_EVENT,
			  .op = RT_OP_GET,
			  .pid = arm->pid,
			  .tid = arm->pid },
		.object = 1,
		.point = 1,
	};
}

TEST(records_carry_the_generation)
{
	uint32_t pid;

	rig_init(&rig, SPEC);
	rig.on_extend = queue_event;
	assert_int_equal(
		run("int main(int c, char **v) { if (c == 1) execl(v[0], v[0], \"x\", (char *)0); return 0; }", NULL),
		0);
	pid = rt_session_pid(rig.session);
	assert_int_equal(rig_count(&rig, RT_WIRE_EVENT, pid), 1);
	assert_int_equal(rig_count(&rig, RT_WIRE_EVENT, RT_PID_MAKE(pid, 1)), 1);
	assert_true(rig_index(&rig, task(RT_WIRE_EVENT, pid, 0)) < rig_index(&rig, task(RT_WIRE_EXEC, 0, 0)));
	assert_int_equal(rig_call(&rig, RIG_EXTEND, pid, "prog")->wire_pid, pid);
	end();
}

TEST_MAIN();
