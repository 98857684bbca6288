/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/note.h"

#include <string.h>

bool rt_note_next(struct rt_cursor *cursor, size_t align, struct rt_note *ret)
{
	struct rt_cursor c = *cursor;
	uint32_t name_size, desc_size;
	struct rt_note note;

	if (!rt_cursor_u32(&c, &name_size) || !rt_cursor_u32(&c, &desc_size) || !rt_cursor_u32(&c, &note.type))
		return false;
	if (!rt_cursor_bytes(&c, name_size, &note.name) || !rt_cursor_align(&c, align) ||
	    !rt_cursor_bytes(&c, desc_size, &note.desc))
		return false;
	/* the last note's padding may be missing */
	if (!rt_cursor_align(&c, align))
		c.pos = c.bytes.size;
	*cursor = c;
	*ret = note;
	return true;
}

bool rt_note_is(const struct rt_note *note, const char *owner, uint32_t type)
{
	size_t len = strlen(owner) + 1;

	return note->type == type && note->name.size == len && !memcmp(note->name.data, owner, len);
}
