/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TRACING_DATA: the kernel's own words about tracepoints and probes at the time of the recording, and with them the
 * raw bytes of samples as text. Source: trace-cmd's trace.dat(5), which perf copies; the files "format" in tracefs.
 *
 * The id of an event is attr.config of a perf event whose attr.type is PERF_TYPE_TRACEPOINT.
 */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/sink.h"

enum rt_trace_place {
	RT_TRACE_HERE,     /* at offset */
	RT_TRACE_DATA_LOC, /* at offset: u32 length << 16 | offset in the raw bytes */
	RT_TRACE_REL_LOC,  /* the same, counted from behind that u32 */
};

struct rt_trace_field {
	const char *type, *name;
	uint32_t offset, size; /* in the raw bytes */
	enum rt_trace_place place;
	bool is_signed;
	bool is_common;  /* of every event: common_type, common_pid, ... */
	bool is_text;    /* characters up to a NUL or the end */
	bool is_array;   /* of anything else */
	bool is_address; /* best shown in hex */
};

struct rt_trace_event {
	uint32_t id;
	const char *group, *name; /* "sched", "sched_switch" */
	const struct rt_trace_field *fields;
	size_t field_count;
	const char *format; /* what stands behind "print fmt: "; "" when nothing */
};

struct rt_tracing;

/* Copies what it needs of bytes. RT_E_FORMAT: no such data; RT_E_TRUNCATED: cut or damaged, with the offset in it. */
RT_CHECK struct rt_error *rt_tracing_create(struct rt_bytes bytes, struct rt_tracing **ret);
void rt_tracing_destroy(struct rt_tracing *tracing);
RT_CLEANUP(struct rt_tracing *, rt_tracing_destroy);

/* NULL: the recording does not describe it. Valid as long as tracing. */
const struct rt_trace_event *rt_tracing_event(const struct rt_tracing *tracing, uint64_t id);
/* All of them, in the order of the recording. */
const struct rt_trace_event *rt_tracing_events(const struct rt_tracing *tracing, size_t *ret_count);
/* NULL: the event has no such field. */
const struct rt_trace_field *rt_trace_field(const struct rt_trace_event *event, const char *name);

/* Value of a number, sign-extended; false: it is no number, or raw is too short. */
bool rt_trace_number(const struct rt_tracing *tracing, const struct rt_trace_field *field, struct rt_bytes raw,
		     uint64_t *ret);
/* The bytes of a text (up to its NUL) or array; false: raw is too short. */
bool rt_trace_bytes(const struct rt_tracing *tracing, const struct rt_trace_field *field, struct rt_bytes raw,
		    struct rt_bytes *ret);

/*
 * The sample on one line (without its end) as the event's print format has it, where that only names fields;
 * where it computes, " name=value" for each field, as `perf script` falls back to. What raw is too short for is "?";
 * control characters become '.'.
 */
void rt_trace_print(const struct rt_tracing *tracing, const struct rt_trace_event *event, struct rt_bytes raw,
		    struct rt_sink *out);
