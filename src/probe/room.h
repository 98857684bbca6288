/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What leads into a straight line of code: where it does, an instruction does not run once for each call, and an engine
 * must not write over what stands in front of it.
 */
#pragma once

#include "probe/site.h"

enum {
	RT_LINE_BYTES = 256, /* how far the line is followed */
	RT_LINE_BEFORE = 64, /* bytes before its entry that are known, too */
};

/* Which bytes from RT_LINE_BEFORE before the entry on are jump targets. */
struct rt_labels {
	uint64_t bits[(RT_LINE_BEFORE + RT_LINE_BYTES) / 64];
	uint64_t begins; /* of the bytes before the entry: where instructions begin, bit 0 is the first of them */
	uint32_t jumps, tables; /* through jump tables; those that were found */
	bool complete;          /* every other branch of the function was looked at */
};

/* Looks at all code of the request's function. */
void rt_labels_read(const struct rt_site_request *r, struct rt_labels *ret);
/* Of the byte at entry + offset, which may be negative. */
bool rt_is_label(const struct rt_labels *labels, int64_t offset);
/*
 * Whether the engine can write over r->room bytes at entry + offset, or from *ret_before bytes before that on where
 * code runs straight to it.
 */
bool rt_has_room(const struct rt_site_request *r, const struct rt_labels *labels, int64_t offset, uint8_t *ret_before);
