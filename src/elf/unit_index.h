/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The index of a package of split debug info (.dwp): which parts of its sections belong to a unit. .debug_cu_index of
 * DWARF 5 (section 7.3.5) and its forerunner, GNU's version 2.
 */
#pragma once

#include "base/bytes.h"

enum rt_unit_part {
	RT_UNIT_INFO,
	RT_UNIT_ABBREV,
	RT_UNIT_LINE,
	RT_UNIT_LOC, /* .debug_loclists.dwo; version 2: .debug_loc.dwo */
	RT_UNIT_STR_OFFSETS,
	RT_UNIT_RNGLISTS,
	RT_UNIT_PARTS,
};

struct rt_unit_slice {
	uint64_t offset, size; /* bytes; size 0: the unit has none */
};

struct rt_unit_slices {
	unsigned version; /* 2 or 5 */
	struct rt_unit_slice parts[RT_UNIT_PARTS];
};

/* false: the unit is not in the index, or that is damaged. Slices are not checked against any section. */
bool rt_unit_index_find(struct rt_bytes index, bool big_endian, uint64_t id, struct rt_unit_slices *ret);
