/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a parameter is at an inlined instance: the program is run with a
 * breakpoint at each entry that was told, and the value found in the told place
 * must be the one that the program passed.
 */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "built.h"
#include "dwarf/dwarf.h"

static const char source[] =
	"#include <stdlib.h>\n"
	"struct obj { int refs; char pad[12]; struct obj *next; };\n"
	"struct obj objs[4];\n"
	"volatile int gets, sink;\n"
	"static inline struct obj *obj_get(struct obj *o)\n"
	"{\n"
	"	gets = gets + 1;\n"
	"	o->refs++;\n"
	"	return o;\n"
	"}\n"
	"static inline struct obj *outer_get(int unused, struct obj *o)\n"
	"{\n"
	"	return obj_get(o);\n"
	"}\n"
	"__attribute__((noinline)) int plain(struct obj *o) { return obj_get(o)->refs; }\n"
	"__attribute__((noinline)) int member(struct obj *o) { obj_get(o->next); return o->refs; }\n"
	"__attribute__((noinline)) int indexed(int i) { sink = i; return obj_get(&objs[i])->refs; }\n"
	"__attribute__((noinline)) int looped(struct obj *o, int n)\n"
	"{ for (int i = 0; i < n; i++) { sink = i; obj_get(o + i); } return n; }\n"
	"__attribute__((noinline)) int nested(int a, struct obj *o) { sink = a; return outer_get(a, o)->refs + a; }\n"
	"__attribute__((noinline)) int fixed(void) { return obj_get(&objs[2])->refs; }\n"
	"__attribute__((noinline)) int busy(struct obj *a, struct obj *b, struct obj *c, int n)\n"
	"{ int r = plain(a); obj_get(b); r += plain(c) * n; obj_get(c); r += plain(b); obj_get(a); return r + n; }\n"
	"int main(void)\n"
	"{\n"
	"	for (int i = 0; i < 4; i++) objs[i].next = &objs[(i + 1) & 3];\n"
	"	plain(&objs[1]); member(&objs[3]); indexed(2); looped(objs, 4); nested(7, &objs[1]); fixed();\n"
	"	busy(&objs[0], &objs[1], &objs[2], 5);\n"
	"	return gets;\n"
	"}\n";

struct fixture_run {
	unsigned located, hits, gets;
	uint64_t objs; /* address of objs */
};

static uint64_t reg_value(const struct user_regs_struct *r, unsigned reg)
{
	/* by DWARF number */
	const unsigned long long values[] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp,
					      r->r8,  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15 };

	assert_true(reg < 16);
	return values[reg];
}

static void check_hit(pid_t pid, const struct user_regs_struct *regs, const struct rt_inlined *at,
		      const struct fixture_run *run)
{
	uint64_t value = reg_value(regs, at->reg) + at->offset;

	if (at->deref)
		value = ptrace(PTRACE_PEEKDATA, pid, value, NULL);
	if (value < run->objs || value >= run->objs + 4 * 24 || (value - run->objs) % 24)
		fail_msg("%lx in %s line %u: %lx is no object (reg %d%+ld, deref %d)", (unsigned long)at->entry.v,
			 at->caller, at->line, (unsigned long)value, at->reg, (long)at->offset, at->deref);
}

/* Steps the program from breakpoint to breakpoint. */
static void run_program(const char *path, const struct rt_inlined *list, size_t count, struct fixture_run *run)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	for (;;) {
		struct user_regs_struct regs;
		long words[64] = { 0 };
		const struct rt_inlined *hit = NULL;

		assert_true(count <= 64);
		for (size_t i = 0; i < count; i++) {
			if (!list[i].located)
				continue;
			words[i] = ptrace(PTRACE_PEEKTEXT, pid, list[i].entry.v, NULL);
			ptrace(PTRACE_POKETEXT, pid, list[i].entry.v, (words[i] & ~0xffL) | 0xcc);
		}
		ptrace(PTRACE_CONT, pid, NULL, NULL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status))
			break;
		assert_int_equal(WSTOPSIG(status), SIGTRAP);
		/* in reverse: instances may share words */
		for (size_t i = count; i-- > 0;) {
			if (list[i].located)
				ptrace(PTRACE_POKETEXT, pid, list[i].entry.v, words[i]);
		}
		ptrace(PTRACE_GETREGS, pid, NULL, &regs);
		regs.rip--;
		for (size_t i = 0; i < count; i++) {
			if (!list[i].located || list[i].entry.v != regs.rip)
				continue;
			hit = &list[i];
			check_hit(pid, &regs, hit, run);
			run->hits++;
		}
		assert_non_null(hit);
		ptrace(PTRACE_SETREGS, pid, NULL, &regs);
		ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	}
	assert_true(WIFEXITED(status));
	run->gets = WEXITSTATUS(status);
}

