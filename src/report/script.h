/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records one by one, as text: what `perf script` prints, so that scripts that read it read this.
 * Pure: records by time in, lines to a sink out.
 */
#pragma once

#include "base/sink.h"
#include "event/names.h"
#include "perfdata/record.h"
#include "perfdata/tracing.h"

struct rt_script_options {
	bool tasks;      /* COMM, FORK, EXIT records, too */
	bool mappings;   /* MMAP records, too */
	bool lost;       /* LOST records, too */
	bool bpf;        /* KSYMBOL and BPF_EVENT records, too */
	bool big_endian; /* order of the raw bytes */
	/* pid as the namer wants it, from perf's plain one; NULL: as it is */
	uint32_t (*pid)(uint32_t pid);
};

struct rt_script;

/* namer and tracing (NULL: raw fields are not shown) outlive the script. */
RT_CHECK struct rt_error *rt_script_create(struct rt_namer *namer, const struct rt_tracing *tracing,
					   const struct rt_script_options *options, struct rt_script **ret);
void rt_script_destroy(struct rt_script *script);
RT_CLEANUP(struct rt_script *, rt_script_destroy);

RT_CHECK struct rt_error *rt_script_record(struct rt_script *script, const struct rt_perf_event *events,
					   const struct rt_perf_record *record, struct rt_sink *sink);
/* How many samples were printed. */
uint64_t rt_script_samples(const struct rt_script *script);
