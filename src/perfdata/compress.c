/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Input is gathered into blocks; each block is compressed and flushed, so the
 * output is at a place where a record may end. Blocks are added to the record
 * as long as the worst case of the next one still fits.
 */
#include "perfdata/compress.h"

#include <string.h>

#include <zstd.h>

#include "perfdata/encode.h"

enum {
	BLOCK = 32 * 1024,
	PAYLOAD = 65535 - sizeof(struct perf_event_header), /* perf does not pad these records */
};

_Static_assert(ZSTD_COMPRESSBOUND(BLOCK) + 64 < PAYLOAD, "an incompressible block fits into a record");
_Static_assert(RT_PERF_COMPRESS_CHUNK % BLOCK == 0, "a record holds whole blocks");

struct rt_perf_compressor {
	struct rt_sink *sink;
	ZSTD_CCtx *zstd;
	uint64_t taken, given;
	size_t block_len;  /* gathered */
	size_t packed;     /* bytes of payload */
	size_t packed_raw; /* bytes that these decompress to */
	uint8_t block[BLOCK];
	uint8_t payload[PAYLOAD];
};

struct rt_error *rt_perf_compressor_create(struct rt_sink *sink, unsigned level, struct rt_perf_compressor **ret)
{
	_cleanup_(rt_perf_compressor_destroyp) struct rt_perf_compressor *c = calloc(1, sizeof(*c));

	if (!c)
		return rt_error_nomem();
	c->sink = sink;
	c->zstd = ZSTD_createCCtx();
	if (!c->zstd)
		return rt_error_nomem();
	if (!level || level > (unsigned)ZSTD_maxCLevel())
		return rt_error_new(RT_E_USAGE, "zstd has no level %u; it has 1 to %d", level, ZSTD_maxCLevel());
	if (ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, (int)level)))
		return rt_error_new(RT_E_INTERNAL, "zstd refuses level %u", level);
	*ret = rt_take(c);
	return NULL;
}

void rt_perf_compressor_destroy(struct rt_perf_compressor *compressor)
{
	if (!compressor)
		return;
	ZSTD_freeCCtx(compressor->zstd);
	free(compressor);
}

static void write_record(struct rt_perf_compressor *c)
{
	struct perf_event_header header = {
		.type = RT_PERF_COMPRESSED,
		.size = (uint16_t)(sizeof(header) + c->packed),
	};

	if (!c->packed)
		return;
	rt_sink_write(c->sink, &header, sizeof(header));
	rt_sink_write(c->sink, c->payload, c->packed);
	c->given += header.size;
	c->packed = c->packed_raw = 0;
}

static struct rt_error *pack_block(struct rt_perf_compressor *c)
{
	ZSTD_inBuffer in = { c->block, c->block_len, 0 };
	ZSTD_outBuffer out;
	size_t left;

	if (!c->block_len)
		return NULL;
	if (PAYLOAD - c->packed < ZSTD_compressBound(BLOCK) + 64 || c->packed_raw + BLOCK > RT_PERF_COMPRESS_CHUNK)
		write_record(c);
	out = (ZSTD_outBuffer){ c->payload + c->packed, PAYLOAD - c->packed, 0 };
	do {
		left = ZSTD_compressStream2(c->zstd, &out, &in, ZSTD_e_flush);
		if (ZSTD_isError(left))
			return rt_error_new(RT_E_INTERNAL, "zstd cannot compress: %s", ZSTD_getErrorName(left));
	} while (left && out.pos < out.size);
	if (left)
		return rt_error_new(RT_E_INTERNAL, "zstd needs more room than it promised");
	c->packed += out.pos;
	c->packed_raw += c->block_len;
	c->block_len = 0;
	return NULL;
}

struct rt_error *rt_perf_compressor_add(struct rt_perf_compressor *compressor, struct rt_bytes bytes)
{
	size_t done = 0;

	while (done < bytes.size) {
		size_t room = BLOCK - compressor->block_len;
		size_t part = bytes.size - done < room ? bytes.size - done : room;

		memcpy(compressor->block + compressor->block_len, bytes.data + done, part);
		compressor->block_len += part;
		done += part;
		if (compressor->block_len == BLOCK)
			RT_TRY(pack_block(compressor));
	}
	compressor->taken += bytes.size;
	return NULL;
}

struct rt_error *rt_perf_compressor_flush(struct rt_perf_compressor *compressor)
{
	RT_TRY(pack_block(compressor));
	write_record(compressor);
	return NULL;
}

uint64_t rt_perf_compressor_taken(const struct rt_perf_compressor *compressor)
{
	return compressor->taken;
}

uint64_t rt_perf_compressor_given(const struct rt_perf_compressor *compressor)
{
	return compressor->given;
}
