/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs that a test compiles for itself, and other tools' words about them.
 * Everything lies in one temporary folder that is removed at the end.
 */
#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static char built_folder[64];

static int built_remove(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static inline void built_clean(void)
{
	nftw(built_folder, built_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *built_dir(void)
{
	if (!built_folder[0]) {
		snprintf(built_folder, sizeof(built_folder), "/tmp/rt-test-XXXXXX");
		assert_non_null(mkdtemp(built_folder));
		atexit(built_clean);
	}
	return built_folder;
}

/* Path of name in the folder; caller frees. */
static inline char *built_path(const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", built_dir(), name) > 0);
	return path;
}

static inline char *built_write(const char *name, const char *text)
{
	char *path = built_path(name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	return path;
}

/* Runs a shell command in the folder; true when it succeeds. */
__attribute__((format(printf, 1, 2))) static inline bool built_run(const char *format, ...)
{
	char *command, *inside;
	va_list ap;
	int status;

	va_start(ap, format);
	assert_true(vasprintf(&command, format, ap) > 0);
	va_end(ap);
	assert_true(asprintf(&inside, "cd %s && (%s)", built_dir(), command) > 0);
	status = system(inside);
	free(command);
	free(inside);
	return status == 0;
}

/* What a shell command prints, NUL-terminated; caller frees. */
__attribute__((format(printf, 1, 2))) static inline char *built_output(const char *format, ...)
{
	char *command, *inside, *text = NULL;
	size_t size = 0, got;
	char chunk[65536];
	va_list ap;
	FILE *pipe, *memory = open_memstream(&text, &size);

	va_start(ap, format);
	assert_true(vasprintf(&command, format, ap) > 0);
	va_end(ap);
	assert_true(asprintf(&inside, "cd %s && (%s)", built_dir(), command) > 0);
	pipe = popen(inside, "r");
	assert_non_null(pipe);
	while ((got = fread(chunk, 1, sizeof(chunk), pipe)) > 0)
		fwrite(chunk, 1, got, memory);
	pclose(pipe);
	fclose(memory);
	free(command);
	free(inside);
	return text;
}

/* Whether a tool can be started here. */
static inline bool built_have(const char *tool)
{
	return built_run("command -v %s >/dev/null 2>&1", tool);
}
