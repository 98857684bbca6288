/* SPDX-License-Identifier: GPL-2.0-only */
/* Launching: what is found, planned and armed before the program runs; exit statuses; signals; faults. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/rig.h"
#include "test.h"

#define SPEC "type=obj new=obj_new:ret get=obj_get:1 put=obj_put:1"

static const char program[] =
	"#include <stdlib.h>\n#include <stdio.h>\n#include <string.h>\n#include <signal.h>\n"
	"#include <unistd.h>\n#include <dlfcn.h>\n#include <fcntl.h>\n"
	"struct obj { int refs; char b[60]; };\n"
	"#define N __attribute__((noinline))\n"
	"N struct obj *obj_new(void) { struct obj *o = calloc(1, sizeof *o); o->refs = 1; return o; }\n"
	"N void obj_get(struct obj *o) { o->refs++; }\n"
	"N void obj_put(struct obj *o) { if (!--o->refs) free(o); }\n"
	"struct obj *kept;\n"
	"static volatile int got; static void on(int s, siginfo_t *i, void *u) { got = i->si_value.sival_int + "
	"i->si_code; }\n"
	"N void plant(const char *file) { kept = obj_new(); struct obj *lost = obj_new(); FILE *f = fopen(file, "
	"\"w\");\n"
	"  fprintf(f, \"%lu %lu\", (unsigned long)kept ^ 0x5555555555555555, (unsigned long)lost ^ "
	"0x5555555555555555); fclose(f); }\n"
	"int main(int argc, char **argv) {\n"
	"  const char *what = argc > 1 ? argv[1] : \"\"; obj_put(obj_new());\n"
	"  if (!strcmp(what, \"exit\")) return 7;\n"
	"  if (!strcmp(what, \"abort\")) abort();\n"
	"  if (!strcmp(what, \"kill\")) kill(getpid(), SIGKILL);\n"
	"  if (!strcmp(what, \"touch\")) close(creat(argv[2], 0644));\n"
	"  if (!strcmp(what, \"queue\")) { struct sigaction a = { .sa_sigaction = on, .sa_flags = SA_SIGINFO };\n"
	"    union sigval v = { .sival_int = 42 }; sigaction(SIGUSR1, &a, 0); sigqueue(getpid(), SIGUSR1, v);\n"
	"    return got == 42 + SI_QUEUE ? 0 : 1; }\n"
	"  if (!strcmp(what, \"stop\")) { int p = getpid(); if (!fork()) { char t[200]; int n; do {\n"
	"      char f[64]; sprintf(f, \"/proc/%d/stat\", p); int d = open(f, O_RDONLY); n = read(d, t, 199); t[n] = 0; "
	"close(d); usleep(2000);\n"
	"      } while (!strstr(t, \") T\") && !strstr(t, \") t\")); kill(p, SIGCONT); _exit(0); }\n"
	"    raise(SIGSTOP); return 5; }\n"
	"  if (!strcmp(what, \"plug\")) { void *h = dlopen(argv[2], RTLD_NOW); if (!h) return 9; dlclose(h);\n"
	"    h = dlopen(argv[2], RTLD_NOW); return h ? 0 : 9; }\n"
	"  if (!strcmp(what, \"live\")) { plant(argv[2]); return 0; }\n"
	"  if (!strcmp(what, \"fds\")) { int n = 0; for (int i = 3; i < 200; i++) n += fcntl(i, F_GETFD) >= 0; return "
	"n; }\n"
	"  if (!strcmp(what, \"mask\")) { sigset_t s; sigprocmask(0, 0, &s); int n = 0; for (int i = 1; i < 65; i++) n "
	"+= sigismember(&s, i);\n"
	"    struct sigaction a; sigaction(SIGCHLD, 0, &a); return n + (a.sa_handler != SIG_DFL); }\n"
	"  if (!strcmp(what, \"env\")) return strcmp(getenv(\"RT_A\"), \"1=2\") || getenv(\"RT_B\");\n"
	"  return 0; }\n";

static struct rig rig;

static int run(const char *a, const char *b, const char *c)
{
	const char *command[] = { rig_path(&rig, "prog"), a, b, c, NULL };
	int status = -1;

	assert_ok(rig_run(&rig, command));
	assert_true(rt_session_status(rig.session, &status));
	return status;
}

static void begin(const char *spec)
{
	rig_init(&rig, spec);
	rig_build(&rig, "prog", program, "-ldl");
}

static void end(void)
{
	rig_end_session(&rig);
	rig_deinit(&rig);
	/* nothing of ours may be left: no child, no guardian */
	int left = waitpid(-1, NULL, WNOHANG | __WALL);

	if (left != -1)
		fail_msg("a child is left: %d", left);
}

