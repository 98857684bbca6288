// SPDX-License-Identifier: GPL-2.0-only
/* The life of a sampler: open, start, drain, stop. */
#include "engine/sampler_priv.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

static struct rt_error *source_start(struct rt_side_source *self, const struct rt_side_target *target,
				     struct rt_event_sink *sink)
{
	return rt_sampler_start((struct rt_sampler *)(void *)self, target, sink);
}

static struct rt_error *source_drain(struct rt_side_source *self, struct rt_event_sink *sink)
{
	return rt_sampler_drain((struct rt_sampler *)(void *)self, sink);
}

static struct rt_error *source_restate(struct rt_side_source *self, struct rt_event_sink *sink)
{
	return rt_sampler_restate((struct rt_sampler *)(void *)self, sink);
}

static struct rt_error *source_stop(struct rt_side_source *self, struct rt_event_sink *sink)
{
	struct rt_sampler *s = (struct rt_sampler *)(void *)self;

	if (s->markers)
		rt_markers_find_debuggers(s->markers);
	return rt_sampler_stop(s, sink);
}

#define PMUS "sys/bus/event_source/devices"

static void open_tracefs(struct rt_sampler *s)
{
	static const char *const places[] = { "sys/kernel/tracing", "sys/kernel/debug/tracing" };

	s->tracefs_errno = ENOENT;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && s->tracefs < 0; i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s%s", s->options.root_fd == AT_FDCWD ? "/" : "", places[i]);
		s->tracefs = openat(s->options.root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* an empty mount point is no tracefs; a closed folder is */
		if (s->tracefs >= 0 && faccessat(s->tracefs, "events", R_OK, AT_EACCESS)) {
			s->tracefs_errno = errno;
			close(s->tracefs);
			s->tracefs = -1;
		} else if (s->tracefs < 0 && s->tracefs_errno == ENOENT) {
			s->tracefs_errno = errno;
		}
	}
}

static struct rt_error *names_text(struct rt_sampler *s)
{
	size_t size = 1;

	for (size_t i = 0; i < s->names.len; i++)
		size += strlen(s->names.data[i].name) + 1;
	s->text = malloc(size);
	if (!s->text)
		return rt_error_nomem();
	s->text[0] = 0;
	for (size_t i = 0, at = 0; i < s->names.len; i++)
		at += (size_t)snprintf(s->text + at, size - at, "%s%s", i ? "\n" : "", s->names.data[i].name);
	return NULL;
}

/*
 * The kernel checks a uprobe's hit against the memory of the process that it was opened for: a forked child has
 * another one, and drops the breakpoint.
 */
static void note_uprobes(struct rt_sampler *s)
{
	bool some = s->formats.len && memmem(s->formats.buffer, s->formats.len, "__probe_ip", 10);

	for (size_t i = 0; i < s->names.len; i++)
		some |= s->names.data[i].kind == RT_EVENT_UPROBE;
	if (some && !s->options.system_wide && !s->options.no_follow)
		rt_sampler_say(
			s, "uprobes do not follow into forked children (the kernel's limit): -a records every process");
}

struct rt_error *rt_sampler_open(const struct rt_sampler_options *options, struct rt_sampler **ret)
{
	_cleanup_(rt_sampler_closep) struct rt_sampler *s = calloc(1, sizeof(*s));
	_cleanup_close_ int pmus = -1;
	struct rt_event_places places;

	if (!s)
		return rt_error_nomem();
	s->options = *options;
	s->enabled = !options->delayed;
	s->source = (struct rt_side_source){ source_start, source_drain, source_restate, source_stop, -1 };
	s->tracefs = -1;
	s->formats.fd = -1;
	s->record = malloc(sizeof(struct rt_wire_perf) + (1 << 16));
	if (!s->record)
		return rt_error_nomem();
	open_tracefs(s);
	pmus = openat(options->root_fd, options->root_fd == AT_FDCWD ? "/" PMUS : PMUS,
		      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (options->markers)
		RT_TRY(rt_markers_create(options->markers, s->tracefs, s->tracefs_errno, &s->markers));
	places = (struct rt_event_places){ s->tracefs, s->tracefs_errno, pmus, s->markers };
	for (size_t i = 0; i < options->event_count; i++)
		RT_TRY(rt_event_names_parse(options->events[i], &places, &s->names));
	/* each file that is mapped would be read for nothing */
	if (s->markers && !rt_markers_wanted(s->markers))
		rt_markers_destroy(rt_take(s->markers));
	if (s->markers)
		RT_TRY(rt_markers_check_debuggers(s->markers));
	RT_TRY(rt_sampler_cpus(s));
	RT_TRY(rt_sampler_watch_modules(s));
	RT_TRY(rt_sampler_events(s));
	RT_TRY(names_text(s));
	RT_TRY(rt_sampler_read_formats(s));
	note_uprobes(s);
	if (s->markers && rt_markers_note(s->markers))
		rt_sampler_say(s, rt_markers_note(s->markers));
	s->source.fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->source.fd < 0)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot make an epoll fd");
	*ret = rt_take(s);
	return NULL;
}

