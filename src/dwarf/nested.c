/* SPDX-License-Identifier: GPL-2.0-only */
/* The structs that lie in a struct, by value, around one of its bytes. */
#include "dwarf/types.h"

enum { NESTING_MAX = 8, MEMBERS_MAX = 20000 };

/* The member of structure, an aggregate itself, that byte *offset lies in, which is that one's then; false: none. */
static bool part_at(struct rt_dwarf *dwarf, Dwarf_Die *structure, uint64_t *offset, Dwarf_Die *ret)
{
	Dwarf_Die child, type;
	Dwarf_Word size;
	uint64_t at;

	if (dwarf_child(structure, &child) != 0)
		return false;
	for (unsigned n = 0; n < MEMBERS_MAX; n++) {
		if (rt_is_member(&child) && rt_die_type(&child, &type) && rt_member_offset(&child, &at) &&
		    at <= *offset && rt_type_struct(dwarf, &type, ret) && dwarf_aggregate_size(ret, &size) == 0 &&
		    *offset - at < size) {
			*offset -= at;
			return true;
		}
		if (!rt_die_next(&child))
			return false;
	}
	return false;
}

bool rt_dwarf_nested(struct rt_dwarf *dwarf, const char *structure, uint64_t offset, const char *part)
{
	Dwarf_Die at, inner;

	if (!rt_type_find(dwarf, structure, &at))
		return false;
	for (unsigned n = 0; n < NESTING_MAX && part_at(dwarf, &at, &offset, &inner); n++) {
		Dwarf_Die named;

		at = inner;
		if (rt_type_find(dwarf, part, &named) && named.addr == at.addr)
			return true;
	}
	return false;
}
