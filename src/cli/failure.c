/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/failure.h"

#include <errno.h>
#include <string.h>

#include "cli/command.h"
#include "report/words.h"

int rt_failure_status(const struct rt_error *err)
{
	switch (err->code) {
	case RT_E_USAGE:
	case RT_E_SPEC:
	case RT_E_SUPPRESSION:
		return RT_EXIT_USAGE;
	case RT_E_EXEC:
		return err->errnum == ENOENT || err->errnum == ENOTDIR ? RT_EXIT_NOT_FOUND : RT_EXIT_NOT_EXECUTABLE;
	default:
		return RT_EXIT_FAILED;
	}
}

/* Each line of text behind its own head: "      fix: " for the first, blanks for the others. */
static void print_lines(struct rt_arena *arena, const char *text)
{
	const char *head = "      fix: ";

	while (*text) {
		size_t len = strcspn(text, "\n");
		const char *line = rt_arena_strndup(arena, text, len);

		fprintf(stderr, "%s%s\n", head, rt_clean(arena, line));
		head = "           ";
		text += len + (text[len] == '\n');
	}
}

int rt_failure(struct rt_error *err)
{
	int status = rt_failure_status(err);
	struct rt_arena arena = { 0 };
	const char *text = rt_arena_strndup(&arena, err->message, strcspn(err->message, "\n"));

	fprintf(stderr, "reftrace: %s %s\n", rt_code_text(err->code), rt_clean(&arena, text));
	/* a message of several lines (a spec with a mark under the fault): the rest is indented */
	for (const char *rest = strchr(err->message, '\n'); rest; rest = strchr(rest + 1, '\n')) {
		text = rt_arena_strndup(&arena, rest + 1, strcspn(rest + 1, "\n"));
		fprintf(stderr, "      %s\n", rt_clean(&arena, text));
	}
	if (err->fix)
		print_lines(&arena, err->fix);
	rt_arena_deinit(&arena);
	rt_error_free(err);
	return status;
}
