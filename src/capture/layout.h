/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bytes of a spool file, shared by writer and reader; doc/spool.md tells the story.
 *
 *     file header | strings, padded to 8 | chunk | chunk | ... | end chunk
 *     chunk = chunk header | payload: wire records back to back
 *
 * Every number is in the byte order of the machine that recorded.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define RT_SPOOL_MAGIC "RTSPOOL1"
#define RT_SPOOL_CHUNK_MAGIC "RTCK"

enum {
	RT_SPOOL_VERSION = 1,
	RT_SPOOL_ORDER = 0x01020304,          /* reads as 0x04030201 where the byte order is the other one */
	RT_SPOOL_HEADER_MAX = 1024 * 1024,    /* bytes of the file header with its strings */
	RT_SPOOL_PAYLOAD_MAX = 1024 * 1024,   /* bytes of records in one chunk */
	RT_SPOOL_PAYLOAD_TARGET = 128 * 1024, /* the writer closes a chunk when it would grow beyond this */
	RT_SPOOL_STATUS_UNKNOWN = -1,         /* no wait status is negative */
};

/* Flags of a chunk. */
enum {
	RT_SPOOL_END = 1 << 0, /* nothing follows; status holds the program's wait status; no payload */
};

struct rt_spool_header {
	char magic[8];
	uint32_t order; /* RT_SPOOL_ORDER */
	uint16_t version;
	uint8_t pointer_bytes;
	uint8_t zero;
	uint32_t size; /* bytes with the strings, a multiple of 8 */
	uint32_t crc;  /* CRC-32 of the header and its strings, this field taken as 0 */
	uint64_t start_monotonic_ns;
	uint64_t start_realtime_ns;
	uint32_t command_count; /* words of the command line, each NUL-terminated; then one string: the machine */
	uint32_t string_bytes;  /* of all strings, without the padding */
};

struct rt_spool_chunk {
	char magic[4];
	uint32_t flags;  /* RT_SPOOL_END */
	uint32_t number; /* 1, 2, 3, ... */
	uint32_t payload_bytes;
	uint32_t records;
	uint32_t payload_crc; /* CRC-32 of the payload */
	uint64_t first_ns;    /* earliest and latest time of a record in it; both 0 when none has a time */
	uint64_t last_ns;
	int32_t status;      /* end chunk: wait status, or RT_SPOOL_STATUS_UNKNOWN; else 0 */
	uint32_t header_crc; /* CRC-32 of the bytes before this field */
};

_Static_assert(sizeof(struct rt_spool_header) == 48, "file header");
_Static_assert(sizeof(struct rt_spool_chunk) == 48, "chunk header");
_Static_assert(offsetof(struct rt_spool_header, crc) == 20, "crc");
_Static_assert(offsetof(struct rt_spool_chunk, header_crc) == 44, "header_crc");
