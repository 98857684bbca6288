/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of dwarf/: location expressions in words. */
#pragma once

#include "dwarf/listing.h"
#include "dwarf/location.h"

/* An expression of debug info in words. */
struct rt_where_text {
	enum rt_where where;
	bool frame;     /* in the frame of the function */
	char text[256]; /* cut when longer */
};
void rt_where_tell(const struct rt_expression *e, const Dwarf_Op *ops, size_t count, struct rt_where_text *ret);
