/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns records into COMPRESSED records: one zstd stream, cut into pieces that
 * a record can hold. perf gives the decompressor one piece at a time and room
 * for RT_PERF_COMPRESS_CHUNK bytes, and takes a piece that yields nothing for
 * damage: so each piece ends where the stream was flushed.
 */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/sink.h"

/* What one COMPRESSED record yields at most; perf's comp_mmap_len. */
#define RT_PERF_COMPRESS_CHUNK (512 * 1024)

struct rt_perf_compressor;

/* level 1..22 as zstd has them. The sink outlives the compressor. */
RT_CHECK struct rt_error *rt_perf_compressor_create(struct rt_sink *sink, unsigned level,
						    struct rt_perf_compressor **ret);
void rt_perf_compressor_destroy(struct rt_perf_compressor *compressor);
RT_CLEANUP(struct rt_perf_compressor *, rt_perf_compressor_destroy);

/* Takes records; whole COMPRESSED records go to the sink as they fill. */
RT_CHECK struct rt_error *rt_perf_compressor_add(struct rt_perf_compressor *compressor, struct rt_bytes bytes);
/* Writes what is held back. */
RT_CHECK struct rt_error *rt_perf_compressor_flush(struct rt_perf_compressor *compressor);

/* Bytes taken, and bytes given to the sink. */
uint64_t rt_perf_compressor_taken(const struct rt_perf_compressor *compressor);
uint64_t rt_perf_compressor_given(const struct rt_perf_compressor *compressor);
