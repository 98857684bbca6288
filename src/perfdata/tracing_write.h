/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TRACING_DATA: how the raw fields of tracepoint samples lie, as trace-cmd and
 * perf keep it (format 0.6, read by libtraceevent). An event is found by the
 * u16 at the start of its raw bytes, which is also the config of its attr.
 */
#pragma once

#include "base/bytes.h"
#include "base/sink.h"

struct rt_perf_field_spec {
	const char *name; /* [A-Za-z0-9_]+ */
	const char *type; /* C type of the field or of an element: "u64", "char" */
	uint32_t offset, size;
	bool is_signed;
	uint32_t array; /* number of elements; 0 = no array */
	/*
	 * The field is a u32, length << 16 | offset from the start of the raw bytes, and the elements lie there;
	 * array is 0.
	 */
	bool data_loc;
};

struct rt_perf_format_spec {
	const char *group; /* "reftrace"; libtraceevent calls it the system */
	const char *name;  /* "obj_get"; both [A-Za-z0-9_]+ */
	uint16_t id;
	/* Behind the common fields, which take the first 8 bytes (RT_PERF_RAW_COMMON) and are written by themselves. */
	const struct rt_perf_field_spec *fields;
	size_t field_count;
	const char *print; /* print fmt, '"object=0x%llx", REC->object'; NULL: all fields, numbers in decimal */
};

#define RT_PERF_RAW_COMMON 8

/* The common fields at the start of raw bytes. */
void rt_perf_raw_common(uint16_t id, int32_t pid, uint8_t ret[RT_PERF_RAW_COMMON]);

/*
 * Appends TRACING_DATA for these events to a memory sink (whose owner checks
 * rt_sink_end()). RT_E_FORMAT for names that a reader would misread.
 */
RT_CHECK struct rt_error *rt_perf_tracing_data_write(const struct rt_perf_format_spec *events, size_t count,
						     struct rt_sink *sink);

/* Appends to sink (as above) what first says, with the systems of second behind its own. Both in our byte order. */
RT_CHECK struct rt_error *rt_perf_tracing_data_merge(struct rt_bytes first, struct rt_bytes second,
						     struct rt_sink *sink);
