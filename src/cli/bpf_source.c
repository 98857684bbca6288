/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/bpf_source.h"

#include <stdlib.h>
#include <string.h>

#include "bpfprog/bpfprog.h"

struct rt_bpf_source {
	struct rt_side_source side;
	struct rt_bpf_watch *watch; /* NULL: not started, or impossible */
	bool all;
	char *note;
};

static struct rt_bpf_source *of(struct rt_side_source *self)
{
	return (struct rt_bpf_source *)(void *)self;
}

static struct rt_error *start(struct rt_side_source *self, const struct rt_side_target *target,
			      struct rt_event_sink *sink)
{
	struct rt_bpf_source *s = of(self);
	const struct rt_bpf_watch_options options = { .pids = target->pids,
						      .pid_count = target->count,
						      .all = s->all || !target->count };
	struct rt_error *err = rt_bpf_watch_create(&options, &s->watch);

	if (err) {
		/* samples are worth having without it; what is missing is said */
		s->note = strdup(err->message);
		rt_error_free(err);
		return s->note ? NULL : rt_error_nomem();
	}
	self->fd = rt_bpf_watch_fd(s->watch);
	if (rt_bpf_watch_limit(s->watch)) {
		s->note = strdup(rt_bpf_watch_limit(s->watch));
		if (!s->note)
			return rt_error_nomem();
	}
	return rt_bpf_watch_existing(s->watch, sink);
}

static struct rt_error *drain(struct rt_side_source *self, struct rt_event_sink *sink)
{
	struct rt_bpf_source *s = of(self);

	return s->watch ? rt_bpf_watch_drain(s->watch, sink) : NULL;
}

static struct rt_error *restate(struct rt_side_source *self, struct rt_event_sink *sink)
{
	struct rt_bpf_source *s = of(self);

	return s->watch ? rt_bpf_watch_existing(s->watch, sink) : NULL;
}

static struct rt_error *stop(struct rt_side_source *self, struct rt_event_sink *sink)
{
	struct rt_bpf_source *s = of(self);

	return s->watch ? rt_bpf_watch_finish(s->watch, sink) : NULL;
}

struct rt_error *rt_bpf_source_create(bool all, struct rt_bpf_source **ret)
{
	struct rt_bpf_source *s = calloc(1, sizeof(*s));

	if (!s)
		return rt_error_nomem();
	s->side = (struct rt_side_source){ start, drain, restate, stop, -1 };
	s->all = all;
	*ret = s;
	return NULL;
}

struct rt_side_source *rt_bpf_source_side(struct rt_bpf_source *source)
{
	return &source->side;
}

const char *rt_bpf_source_note(const struct rt_bpf_source *source)
{
	return source->note;
}

void rt_bpf_source_destroy(struct rt_bpf_source *s)
{
	if (!s)
		return;
	rt_bpf_watch_destroy(s->watch);
	free(s->note);
	free(s);
}
