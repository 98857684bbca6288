/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A spool as perf.data: gets and puts become samples of reftrace:<type>_<op> with their callchain, grouped by thread
 * and call site (batch.h); everything else that the analysis needs becomes reftrace:meta_<kind>, so that the way back
 * loses nothing; modules and mappings are MMAP2 records with build-ids; perf's own records stay as they are.
 */
#pragma once

#include "base/sink.h"
#include "bpfimage/bpfimage.h"
#include "perfdata/writer.h"

/* Like samples stand together (batch.h): level 3 takes half as long again and is no smaller. */
#define RT_TO_PERF_ZSTD_LEVEL 1

struct rt_to_perf_options {
	const char *version;      /* of reftrace */
	unsigned zstd_level;      /* 0 = do not compress */
	bool pipe;                /* for a stream that cannot be written at its start again */
	bool keep_perf_only;      /* leave lifetimes out */
	struct rt_bytes kallsyms; /* /proc/kallsyms of the machine that recorded: names of the kernel functions that
				     samples hit are kept; empty = none */
};

/* What came of it. */
struct rt_to_perf_result {
	uint64_t events, samples; /* gets and puts; perf's samples */
	uint64_t lost;
	uint64_t bpf_programs, bpf_lost;
	int program_status; /* wait status */
	bool has_status;
	char *damage; /* the spool is cut: why; NULL = whole; caller frees */
};

/*
 * Reads the spool twice and writes perf.data to sink (not flushed). In file mode the caller puts ret_header
 * (RT_PERF_HEADER_BYTES of it) at offset 0 afterwards. result may be NULL. Errors of either side.
 */
RT_CHECK struct rt_error *rt_to_perf(struct rt_bytes spool, const char *name, const struct rt_to_perf_options *options,
				     struct rt_sink *sink, uint8_t ret_header[RT_PERF_HEADER_BYTES],
				     struct rt_to_perf_result *result);
