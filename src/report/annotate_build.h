/* SPDX-License-Identifier: GPL-2.0-only */
/* What the builders of annotations share. Private to report/. */
#pragma once

#include "base/intern.h"
#include "insn/insn.h"
#include "report/annotate.h"

/* Code of one function beyond this is not shown. */
#define RT_ANNOTATE_CODE_MAX (1u << 20)

/* An annotation that is being built: grows, and knows where jumps go. */
struct rt_annotation_storage {
	struct rt_intern strings;
	RT_VEC(struct rt_annotation_line) lines;
	RT_VEC(uint64_t) targets; /* beside lines; RT_NO_TARGET = none */
	const char **events;
};

#define RT_NO_TARGET UINT64_MAX

/* RT_E_USAGE when hits has no or too many events. */
RT_CHECK struct rt_error *rt_annotation_begin(const struct rt_annotate_hits *hits, struct rt_annotation **ret);

/* A copy that lives as long as the annotation; NULL for NULL; "" without memory. */
const char *rt_annotation_keep(struct rt_annotation *a, const char *text);
void rt_annotation_note(struct rt_annotation *a, const char *note);

/* A new last line, jumping to target (or RT_NO_TARGET); bytes are copied. NULL: out of memory. */
struct rt_annotation_line *rt_annotation_add(struct rt_annotation *a, uint64_t address, struct rt_bytes bytes,
					     const char *text, uint64_t target);

/* All machine instructions of code, which lies at address. */
RT_CHECK struct rt_error *rt_annotation_machine_code(struct rt_annotation *a, uint16_t machine, struct rt_bytes code,
						     uint64_t address);

/* Line whose instruction covers address; RT_NO_LINE: none. */
size_t rt_annotation_at(const struct rt_annotation *a, uint64_t address);

/* Where the line at index goes, RT_NO_TARGET: nowhere that is known. */
uint64_t rt_annotation_target(const struct rt_annotation *a, size_t index);

/* After the last line: labels. */
void rt_annotation_end(struct rt_annotation *a);

/* Counts a hit at the line with this index. */
void rt_annotation_hit(struct rt_annotation *a, size_t line, const struct rt_annotate_hit *hit);
