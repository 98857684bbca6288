/* SPDX-License-Identifier: GPL-2.0-only */
/* Attaching, letting go, being killed: nothing may be left in the target. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "session/rig.h"
#include "test.h"

#define SPEC "type=obj get=obj_get:1 put=obj_put:1"

static const char server[] =
	"#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <fcntl.h>\n#include <pthread.h>\n#include <signal.h>\n"
	"#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n#include "
	"<sys/wait.h>\n"
	"struct obj { int refs; } o = { 1 };\n"
	"__attribute__((noinline)) void obj_get(struct obj *p) { p->refs++; }\n"
	"__attribute__((noinline)) void obj_put(struct obj *p) { p->refs--; }\n"
	"static volatile long beats; static void *work(void *a) { for (;;) { beats++; usleep(500); } return a; }\n"
	"static void beat(int s) { char t[64]; int n = snprintf(t, 64, \"%ld\\n\", beats); if (write(1, t, n)) {} }\n"
	"static void stop(void) { siginfo_t i = { .si_signo = SIGSTOP, .si_code = SI_KERNEL };\n"
	"  syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGSTOP, &i); }\n"
	"int main(int argc, char **argv) { pthread_t t; struct sigaction a = { .sa_handler = beat, .sa_flags = "
	"SA_RESTART };\n"
	"  char what = argc > 1 ? argv[1][0] : 0; sigaction(SIGUSR1, &a, 0);\n"
	"  for (int i = 0; i < 3; i++) pthread_create(&t, 0, work, 0);\n"
	"  if (write(1, \"up\\n\", 3) != 3) return 1;\n"
	"  for (;;) { void *h = what == 'd' ? dlopen(\"libm.so.6\", RTLD_NOW) : 0; usleep(300);\n"
	"    if (what == '/' && access(argv[1], F_OK) == 0) { stop(); what = 0; }\n"
	"    if (h) dlclose(h); if (argc > 2) { if (!fork()) _exit(0); wait(0); } } }\n";

struct target {
	pid_t pid;
	FILE *out;
};

static struct rig rig;

static struct target start(const char *a, const char *b)
{
	struct target t;
	char line[64];
	int fds[2];

	rig_build(&rig, "server", server, "-ldl");
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	t.pid = fork();
	if (t.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], 1);
		execl(rig_path(&rig, "server"), "server", a, b, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	t.out = fdopen(fds[0], "r");
	assert_non_null(fgets(line, sizeof(line), t.out));
	return t;
}

static void finish(struct target *t)
{
	kill(t->pid, SIGKILL);
	assert_int_equal(waitpid(t->pid, NULL, 0), t->pid);
	fclose(t->out);
}

/* One line of the status of a thread. */
static void status_of(pid_t tid, const char *key, char *text, size_t size)
{
	char path[64], line[300];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "r");
	assert_non_null(f);
	text[0] = 0;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, strlen(key)))
			snprintf(text, size, "%s", line + strlen(key) + 2);
	}
	fclose(f);
}

static long beats(struct target *t)
{
	char line[64] = "";

	kill(t->pid, SIGUSR1);
	assert_non_null(fgets(line, sizeof(line), t->out));
	return strtol(line, NULL, 10);
}

/* Its threads go on (the count rises), nobody traces it, no stop is pending. */
static void assert_free(struct target *t, bool may_wait)
{
	char command[200], text[300];
	long first;

	snprintf(command, sizeof(command), "! grep -h '^TracerPid:' /proc/%d/task/*/status | grep -v '\t0$'", t->pid);
	assert_int_equal(system(command), 0);
	do /* after a kill the guardian may need a moment */
		status_of(t->pid, "State", text, sizeof(text));
	while (may_wait && (text[0] == 'T' || text[0] == 't'));
	assert_true(text[0] != 'T' && text[0] != 't');
	first = beats(t);
	while (beats(t) < first + 10)
		usleep(1000);
}

static void end(void)
{
	rig_end_session(&rig);
	rig_deinit(&rig);
	if (waitpid(-1, NULL, WNOHANG | __WALL) != -1)
		fail_msg("a child is left");
}

static void attach(pid_t pid)
{
	uint32_t pids[1] = { (uint32_t)pid };

	rig.options.pids = pids;
	rig.options.pid_count = 1;
	if (!rig.options.duration_ns)
		rig.options.duration_ns = 150000000;
	assert_ok(rig_run(&rig, NULL));
}

static void check_run(const char *a, const char *b)
{
	struct target t;
	int status;

	rig_init(&rig, SPEC);
	t = start(a, b);
	for (int i = 0; i < 3; i++) {
		attach(t.pid);
		assert_false(rt_session_status(rig.session, &status));
		assert_int_equal(rt_session_pid(rig.session), t.pid);
		assert_int_equal(rig_call(&rig, RIG_EXTEND, (uint32_t)t.pid, "server")->points, 2);
		rig_end_session(&rig);
		assert_free(&t, false);
	}
	assert_int_equal(((const struct rt_wire_task *)rig_record(&rig, RT_WIRE_MARK, (uint32_t)t.pid, 0))->value,
			 RT_MARK_ATTACH);
	assert_int_equal(rig_count(&rig, RT_WIRE_MARK, (uint32_t)t.pid), 6);
	finish(&t);
	end();
}

TEST(attach_and_let_go)
{
	check_run(NULL, NULL);
}

/* Stops of the linker's hook are on their way all the time. */
TEST(let_go_in_the_middle_of_dlopen)
{
	check_run("dl", NULL);
}

TEST(let_go_in_the_middle_of_forks)
{
	check_run("dl", "fork");
}

