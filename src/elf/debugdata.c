/* SPDX-License-Identifier: GPL-2.0-only */
/* .gnu_debugdata (MiniDebugInfo): a small symbol table that is kept in stripped files. */
#include <lzma.h>

#include "elf/symtab_build.h"

/* Real ones unpack to at most a few MiB; a bomb must not eat the machine. */
#define OUTPUT_MAX ((size_t)128 << 20)
#define WORK_MAX ((uint64_t)128 << 20)

static struct rt_error *grow(uint8_t **buffer, size_t *cap)
{
	size_t want = *cap ? *cap * 2 : (size_t)256 << 10;
	uint8_t *bigger = realloc(*buffer, want);

	if (!bigger)
		return rt_error_nomem();
	*buffer = bigger;
	*cap = want;
	return NULL;
}

static struct rt_error *unpack(lzma_stream *stream, uint8_t **buffer, size_t *size, bool *complete)
{
	size_t cap = 0;
	lzma_ret status = LZMA_OK;

	while (status == LZMA_OK) {
		if (*size == cap) {
			if (cap >= OUTPUT_MAX)
				return NULL;
			RT_TRY(grow(buffer, &cap));
		}
		stream->next_out = *buffer + *size;
		stream->avail_out = cap - *size;
		status = lzma_code(stream, LZMA_FINISH);
		*size = cap - stream->avail_out;
		if (status == LZMA_BUF_ERROR && *size == cap)
			status = LZMA_OK;
	}
	*complete = status == LZMA_STREAM_END;
	return NULL;
}

struct rt_error *rt_debugdata_read(const struct rt_image *image, uint8_t **ret, size_t *ret_size)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	_cleanup_free_ uint8_t *buffer = NULL;
	struct rt_error *err;
	struct rt_bytes packed;
	bool complete = false;
	size_t size = 0;

	if (!rt_image_section(image, ".gnu_debugdata", &packed, NULL) || !packed.size)
		return NULL;
	if (lzma_stream_decoder(&stream, WORK_MAX, 0) != LZMA_OK)
		return rt_error_nomem();
	stream.next_in = packed.data;
	stream.avail_in = packed.size;
	err = unpack(&stream, &buffer, &size, &complete);
	lzma_end(&stream);
	if (err)
		return err;
	if (complete) {
		*ret = rt_take(buffer);
		*ret_size = size;
	}
	return NULL;
}