/* Points that count; others only tell who hands objects on. */
static size_t operations(void)
{
	size_t n = 0;

	for (size_t i = 0; i < rig.record_count; i++)
		n += rig.records[i]->kind == RT_WIRE_POINT && rig.records[i]->op != RT_OP_MOVE;
	return n;
}

TEST(points_are_armed_before_the_program_runs)
{
	const struct rt_wire_module *module;
	const struct rig_call *armed;
	uint32_t pid;

	begin(SPEC);
	assert_int_equal(WEXITSTATUS(run("exit", NULL, NULL)), 7);
	pid = rt_session_pid(rig.session);
	module = rig_record(&rig, RT_WIRE_MODULE, 0, 0);
	assert_non_null(module);
	assert_string_equal(module->path, rig_path(&rig, "prog"));
	assert_true(module->flags & RT_MODULE_MAIN);
	assert_int_equal(module->build_id_size, 20);
	assert_int_equal(rig_count(&rig, RT_WIRE_TYPE, 0), 1);
	assert_string_equal(((const struct rt_wire_type *)rig_record(&rig, RT_WIRE_TYPE, 0, 0))->name, "obj");
	assert_int_equal(operations(), 3);
	assert_true(rig_count(&rig, RT_WIRE_MAP, pid) >= 3);
	armed = rig_call(&rig, RIG_EXTEND, pid, "prog");
	assert_non_null(armed);
	assert_int_equal(armed->points, rig_count(&rig, RT_WIRE_POINT, 0));
	assert_int_equal(armed->wire_pid, pid);
	assert_non_null(rig_call(&rig, RIG_STOP_AT, pid, "ld-linux-x86-64.so.2"));
	/* the end is the last that is told, and was seen once */
	assert_int_equal(rig_count(&rig, RT_WIRE_EXIT, 0), 1);
	assert_int_equal(rig_index(&rig, rig_record(&rig, RT_WIRE_EXIT, pid, 0)), rig.record_count - 1);
	assert_int_equal(WEXITSTATUS(((const struct rt_wire_task *)rig_record(&rig, RT_WIRE_EXIT, pid, 0))->value), 7);
	assert_non_null(rig_call(&rig, RIG_FORGET, pid, NULL));
	assert_string_equal(rt_session_pairs(rig.session),
			    "pairs: new obj_new, get obj_get, put obj_put -> struct obj  (-P)");
	end();
}

TEST(static_program)
{
	begin(SPEC);
	rig_build(&rig, "prog", program, "-static 2>/dev/null");
	assert_int_equal(WEXITSTATUS(run("exit", NULL, NULL)), 7);
	assert_non_null(rig_call(&rig, RIG_EXTEND, 0, "prog"));
	assert_null(rig_call(&rig, RIG_STOP_AT, 0, NULL));
	end();
}

TEST(families_are_found_without_being_told)
{
	begin(NULL);
	assert_int_equal(WEXITSTATUS(run("exit", NULL, NULL)), 7);
	assert_int_equal(operations(), 3);
	assert_string_equal(rt_session_pairs(rig.session),
			    "pairs: new obj_new, get obj_get, put obj_put -> struct obj  "
			    "(found by name and type; change: -P)");
	end();
}

TEST(ends_by_signals)
{
	begin(SPEC);
	assert_int_equal(WTERMSIG(run("abort", NULL, NULL)), SIGABRT);
	rig_end_session(&rig);
	assert_int_equal(WTERMSIG(run("kill", NULL, NULL)), SIGKILL);
	end();
}

TEST(signals_pass_unchanged)
{
	begin(SPEC);
	assert_int_equal(run("queue", NULL, NULL), 0);
	rig_end_session(&rig);
	assert_int_equal(WEXITSTATUS(run("stop", NULL, NULL)), 5);
	end();
}

