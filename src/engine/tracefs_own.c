// SPDX-License-Identifier: GPL-2.0-only
/*
 * Definitions in tracefs outlive a reftrace that is killed (harmless: without
 * its perf events they arm nothing). Their group is named after pid and
 * start time, so the next one can tell which of them belong to nobody.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "engine/tracefs.h"
#include "engine/tracefs_own.h"
#include "wire/event.h"

#define MAX_TEXT (64u << 20)

bool rt_tracefs_start_time(uint32_t pid, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	char path[32], *at;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	rt_error_free(rt_fs_read(AT_FDCWD, path, 4096, &text, NULL));
	/* the second field is the program's name in brackets and may hold anything */
	at = text ? strrchr(text, ')') : NULL;
	for (int field = 2; at && field < 22; field++) {
		at = strchr(at, ' ');
		if (at)
			at++;
	}
	return at && rt_parse_u64(at, strcspn(at, " \n"), 10, ret);
}

bool rt_tracefs_own_group(char group[RT_TRACEFS_GROUP_MAX])
{
	uint64_t start;

	if (!rt_tracefs_start_time((uint32_t)getpid(), &start))
		return false;
	snprintf(group, RT_TRACEFS_GROUP_MAX, "reftrace_%d_%llu", getpid(), (unsigned long long)start);
	return true;
}

/* "p:reftrace_PID_START/NAME ..." of nobody alive: the length of "reftrace_PID_START/NAME", else 0. */
static size_t stale_name(const char *line)
{
	static const char prefix[] = "reftrace_";
	const char *at = line + 2 + sizeof(prefix) - 1, *end = at + strcspn(at, "/ \n");
	const char *under = memchr(at, '_', (size_t)(end - at));
	uint64_t pid, start, now;

	if (*end != '/' || !under || !rt_parse_u64(at, (size_t)(under - at), 10, &pid) || pid > RT_PID_MASK ||
	    !rt_parse_u64(under + 1, (size_t)(end - under - 1), 10, &start))
		return 0;
	if (rt_tracefs_start_time((uint32_t)pid, &now) && now == start)
		return 0;
	return (size_t)(end - line) - 2 + strcspn(end, " \n");
}

static bool is_ours(const char *line)
{
	return (line[0] == 'p' || line[0] == 'r') && line[1] == ':' && !strncmp(line + 2, "reftrace_", 9);
}

struct rt_error *rt_tracefs_cleanup_stale(int root_fd, size_t *ret_busy)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int dir = -1, events = -1;
	_cleanup_error_ struct rt_error *none = rt_tracefs_open(root_fd, false, &dir);

	*ret_busy = 0;
	if (none)
		return NULL;
	RT_TRY(rt_fs_read(dir, "uprobe_events", MAX_TEXT, &text, NULL));
	events = openat(dir, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);
	if (events < 0)
		return rt_error_errno(RT_E_UNWRITABLE, errno, "cannot write uprobe_events");
	for (char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = is_ours(line) ? stale_name(line) : 0;
		char out[128];

		if (!len || len > 100)
			continue;
		snprintf(out, sizeof(out), "-:%.*s", (int)len, line + 2);
		if (write(events, out, strlen(out)) >= 0)
			continue;
		/* several lines share a name: all but the first write fail */
		if (errno == EBUSY)
			++*ret_busy;
		else if (errno != ENOENT)
			return rt_error_errno(RT_E_UNWRITABLE, errno, "cannot remove the uprobe definition %s",
					      out + 2);
	}
	return NULL;
}
