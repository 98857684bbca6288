/* SPDX-License-Identifier: GPL-2.0-only */
/* The feature sections of a perf.data header; in pipes the same bytes come as records. Inside perfdata only. */
#pragma once

#include "base/vec.h"
#include "perfdata/decoder.h"
#include "perfdata/reader.h"

enum { RT_PERF_EVENTS_MAX = 65536 };

struct rt_perf_events {
	RT_VEC(struct rt_perf_event) list;
};

/* The rest of c as 8-byte ids, added to event. */
RT_CHECK struct rt_error *rt_perf_event_ids(struct rt_perf_event *event, struct rt_cursor *c, uint64_t count);
void rt_perf_events_deinit(struct rt_perf_events *events);

/*
 * Puts what the section says into header (strings are copied, blobs point into bytes), names of EVENT_DESC into
 * events, which decoder knows. Features that nobody here asks for are left alone. RT_E_TRUNCATED: it does not fit.
 */
RT_CHECK struct rt_error *rt_perf_feature_read(unsigned feature, struct rt_cursor *c, struct rt_perf_decoder *decoder,
					       struct rt_perf_events *events, struct rt_perf_header *header);

/* One entry of the list of build-ids: a whole record with its header. */
RT_CHECK struct rt_error *rt_perf_build_id_read(struct rt_bytes record, bool big_endian, struct rt_perf_header *header);

void rt_perf_header_deinit(struct rt_perf_header *header);
