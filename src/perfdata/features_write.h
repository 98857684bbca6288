/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The feature sections of a file in the making: encoded as they come, kept
 * until they are written as sections (file) or as records (pipe).
 */
#pragma once

#include "base/sink.h"
#include "perfdata/reader.h"

enum { RT_PERF_FEATURE_SLOTS = 32 };

struct rt_perf_features {
	struct rt_sink section[RT_PERF_FEATURE_SLOTS]; /* in memory; len 0 = not set */
};

void rt_perf_features_init(struct rt_perf_features *features);
void rt_perf_features_deinit(struct rt_perf_features *features);

/* Encodes the set fields of header; a later value replaces the earlier one. RT_E_FORMAT for BPF entries that are cut.
 */
RT_CHECK struct rt_error *rt_perf_features_take(struct rt_perf_features *features, const struct rt_perf_header *header);

/* EVENT_DESC; attrs as they are in the file. */
RT_CHECK struct rt_error *rt_perf_features_events(struct rt_perf_features *features, const struct rt_perf_event *events,
						  size_t count);
/* COMPRESSED; ratio 0 = not known yet. */
RT_CHECK struct rt_error *rt_perf_features_compressed(struct rt_perf_features *features, unsigned level,
						      uint64_t ratio);

/* The table and the sections to sink; offset is where in the file they begin. ret_bits: the header's 4 words. */
RT_CHECK struct rt_error *rt_perf_features_write(const struct rt_perf_features *features, struct rt_sink *sink,
						 uint64_t offset, uint64_t ret_bits[4]);

/* Does a feature fit into one record of a pipe? */
bool rt_perf_features_fit(const struct rt_perf_features *features, enum rt_perf_feature feature);
void rt_perf_features_drop(struct rt_perf_features *features, enum rt_perf_feature feature);

/*
 * As records, and forgets them. What does not fit into a record (a BPF
 * program with its code, a long command) is left out: *lost is raised by how many.
 */
RT_CHECK struct rt_error *rt_perf_features_stream(struct rt_perf_features *features, struct rt_sink *sink,
						  unsigned *lost);