struct rt_error *rt_sampler_probe(const struct rt_sampler_options *options)
{
	_cleanup_(rt_sampler_closep) struct rt_sampler *s = NULL;

	return rt_sampler_open(options, &s);
}

/* ATTR records of one event; more ids than a record holds go on in the next. */
static struct rt_error *emit_attr(struct rt_event_sink *sink, const struct rt_sampler_event *event, uint32_t id)
{
	enum { IDS_MAX = 4096 };
	size_t name = RT_WIRE_ALIGN(strnlen(event->name, 4096) + 1), at = 0;
	size_t room = event->fds.len < IDS_MAX ? event->fds.len : IDS_MAX;
	_cleanup_free_ struct rt_wire_attr *record =
		malloc(sizeof(*record) + sizeof(event->attr) + room * sizeof(uint64_t) + name);

	if (!record)
		return rt_error_nomem();
	do {
		size_t n = event->fds.len - at < IDS_MAX ? event->fds.len - at : IDS_MAX;
		uint8_t *p = record->data;

		*record = (struct rt_wire_attr){
			.head = { .size = (uint16_t)(sizeof(*record) + sizeof(event->attr) + n * 8 + name),
				  .kind = RT_WIRE_ATTR },
			.id = id,
			.attr_bytes = sizeof(event->attr),
			.ids = (uint32_t)n,
			.name_bytes = (uint32_t)name,
		};
		memcpy(p, &event->attr, sizeof(event->attr));
		/* the path of a uprobe is a pointer into us */
		if (event->desc && event->desc->kind == RT_EVENT_UPROBE)
			memset(p + offsetof(struct perf_event_attr, uprobe_path), 0, 8);
		p += sizeof(event->attr);
		for (size_t i = 0; i < n; i++, p += 8)
			memcpy(p, &event->fds.data[at + i].id, 8);
		memset(p, 0, name);
		memcpy(p, event->name, strnlen(event->name, 4096));
		RT_TRY(sink->record(sink, &record->head));
		at += n;
	} while (at < event->fds.len);
	return NULL;
}

struct rt_error *rt_sampler_restate(struct rt_sampler *s, struct rt_event_sink *sink)
{
	for (size_t i = 0; i < s->events.len; i++)
		RT_TRY(emit_attr(sink, &s->events.data[i], (uint32_t)i + 1));
	RT_TRY(rt_sampler_host(s->options.command_line, s->options.version, sink));
	RT_TRY(rt_sampler_emit_formats(s, sink));
	RT_TRY(rt_sampler_emit_kernel(s, sink));
	RT_TRY(rt_sampler_emit_bpf(s, sink));
	return rt_sampler_emit_tasks(s, sink);
}

