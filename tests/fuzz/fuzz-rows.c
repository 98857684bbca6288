/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Unwind rows of foreign frame sections. Four bytes: the size of .eh_frame, which follows; the rest is .debug_frame.
 * Code lies in [0x1000, 0x101000), .eh_frame at 0x200000.
 */
#include <stdint.h>
#include <stdlib.h>

#include "dwarf/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { START = 0x1000, END = 0x101000, FRAMES = 0x200000 };

static void check(const struct rt_unwind_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct rt_unwind_row *r = &rows->row[i];
		uint32_t before = i ? rows->row[i - 1].rule : RT_UNWIND_NONE;

		if ((i && r->pc <= rows->row[i - 1].pc) || r->rule == before || r->pc > END - START ||
		    rt_unwind_kind(r->rule) > RT_UNWIND_OTHER)
			abort();
		if (rt_unwind_rule(rows, (struct rt_elfaddr){ rows->base.v + r->pc }) != r->rule ||
		    rt_unwind_rule(rows, (struct rt_elfaddr){ rows->base.v + r->pc - 1 }) != before)
			abort();
	}
	/* what lies behind the code has no rule */
	if (rt_unwind_rule(rows, (struct rt_elfaddr){ END }) != RT_UNWIND_NONE)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_cursor c = rt_cursor_make(rt_bytes_make(data, size), false);
	struct rt_unwind_sections s = { .start = { START }, .end = { END }, .eh_frame_at = { FRAMES } };
	struct rt_unwind_rows *rows = NULL;
	struct rt_error *err;
	uint32_t part;

	if (!rt_cursor_u32(&c, &part))
		return 0;
	if (part > rt_cursor_left(&c))
		part = (uint32_t)rt_cursor_left(&c);
	(void)rt_cursor_bytes(&c, part, &s.eh_frame);
	(void)rt_cursor_bytes(&c, rt_cursor_left(&c), &s.debug_frame);
	err = rt_unwind_rows_compile(&s, &rows);
	if (!err)
		check(rows);
	rt_error_free(err);
	rt_unwind_rows_destroy(rows);
	return 0;
}
