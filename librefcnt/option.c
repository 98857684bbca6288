/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "option.h"

#define MIB ((size_t)1 << 20)
#define DEFAULT_MIB 256
#define DEFAULT_ALIAS_PAGES (1u << 24)

static struct rc_option option = { .memory_bytes = DEFAULT_MIB * MIB,
				   .alias_pages = DEFAULT_ALIAS_PAGES,
				   .exit_code = -1 };

const struct rc_option *rc_option(void)
{
	return &option;
}

/* Programs with more privilege than their user are not told what to do by the user's environment. */
static const char *text_of(const char *name)
{
	const char *text = secure_getenv(name);

	return text && *text ? text : NULL;
}

static void refuse(const char *name, const char *text, const char *fix)
{
	fprintf(stderr, "refcnt: %s=%s is not understood and has no effect; it takes %s\n", name, text, fix);
}

static void read_path(const char *name, char *ret, size_t size)
{
	const char *text = text_of(name);

	if (!text)
		return;
	if (strlen(text) >= size)
		refuse(name, text, "fewer characters");
	else
		strcpy(ret, text);
}

/* Programs change their directory. */
static void make_absolute(char *path, size_t size)
{
	char folder[512], whole[sizeof(folder) + 256];

	if (!*path || *path == '/' || !getcwd(folder, sizeof(folder)))
		return;
	if ((size_t)snprintf(whole, sizeof(whole), "%s/%s", folder, path) >= size)
		refuse("REFCNT_OUTPUT", path, "a path of at most 511 characters, with the directory");
	else
		strcpy(path, whole);
}

static long read_number(const char *name, long least, long most, long otherwise)
{
	const char *text = text_of(name);
	char *end, fix[80];
	long n;

	if (!text)
		return otherwise;
	errno = 0;
	n = strtol(text, &end, 10);
	if (!errno && !*end && n >= least && n <= most)
		return n;
	snprintf(fix, sizeof(fix), "a number from %ld to %ld", least, most);
	refuse(name, text, fix);
	return otherwise;
}

static enum rc_stacks read_stacks(void)
{
	static const char *const words[] = { "auto", "fp", "unwind", "none" };
	const char *text = text_of("REFCNT_STACKS");

	for (unsigned i = 0; text && i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(text, words[i]))
			return (enum rc_stacks)i;
	if (text)
		refuse("REFCNT_STACKS", text, "auto, fp, unwind or none");
	return RC_STACKS_AUTO;
}

void rc_option_read(void)
{
	read_path("REFCNT_CLASS", option.classes, sizeof(option.classes));
	read_path("REFCNT_OUTPUT", option.output, sizeof(option.output));
	make_absolute(option.output, sizeof(option.output));
	option.memory_bytes = (size_t)read_number("REFCNT_MEMORY", 1, 1 << 20, DEFAULT_MIB) * MIB;
	option.alias_pages = (unsigned)read_number("REFCNT_ALIAS_PAGES", 16, 1 << 28, DEFAULT_ALIAS_PAGES);
	option.report_signal = (int)read_number("REFCNT_SIGNAL", 1, SIGRTMAX, 0);
	option.exit_code = (int)read_number("REFCNT_EXIT_CODE", 0, 255, -1);
	option.abort_at_once = read_number("REFCNT_ABORT", 0, 1, 0);
	option.stacks = read_stacks();
}
