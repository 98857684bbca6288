/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compressed records: one zstd stream that goes on from record to record. What comes out is records again; one of
 * them may begin in one piece and end in a later one. Inside perfdata only.
 */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

/* What one compressed record may become; perf compresses at most a ring buffer at once. */
#define RT_PERF_INFLATE_MAX (256ull * 1024 * 1024)

struct rt_perf_inflate;

RT_CHECK struct rt_error *rt_perf_inflate_create(bool big_endian, struct rt_perf_inflate **ret);
void rt_perf_inflate_destroy(struct rt_perf_inflate *inflate);
RT_CLEANUP(struct rt_perf_inflate *, rt_perf_inflate_destroy);

/* The next piece of the stream, after the one before was used up; stays valid until it is. */
void rt_perf_inflate_feed(struct rt_perf_inflate *inflate, struct rt_bytes piece);

/*
 * The next whole record; its bytes are valid until the next call. *ret_more false: the piece is used up.
 * RT_E_TRUNCATED: no zstd data, or what comes out are no records.
 */
RT_CHECK struct rt_error *rt_perf_inflate_next(struct rt_perf_inflate *inflate, struct rt_bytes *ret, bool *ret_more);

/* Bytes of a record that has not ended yet. */
size_t rt_perf_inflate_left(const struct rt_perf_inflate *inflate);
