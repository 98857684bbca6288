/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whatever the stream holds, memory stays bounded: it is unpacked into one buffer, records are taken from its front,
 * and what is left of it moves to the front before more is unpacked.
 */
#include "perfdata/inflate.h"

#include <string.h>
#include <zstd.h>

enum { BUFFER_BYTES = 256 * 1024 }; /* more than any record */

struct rt_perf_inflate {
	ZSTD_DStream *stream;
	ZSTD_inBuffer piece;
	uint64_t piece_out; /* bytes that came out of this piece */
	bool big_endian;
	bool more_inside; /* the buffer was full: zstd may hold more output */
	size_t begin, end;
	uint8_t buffer[BUFFER_BYTES];
};

struct rt_error *rt_perf_inflate_create(bool big_endian, struct rt_perf_inflate **ret)
{
	_cleanup_(rt_perf_inflate_destroyp) struct rt_perf_inflate *inflate = calloc(1, sizeof(*inflate));

	if (!inflate)
		return rt_error_nomem();
	inflate->big_endian = big_endian;
	inflate->stream = ZSTD_createDStream();
	if (!inflate->stream)
		return rt_error_nomem();
	*ret = rt_take(inflate);
	return NULL;
}

void rt_perf_inflate_destroy(struct rt_perf_inflate *inflate)
{
	if (!inflate)
		return;
	ZSTD_freeDStream(inflate->stream);
	free(inflate);
}

void rt_perf_inflate_feed(struct rt_perf_inflate *inflate, struct rt_bytes piece)
{
	inflate->piece = (ZSTD_inBuffer){ piece.data, piece.size, 0 };
	inflate->piece_out = 0;
}

size_t rt_perf_inflate_left(const struct rt_perf_inflate *inflate)
{
	return inflate->end - inflate->begin;
}

static struct rt_error *fill(struct rt_perf_inflate *inflate)
{
	ZSTD_outBuffer out;
	size_t code, before = inflate->piece.pos;

	memmove(inflate->buffer, inflate->buffer + inflate->begin, inflate->end - inflate->begin);
	inflate->end -= inflate->begin;
	inflate->begin = 0;
	out = (ZSTD_outBuffer){ inflate->buffer, BUFFER_BYTES, inflate->end };
	code = ZSTD_decompressStream(inflate->stream, &out, &inflate->piece);
	if (ZSTD_isError(code))
		return rt_error_new(RT_E_TRUNCATED, "compressed data: %s", ZSTD_getErrorName(code));
	if (out.pos == inflate->end && inflate->piece.pos == before && before < inflate->piece.size)
		return rt_error_new(RT_E_TRUNCATED, "compressed data do not go on");
	inflate->piece_out += out.pos - inflate->end;
	inflate->more_inside = out.pos == BUFFER_BYTES;
	inflate->end = out.pos;
	if (inflate->piece_out > RT_PERF_INFLATE_MAX)
		return rt_error_new(RT_E_TRUNCATED, "compressed data unpack to more than %llu MiB",
				    RT_PERF_INFLATE_MAX >> 20);
	return NULL;
}

struct rt_error *rt_perf_inflate_next(struct rt_perf_inflate *inflate, struct rt_bytes *ret, bool *ret_more)
{
	for (;;) {
		struct rt_bytes have = rt_bytes_make(inflate->buffer + inflate->begin, inflate->end - inflate->begin);
		struct rt_cursor c = rt_cursor_make(have, inflate->big_endian);
		uint16_t size;

		if (rt_cursor_skip(&c, 6) && rt_cursor_u16(&c, &size)) {
			if (size < 8)
				return rt_error_new(RT_E_TRUNCATED,
						    "a record in compressed data says %u bytes, less than its header",
						    size);
			if (rt_bytes_sub(have, 0, size, ret)) {
				inflate->begin += size;
				*ret_more = true;
				return NULL;
			}
		}
		if (inflate->piece.pos == inflate->piece.size && !inflate->more_inside) {
			*ret_more = false;
			return NULL;
		}
		RT_TRY(fill(inflate));
	}
}
