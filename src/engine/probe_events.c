/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/probe_events.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "engine/tracefs.h"

enum { TEXT_MAX = 64 << 20, LOG_MAX = 1 << 20, LINE_MAX_BYTES = 4096 };

/* Cuts text at the first of these; "" where there is none. */
static char *cut(char *text, char mark)
{
	char *at = strchr(text, mark);

	if (!at)
		return text + strlen(text);
	*at = '\0';
	return at + 1;
}

/* "PATH:0xOFFSET(0xSEMAPHORE)": the last colon splits. */
static bool read_place(char *place, struct rt_probe_event *e)
{
	char *colon = strrchr(place, ':'), *open, *number;
	size_t len;

	if (!colon || strncmp(colon + 1, "0x", 2) != 0)
		return false;
	*colon = '\0';
	number = colon + 3;
	open = strchr(number, '(');
	len = open ? (size_t)(open - number) : strlen(number);
	if (!rt_parse_u64(number, len, 16, &e->offset))
		return false;
	if (open &&
	    (strncmp(open, "(0x", 3) != 0 || !rt_parse_u64(open + 3, strcspn(open + 3, ")"), 16, &e->semaphore)))
		return false;
	e->path = place;
	return *place != '\0';
}

static bool read_line(char *line, struct rt_probe_event *e)
{
	char *name, *place;

	*e = (struct rt_probe_event){ .at_return = *line == 'r' };
	if (*line != 'p' && *line != 'r')
		return false;
	line++;
	/* how many returns may be open at once */
	line += strspn(line, "0123456789");
	if (*line != ':')
		return false;
	e->group = line + 1;
	name = cut(line + 1, '/');
	place = cut(name, ' ');
	e->arguments = cut(place, ' ');
	e->name = name;
	return *e->group && *name && read_place(place, e);
}

struct rt_error *rt_probe_events_parse(char *text, struct rt_probe_events *ret)
{
	struct rt_probe_events events = { .text = text };
	char *next;

	for (char *line = text; *line; line = next) {
		struct rt_probe_event e;

		next = cut(line, '\n');
		if (read_line(line, &e) && !rt_vec_push(&events.list, e)) {
			rt_probe_events_deinit(&events);
			return rt_error_nomem();
		}
	}
	*ret = events;
	return NULL;
}

struct rt_error *rt_probe_events_read(int tracefs, struct rt_probe_events *ret)
{
	_cleanup_close_ int fd = openat(tracefs, "uprobe_events", O_RDONLY | O_CLOEXEC);
	char *text;

	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return rt_tracefs_denied(errno, "cannot read the uprobe events");
	if (fd < 0)
		return rt_error_errno(RT_E_UNREADABLE, errno, "cannot read uprobe_events of tracefs");
	RT_TRY(rt_fs_read_fd(fd, "uprobe_events", TEXT_MAX, &text, NULL));
	return rt_probe_events_parse(text, ret);
}

void rt_probe_events_deinit(struct rt_probe_events *events)
{
	rt_vec_deinit(&events->list);
	free(events->text);
	events->text = NULL;
}

bool rt_probe_events_has(const struct rt_probe_events *events, const char *group, const char *name)
{
	for (size_t i = 0; i < events->list.len; i++)
		if (!strcmp(events->list.data[i].group, group) && !strcmp(events->list.data[i].name, name))
			return true;
	return false;
}

/*
 * What the kernel says in error_log about the line that it refused last:
 *     [ 12.3] trace_uprobe: error: Failed to parse argument
 *       Command: p:g/e /opt/a:0x10 n=%zz
 */
static char *complaint(int tracefs, const char *line)
{
	static const char mark[] = "error: ", command[] = "Command: ";
	char *text = NULL, *last = NULL, *answer = NULL, *end;

	rt_error_free(rt_fs_read(tracefs, "error_log", LOG_MAX, &text, NULL));
	for (char *at = text; at && (at = strstr(at, mark)); at += sizeof(mark) - 1)
		last = at + sizeof(mark) - 1;
	end = last ? strchr(last, '\n') : NULL;
	/* one that is old speaks of something else */
	if (end && (answer = strstr(end, command)) && !strncmp(answer + sizeof(command) - 1, line, strcspn(line, " ")))
		answer = strndup(last, (size_t)(end - last));
	else
		answer = NULL;
	free(text);
	return answer;
}

struct rt_error *rt_probe_events_define(int tracefs, const char *line)
{
	_cleanup_free_ char *why = NULL;
	int errnum;

	if (strlen(line) > LINE_MAX_BYTES - 1)
		return rt_error_fix(rt_error_new(RT_E_LIMIT, "a definition is longer than the kernel takes (%d bytes)",
						 LINE_MAX_BYTES - 1),
				    "fewer arguments");
	errnum = rt_tracefs_write(tracefs, line);
	if (!errnum)
		return NULL;
	if (errnum == EACCES || errnum == EPERM)
		return rt_tracefs_denied(errnum, "cannot define uprobe events");
	why = complaint(tracefs, line);
	if (why)
		return rt_error_new(RT_E_UNARMED, "the kernel refuses '%s': %s", line, why);
	return rt_error_errno(RT_E_UNARMED, errnum, "the kernel refuses '%s'", line);
}

struct rt_error *rt_probe_events_remove(int tracefs, const char *group, const char *name)
{
	_cleanup_free_ char *line = NULL;
	int errnum;

	if (asprintf(&line, "-:%s/%s", group, name) < 0) {
		line = NULL;
		return rt_error_nomem();
	}
	errnum = rt_tracefs_write(tracefs, line);
	if (!errnum)
		return NULL;
	if (errnum == EACCES || errnum == EPERM)
		return rt_tracefs_denied(errnum, "cannot remove uprobe events");
	if (errnum == EBUSY)
		return rt_error_fix(rt_error_new(RT_E_UNWRITABLE, "%s:%s is in use", group, name),
				    "end the perf, bpftrace or reftrace that records it, or: echo 0 > "
				    "/sys/kernel/tracing/events/%s/%s/enable",
				    group, name);
	return rt_error_errno(RT_E_UNWRITABLE, errnum, "cannot remove %s:%s", group, name);
}
