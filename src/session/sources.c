/* SPDX-License-Identifier: GPL-2.0-only */
/* Side sources: started with the target, drained beside the engine, stopped at the end. */
#include "session/internal.h"

struct rt_error *rt_sources_start(struct rt_session *s, const uint32_t *pids, size_t count, bool launched)
{
	struct rt_side_target target = { pids, count, launched };

	for (; s->sources_started < s->options.source_count; s->sources_started++) {
		struct rt_side_source *source = s->options.sources[s->sources_started];

		if (source->start)
			RT_TRY(source->start(source, &target, s->hooks.sink));
	}
	return NULL;
}

struct rt_error *rt_sources_drain(struct rt_session *s)
{
	for (size_t i = 0; i < s->sources_started; i++) {
		struct rt_side_source *source = s->options.sources[i];

		if (source->drain)
			RT_TRY(source->drain(source, s->hooks.sink));
	}
	return NULL;
}

struct rt_error *rt_sources_stop(struct rt_session *s)
{
	struct rt_error *err = NULL;

	for (size_t i = 0; i < s->sources_started; i++) {
		struct rt_side_source *source = s->options.sources[i];
		struct rt_error *one = source->stop ? source->stop(source, s->hooks.sink) : NULL;

		if (err)
			rt_error_free(one);
		else
			err = one;
	}
	s->sources_started = 0;
	return err;
}

size_t rt_sources_poll(const struct rt_session *s, struct pollfd *fds, size_t count, size_t room)
{
	for (size_t i = 0; i < s->sources_started && count < room; i++) {
		if (s->options.sources[i]->fd >= 0)
			fds[count++] = (struct pollfd){ .fd = s->options.sources[i]->fd, .events = POLLIN };
	}
	return count;
}
