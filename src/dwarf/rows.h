/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The unwind rows of a whole image at once (wire/unwind.h): .eh_frame, and where that says nothing .debug_frame,
 * compiled by an interpreter of our own. Much cheaper per place than a question to libdw, and a table that other
 * programs than ours can walk. Damaged information gives fewer rows or rows of kind OTHER, never wrong addresses.
 *
 * A table is immutable; threads may share it.
 */
#pragma once

#include "elf/image.h"
#include "wire/unwind.h"

#define RT_UNWIND_ROWS_MAX (4u << 20) /* of one image: 32 MiB */
#define RT_UNWIND_ENTRY_BYTES 128     /* code at the entry point that is its own where nothing tells otherwise */

struct rt_unwind_rows {
	struct rt_elfaddr base;    /* rows count from here: where the first executable segment starts */
	struct rt_unwind_row *row; /* [count], by pc, each rule other than the one before; owned */
	size_t count;
	size_t functions; /* FDEs that they were made from */
	bool limited;     /* there would be more than RT_UNWIND_ROWS_MAX: code behind them has none */
};

/* What rows are made from. Little-endian, x86-64. */
struct rt_unwind_sections {
	struct rt_elfaddr start,
		end; /* code lies in [start, end): less than 4 GiB; what is told about other code is not taken */
	struct rt_bytes eh_frame, debug_frame; /* empty: there is none */
	struct rt_elfaddr eh_frame_at;         /* its address */
	struct rt_elfaddr entry; /* where the kernel starts the image: nobody calls it; code there that no frame tells
				    of (the dynamic linker's) is outermost. 0: nowhere */
};
/* RT_E_NOMEM. *ret holds nothing of the sections. */
RT_CHECK struct rt_error *rt_unwind_rows_compile(const struct rt_unwind_sections *sections,
						 struct rt_unwind_rows **ret);

/* An image of another machine, or without frame information, has no rows: success. Else RT_E_NOMEM. */
RT_CHECK struct rt_error *rt_unwind_rows_create(const struct rt_image *image, struct rt_unwind_rows **ret);
/* The same with this .debug_frame, wherever it is from (decompressed). */
RT_CHECK struct rt_error *rt_unwind_rows_create_with(const struct rt_image *image, struct rt_bytes debug_frame,
						     struct rt_unwind_rows **ret);
void rt_unwind_rows_destroy(struct rt_unwind_rows *rows);
RT_CLEANUP(struct rt_unwind_rows *, rt_unwind_rows_destroy);

/* The rule for the instruction at addr; kind NONE where there is none. */
uint32_t rt_unwind_rule(const struct rt_unwind_rows *rows, struct rt_elfaddr addr);
