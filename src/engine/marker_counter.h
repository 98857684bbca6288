/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters (semaphores) that the kernel raises in the wrong place. It looks for the counter by its offset in the file,
 * in the first writable mapping that holds that offset. Where a linker lays data behind the part that is made read-only
 * after relocation (lld, mold), both lie in one page of the file, which is then mapped twice; while a program starts
 * both mappings are writable, and the first is not the counter's. When the breakpoint is taken away the first one is
 * read-only: then the right counter is lowered, once for each mapping of the page that holds the breakpoint. So raising
 * the right one by that number is all that is missing.
 */
#pragma once

#include "elf/sdt.h"
#include "engine/marker_files.h"

/* Does the kernel raise this marker's counter elsewhere, where the file is mapped after the marker was armed? */
bool rt_counter_is_skewed(const struct rt_image *image, const struct rt_sdt_marker *marker);

/* Bias of a file whose code is mapped at start from this page of the file on. false: none of its code lies there. */
bool rt_counter_bias(const struct rt_image *image, uint64_t start, uint64_t page_offset, uint64_t *ret);

enum rt_counter_state {
	RT_COUNTER_NOT_YET, /* the file is not wholly mapped, or the marker not armed */
	RT_COUNTER_RAISED,  /* it is right now */
	RT_COUNTER_GONE,    /* the process is, or may not be written to */
};

/*
 * Raises the counter of an armed marker in a process that has mapped the file with this bias (runtime address - ELF
 * address), if the kernel has raised it elsewhere.
 */
enum rt_counter_state rt_counter_raise(uint32_t pid, const struct rt_image *image, const struct rt_sdt_marker *marker,
				       uint64_t bias);
