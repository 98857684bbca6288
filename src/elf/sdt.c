/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/sdt.h"

#include <elf.h>

#include "base/vec.h"
#include "elf/note.h"
#include "elf/section.h"

#define NT_STAPSDT 3

static bool read_marker(const struct rt_image *image, struct rt_bytes desc, struct rt_sdt_marker *ret,
			struct rt_elfaddr *ret_base)
{
	struct rt_cursor c = rt_cursor_make(desc, image->big_endian);

	return rt_elf_word(image, &c, &ret->location.v) && rt_elf_word(image, &c, &ret_base->v) &&
	       rt_elf_word(image, &c, &ret->semaphore.v) && rt_cursor_string(&c, &ret->provider) &&
	       rt_cursor_string(&c, &ret->name) && rt_cursor_string(&c, &ret->args);
}

struct rt_error *rt_sdt_read(const struct rt_image *image, struct rt_sdt_marker **ret, size_t *ret_count)
{
	RT_VEC(struct rt_sdt_marker) markers = { 0 };
	struct rt_section s, base_section;
	struct rt_bytes notes;
	bool has_base, damaged = false;
	/* sections of a hostile file may overlap: all together are read once */
	size_t at = 0, budget = image->bytes.size;

	has_base = rt_section_find(image, ".stapsdt.base", &at, &base_section);
	at = 0;
	while (!damaged && rt_section_find(image, ".note.stapsdt", &at, &s)) {
		struct rt_cursor c;
		struct rt_note note;

		if (s.type != SHT_NOTE || (s.flags & SHF_COMPRESSED))
			continue;
		damaged = !rt_section_bytes(image, &s, &notes) || notes.size > budget;
		budget -= damaged ? 0 : notes.size;
		c = rt_cursor_make(damaged ? rt_bytes_make(NULL, 0) : notes, image->big_endian);
		while (!damaged && rt_note_next(&c, 4, &note)) {
			struct rt_sdt_marker m = { 0 };
			struct rt_elfaddr base = { 0 };

			if (!rt_note_is(&note, "stapsdt", NT_STAPSDT))
				continue;
			damaged = !read_marker(image, note.desc, &m, &base);
			if (damaged)
				break;
			/* prelink moves the sections but not the addresses inside the notes */
			if (has_base && base.v) {
				m.location.v += base_section.addr.v - base.v;
				if (m.semaphore.v)
					m.semaphore.v += base_section.addr.v - base.v;
			}
			if (!rt_vec_push(&markers, m)) {
				rt_vec_deinit(&markers);
				return rt_error_nomem();
			}
		}
		damaged |= rt_cursor_left(&c) > 0;
	}
	*ret = markers.data;
	*ret_count = markers.len;
	return damaged ? rt_error_new(RT_E_FORMAT, "%s has damaged SDT notes", image->name) : NULL;
}
