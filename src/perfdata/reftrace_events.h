/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What reftrace records, as events that perf knows how to print:
 *
 *     reftrace:<type>_<op>   one operation on one object. Raw bytes: 8 common bytes, then struct rt_reftrace_op,
 *                            each member a field of its own name. Time and process are the sample's own, and so is
 *                            the callchain. perf prints "object=0x... count=1 delta=1 point=3 flags=..."
 *     reftrace:meta_<kind>   anything else that a recording must keep: a line of text for people and opaque
 *                            bytes for us. Raw bytes: 8 common bytes, u32 text and u32 data (length << 16 |
 *                            offset, __data_loc), then both. perf prints the text and how many bytes.
 *
 * Names are made of [A-Za-z0-9_]; what else a type name has becomes '_', and
 * types that would then be the same get a number. Raw bytes say the op
 * themselves; the type follows from the point (or from the event's name where
 * the type name is plain).
 */
#pragma once

#include "perfdata/record.h"
#include "perfdata/tracing_write.h"
#include "wire/event.h"

#define RT_REFTRACE_SYSTEM "reftrace"
#define RT_REFTRACE_OP_RAW (RT_PERF_RAW_COMMON + sizeof(struct rt_reftrace_op))
#define RT_REFTRACE_META_HEAD (RT_PERF_RAW_COMMON + 8)
/* Largest text and data of a meta event together: leaves room for the rest of the sample. */
#define RT_REFTRACE_META_MAX 65024
/* Ids of our events: above those that kernels hand out. */
#define RT_REFTRACE_FIRST_ID 0xf000

/*
 * What an operation says beside the sample's own fields and common_pid, which is its thread. The first half is the
 * same for all that one thread does at one place, and so one match for zstd with the callchain that stands before it.
 */
struct rt_reftrace_op {
	uint32_t point, stack;
	uint32_t batch; /* struct rt_reftrace_place */
	int16_t turn;
	int16_t delta;
	uint16_t flags;
	uint16_t generation; /* RT_GEN_OF(pid) */
	uint8_t op;          /* enum rt_op */
	uint8_t pad[3];
	uint64_t sp, aux, object;
	uint32_t count, seq;
};
_Static_assert(sizeof(struct rt_reftrace_op) == 56, "no holes");

/* Where an operation stood in the stream: by what its place in its batch differs from that by time. */
struct rt_reftrace_place {
	uint32_t batch;
	int16_t turn;
};

/* The events of one recording. */
struct rt_reftrace_events;

RT_CHECK struct rt_error *rt_reftrace_events_create(struct rt_reftrace_events **ret);
void rt_reftrace_events_destroy(struct rt_reftrace_events *events);
RT_CLEANUP(struct rt_reftrace_events *, rt_reftrace_events_destroy);

/*
 * Index of the event for op on this type (meta: of this kind), made if new. RT_E_LIMIT after 4096 events.
 * The index counts in rt_reftrace_events_list().
 */
RT_CHECK struct rt_error *rt_reftrace_events_op(struct rt_reftrace_events *events, const char *type, enum rt_op op,
						unsigned *ret);
RT_CHECK struct rt_error *rt_reftrace_events_meta(struct rt_reftrace_events *events, const char *kind, unsigned *ret);

/*
 * For rt_perf_writer_event(), in this order; valid until the next op or meta. attr: tracepoint, config = the id in
 * the raw bytes, IDENTIFIER IP TID TIME CPU PERIOD RAW (ops: CALLCHAIN too), sample_id_all, CLOCK_MONOTONIC; one event
 * id.
 */
const struct rt_perf_event *rt_reftrace_events_list(const struct rt_reftrace_events *events, size_t *ret_count);

/* Appends TRACING_DATA of all of them to a memory sink. */
RT_CHECK struct rt_error *rt_reftrace_events_tracing_data(const struct rt_reftrace_events *events,
							  struct rt_sink *sink);

/* Raw bytes of an operation; id is attr.config of its event. Of head.pid the sample itself says RT_PID_OF(). */
void rt_reftrace_op_raw(uint16_t id, const struct rt_wire_event *event, struct rt_reftrace_place place,
			uint8_t ret[RT_REFTRACE_OP_RAW]);

/*
 * Raw bytes of a meta event into buffer (RT_REFTRACE_META_HEAD + strlen(text) + 1 + data.size bytes are needed).
 * RT_E_LIMIT: more than RT_REFTRACE_META_MAX, or than the buffer.
 */
RT_CHECK struct rt_error *rt_reftrace_meta_raw(uint16_t id, const char *text, struct rt_bytes data, uint8_t *buffer,
					       size_t size, size_t *ret_size);

/* Is this the name of an op event ("reftrace:obj_get"), of a meta event ("reftrace:meta_type")? */
enum rt_reftrace_kind { RT_REFTRACE_NONE, RT_REFTRACE_OP, RT_REFTRACE_META };
/*
 * ret_op (of OP, may be NULL); ret_word, ret_len (may be NULL): the type, or the kind of a meta event, as they are
 * in the name. A type called "meta" is no meta event: its name has another ending.
 */
enum rt_reftrace_kind rt_reftrace_name(const char *name, enum rt_op *ret_op, const char **ret_word, size_t *ret_len);

/*
 * Back, in either byte order. false: the raw bytes are too short, or no such event. ret_place may be NULL. What
 * points into raw is not owned.
 */
bool rt_reftrace_op_read(const struct rt_perf_record *sample, bool big_endian, struct rt_wire_event *ret,
			 struct rt_reftrace_place *ret_place);
bool rt_reftrace_meta_read(struct rt_bytes raw, bool big_endian, const char **ret_text, struct rt_bytes *ret_data);
