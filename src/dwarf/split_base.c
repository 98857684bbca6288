/* SPDX-License-Identifier: GPL-2.0-only */
#include "dwarf/split_base.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { HEADER = 12 /* of a contribution, up to its table of offsets */, BASE_ENTRY = 9, ADDRESS = 8 };

static bool skip_uleb(struct rt_cursor *c, unsigned count)
{
	uint64_t value;

	while (count--) {
		if (!rt_cursor_uleb(c, &value))
			return false;
	}
	return true;
}

/* One entry of a list of ranges behind its kind. */
static bool skip_range(struct rt_cursor *c, uint8_t kind)
{
	switch (kind) {
	case DW_RLE_base_addressx:
		return skip_uleb(c, 1);
	case DW_RLE_startx_endx:
	case DW_RLE_startx_length:
	case DW_RLE_offset_pair:
		return skip_uleb(c, 2);
	case DW_RLE_base_address:
		return rt_cursor_skip(c, ADDRESS);
	case DW_RLE_start_end:
		return rt_cursor_skip(c, 2 * ADDRESS);
	case DW_RLE_start_length:
		return rt_cursor_skip(c, ADDRESS) && skip_uleb(c, 1);
	default:
		return false;
	}
}

/* The same of locations: most have an expression behind. */
static bool skip_location(struct rt_cursor *c, uint8_t kind)
{
	uint64_t length;

	switch (kind) {
	case DW_LLE_base_addressx:
		return skip_uleb(c, 1);
	case DW_LLE_base_address:
		return rt_cursor_skip(c, ADDRESS);
	case DW_LLE_GNU_view_pair:
		return skip_uleb(c, 2);
	case DW_LLE_startx_endx:
	case DW_LLE_startx_length:
	case DW_LLE_offset_pair:
		if (!skip_uleb(c, 2))
			return false;
		break;
	case DW_LLE_default_location:
		break;
	case DW_LLE_start_end:
		if (!rt_cursor_skip(c, 2 * ADDRESS))
			return false;
		break;
	case DW_LLE_start_length:
		if (!rt_cursor_skip(c, ADDRESS) || !skip_uleb(c, 1))
			return false;
		break;
	default:
		return false;
	}
	return rt_cursor_uleb(c, &length) && rt_cursor_skip(c, length);
}

/* The list at offset, with its end. false: damaged */
static bool list_at(struct rt_bytes section, uint64_t offset, bool locations, struct rt_bytes *ret)
{
	struct rt_cursor c = rt_cursor_make(section, false);
	uint8_t kind;

	if (!rt_cursor_skip(&c, offset))
		return false;
	for (;;) {
		if (!rt_cursor_u8(&c, &kind))
			return false;
		if (!kind)
			break;
		if (!(locations ? skip_location(&c, kind) : skip_range(&c, kind)))
			return false;
	}
	return rt_bytes_sub(section, offset, c.pos - offset, ret);
}

bool rt_split_lists(struct rt_bytes section, bool locations, uint64_t base, char **ret, size_t *ret_size)
{
	struct rt_cursor c = rt_cursor_make(section, false);
	_cleanup_free_ char *out = NULL;
	uint32_t length, count, offset;
	uint16_t version;
	uint8_t address, segment;
	size_t size = section.size, cap;

	if (!rt_cursor_u32(&c, &length) || length == UINT32_MAX || !rt_cursor_u16(&c, &version) || version != 5 ||
	    !rt_cursor_u8(&c, &address) || address != ADDRESS || !rt_cursor_u8(&c, &segment) || segment ||
	    !rt_cursor_u32(&c, &count) || count > (section.size - HEADER) / 4)
		return false;
	/* lists do not overlap but in damaged files */
	cap = 2 * section.size + (size_t)count * BASE_ENTRY;
	out = malloc(cap + 1);
	if (!out)
		return false;
	memcpy(out, section.data, section.size);
	for (uint32_t i = 0; i < count; i++) {
		struct rt_bytes list;
		uint32_t moved = (uint32_t)(size - HEADER);

		if (!rt_cursor_u32(&c, &offset) || !list_at(section, (uint64_t)HEADER + offset, locations, &list) ||
		    list.size + BASE_ENTRY > cap - size)
			return false;
		out[size] = locations ? DW_LLE_base_address : DW_RLE_base_address;
		memcpy(out + size + 1, &base, ADDRESS);
		memcpy(out + size + BASE_ENTRY, list.data, list.size);
		memcpy(out + HEADER + (size_t)i * 4, &moved, 4);
		size += BASE_ENTRY + list.size;
	}
	length += (uint32_t)(size - section.size);
	memcpy(out, &length, 4);
	*ret = rt_take(out);
	*ret_size = size;
	return true;
}

char *rt_split_ranges(struct rt_bytes section, uint64_t base)
{
	char *out = malloc(section.size + 1);
	bool selected = false;

	if (!out)
		return NULL;
	memcpy(out, section.data, section.size);
	/* lists of other units follow: what becomes of them does not matter, as nothing here leads to them */
	for (size_t at = 0; at + 2 * ADDRESS <= section.size; at += 2 * ADDRESS) {
		uint64_t pair[2];

		memcpy(pair, out + at, sizeof(pair));
		if (!pair[0] && !pair[1])
			selected = false;
		else if (pair[0] == UINT64_MAX)
			selected = true;
		else if (!selected) {
			pair[0] += base;
			pair[1] += base;
			memcpy(out + at, pair, sizeof(pair));
		}
	}
	return out;
}
