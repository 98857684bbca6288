/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Append-only JSON writer: begin, key, value, end, straight into a sink. It
 * keeps no tree, puts the commas, and makes every string valid: control
 * characters are escaped, bytes that are no UTF-8 become U+FFFD. The caller
 * keeps begin and end in balance; depth is limited to 63.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/sink.h"

struct rt_json {
	struct rt_sink *sink;
	unsigned depth;   /* open objects and arrays */
	uint64_t started; /* bit d: the container at depth d has an element */
};

/* Writes to sink, which must outlive json. */
void rt_json_init(struct rt_json *json, struct rt_sink *sink);

/* key NULL: an element of an array, or the top value. */
void rt_json_begin_object(struct rt_json *json, const char *key);
void rt_json_end_object(struct rt_json *json);
void rt_json_begin_array(struct rt_json *json, const char *key);
void rt_json_end_array(struct rt_json *json);

/* text NULL writes null. */
void rt_json_string(struct rt_json *json, const char *key, const char *text);
void rt_json_u64(struct rt_json *json, const char *key, uint64_t value);
void rt_json_i64(struct rt_json *json, const char *key, int64_t value);
/* At most 4 decimals; what is not finite is written as null. */
void rt_json_number(struct rt_json *json, const char *key, double value);
/* The same with so many. */
void rt_json_decimals(struct rt_json *json, const char *key, double value, int most);
/* An address as a string: "0x12c". */
void rt_json_hex(struct rt_json *json, const char *key, uint64_t value);
void rt_json_bool(struct rt_json *json, const char *key, bool value);
void rt_json_null(struct rt_json *json, const char *key);

/* The fields of a frame into the object that is open: function, file, line, module, offset, build_id, inlined. */
struct rt_frame;
void rt_json_frame(struct rt_json *json, const struct rt_frame *frame);
