/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each column is a zstd frame of its own: its bytes are alike, so one table of code lengths fits them all.
 */
#include "capture/column.h"

#include <string.h>
#include <zstd.h>

#include "base/poison.h"

enum {
	LEVEL = 1,
	LEB_MAX = 10,
	RARE_MAX = 64,     /* bytes that one event can put into RARE */
	COLUMN_SMALL = 16, /* shorter ones are not worth a frame */
	DIRECTORY = RT_SPOOL_COLUMNS * sizeof(struct rt_spool_extent),
};

size_t rt_spool_column_limit(enum rt_spool_column column)
{
	switch (column) {
	case RT_SPOOL_LANE:
	case RT_SPOOL_SITE_LO:
	case RT_SPOOL_SITE_HI:
	case RT_SPOOL_CONTROL:
	case RT_SPOOL_TIME_LO:
	case RT_SPOOL_TIME_HI:
	case RT_SPOOL_OBJECT_LO:
	case RT_SPOOL_OBJECT_HI:
		return RT_SPOOL_RECORDS_MAX;
	case RT_SPOOL_RARE:
		return RT_SPOOL_RECORDS_MAX * RARE_MAX;
	case RT_SPOOL_VERBATIM:
		return RT_SPOOL_VERBATIM_MAX;
	default:
		return RT_SPOOL_RECORDS_MAX * LEB_MAX;
	}
}

struct rt_spool_packer {
	ZSTD_CCtx *zstd;
	uint8_t *payload; /* as many bytes as all columns can hold, and the directory */
};

static size_t all_columns(void)
{
	size_t sum = DIRECTORY;

	for (int i = 0; i < RT_SPOOL_COLUMNS; i++)
		sum += rt_spool_column_limit(i);
	return sum;
}

struct rt_error *rt_spool_packer_create(struct rt_spool_packer **ret)
{
	_cleanup_(rt_spool_packer_destroyp) struct rt_spool_packer *p = calloc(1, sizeof(*p));

	if (!p)
		return rt_error_nomem();
	p->zstd = ZSTD_createCCtx();
	p->payload = malloc(all_columns());
	if (!p->zstd || !p->payload)
		return rt_error_nomem();
	*ret = rt_take(p);
	return NULL;
}

void rt_spool_packer_destroy(struct rt_spool_packer *packer)
{
	if (!packer)
		return;
	ZSTD_freeCCtx(packer->zstd);
	free(packer->payload);
	free(packer);
}

static bool one_value(const struct rt_spool_fill *column)
{
	return column->len > 1 && !memcmp(column->data, column->data + 1, column->len - 1);
}

/* Puts the column at `to`, which has room for all of it; how many bytes that took. */
static size_t pack_column(struct rt_spool_packer *p, const struct rt_spool_fill *column, uint8_t *to)
{
	size_t n;

	if (one_value(column)) {
		*to = column->data[0];
		return 1;
	}
	if (column->len > COLUMN_SMALL) {
		/* a frame that would not be shorter does not fit, and the column stays as it is */
		n = ZSTD_compressCCtx(p->zstd, to, column->len - 1, column->data, column->len, LEVEL);
		if (!ZSTD_isError(n))
			return n;
	}
	if (column->len)
		memcpy(to, column->data, column->len);
	return column->len;
}

struct rt_error *rt_spool_pack(struct rt_spool_packer *packer, const struct rt_spool_fill *columns,
			       struct rt_bytes *ret)
{
	struct rt_spool_extent extents[RT_SPOOL_COLUMNS];
	size_t at = DIRECTORY;

	for (int i = 0; i < RT_SPOOL_COLUMNS; i++) {
		size_t n = pack_column(packer, &columns[i], packer->payload + at);

		extents[i] = (struct rt_spool_extent){ (uint32_t)columns[i].len, (uint32_t)n };
		at += n;
	}
	memcpy(packer->payload, extents, sizeof(extents));
	if (at > RT_SPOOL_PAYLOAD_MAX)
		return rt_error_new(RT_E_INTERNAL, "a chunk of %zu bytes is too large", at);
	*ret = rt_bytes_make(packer->payload, at);
	return NULL;
}

