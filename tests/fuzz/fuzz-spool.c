/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The spool reader on foreign bytes: as a whole file, and as the records of a file whose headers and checksums are
 * right, which chance would not find.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "capture/layout.h"
#include "capture/spool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every record that comes out must be whole and 8-aligned, and there is an end. */
static void read_all(const void *data, size_t size)
{
	_cleanup_(rt_spool_reader_destroyp) struct rt_spool_reader *reader = NULL;
	_cleanup_error_ struct rt_error *err = rt_spool_reader_create(rt_bytes_make(data, size), "fuzz", &reader);
	const struct rt_wire_head *h;
	int status;

	if (err)
		return;
	for (const char *const *word = rt_spool_reader_command(reader); *word; word++)
		(void)!strlen(*word);
	for (;;) {
		struct rt_source *source = rt_spool_reader_source(reader);
		_cleanup_error_ struct rt_error *failed = source->next(source, &h);

		if (failed)
			return;
		if (!h)
			break;
		if ((uintptr_t)h % 8 || !rt_record_valid(h, h->size))
			abort();
	}
	if (rt_spool_reader_status(reader, &status) && status < -1)
		return;
}

/* A file of one chunk with these records; the first byte says how many the chunk claims to hold. */
static void read_payload(const uint8_t *data, size_t size)
{
	size_t bytes = size & ~(size_t)7;
	struct rt_spool_header head = { .magic = RT_SPOOL_MAGIC,
					.order = RT_SPOOL_ORDER,
					.version = RT_SPOOL_VERSION,
					.pointer_bytes = sizeof(void *),
					.size = sizeof(head) };
	struct rt_spool_chunk chunk = { .magic = RT_SPOOL_CHUNK_MAGIC, .number = 1 };
	_cleanup_free_ uint8_t *file = malloc(sizeof(head) + sizeof(chunk) + bytes);

	if (!file || !size || bytes > RT_SPOOL_PAYLOAD_MAX)
		return;
	chunk.records = data[0];
	chunk.payload_bytes = (uint32_t)bytes;
	chunk.payload_crc = (uint32_t)crc32(0, data, (uInt)bytes);
	chunk.header_crc = (uint32_t)crc32(0, (const Bytef *)&chunk, offsetof(struct rt_spool_chunk, header_crc));
	head.crc = (uint32_t)crc32(0, (const Bytef *)&head, sizeof(head));
	memcpy(file, &head, sizeof(head));
	memcpy(file + sizeof(head), &chunk, sizeof(chunk));
	memcpy(file + sizeof(head) + sizeof(chunk), data, bytes);
	read_all(file, sizeof(head) + sizeof(chunk) + bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_all(data, size);
	read_payload(data, size);
	return 0;
}