TEST(target_ends_while_attached)
{
	struct target t;
	pid_t killer;
	uint32_t pids[1];

	rig_init(&rig, SPEC);
	t = start(NULL, NULL);
	pids[0] = (uint32_t)t.pid;
	rig.options.pids = pids;
	rig.options.pid_count = 1;
	killer = fork();
	if (!killer) {
		char text[100] = "";

		do
			status_of(t.pid, "TracerPid", text, sizeof(text));
		while (text[0] == '0');
		kill(t.pid, SIGKILL);
		_exit(0);
	}
	assert_ok(rig_run(&rig, NULL));
	assert_int_equal(rig_count(&rig, RT_WIRE_EXIT, (uint32_t)t.pid), 1);
	/* unless the session's wait() had them */
	waitpid(killer, NULL, 0);
	waitpid(t.pid, NULL, 0);
	fclose(t.out);
	end();
}

static void stopped_stays_stopped(struct target *t)
{
	char text[100];
	int status;

	kill(t->pid, SIGSTOP);
	assert_int_equal(waitpid(t->pid, &status, WUNTRACED), t->pid);
	attach(t->pid);
	rig_end_session(&rig);
	do /* the kernel wakes a thread that is let go, and it stops again by itself: running for a moment */
		status_of(t->pid, "State", text, sizeof(text));
	while (text[0] == 'R');
	assert_int_equal(text[0], 'T');
	kill(t->pid, SIGCONT);
}

TEST(stopped_target_stays_stopped)
{
	struct target t;

	rig_init(&rig, SPEC);
	t = start(NULL, NULL);
	stopped_stays_stopped(&t);
	assert_free(&t, false);
	finish(&t);
	end();
}

TEST(refusals)
{
	uint32_t pids[1] = { 0 };
	struct rt_error *err;
	pid_t tracer;
	struct target t;
	char text[100];

	rig_init(&rig, SPEC);
	rig.options.pids = pids;
	rig.options.pid_count = 1;
	t = start(NULL, NULL);
	pids[0] = 4194303;
	assert_code(rig_run(&rig, NULL), RT_E_NO_PROCESS);
	rig_end_session(&rig);
	pids[0] = (uint32_t)getpid();
	assert_code(rig_run(&rig, NULL), RT_E_USAGE);
	rig_end_session(&rig);
	tracer = fork();
	if (!tracer) {
		prctl(PR_SET_NAME, "othertracer");
		ptrace(PTRACE_SEIZE, t.pid, 0, 0);
		for (;;)
			pause();
	}
	do
		status_of(t.pid, "TracerPid", text, sizeof(text));
	while (text[0] == '0');
	pids[0] = (uint32_t)t.pid;
	err = rig_run(&rig, NULL);
	assert_non_null(err);
	assert_int_equal(err->code, RT_E_TRACED);
	assert_non_null(strstr(err->message, "othertracer"));
	rt_error_free(err);
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	finish(&t);
	end();
}

static void die(struct rig *r)
{
	if (rig_count(r, RT_WIRE_MARK, 0) && r->ticks > 2)
		kill(getpid(), SIGKILL);
}

static void die_in_stop(struct rig *r, const struct rt_arm *arm)
{
	/* the second image is armed at a stop of its dynamic linker */
	if (!arm->stop_at.v && arm->point_count)
		kill(getpid(), SIGKILL);
}

static void say_attached(struct rig *r)
{
	close(creat(rig_path(r, "attached"), 0644));
}

static void wait_for_state(pid_t pid, char state)
{
	char text[100];

	do
		status_of(pid, "State", text, sizeof(text));
	while (text[0] != state);
}

/* The target reaches a stop that the engine asked for, and the session is killed before it hears of it. */
TEST(killed_before_it_hears_of_a_stop)
{
	struct target t;
	int status;
	pid_t pid;

	rig_init(&rig, SPEC);
	t = start(rig_path(&rig, "trigger"), NULL);
	pid = fork();
	if (!pid) {
		rig.on_tick = say_attached;
		rig.options.duration_ns = 10000000000u;
		attach(t.pid);
		_exit(1);
	}
	while (access(rig_path(&rig, "attached"), F_OK) != 0)
		usleep(1000);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	close(creat(rig_path(&rig, "trigger"), 0644));
	wait_for_state(t.pid, 't');
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_free(&t, true);
	finish(&t);
	end();
}

TEST(killed_while_attached)
{
	struct target t;
	int status;
	pid_t pid;

	rig_init(&rig, SPEC);
	t = start(NULL, NULL);
	pid = fork();
	if (!pid) {
		rig.on_tick = die;
		rig.options.duration_ns = 10000000000u;
		attach(t.pid);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_free(&t, true);
	finish(&t);
	end();
}

TEST(killed_at_a_stop)
{
	const char *command[] = { NULL, "dl", NULL };
	char line[64] = "";
	FILE *out;
	int status, fds[2];
	pid_t pid;

	rig_init(&rig, SPEC);
	rig_build(&rig, "server", server, "-ldl");
	command[0] = rig_path(&rig, "server");
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		rig.on_extend = die_in_stop;
		dup2(fds[1], 1);
		close(fds[0]);
		close(fds[1]);
		rt_error_free(rig_run(&rig, command));
		_exit(1);
	}
	close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	/* it says "up" only if it was let go on */
	out = fdopen(fds[0], "r");
	assert_non_null(fgets(line, sizeof(line), out));
	assert_string_equal(line, "up\n");
	fclose(out);
	snprintf(line, sizeof(line), "%s", rig.dir);
	{
		char kill_it[300];

		/* it is not our child: by the name of its file, which is in a directory of our own */
		snprintf(kill_it, sizeof(kill_it), "kill -9 $(fuser %s/server 2>/dev/null)", rig.dir);
		assert_int_equal(system(kill_it), 0);
	}
	end();
}

TEST_MAIN();
