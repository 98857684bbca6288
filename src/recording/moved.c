/* SPDX-License-Identifier: GPL-2.0-only */
#include "recording/moved.h"

void rt_moved_deinit(struct rt_moved *moved)
{
	rt_map_deinit(&moved->last);
}

/* Gives what one counter of the sample moved by. */
static struct rt_error *give_one(struct rt_moved *moved, const struct rt_perf_reader *reader, uint64_t id,
				 uint64_t value, struct rt_perf_record *record,
				 struct rt_error *(*give)(void *arg, const struct rt_perf_record *record), void *arg)
{
	const struct rt_perf_event *events;
	unsigned event;
	size_t count;
	uint64_t *last;

	events = rt_perf_reader_events(reader, &count);
	if (!rt_perf_reader_find(reader, id, &event) || event >= count)
		return NULL;
	last = rt_map_put(&moved->last, rt_key_make(id, events[event].attr.inherit ? record->id.tid : 0), NULL);
	if (!last)
		return rt_error_nomem();
	record->event = event;
	record->id.id = id;
	record->sample.period = value - *last;
	*last = value;
	return record->sample.period ? give(arg, record) : NULL;
}

struct rt_error *rt_moved_give(struct rt_moved *moved, const struct rt_perf_reader *reader,
			       struct rt_perf_record *record,
			       struct rt_error *(*give)(void *arg, const struct rt_perf_record *record), void *arg)
{
	size_t count;
	const struct rt_perf_event *events = rt_perf_reader_events(reader, &count);
	const uint64_t format = events[record->event].attr.read_format;
	struct rt_cursor c = rt_cursor_make(record->sample.read, rt_perf_reader_header(reader)->big_endian);
	const unsigned times =
		8u * (!!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) + !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING));
	uint64_t counters = 1, value, id;

	/* which counters they are, nobody knows */
	if (!(format & PERF_FORMAT_ID))
		return give(arg, record);
	record->sample.moved = true;
	if (format & PERF_FORMAT_GROUP) {
		if (!rt_cursor_u64(&c, &counters) || !rt_cursor_skip(&c, times))
			return NULL;
	}
	while (counters-- && rt_cursor_u64(&c, &value)) {
		/* of one counter alone the times stand between */
		if (!(format & PERF_FORMAT_GROUP) && !rt_cursor_skip(&c, times))
			break;
		if (!rt_cursor_u64(&c, &id) || (format & PERF_FORMAT_LOST && !rt_cursor_skip(&c, 8)))
			break;
		RT_TRY(give_one(moved, reader, id, value, record, give, arg));
	}
	return NULL;
}