struct rt_spool_unpacker {
	ZSTD_DCtx *zstd; /* NULL until a column has a frame */
	struct {
		uint8_t *data;
		size_t cap;
	} columns[RT_SPOOL_COLUMNS];
};

struct rt_error *rt_spool_unpacker_create(struct rt_spool_unpacker **ret)
{
	_cleanup_(rt_spool_unpacker_destroyp) struct rt_spool_unpacker *u = calloc(1, sizeof(*u));

	if (!u)
		return rt_error_nomem();
	*ret = rt_take(u);
	return NULL;
}

void rt_spool_unpacker_destroy(struct rt_spool_unpacker *unpacker)
{
	if (!unpacker)
		return;
	ZSTD_freeDCtx(unpacker->zstd);
	for (int i = 0; i < RT_SPOOL_COLUMNS; i++)
		free(unpacker->columns[i].data);
	free(unpacker);
}

/* false: out of memory */
static bool make_room(struct rt_spool_unpacker *u, int column, size_t bytes)
{
	if (bytes <= u->columns[column].cap && u->columns[column].data)
		return true;
	free(u->columns[column].data);
	u->columns[column].cap = 0;
	u->columns[column].data = malloc(bytes + 1);
	if (!u->columns[column].data)
		return false;
	u->columns[column].cap = bytes;
	return true;
}

static struct rt_error *unpack_column(struct rt_spool_unpacker *u, struct rt_bytes stored, uint8_t *to, size_t bytes,
				      const char **ret_fault)
{
	if (stored.size == bytes) {
		if (bytes)
			memcpy(to, stored.data, bytes);
		return NULL;
	}
	*ret_fault = "a column cannot be unpacked";
	if (stored.size > bytes)
		return NULL;
	if (stored.size == 1) {
		memset(to, stored.data[0], bytes);
		*ret_fault = NULL;
		return NULL;
	}
	if (!u->zstd)
		u->zstd = ZSTD_createDCtx();
	if (!u->zstd)
		return rt_error_nomem();
	if (ZSTD_decompressDCtx(u->zstd, to, bytes, stored.data, stored.size) == bytes)
		*ret_fault = NULL;
	return NULL;
}

struct rt_error *rt_spool_unpack(struct rt_spool_unpacker *unpacker, struct rt_bytes payload, struct rt_bytes *columns,
				 const char **ret_fault)
{
	struct rt_spool_extent extents[RT_SPOOL_COLUMNS];
	struct rt_cursor c = rt_cursor_make(payload, false);
	struct rt_bytes stored;

	*ret_fault = NULL;
	if (!rt_cursor_bytes(&c, sizeof(extents), &stored)) {
		*ret_fault = "it has no directory";
		return NULL;
	}
	memcpy(extents, stored.data, sizeof(extents));
	for (int i = 0; i < RT_SPOOL_COLUMNS; i++) {
		size_t bytes = extents[i].bytes;

		if (bytes > rt_spool_column_limit(i) || !rt_cursor_bytes(&c, extents[i].stored, &stored)) {
			*ret_fault = "a column has an impossible length";
			return NULL;
		}
		if (!make_room(unpacker, i, bytes))
			return rt_error_nomem();
		rt_unpoison(unpacker->columns[i].data, bytes + 1);
		RT_TRY(unpack_column(unpacker, stored, unpacker->columns[i].data, bytes, ret_fault));
		if (*ret_fault)
			return NULL;
		unpacker->columns[i].data[bytes] = 0;
		rt_poison(unpacker->columns[i].data + bytes + 1, unpacker->columns[i].cap - bytes);
		columns[i] = rt_bytes_make(unpacker->columns[i].data, bytes);
	}
	if (rt_cursor_left(&c))
		*ret_fault = "bytes follow its columns";
	return NULL;
}
