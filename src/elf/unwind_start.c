/* SPDX-License-Identifier: GPL-2.0-only */
#include <elf.h>

#include "elf/section.h"

/* One row of the table: where a function begins, and its FDE, both counted from the section. */
enum { ROW_BYTES = 8, HEAD_BYTES = 12, PCREL_SDATA4 = 0x1b, UDATA4 = 0x03, DATAREL_SDATA4 = 0x3b };

static bool start_at(struct rt_bytes table, bool big_endian, size_t row, struct rt_elfaddr section,
		     struct rt_elfaddr *ret)
{
	struct rt_cursor c = rt_cursor_make(table, big_endian);
	uint32_t offset;

	if (!rt_cursor_skip(&c, row * ROW_BYTES) || !rt_cursor_u32(&c, &offset))
		return false;
	ret->v = section.v + (uint64_t)(int64_t)(int32_t)offset;
	return true;
}

bool rt_image_unwind_start(const struct rt_image *image, struct rt_elfaddr addr, struct rt_elfaddr *ret)
{
	struct rt_elfaddr section, start;
	struct rt_bytes bytes, table;
	struct rt_cursor c;
	size_t low = 0, high;
	uint32_t count;

	/* the form that linkers write: version, three encodings, a pointer to the frames, how many there are */
	if (!rt_image_section(image, ".eh_frame_hdr", &bytes, &section) || bytes.size < HEAD_BYTES ||
	    bytes.data[0] != 1 || bytes.data[1] != PCREL_SDATA4 || bytes.data[2] != UDATA4 ||
	    bytes.data[3] != DATAREL_SDATA4)
		return false;
	c = rt_cursor_make(bytes, image->big_endian);
	if (!rt_cursor_skip(&c, HEAD_BYTES - 4) || !rt_cursor_u32(&c, &count) ||
	    !rt_cursor_bytes(&c, (uint64_t)count * ROW_BYTES, &table))
		return false;
	high = count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (!start_at(table, image->big_endian, mid, section, &start))
			return false;
		if (start.v <= addr.v)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || !start_at(table, image->big_endian, low - 1, section, &start) || start.v > addr.v)
		return false;
	*ret = start;
	return true;
}

bool rt_image_code_start(const struct rt_image *image, struct rt_elfaddr addr, struct rt_elfaddr *ret)
{
	size_t count = rt_section_count(image);
	struct rt_section s;

	for (size_t i = 0; i < count && rt_section_bare(image, i, &s); i++) {
		if (!(s.flags & SHF_EXECINSTR) || addr.v < s.addr.v || addr.v - s.addr.v >= s.size)
			continue;
		*ret = s.addr;
		return true;
	}
	return false;
}
