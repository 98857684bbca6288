// SPDX-License-Identifier: GPL-2.0-only
/* Tracepoints by name, as tracefs lists them: events/SYS/NAME/id. */
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/fs.h"
#include "base/text.h"
#include "engine/event_name_priv.h"
#include "probe/near.h"

bool rt_event_is_glob(const char *text)
{
	return strpbrk(text, "*?[") != NULL;
}

static bool is_word(const char *text)
{
	return *text && !strchr(text, '/') && *text != '.' && strlen(text) < 128;
}

struct search {
	const char *group, *name;
	struct rt_event_list *list;
	size_t found;
	struct rt_arena arena;
	struct rt_near near, near_group;
};

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static DIR *open_dir(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static struct rt_error *add(struct search *s, int tracefs, const char *group, const char *name)
{
	_cleanup_free_ char *text = NULL;
	struct rt_event_desc desc = { .kind = RT_EVENT_TRACEPOINT, .type = PERF_TYPE_TRACEPOINT };
	char path[320];

	snprintf(path, sizeof(path), "events/%s/%s/id", group, name);
	RT_TRY(rt_fs_read(tracefs, path, 64, &text, NULL));
	if (!rt_parse_u64(text, strcspn(text, "\n"), 10, &desc.config))
		return rt_error_new(RT_E_FORMAT, "%s holds no number", path);
	if (s->list->len >= RT_EVENTS_MAX)
		return rt_error_new(RT_E_LIMIT, "more than %d events", RT_EVENTS_MAX);
	if (asprintf(&desc.name, "%s:%s", group, name) < 0)
		return rt_error_nomem();
	desc.group = strdup(group);
	desc.tracepoint = strdup(name);
	if (!desc.group || !desc.tracepoint || !rt_vec_push(s->list, desc)) {
		free(desc.name);
		free(desc.group);
		free(desc.tracepoint);
		return rt_error_nomem();
	}
	s->found++;
	return NULL;
}

/* A folder of events/SYS without an id (enable, filter are files) is no event. */
static struct rt_error *look_in(struct search *s, int tracefs, const char *group, bool offer)
{
	char path[192];
	_cleanup_(closedirp) DIR *dir = NULL;

	snprintf(path, sizeof(path), "events/%s", group);
	dir = open_dir(tracefs, path);
	if (!dir)
		return NULL;
	for (struct dirent *e; (e = readdir(dir));) {
		char id[300];

		if (!is_word(e->d_name) || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
			continue;
		if (offer) {
			char *kept = rt_arena_strndup(&s->arena, e->d_name, strlen(e->d_name));

			if (kept)
				rt_near_offer(&s->near, kept);
		}
		if (fnmatch(s->name, e->d_name, 0))
			continue;
		snprintf(id, sizeof(id), "%s/id", e->d_name);
		if (faccessat(dirfd(dir), id, F_OK, 0) && errno == ENOENT)
			continue;
		RT_TRY(add(s, tracefs, group, e->d_name));
	}
	return NULL;
}

static struct rt_error *look(struct search *s, int tracefs)
{
	_cleanup_(closedirp) DIR *dir = open_dir(tracefs, "events");

	if (!dir)
		return NULL;
	for (struct dirent *e; (e = readdir(dir));) {
		char *kept;

		if (!is_word(e->d_name) || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
			continue;
		kept = rt_arena_strndup(&s->arena, e->d_name, strlen(e->d_name));
		if (kept)
			rt_near_offer(&s->near_group, kept);
		if (!fnmatch(s->group, e->d_name, 0))
			RT_TRY(look_in(s, tracefs, e->d_name, true));
	}
	return NULL;
}

static struct rt_error *not_found(const struct search *s)
{
	struct rt_error *err = rt_error_new(RT_E_USAGE, "there is no event '%s:%s' in this kernel", s->group, s->name);

	if (s->near.count)
		return rt_error_fix(err, "did you mean %s:%s? all of them: ls /sys/kernel/tracing/events/%s", s->group,
				    s->near.names[0], s->group);
	if (s->near_group.count && strcmp(s->near_group.names[0], s->group) != 0)
		return rt_error_fix(err, "did you mean %s:%s?", s->near_group.names[0], s->name);
	return rt_error_fix(err, "all of them: cat /sys/kernel/tracing/available_events");
}

struct rt_error *rt_event_no_tracefs(const char *name, int errnum)
{
	bool denied = errnum == EACCES || errnum == EPERM;
	struct rt_error *err = rt_error_errno(denied ? RT_E_PRIVILEGE : RT_E_KERNEL, errnum,
					      "cannot look up the event %s in tracefs", name);

	return rt_error_fix(err,
			    denied ? "sudo reftrace record -e %s ..."
				   : "mount -t tracefs tracefs /sys/kernel/tracing (for %s)",
			    name);
}

struct rt_error *rt_event_tracepoints(const char *group, const char *name, int tracefs, int errnum,
				      struct rt_event_list *list)
{
	struct search s = { .group = group, .name = name, .list = list };
	struct rt_error *err;

	if (tracefs < 0) {
		_cleanup_free_ char *whole = NULL;

		if (asprintf(&whole, "%s:%s", group, name) < 0) {
			whole = NULL;
			return rt_error_nomem();
		}
		return rt_event_no_tracefs(whole, errnum);
	}
	if ((!rt_event_is_glob(group) && !is_word(group)) || (!rt_event_is_glob(name) && !is_word(name)))
		return rt_error_fix(rt_error_new(RT_E_USAGE, "'%s:%s' is no event", group, name),
				    "write SYS:NAME, as sched:sched_switch");
	s.near.wanted = name;
	s.near_group.wanted = group;
	err = look(&s, tracefs);
	if (!err && !s.found)
		err = not_found(&s);
	rt_arena_deinit(&s.arena);
	return err;
}
