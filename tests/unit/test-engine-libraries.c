/* SPDX-License-Identifier: GPL-2.0-only */
/* What a program will load, beside what the dynamic linker says when it is asked (LD_TRACE_LOADED_OBJECTS). */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/libraries.h"

static const struct rt_libraries_options none;

static bool has(const struct rt_libraries *l, const char *path)
{
	for (size_t i = 0; i < l->paths.len; i++)
		if (!strcmp(l->paths.data[i], path))
			return true;
	return false;
}

/* Every library that ld.so names is found. Returns how many. */
static size_t assert_as_linked(const char *program, const struct rt_libraries *l, const char *env)
{
	char command[512], line[4096];
	size_t count = 0;
	FILE *f;

	snprintf(command, sizeof(command), "env %s LD_TRACE_LOADED_OBJECTS=1 %s", env, program);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		char *path = strchr(line, '/'), *real;

		if (!path)
			continue;
		path[strcspn(path, " \n")] = 0;
		real = realpath(path, NULL);
		assert_non_null(real);
		if (!has(l, real))
			fail_msg("%s: %s is missing", program, real);
		free(real);
		count++;
	}
	pclose(f);
	return count;
}

static void test_installed(void **state)
{
	static const char *const programs[] = { "/bin/ls", "/usr/bin/python3.11", "/usr/bin/gdb", "/usr/bin/perf",
						"/usr/lib/postgresql/15/bin/postgres" };

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		struct rt_libraries l = { 0 };
		char *real = realpath(programs[i], NULL);

		if (!real)
			continue;
		assert_ok(rt_libraries_of(programs[i], &none, &l));
		/* the program, its libraries, and the linker, which libc needs */
		assert_int_equal(l.paths.len, 1 + assert_as_linked(programs[i], &l, "-u LD_PRELOAD"));
		assert_string_equal(l.paths.data[0], real);
		/* nothing else may come; what says by itself where its libraries are is not relied on */
		if (!strcmp(programs[i], "/bin/ls"))
			assert_false(l.unsure);
		rt_libraries_deinit(&l);
		free(real);
	}
}

static void sh(const char *command)
{
	assert_int_equal(system(command), 0);
}

/* $ORIGIN, LD_LIBRARY_PATH, LD_PRELOAD, a script. */
static void test_own(void **state)
{
	char folder[] = "/tmp/rt-libraries-XXXXXX", command[1024], path[128], other[128], paths[256], env[2048];
	static const char *const opened[] = { "libfar.so", "libnone.so" };
	struct rt_libraries l = { 0 };
	struct rt_libraries_options options = { 0 };
	char program[256];

	assert_non_null(mkdtemp(folder));
	snprintf(command, sizeof(command),
		 "cd %s && mkdir lib more && for n in near far pre; do echo 'int '$n';' >$n.c; done &&"
		 "cc -shared -fPIC -o lib/libnear.so near.c && cc -shared -fPIC -o more/libfar.so far.c &&"
		 "cc -shared -fPIC -o pre.so pre.c && echo 'int main(void) { return 0; }' >main.c &&"
		 "cc -Wl,--no-as-needed '-Wl,-rpath,$ORIGIN/lib' -Llib -Lmore main.c -lnear -lfar -o main &&"
		 "printf '#!/usr/bin/env %s/main\\n' >script && chmod +x script",
		 folder, folder);
	sh(command);
	snprintf(path, sizeof(path), "%s/main", folder);
	snprintf(other, sizeof(other), "%s/more", folder);
	assert_ok(rt_libraries_of(path, &options, &l));
	snprintf(command, sizeof(command), "%s/lib/libnear.so", folder);
	assert_true(has(&l, command));
	snprintf(command, sizeof(command), "%s/more/libfar.so", folder);
	assert_false(has(&l, command));
	/* libfar.so was not found */
	assert_true(l.unsure);
	rt_libraries_deinit(&l);

	/* what it may open while it runs is taken where it is there, and is not missed */
	options.opened = opened;
	options.opened_count = 2;
	options.library_path = other;
	l = (struct rt_libraries){ .unsure = false };
	snprintf(program, sizeof(program), "%s/more/libfar.so", folder);
	assert_ok(rt_libraries_of("/bin/ls", &options, &l));
	assert_true(has(&l, program));
	assert_false(l.unsure);
	rt_libraries_deinit(&l);
	options = none;

	/* x32 is the same machine in another class: the linker looks further */
	snprintf(command, sizeof(command),
		 "cd %s && mkdir x32 && cp more/libfar.so x32 && printf '\\001' | dd of=x32/libfar.so bs=1 seek=4 "
		 "conv=notrunc "
		 "2>/dev/null",
		 folder);
	sh(command);
	snprintf(paths, sizeof(paths), "%s/x32:%s", folder, other);
	options.library_path = paths;
	snprintf(command, sizeof(command), "%s/pre.so", folder);
	options.preload = command;
	snprintf(env, sizeof(env), "LD_LIBRARY_PATH=%s LD_PRELOAD=%s", paths, command);
	assert_ok(rt_libraries_of(path, &options, &l));
	assert_true(has(&l, command));
	assert_int_equal(l.paths.len, 1 + assert_as_linked(path, &l, env));
	rt_libraries_deinit(&l);

	/* the script itself is no ELF file; env and the program are */
	options = none;
	snprintf(other, sizeof(other), "%s/script", folder);
	assert_ok(rt_libraries_of_command(other, &options, &l));
	assert_true(has(&l, path));
	assert_false(has(&l, other));
	rt_libraries_deinit(&l);
	assert_ok(rt_libraries_of_command("no-such-program", &options, &l));
	assert_int_equal(l.paths.len, 0);
	rt_libraries_deinit(&l);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	sh(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_installed),
		cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
