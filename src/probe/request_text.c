/* SPDX-License-Identifier: GPL-2.0-only */
/* A request in perf's own words, for the caches that perf reads. */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "probe/request.h"

/* perf keeps this much of a file's path */
enum { FILE_TAIL = 30 };

/* perf ends a name at these */
#define ENDS ";:+@%="

/* perf splits at blanks before it looks for backslashes. A pattern has backslashes of its own. */
static void write_name(struct rt_sink *sink, const char *name, bool is_glob, const char *marks)
{
	for (; *name; name++) {
		if (*name == ' ' || *name == '\t')
			rt_sink_puts(sink, "?");
		else if (is_glob && *name == '\\' && name[1] && name[1] != ' ' && name[1] != '\t')
			rt_sink_write(sink, name++, 2);
		else if (strchr(marks, *name))
			rt_sink_printf(sink, "\\%c", *name);
		else
			rt_sink_write(sink, name, 1);
	}
}

static void write_file(struct rt_sink *sink, const char *file)
{
	size_t len = strlen(file);
	const char *tail = len > FILE_TAIL ? file + len - FILE_TAIL : file;
	const char *slash = len > FILE_TAIL ? strchr(tail, '/') : NULL;

	rt_sink_puts(sink, "@");
	write_name(sink, slash && slash[1] ? slash + 1 : tail, false, ENDS "\\");
}

/* Blanks of a pattern do not count, and perf knows no quotation marks. It is the last part there. */
static void write_pattern(struct rt_sink *sink, const char *pattern)
{
	rt_sink_puts(sink, ";");
	for (; *pattern; pattern++)
		if (*pattern != ' ' && *pattern != '\t')
			rt_sink_write(sink, pattern, 1);
}

static void write_point(struct rt_sink *sink, const struct rt_request *r)
{
	if (r->kind == RT_REQUEST_ADDRESS) {
		rt_sink_printf(sink, "0x%" PRIx64, r->offset);
		return;
	}
	if (r->function) {
		write_name(sink, r->function, r->is_glob, r->is_glob ? ENDS : ENDS "\\*?[");
		if (r->offset)
			rt_sink_printf(sink, "+%" PRIu64, r->offset);
		else if (r->line)
			rt_sink_printf(sink, ":%u", r->line);
		else if (r->at_return)
			rt_sink_puts(sink, "%return");
	}
	if (r->file)
		write_file(sink, r->file);
	if (r->file && !r->function && r->line)
		rt_sink_printf(sink, ":%u", r->line);
	if (r->pattern)
		write_pattern(sink, r->pattern);
}

/*
 * perf gives a member's name to an argument that has none, and does not keep "@user". It reads back no name that the
 * kernel does not take.
 */
static void write_argument(struct rt_sink *sink, const struct rt_request_argument *a)
{
	const char *text = a->text, *name = a->variable;
	size_t len = strlen(text), user = strlen("@user");

	if (a->user && a->kind == RT_ARGUMENT_VARIABLE && len > user && !strcmp(text + len - user, "@user"))
		len -= user;
	for (size_t i = 0; i < a->step_count; i++)
		name = a->steps[i].name ?: name;
	rt_sink_puts(sink, " ");
	if (a->kind == RT_ARGUMENT_VARIABLE && a->step_count && !a->name && rt_identifier_length(name) &&
	    strlen(name) <= RT_REQUEST_ARGUMENT_NAME_MAX)
		rt_sink_printf(sink, "%s=", name);
	rt_sink_write(sink, text, len);
}

struct rt_error *rt_request_write(const struct rt_request *r, const char *group, struct rt_sink *sink)
{
	if (r->kind == RT_REQUEST_MARKER)
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED,
						 "'%s': a cache holds a marker under its own name alone", r->text),
				    "sdt_%s:%s", r->provider ?: "PROVIDER", r->function);
	for (size_t i = 0; i < r->arguments.len; i++)
		if (strpbrk(r->arguments.data[i].text, " \t"))
			return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED,
							 "'%s' cannot be kept in a cache: perf ends an argument at a "
							 "blank",
							 r->arguments.data[i].text),
					    "leave it out, or write it without blanks");
	if (r->event)
		rt_sink_printf(sink, "%s:%s=", r->group ?: group, r->event);
	write_point(sink, r);
	for (size_t i = 0; i < r->arguments.len; i++)
		write_argument(sink, &r->arguments.data[i]);
	return NULL;
}