TEST(mask_dispositions_and_fds_are_its_own)
{
	begin(SPEC);
	/* what the test was started with is not the session's */
	for (int fd = 3; fd < 1000; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	assert_int_equal(WEXITSTATUS(run("mask", NULL, NULL)), 0);
	rig_end_session(&rig);
	assert_int_equal(WEXITSTATUS(run("fds", NULL, NULL)), 0);
	end();
}

TEST(environment)
{
	static const char *const env[] = { "RT_A=1=2", "RT_B", NULL };

	begin(SPEC);
	setenv("RT_B", "x", 1);
	rig.options.env = env;
	assert_int_equal(WEXITSTATUS(run("env", NULL, NULL)), 0);
	unsetenv("RT_B");
	end();
}

TEST(program_that_cannot_be_started)
{
	const char *missing[] = { "/nonexistent/program", NULL };
	const char *refused[] = { "/etc/passwd", NULL };
	struct rt_error *err;
	int status;

	begin(SPEC);
	err = rig_run(&rig, missing);
	assert_non_null(err);
	assert_int_equal(err->code, RT_E_EXEC);
	assert_int_equal(err->errnum, 2);
	rt_error_free(err);
	assert_false(rt_session_status(rig.session, &status) && !status);
	rig_end_session(&rig);
	err = rig_run(&rig, refused);
	assert_non_null(err);
	assert_int_equal(err->code, RT_E_EXEC);
	assert_int_equal(err->errnum, 13);
	rt_error_free(err);
	end();
}

TEST(misspelt_function_ends_it_before_it_runs)
{
	const char *command[] = { NULL, "touch", NULL, NULL };
	struct rt_error *err;
	char file[200];

	begin("type=obj new=obj_new:ret get=obj_gett:1 put=obj_putt:1");
	snprintf(file, sizeof(file), "%s/ran", rig.dir);
	command[0] = rig_path(&rig, "prog");
	command[2] = file;
	err = rig_run(&rig, command);
	assert_non_null(err);
	assert_int_equal(err->code, RT_E_NO_FUNCTION);
	assert_non_null(strstr(err->message, "obj_gett"));
	rt_error_free(err);
	assert_int_not_equal(access(file, F_OK), 0);
	end();
}

TEST(engine_that_cannot_arm_ends_it_before_it_runs)
{
	const char *command[] = { NULL, "touch", NULL, NULL };
	char file[200];

	begin(SPEC);
	snprintf(file, sizeof(file), "%s/ran", rig.dir);
	command[0] = rig_path(&rig, "prog");
	command[2] = file;
	rig.refuse = "no way";
	assert_code(rig_run(&rig, command), RT_E_PRIVILEGE);
	assert_int_not_equal(access(file, F_OK), 0);
	end();
}

static const char plugin[] =
	"#include <fcntl.h>\n#include <unistd.h>\n"
	"struct plug { int refs; };\n"
	"void plug_get(struct plug *p) { p->refs++; }\nvoid plug_put(struct plug *p) { p->refs--; }\n"
	"__attribute__((constructor)) static void up(void) { close(creat(MARK, 0644)); }\n";

static void before_constructor(struct rig *r, const struct rt_arm *arm)
{
	if (arm->point_count == 2)
		assert_int_not_equal(access(rig_path(r, "constructed"), F_OK), 0);
}

TEST(plugin_is_armed_before_its_constructor)
{
	char flags[300], path[200];
	uint32_t pid;

	begin(SPEC "\ntype=plug get=plug_get:1 put=plug_put:1");
	snprintf(flags, sizeof(flags), "-shared -fPIC -DMARK='\"%s/constructed\"'", rig.dir);
	rig_build(&rig, "plug.so", plugin, flags);
	rig.on_extend = before_constructor;
	snprintf(path, sizeof(path), "%s/plug.so", rig.dir);
	assert_int_equal(run("plug", path, NULL), 0);
	pid = rt_session_pid(rig.session);
	assert_int_equal(access(rig_path(&rig, "constructed"), F_OK), 0);
	assert_non_null(rig_call(&rig, RIG_EXTEND, pid, "plug.so"));
	assert_int_equal(operations(), 5);
	/* mapped, gone, mapped again: the second one needs no arming */
	assert_true(rig_count(&rig, RT_WIRE_UNMAP, pid) >= 1);
	end();
}

/* DT_NEEDED libraries as well. */
TEST(library_is_armed_before_its_constructor)
{
	char flags[300];

	begin("type=plug get=plug_get:1 put=plug_put:1");
	snprintf(flags, sizeof(flags), "-shared -fPIC -DMARK='\"%s/constructed\"'", rig.dir);
	rig_build(&rig, "libplug.so", plugin, flags);
	rig_build(
		&rig, "prog",
		"struct plug { int refs; } p; void plug_get(struct plug *); int main(void) { plug_get(&p); return 3; }",
		"-L. -lplug -Wl,-rpath,'$ORIGIN'");
	rig.on_extend = before_constructor;
	assert_int_equal(WEXITSTATUS(run(NULL, NULL, NULL)), 3);
	assert_int_equal(access(rig_path(&rig, "constructed"), F_OK), 0);
	assert_int_equal(rig_count(&rig, RT_WIRE_POINT, 0), 2);
	end();
}

static void two_objects(struct rig *r, uint32_t pid, bool (*visit)(const struct rt_live *live, void *arg), void *arg)
{
	const char *text = rig_file(r, "objects");
	unsigned long kept = 0, lost = 0;

	if (sscanf(text, "%lu %lu", &kept, &lost) != 2)
		return;
	visit(&(struct rt_live){ kept ^ 0x5555555555555555, 1, 0, 4, 64 }, arg);
	visit(&(struct rt_live){ lost ^ 0x5555555555555555, 1, 0, 4, 64 }, arg);
}

/* main() leaves a frame full of pointers, and exit() runs on top of it. */
TEST(dead_frames_under_exit_hold_nothing)
{
	static const char stale[] =
		"#include <stdio.h>\n#include <stdlib.h>\nstruct obj { int refs; char b[60]; };\n"
		"__attribute__((noinline)) struct obj *obj_new(void) { return calloc(1, sizeof(struct obj)); }\n"
		"__attribute__((noinline)) void obj_put(struct obj *o) { free(o); }\n"
		"int main(int c, char **v) { struct obj *volatile stale[64]; FILE *f = fopen(v[2], \"w\");\n"
		"for (int i = 0; i < 64; i++) stale[i] = i ? stale[0] : obj_new();\n"
		"fprintf(f, \"%lu 1\", (unsigned long)stale[0] ^ 0x5555555555555555); fclose(f); return c == 9 ? "
		"(obj_put(0), 1) : 0; }";

	begin("type=obj new=obj_new:ret put=obj_put:1");
	rig_build(&rig, "prog", stale, "");
	rig.on_live = two_objects;
	assert_int_equal(run("live", rig_path(&rig, "objects"), NULL), 0);
	assert_int_equal(rig_count(&rig, RT_WIRE_HELD, 0), 1);
	assert_int_equal(((const struct rt_wire_held *)rig_record(&rig, RT_WIRE_HELD, 0, 0))->where, RT_HOLDER_NONE);
	end();
}

TEST(census_at_the_exit)
{
	const struct rt_wire_held *held;
	uint32_t pid;

	begin(SPEC);
	rig.on_live = two_objects;
	assert_int_equal(run("live", rig_path(&rig, "objects"), NULL), 0);
	pid = rt_session_pid(rig.session);
	assert_int_equal(rig_count(&rig, RT_WIRE_HELD, pid), 2);
	assert_int_equal(rig_count(&rig, RT_WIRE_COUNT, pid), 2);
	for (size_t i = 0; i < 2; i++) {
		held = rig_record(&rig, RT_WIRE_HELD, pid, i);
		assert_true(held->where == RT_HOLDER_GLOBAL || held->where == RT_HOLDER_NONE);
		assert_true(rig_index(&rig, held) < rig_index(&rig, rig_record(&rig, RT_WIRE_EXIT, pid, 0)));
	}
	assert_int_not_equal(((const struct rt_wire_held *)rig_record(&rig, RT_WIRE_HELD, pid, 0))->where, held->where);
	end();
}

TEST_MAIN();
