/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bytes of a spool file, shared by writer and reader; docs/spool.md tells the story.
 *
 *     file header | strings, padded to 8 | chunk | chunk | ... | end chunk
 *     chunk = chunk header | payload: directory of columns | columns
 *
 * Every number is in the byte order of the machine that recorded.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define RT_SPOOL_MAGIC "RTSPOOL2"
#define RT_SPOOL_CHUNK_MAGIC "RTCK"

enum {
	RT_SPOOL_VERSION = 2,
	RT_SPOOL_ORDER = 0x01020304,            /* reads as 0x04030201 where the byte order is the other one */
	RT_SPOOL_HEADER_MAX = 1024 * 1024,      /* bytes of the file header with its strings */
	RT_SPOOL_PAYLOAD_MAX = 8 * 1024 * 1024, /* bytes of one chunk as stored */
	RT_SPOOL_RECORDS_MAX = 32768,           /* in one chunk */
	RT_SPOOL_VERBATIM_MAX = 1024 * 1024,    /* bytes of the records of one chunk that are kept as they are */
	RT_SPOOL_STATUS_UNKNOWN = -1,           /* no wait status is negative */
};

/* Flags of a chunk. */
enum {
	RT_SPOOL_END = 1 << 0, /* nothing follows; status holds the program's wait status; no payload */
};

/* The columns of a payload, in this order. */
enum rt_spool_column {
	RT_SPOOL_LANE,    /* u8 per record: its lane, RT_SPOOL_LANE_* */
	RT_SPOOL_SITE_LO, /* u8 per event, with SITE_HI: its site */
	RT_SPOOL_SITE_HI,
	RT_SPOOL_CONTROL, /* u8 per event: RT_SPOOL_X_* and the code of its object */
	RT_SPOOL_TIME_LO, /* u8 per event, with TIME_HI: how far its time is from the guess */
	RT_SPOOL_TIME_HI,
	RT_SPOOL_TIME_FAR,  /* LEB128: what does not fit into two bytes */
	RT_SPOOL_OBJECT_LO, /* u8 per event that names a known object, with OBJECT_HI: its number */
	RT_SPOOL_OBJECT_HI,
	RT_SPOOL_ADDRESS, /* LEB128: the address of a new object */
	RT_SPOOL_SEQ,     /* LEB128: differences from the guess, where CONTROL says that there is one */
	RT_SPOOL_SP,
	RT_SPOOL_COUNT,
	RT_SPOOL_AUX,
	RT_SPOOL_RARE,     /* LEB128: new lanes, threads and sites */
	RT_SPOOL_VERBATIM, /* all other records as they are */
	RT_SPOOL_COLUMNS
};

enum {
	RT_SPOOL_LANE_VERBATIM = 0, /* no event: the next record of VERBATIM */
	RT_SPOOL_LANE_LAST = 253,   /* 1 to 253: an event of the thread that this lane had before */
	RT_SPOOL_LANE_SWITCH = 254, /* lane and thread are in RARE */
	RT_SPOOL_SITE_NEW = 0xffff, /* the site is in RARE; 0: the guess is right */
	RT_SPOOL_TIME_ESCAPE = 255, /* of TIME_HI: the value is in TIME_FAR */
};

/* CONTROL: the low half is the object's code XOR the code that the site had before. */
enum {
	RT_SPOOL_RECENT = 8,        /* codes 0 to 7: the thread's last object, the one before, ... */
	RT_SPOOL_OBJECT_KNOWN = 14, /* its number is in OBJECT */
	RT_SPOOL_OBJECT_NEW = 15,   /* its address is in ADDRESS */
	RT_SPOOL_OBJECT_CODE = 0x0f,
	RT_SPOOL_X_SEQ = 0x10,
	RT_SPOOL_X_SP = 0x20,
	RT_SPOOL_X_COUNT = 0x40,
	RT_SPOOL_X_AUX = 0x80,
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

/* One of the RT_SPOOL_COLUMNS at the start of a payload; the columns follow without gaps. */
struct rt_spool_extent {
	uint32_t bytes;  /* of the column */
	uint32_t stored; /* equal: as it is; 1 of more: one byte, repeated; else a zstd frame */
};

_Static_assert(sizeof(struct rt_spool_header) == 48, "file header");
_Static_assert(sizeof(struct rt_spool_chunk) == 48, "chunk header");
_Static_assert(sizeof(struct rt_spool_extent) == 8, "column extent");
_Static_assert(RT_SPOOL_COLUMNS == 16, "columns");
_Static_assert(offsetof(struct rt_spool_header, crc) == 20, "crc");
_Static_assert(offsetof(struct rt_spool_chunk, header_crc) == 44, "header_crc");