static void check(const char *compile)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_free_ char *path = built_path("prog"), *address = NULL;
	_cleanup_free_ struct rt_inlined *list = NULL, *outer = NULL;
	struct fixture_run run = { 0 };
	size_t count, outer_count;

	free(built_write("prog.c", source));
	assert_true(built_run("%s -g -no-pie prog.c -o prog", compile));
	address = built_output("nm prog | sed -n 's/ . objs$//p'");
	run.objs = strtoull(address, NULL, 16);
	assert_ok(rt_image_open(path, &image));
	assert_ok(rt_dwarf_create(image, &dwarf));
	assert_ok(rt_dwarf_inlined(dwarf, "obj_get", 1, &list, &count));
	assert_true(count >= 9);
	for (size_t i = 0; i < count; i++) {
		assert_non_null(list[i].caller);
		assert_true(list[i].line > 10);
		run.located += list[i].located;
		if (!list[i].located) {
			assert_non_null(list[i].why_not);
			assert_true(strcmp(list[i].caller, "main") == 0 || strcmp(list[i].caller, "fixed") == 0 ||
				    strcmp(list[i].caller, "indexed") == 0 || strcmp(list[i].caller, "member") == 0 ||
				    strcmp(list[i].caller, "looped") == 0);
		} else {
			assert_true(list[i].entry.v >= list[i].start.v && list[i].entry.v <= list[i].start.v + 32);
		}
	}
	assert_true(run.located >= 5);
	run_program(path, list, count, &run);
	assert_true(run.gets == 15);
	assert_true(run.hits >= run.located);
	if (run.located == count)
		assert_int_equal(run.hits, run.gets);
	/* the second parameter; and one that is not there */
	assert_ok(rt_dwarf_inlined(dwarf, "outer_get", 2, &outer, &outer_count));
	assert_true(outer_count >= 1 && outer[0].located);
	free(outer);
	assert_ok(rt_dwarf_inlined(dwarf, "outer_get", 3, &outer, &outer_count));
	assert_true(outer_count >= 1 && !outer[0].located && outer[0].why_not);
	free(outer);
	assert_ok(rt_dwarf_inlined(dwarf, "plain", 1, &outer, &outer_count));
	assert_int_equal(outer_count, 0);
}

TEST(gcc)
{
	check("gcc -O2 -gdwarf-5");
	check("gcc -O2 -gdwarf-4");
	check("gcc -O1 -gdwarf-5");
}

TEST(clang)
{
	if (!built_have("clang"))
		skip();
	check("clang -O2 -gdwarf-5");
	check("clang -O2 -gdwarf-4");
	check("clang -O1 -gdwarf-5");
}

TEST(constants_are_refused)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_free_ char *path = built_path("prog");
	_cleanup_free_ struct rt_inlined *list = NULL;
	size_t count, refused = 0;

	free(built_write("prog.c", source));
	assert_true(built_run("gcc -O2 -g prog.c -o prog"));
	assert_ok(rt_image_open(path, &image));
	assert_ok(rt_dwarf_create(image, &dwarf));
	assert_ok(rt_dwarf_inlined(dwarf, "obj_get", 1, &list, &count));
	for (size_t i = 0; i < count; i++) {
		if (strcmp(list[i].caller, "fixed") == 0) {
			assert_false(list[i].located);
			assert_non_null(strstr(list[i].why_not, "DW_OP_addr"));
			refused++;
		}
	}
	assert_int_equal(refused, 1);
}

/* always_inline at -O0: parameters lie on the stack, below a frame base. */
TEST(frame_base)
{
	char text[sizeof(source) + 64];

	snprintf(text, sizeof(text), "#define inline inline __attribute__((always_inline))\n%s", source);
	free(built_write("forced.c", text));
	check("cp forced.c prog.c && gcc -O0");
	if (built_have("clang"))
		check("cp forced.c prog.c && clang -O0");
}

static const char split_source[] =
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"struct obj { int refs; int x[10]; };\n"
	"static void obj_put(struct obj *o)\n"
	"{\n"
	"	if (!o)\n"
	"		return;\n"
	"	if (--o->refs == 0) {\n"
	"		for (int i = 0; i < 10; i++)\n"
	"			printf(\"%d %d\\n\", i, o->x[i] * 3);\n"
	"		for (int i = 0; i < 10; i++) { for (int k = 0; k < i; k++) printf(\"%d %d\\n\", k, o->x[i] * "
	"o->x[k]); fprintf(stderr, \"%d\", i); if (o->x[i] > 3) puts(\"big\"); else if (o->x[i] < -7) puts(\"small\"); "
	"}\n"
	"		puts(\"really\");\n"
	"		free(o);\n"
	"	}\n"
	"}\n"
	"__attribute__((noinline)) int a(struct obj *o) { puts(\"a\"); obj_put(o); puts(\"b\"); return 3; }\n"
	"__attribute__((noinline)) int b(struct obj *o) { puts(\"c\"); obj_put(o); return 4; }\n"
	"__attribute__((noinline)) int c(struct obj *o, int n) { for (int i = 0; i < n; i++) obj_put(o + i); return 4; "
	"}\n"
	"int main(int argc, char **argv) { struct obj *o = calloc(9, sizeof *o); o->refs = 4; return a(o) + b(o) + "
	"c(o, argc) + c(o, 2); }\n";

static bool no_body(const struct rt_signature *sig, void *arg)
{
	bool *seen = arg;

	if (strcmp(sig->function, "obj_put") == 0) {
		assert_false(sig->has_body);
		assert_true(sig->has_inlined);
		*seen = true;
	}
	return true;
}

/* The rest of a split function is no second put: neither as a function nor as an instance in itself. */
TEST(partial_inlining)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_free_ char *path = built_path("prog");
	_cleanup_free_ struct rt_inlined *list = NULL;
	bool seen = false;
	size_t count;

	free(built_write("prog.c", split_source));
	assert_true(built_run("gcc -O2 -g prog.c -o prog"));
	if (!built_run("nm prog | grep -q 'obj_put\\.part\\.0'"))
		skip();
	assert_ok(rt_image_open(path, &image));
	assert_ok(rt_dwarf_create(image, &dwarf));
	assert_ok(rt_dwarf_functions(dwarf, no_body, &seen));
	assert_true(seen);
	assert_ok(rt_dwarf_inlined(dwarf, "obj_put", 1, &list, &count));
	assert_int_equal(count, 3);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(strlen(list[i].caller), 1);
		assert_true(list[i].located);
	}
}

TEST_MAIN();
