/* SPDX-License-Identifier: GPL-2.0-only */
/* What decode.c and sample.c share. Inside perfdata only. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "perfdata/record.h"

enum { RT_PERF_RECORD_WORDS = 8192 }; /* a record has at most 65535 bytes */

/* Where records of an event have their id, in 8-byte words; -1: nowhere. */
struct rt_perf_place {
	int from_body; /* samples: counted from behind the header */
	int from_end;  /* others: 1 is the last word */
};

struct rt_perf_decoder {
	const struct rt_perf_event *events;
	size_t count;
	bool big_endian;
	bool uniform;                        /* all events have samples of the same layout */
	struct rt_map by_id;                 /* id -> index of the event */
	RT_VEC(struct rt_perf_place) places; /* the different ones */
	RT_VEC(uint32_t) place_of;           /* event -> places */
	uint64_t last_id;                    /* most records come in runs of one event */
	unsigned last_event;
	bool has_last;
	size_t words_used;
	uint64_t *words; /* RT_PERF_RECORD_WORDS for the arrays of the current record, in our byte order */
};

/* Event index of id; false: no event has it. */
bool rt_perf_decoder_find(struct rt_perf_decoder *decoder, uint64_t id, unsigned *ret);

/* c stands behind the header. Fills id and sample of ret by attr. */
RT_CHECK struct rt_error *rt_perf_sample_decode(struct rt_perf_decoder *decoder, const struct perf_event_attr *attr,
						struct rt_cursor *c, struct rt_perf_record *ret);
