/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/samples.h"

#include <string.h>

struct rt_error *rt_samples_init(struct rt_namer *namer, struct rt_samples *ret)
{
	*ret = (struct rt_samples){ 0 };
	return rt_profile_create(namer, &ret->profile);
}

void rt_samples_deinit(struct rt_samples *s)
{
	rt_profile_destroyp(&s->profile);
	for (size_t i = 0; i < s->events.len; i++)
		free(s->events.data[i].name);
	rt_vec_deinit(&s->events);
}

static bool counts_ns(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE &&
	       (attr->config == PERF_COUNT_SW_CPU_CLOCK || attr->config == PERF_COUNT_SW_TASK_CLOCK);
}

static struct rt_error *take_sample(struct rt_samples *s, const struct rt_perf_event *events,
				    const struct rt_perf_record *r)
{
	const struct rt_perf_event *event = &events[r->event];
	struct rt_profile_sample sample = {
		.event = r->event,
		.pid = RT_SIDE_PID(r->id.pid),
		.tid = r->id.tid,
		.time_ns = r->id.time_ns,
		.period = rt_perf_period(&event->attr, &r->sample),
		.ip = r->sample.ip,
		.chain = r->sample.chain,
		.chain_count = r->sample.chain_count,
	};

	while (s->events.len <= r->event) {
		if (!rt_vec_add(&s->events))
			return rt_error_nomem();
	}
	if (!s->events.data[r->event].name) {
		s->events.data[r->event].name = strdup(event->name ?: "event");
		s->events.data[r->event].clock = counts_ns(&event->attr);
		if (!s->events.data[r->event].name)
			return rt_error_nomem();
	}
	s->samples++;
	s->events.data[r->event].samples++;
	return rt_profile_sample(s->profile, &sample);
}

struct rt_error *rt_samples_record(struct rt_samples *s, const struct rt_perf_event *events,
				   const struct rt_perf_record *r)
{
	switch (r->type) {
	case RT_PERF_SAMPLE:
		return take_sample(s, events, r);
	case RT_PERF_COMM:
		return rt_profile_comm(s->profile, RT_SIDE_PID(r->comm.pid), r->comm.tid, r->comm.comm, r->comm.exec);
	case RT_PERF_FORK:
		return rt_profile_fork(s->profile, r->task.ptid, RT_SIDE_PID(r->task.pid), r->task.tid,
				       r->task.pid == r->task.tid);
	case RT_PERF_LOST:
	case RT_PERF_LOST_SAMPLES:
		s->lost += r->lost.count;
		return NULL;
	default:
		return NULL;
	}
}

struct rt_error *rt_samples_parts(struct rt_samples *s, struct rt_profile_part **ret, size_t *ret_count)
{
	_cleanup_free_ struct rt_profile_part *parts = calloc(s->events.len + 1, sizeof(*parts));
	size_t n = 0;

	if (!parts)
		return rt_error_nomem();
	for (size_t i = 0; i < s->events.len; i++) {
		if (!s->events.data[i].samples)
			continue;
		parts[n].event = s->events.data[i].name;
		parts[n].unit = s->events.data[i].clock ? "ns" : "events";
		RT_TRY(rt_profile_table(s->profile, (unsigned)i, &parts[n].table));
		n++;
	}
	*ret = rt_take(parts);
	*ret_count = n;
	return NULL;
}
