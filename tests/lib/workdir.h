/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A directory of the test's own: programs are compiled in it, and other tools
 * (readelf, nm, objdump) are asked about them by shell commands that run there.
 */
#pragma once

#include <stdarg.h>
#include <unistd.h>

#include "test.h"

struct workdir {
	char dir[64];
};

static inline void workdir_make(struct workdir *w)
{
	snprintf(w->dir, sizeof(w->dir), "/tmp/reftrace-test-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
}

/* "cd DIR && { command }"; owned by the caller. */
__attribute__((format(printf, 2, 0))) static inline char *workdir_command(const struct workdir *w, const char *format,
									  va_list args)
{
	char *command = NULL, *whole = NULL;

	if (vasprintf(&command, format, args) < 0 || asprintf(&whole, "cd %s && { %s\n}", w->dir, command) < 0)
		abort();
	free(command);
	return whole;
}

/* Runs a shell command in the directory; fails the test when it fails. */
__attribute__((format(printf, 2, 3))) static inline void workdir_run(struct workdir *w, const char *format, ...)
{
	char *command;
	va_list args;
	int status;

	va_start(args, format);
	command = workdir_command(w, format, args);
	va_end(args);
	status = system(command);
	if (status)
		print_error("failed: %s\n", command);
	free(command);
	assert_int_equal(status, 0);
}

static inline void workdir_remove(struct workdir *w)
{
	workdir_run(w, "rm -rf %s", w->dir);
}

/* Path of a file in the directory; one of four static buffers. */
static inline const char *workdir_path(struct workdir *w, const char *name)
{
	static char buffers[4][256];
	static unsigned next;
	char *path = buffers[next++ % 4];

	snprintf(path, sizeof(buffers[0]), "%s/%s", w->dir, name);
	return path;
}

/* Writes text to a file in the directory. */
static inline void workdir_write(struct workdir *w, const char *name, const char *text)
{
	FILE *file = fopen(workdir_path(w, name), "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* What a shell command in the directory prints; owned by the caller. Fails the test when it fails. */
__attribute__((format(printf, 2, 3))) static inline char *workdir_output(struct workdir *w, const char *format, ...)
{
	char *command, *text = NULL;
	size_t size = 0;
	va_list args;
	FILE *pipe;

	va_start(args, format);
	command = workdir_command(w, format, args);
	va_end(args);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	if (getdelim(&text, &size, 0, pipe) < 0) {
		free(text);
		text = strdup("");
	}
	assert_int_equal(pclose(pipe), 0);
	free(command);
	return text;
}
