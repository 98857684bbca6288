/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which command? Known ones win; an option, or a word that names a program,
 * is `run`; every other word is a slip of the finger.
 */
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "probe/near.h"

static bool executable(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* As execvp() would look it up. */
static bool in_path(const char *word)
{
	const char *path = getenv("PATH");

	for (const char *p = path ? path : "/usr/bin:/bin"; *p;) {
		size_t len = strcspn(p, ":");
		_cleanup_free_ char *file = NULL;

		if (asprintf(&file, "%.*s/%s", len ? (int)len : 1, len ? p : ".", word) < 0)
			file = NULL;
		if (file && executable(file))
			return true;
		p += len + (p[len] == ':');
	}
	return false;
}

static struct rt_error *unknown_word(const char *word)
{
	struct rt_error *err;
	struct rt_near near = { .wanted = word };

	if (rt_command_reserved(word)) {
		err = rt_error_new(RT_E_USAGE, "command '%s' is not in this build yet", word);
		return rt_error_fix(err, "commands: reftrace help; to trace a program of that name: reftrace run -- %s",
				    word);
	}
	err = rt_error_new(RT_E_USAGE, "'%s' is neither a command of reftrace nor a program in PATH", word);
	for (const struct rt_command *c = rt_commands(); c->name; c++)
		rt_near_offer(&near, c->name);
	if (executable(word))
		return rt_error_fix(err, "did you mean the program here: reftrace ./%s?", word);
	if (near.count)
		return rt_error_fix(err, "did you mean: reftrace %s? all commands: reftrace help", near.names[0]);
	return rt_error_fix(err, "all commands: reftrace help; a program of this folder: reftrace ./PROG");
}

static int run_command(int argc, char **argv)
{
	static char run[] = "run", help[] = "help", version[] = "version";
	const struct rt_command *command;
	const char *word = argc > 1 ? argv[1] : NULL;

	if (!word)
		return rt_failure(rt_error_fix(rt_error_new(RT_E_USAGE, "nothing to do"),
					       "trace a program: reftrace PROG ARGS; all commands: reftrace help"));
	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		argv[1] = help;
		return cmd_help(argc - 1, argv + 1);
	}
	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		argv[1] = version;
		return cmd_version(argc - 1, argv + 1);
	}
	command = rt_command_find(word);
	if (command)
		return command->run(argc - 1, argv + 1);
	if (word[0] != '-' && (rt_command_reserved(word) || (!strchr(word, '/') && !in_path(word))))
		return rt_failure(unknown_word(word));
	argv[0] = run;
	return cmd_run(argc, argv);
}

/*
 * Large tables have mappings of their own for good, which go back as a whole when they have grown. By default glibc
 * takes the first of these that is freed as a sign to put the next ones into the heap, where each leaves a hole.
 */
static void keep_tables_apart(void)
{
	enum { TABLE_BYTES = 128 * 1024 };

	(void)mallopt(M_MMAP_THRESHOLD, TABLE_BYTES);
}

int main(int argc, char **argv)
{
	struct rt_error *err;
	int status;

	keep_tables_apart();
	rt_fs_survive_cuts();
	status = run_command(argc, argv);
	/* what was found in the rest of a file is no answer; what was recorded is kept */
	err = rt_fs_all_whole();
	if (err)
		status = rt_failure(rt_error_wrap(err, "what was said may be wrong, or lack something"));
	return status;
}
