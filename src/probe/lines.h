/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where probes can stand on the lines of a source file: the beginnings of statements that are beginnings of
 * instructions, in every function and every inlined instance.
 */
#pragma once

#include "base/vec.h"
#include "dwarf/listing.h"

struct rt_line_place {
	uint32_t line;
	struct rt_elfaddr address;
	struct rt_instance in; /* that it lies in */
	bool refused;          /* the kernel takes no breakpoint on this instruction (lock prefix and the like) */
};

struct rt_lines {
	RT_VEC(struct rt_line_place) places; /* by line, instance, address; no two equal */
	size_t torn;                         /* rows that do not stand at an instruction: left out */
	bool unchecked;                      /* nobody knows the instructions of this machine */
	uint32_t last;                       /* highest line of the file that has code */
};

/*
 * Of the lines [first, last] of file, which is compared as a plain path (rt_fs_plain_path()). Strings live as long as
 * dwarf. Deinit *ret in any case.
 */
RT_CHECK struct rt_error *rt_lines_read(const struct rt_image *image, struct rt_dwarf *dwarf, const char *file,
					uint32_t first, uint32_t last, struct rt_lines *ret);
void rt_lines_deinit(struct rt_lines *lines);

bool rt_line_same_instance(const struct rt_line_place *a, const struct rt_line_place *b);

/* Whether path, of debug info, is meant by name: equal, or its end from a slash on ("src/x.c" of "/a/src/x.c"). */
bool rt_path_is(const char *path, const char *name);
