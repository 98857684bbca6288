/* SPDX-License-Identifier: GPL-2.0-only */
/* Walks the ELF notes in a range of bytes. Private to elf/. */
#pragma once

#include "base/bytes.h"

struct rt_note {
	struct rt_bytes name; /* with its NUL */
	struct rt_bytes desc;
	uint32_t type;
};

/* The note at the cursor. false: the end, or a cut note (then the cursor is not at the end). align: 4 or 8. */
bool rt_note_next(struct rt_cursor *cursor, size_t align, struct rt_note *ret);

/* true when the note has this owner and type. */
bool rt_note_is(const struct rt_note *note, const char *owner, uint32_t type);
