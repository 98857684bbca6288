/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/unit_index.h"

#include <string.h>

enum { COLUMNS_MAX = 16 };

struct header {
	unsigned version;
	uint32_t columns, units, slots;
	size_t ids, rows, table; /* offsets of the slots' ids and row numbers, and of the columns */
};

static bool read_header(struct rt_bytes index, bool big_endian, struct header *ret)
{
	struct rt_cursor c = rt_cursor_make(index, big_endian);
	uint32_t word;
	uint16_t half;
	uint64_t need;

	/* version 2 is a word, version 5 a half and padding */
	if (!rt_cursor_u32(&c, &word))
		return false;
	ret->version = word;
	if (word != 2) {
		c.pos = 0;
		if (!rt_cursor_u16(&c, &half) || half != 5 || !rt_cursor_skip(&c, 2))
			return false;
		ret->version = 5;
	}
	if (!rt_cursor_u32(&c, &ret->columns) || !rt_cursor_u32(&c, &ret->units) || !rt_cursor_u32(&c, &ret->slots))
		return false;
	if (!ret->slots || (ret->slots & (ret->slots - 1)) || !ret->columns || ret->columns > COLUMNS_MAX)
		return false;
	ret->ids = c.pos;
	ret->rows = ret->ids + (size_t)ret->slots * 8;
	ret->table = ret->rows + (size_t)ret->slots * 4;
	need = ret->table + (uint64_t)ret->columns * 4 * (1 + 2 * (uint64_t)ret->units);
	return need <= index.size;
}

/* Number of the row of a unit, from 1; 0: none. */
static uint32_t find_row(struct rt_bytes index, bool big_endian, const struct header *h, uint64_t id)
{
	uint32_t mask = h->slots - 1, at = (uint32_t)id & mask, step = ((uint32_t)(id >> 32) & mask) | 1;

	for (uint32_t i = 0; i < h->slots; i++, at = (at + step) & mask) {
		struct rt_cursor c = rt_cursor_make(index, big_endian);
		uint64_t have;
		uint32_t row;

		if (!rt_cursor_skip(&c, h->ids + (size_t)at * 8) || !rt_cursor_u64(&c, &have))
			return 0;
		c.pos = h->rows + (size_t)at * 4;
		if (!rt_cursor_u32(&c, &row) || !row)
			return 0;
		if (have == id)
			return row <= h->units ? row : 0;
	}
	return 0;
}

/* enum rt_unit_part of a DW_SECT_*, or -1 */
static int part_of(unsigned version, uint32_t section)
{
	switch (section) {
	case 1:
		return RT_UNIT_INFO;
	case 3:
		return RT_UNIT_ABBREV;
	case 4:
		return RT_UNIT_LINE;
	case 5:
		return RT_UNIT_LOC;
	case 6:
		return RT_UNIT_STR_OFFSETS;
	case 8:
		return version == 5 ? RT_UNIT_RNGLISTS : -1;
	default:
		return -1;
	}
}

bool rt_unit_index_find(struct rt_bytes index, bool big_endian, uint64_t id, struct rt_unit_slices *ret)
{
	struct rt_cursor sections, offsets, sizes;
	struct header h;
	uint32_t row;

	if (!read_header(index, big_endian, &h))
		return false;
	row = find_row(index, big_endian, &h, id);
	if (!row)
		return false;
	*ret = (struct rt_unit_slices){ .version = h.version };
	sections = offsets = sizes = rt_cursor_make(index, big_endian);
	sections.pos = h.table;
	offsets.pos = h.table + (size_t)h.columns * 4 * row;
	sizes.pos = h.table + (size_t)h.columns * 4 * ((size_t)h.units + row);
	for (uint32_t i = 0; i < h.columns; i++) {
		uint32_t section, offset, size;
		int part;

		if (!rt_cursor_u32(&sections, &section) || !rt_cursor_u32(&offsets, &offset) ||
		    !rt_cursor_u32(&sizes, &size))
			return false;
		part = part_of(h.version, section);
		if (part >= 0)
			ret->parts[part] = (struct rt_unit_slice){ offset, size };
	}
	return true;
}
