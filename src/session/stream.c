/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way of a record to the owner's sink. The engine names plain pids; the
 * exec generation is put in here, while the table of processes still is as it
 * was when the record was made: every change of the table drains first.
 */
#include <inttypes.h>

#include "session/internal.h"

static uint32_t wire_of(struct rt_session *s, uint32_t pid)
{
	uint32_t tgid = RT_PID_OF(pid);

	if (tgid != s->last_tgid) {
		s->last_wire = rt_session_wire_pid(s, tgid);
		s->last_tgid = tgid;
	}
	return s->last_wire;
}

/* A stack is changed (cut) in a copy: the engine's record is not ours. */
static struct rt_error *take_stack(struct rt_session *s, const struct rt_wire_head *record)
{
	union {
		struct rt_wire_stack stack;
		uint8_t bytes[sizeof(struct rt_wire_stack) + RT_STACK_MAX * sizeof(struct rt_wire_frame)];
	} copy;
	struct rt_process *p;

	if (record->size > sizeof(copy) || !rt_record_valid(record, record->size))
		return rt_error_new(RT_E_INTERNAL, "the engine gave a damaged stack record");
	memcpy(&copy, record, record->size);
	p = rt_session_process(s, RT_PID_OF(record->pid));
	copy.stack.head.pid = wire_of(s, record->pid);
	if (p)
		rt_unwind_check(s, p, &copy.stack);
	return s->hooks.sink->record(s->hooks.sink, &copy.stack.head);
}

static struct rt_session *session_of(struct rt_event_sink *self)
{
	return (struct rt_session *)(void *)((char *)self - __builtin_offsetof(struct rt_session, engine_sink));
}

static struct rt_error *engine_events(struct rt_event_sink *self, struct rt_wire_event *events, size_t n)
{
	struct rt_session *s = session_of(self);

	s->engine_records += n;
	for (size_t i = 0; i < n; i++)
		events[i].head.pid = wire_of(s, events[i].head.pid);
	if (s->classed)
		RT_TRY(rt_class_events(s, events, n));
	return rt_event_sink_events(s->hooks.sink, events, n);
}

static struct rt_error *engine_record(struct rt_event_sink *self, const struct rt_wire_head *record)
{
	struct rt_session *s = session_of(self);

	if (record->kind == RT_WIRE_EVENT) {
		struct rt_wire_event one = *rt_record_event(record);

		return engine_events(self, &one, 1);
	}
	s->engine_records++;
	if (record->kind == RT_WIRE_STACK)
		return take_stack(s, record);
	return s->hooks.sink->record(s->hooks.sink, record);
}

void rt_stream_init(struct rt_session *s)
{
	s->engine_sink.record = engine_record;
	s->engine_sink.events = engine_events;
}

struct rt_error *rt_session_drain(struct rt_session *s)
{
	return s->engine ? s->ops->drain(s->engine, &s->engine_sink) : NULL;
}

struct rt_error *rt_emit(struct rt_session *s, struct rt_wire_head *head, uint32_t wire_pid, uint32_t tid)
{
	/* much may wait in rings of threads, all of it earlier */
	if (s->ops->thread)
		RT_TRY(rt_session_drain(s));
	head->time_ns = rt_now_ns();
	head->pid = wire_pid;
	head->tid = tid;
	return s->hooks.sink->record(s->hooks.sink, head);
}

struct rt_error *rt_emit_task(struct rt_session *s, enum rt_wire_kind kind, uint32_t wire_pid, uint32_t tid,
			      uint32_t other, int32_t value)
{
	struct rt_wire_task task = {
		.head = { .size = sizeof(task), .kind = (uint8_t)kind },
		.other = other,
		.value = value,
	};

	return rt_emit(s, &task.head, wire_pid, tid);
}

struct rt_error *rt_emit_map(struct rt_session *s, enum rt_wire_kind kind, uint32_t wire_pid,
			     const struct rt_session_map *map)
{
	struct rt_wire_map record = {
		.head = { .size = sizeof(record), .kind = (uint8_t)kind },
		.start = map->start,
		.end = map->end,
		.file_offset = map->offset,
		.module = kind == RT_WIRE_MAP ? map->module : 0,
	};

	return rt_emit(s, &record.head, wire_pid, 0);
}

struct rt_error *rt_emit_loss(struct rt_session *s, enum rt_loss cause, uint32_t wire_pid, uint32_t point,
			      const char *format, ...)
{
	_cleanup_free_ struct rt_wire_loss *loss = NULL;
	_cleanup_free_ char *text = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return rt_error_nomem();
	loss = rt_record_loss(cause, point, 0, text);
	if (!loss)
		return rt_error_nomem();
	return rt_emit(s, &loss->head, wire_pid, 0);
}