/* which: the events that are asked for, or the side-band */
static void switch_events(struct rt_sampler *s, bool sideband, bool on)
{
	size_t from = sideband ? s->sideband : 0, to = sideband ? s->events.len : s->sideband;

	for (size_t i = from; i < to; i++) {
		struct rt_sampler_event *event = &s->events.data[i];

		/* the side-band of a launched program begins at its exec: the way to there is ours */
		if (on && sideband && s->launched && event->scope == RT_SCOPE_TARGET && !s->options.system_wide)
			continue;
		for (size_t j = 0; j < event->fds.len; j++)
			ioctl(event->fds.data[j].fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
	}
}

void rt_sampler_enable(struct rt_sampler *s, bool on)
{
	s->enabled = on;
	if (s->started)
		switch_events(s, false, on);
}

struct rt_error *rt_sampler_start(struct rt_sampler *s, const struct rt_side_target *target, struct rt_event_sink *sink)
{
	s->launched = target->launched;
	for (size_t i = 0; i < target->count && !s->options.system_wide; i++) {
		uint64_t *slot = rt_map_put(&s->tasks, rt_key_make(target->pids[i], 0), NULL);

		if (!slot)
			return rt_error_nomem();
		*slot = 1;
	}
	/* of an event that waits for an exec, the kernel puts no breakpoints into what runs already */
	for (size_t i = 0; i < s->events.len && !s->launched; i++)
		s->events.data[i].attr.enable_on_exec = 0;
	RT_TRY(rt_sampler_arm(s, target));
	/* first the side-band, then a look at what is there: nothing falls between them */
	switch_events(s, true, true);
	RT_TRY(rt_sampler_restate(s, sink));
	s->started = true;
	/* a launched program's events switch themselves on at its exec */
	if (s->enabled && (!s->launched || s->options.system_wide))
		switch_events(s, false, true);
	return NULL;
}

static struct rt_error *finished_round(struct rt_sampler *s, struct rt_event_sink *sink)
{
	struct perf_event_header round = { .type = RT_RECORD_FINISHED_ROUND, .size = sizeof(round) };

	return rt_sampler_emit(s, sink, &round);
}

struct rt_error *rt_sampler_drain(struct rt_sampler *s, struct rt_event_sink *sink)
{
	bool some = false;

	RT_TRY(rt_sampler_rings_read(s, sink, &some));
	RT_TRY(rt_sampler_module_changed(s, sink));
	if (s->markers)
		RT_TRY(rt_markers_settle(s->markers));
	return some ? finished_round(s, sink) : NULL;
}

/* Losses that no LOST record could tell any more: the ring was full to the end. */
static struct rt_error *last_losses(struct rt_sampler *s, struct rt_event_sink *sink)
{
	uint64_t lost = 0, id = 0;

	for (size_t i = 0; i < s->events.len; i++) {
		const struct rt_sampler_event *event = &s->events.data[i];

		for (size_t j = 0; j < event->fds.len && event->attr.read_format & RT_FORMAT_LOST; j++) {
			uint64_t value[2]; /* the count, the losses */

			if (read(event->fds.data[j].fd, value, sizeof(value)) != sizeof(value) || !value[1])
				continue;
			lost += value[1];
			id = event->fds.data[j].id;
		}
	}
	if (lost > s->lost_told) {
		struct rt_synth r;
		uint64_t body[2] = { id, lost - s->lost_told };

		rt_synth_begin(&r, PERF_RECORD_LOST, 0);
		rt_synth_add(&r, body, sizeof(body));
		RT_TRY(rt_synth_end(&r, s, sink, 0, 0));
	}
	return NULL;
}

struct rt_error *rt_sampler_stop(struct rt_sampler *s, struct rt_event_sink *sink)
{
	if (!s->started)
		return NULL;
	s->started = false;
	switch_events(s, false, false);
	switch_events(s, true, false);
	if (s->markers)
		rt_markers_lower(s->markers);
	RT_TRY(rt_sampler_drain(s, sink));
	return last_losses(s, sink);
}

const char *rt_sampler_names(const struct rt_sampler *s)
{
	return s->text;
}

const char *rt_sampler_note(const struct rt_sampler *s)
{
	return s->note;
}

const char *rt_sampler_warning(const struct rt_sampler *s)
{
	return s->markers ? rt_markers_warning(s->markers) : NULL;
}

const char *rt_sampler_debugged(const struct rt_sampler *s)
{
	return s->markers ? rt_markers_debugged(s->markers) : NULL;
}

const char *rt_sampler_unraised(const struct rt_sampler *s)
{
	return s->markers ? rt_markers_unraised(s->markers) : NULL;
}

const char *rt_sampler_missed(const struct rt_sampler *s, const char **ret_fix)
{
	return s->markers ? rt_markers_missed(s->markers, ret_fix) : NULL;
}

void rt_sampler_stats(const struct rt_sampler *s, struct rt_sampler_stats *ret)
{
	*ret = s->stats;
}

struct rt_side_source *rt_sampler_source(struct rt_sampler *s)
{
	return &s->source;
}

void rt_sampler_close(struct rt_sampler *s)
{
	rt_sampler_rings_unmap(s);
	for (size_t i = 0; i < s->events.len; i++) {
		for (size_t j = 0; j < s->events.data[i].fds.len; j++)
			close(s->events.data[i].fds.data[j].fd);
		rt_vec_deinit(&s->events.data[i].fds);
	}
	rt_vec_deinit(&s->events);
	/* the kernel gives up definitions that nobody uses */
	if (s->markers)
		rt_markers_destroy(s->markers);
	rt_map_deinit(&s->mapped);
	rt_vec_deinit(&s->cpus);
	rt_event_list_deinit(&s->names);
	rt_event_list_deinit(&s->module_names);
	rt_map_deinit(&s->kernel.modules);
	rt_map_deinit(&s->by_id);
	rt_map_deinit(&s->tasks);
	if (s->tracefs >= 0)
		close(s->tracefs);
	if (s->source.fd >= 0)
		close(s->source.fd);
	rt_sink_deinit(&s->formats);
	free(s->record);
	free(s->text);
	free(s->note);
	free(s);
}
