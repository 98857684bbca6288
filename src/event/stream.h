/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event stream: who yields records and who takes them. A record is a
 * struct rt_wire_head followed by what its kind says (wire/event.h); it is
 * valid until the next call on the same source.
 *
 * Order that every source keeps: TYPE, MODULE and POINT before the first event
 * that names them; STACK before its first event, for the same pid; MAP of a
 * process before the events whose stacks lie in it; EXIT of a process after
 * its last event. Times may step back by a little between producers.
 */
#pragma once

#include "base/error.h"
#include "base/vec.h"
#include "wire/event.h"

struct rt_event_sink {
	/* Takes one record (not kept). An error ends the stream. */
	struct rt_error *(*record)(struct rt_event_sink *self, const struct rt_wire_head *record);
	/* Takes n events in a row, in the owner's memory: it may change them. NULL: it takes one record at a time. */
	struct rt_error *(*events)(struct rt_event_sink *self, struct rt_wire_event *events, size_t n);
};

/* Hands n events to the sink, in whichever way it takes them. */
RT_CHECK struct rt_error *rt_event_sink_events(struct rt_event_sink *sink, struct rt_wire_event *events, size_t n);

struct rt_source {
	/*
	 * Next record in *ret, or NULL at the end. Damaged or cut input is a
	 * LOSS record (RT_LOSS_CUT) followed by the end, not an error.
	 */
	struct rt_error *(*next)(struct rt_source *self, const struct rt_wire_head **ret);
	void (*destroy)(struct rt_source *self);
};

/* Reads source to its end into sink. */
RT_CHECK struct rt_error *rt_source_drain(struct rt_source *source, struct rt_event_sink *sink);

/*
 * true when the record is whole: its size is a multiple of 8, at most
 * bytes_left, large enough for its kind, counted arrays lie inside and strings
 * end inside. Unknown kinds with a sane size are whole. Use on all foreign bytes.
 */
bool rt_record_valid(const void *bytes, size_t bytes_left);

/* Typed views of a record whose kind the caller has checked. */
static inline const struct rt_wire_event *rt_record_event(const struct rt_wire_head *h)
{
	return (const struct rt_wire_event *)(const void *)h;
}

/* Makes a TYPE, POINT, MODULE or LOSS record with its string; caller frees. NULL: out of memory. */
/*
 * structure, second: what debug information calls the struct, the function, where that is another name; or of a point
 * with RT_AUX_BLOCK, who ends the part of the block that the slot lies in. NULL: there is none
 */
struct rt_wire_type *rt_record_type(uint32_t id, const char *name, const char *structure);
struct rt_wire_point *rt_record_point(uint32_t id, const char *name, const char *second);
struct rt_wire_class *rt_record_class(uint32_t type, uint64_t word, const char *name);
struct rt_wire_module *rt_record_module(uint32_t id, const char *path);
struct rt_wire_loss *rt_record_loss(enum rt_loss cause, uint32_t point, uint64_t value, const char *text);

/* What a whole TYPE or POINT record tells beside the name; NULL: nothing. Lives as long as the record. */
const char *rt_type_structure(const struct rt_wire_type *r);
const char *rt_point_alias(const struct rt_wire_point *r);
const char *rt_point_ender(const struct rt_wire_point *r);

/* "get" for RT_OP_GET, ... ; "?" for others. Static string. */
const char *rt_op_name(enum rt_op op);
/* The op of this name, or RT_OP_NONE. */
enum rt_op rt_op_parse(const char *name, size_t len);
/* "ring" for RT_LOSS_RING, ... ; NULL for what is no cause. Static string. */
const char *rt_loss_name(unsigned cause);
