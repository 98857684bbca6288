/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Columns of bytes: filled one value at a time, packed into a payload, and back. A column is stored as it is, as one
 * repeated byte, or as a zstd frame, whatever is shortest.
 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "base/error.h"
#include "capture/layout.h"

/* Bytes that a column can hold. LEB128 columns: 10 for each record. */
size_t rt_spool_column_limit(enum rt_spool_column column);

struct rt_spool_fill {
	uint8_t *data; /* rt_spool_column_limit() bytes, 8-aligned */
	size_t len;
};

/* Packs columns one after the other into a payload. */
struct rt_spool_packer;
RT_CHECK struct rt_error *rt_spool_packer_create(struct rt_spool_packer **ret);
void rt_spool_packer_destroy(struct rt_spool_packer *packer);
RT_CLEANUP(struct rt_spool_packer *, rt_spool_packer_destroy);
/* *ret is valid until the next call. */
RT_CHECK struct rt_error *rt_spool_pack(struct rt_spool_packer *packer, const struct rt_spool_fill *columns,
					struct rt_bytes *ret);

struct rt_spool_unpacker;
RT_CHECK struct rt_error *rt_spool_unpacker_create(struct rt_spool_unpacker **ret);
void rt_spool_unpacker_destroy(struct rt_spool_unpacker *unpacker);
RT_CLEANUP(struct rt_spool_unpacker *, rt_spool_unpacker_destroy);
/*
 * Fills columns[RT_SPOOL_COLUMNS], 8-aligned and valid until the next call, from the payload of any hand. Behind each
 * lies one readable byte more. *ret_fault says what is wrong with it, or is NULL.
 */
RT_CHECK struct rt_error *rt_spool_unpack(struct rt_spool_unpacker *unpacker, struct rt_bytes payload,
					  struct rt_bytes *columns, const char **ret_fault);

static inline void rt_spool_put_u8(struct rt_spool_fill *fill, uint8_t value)
{
	fill->data[fill->len++] = value;
}

static inline void rt_spool_put_uleb(struct rt_spool_fill *fill, uint64_t value)
{
	while (value >= 0x80) {
		fill->data[fill->len++] = (uint8_t)value | 0x80;
		value >>= 7;
	}
	fill->data[fill->len++] = (uint8_t)value;
}
