/* SPDX-License-Identifier: GPL-2.0-only */
/* Variables of the program, or of one of its files, that point to a struct. */
#include "dwarf/location.h"
#include "dwarf/types.h"

bool rt_global_address(struct rt_dwarf *dwarf, Dwarf_Die *variable, uint64_t *ret)
{
	struct rt_expression e = { .dwarf = dwarf };
	struct rt_location where = { 0 };
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t nops;

	if (!dwarf_attr(variable, DW_AT_location, &attr) || dwarf_getlocation(&attr, &ops, &nops) != 0 || !nops)
		return false;
	e.attr = &attr;
	if (rt_location_evaluate(&e, ops, nops, &where) || where.base != RT_LOCATION_ADDRESS || where.is_value ||
	    where.deref_count)
		return false;
	*ret = where.number + (uint64_t)where.offset;
	return true;
}

struct rt_error *rt_dwarf_pointer_globals(struct rt_dwarf *dwarf,
					  bool (*visit)(struct rt_elfaddr addr, const char *pointee, void *arg),
					  void *arg)
{
	bool more = true;

	if (!dwarf->dw)
		return NULL;
	RT_TRY(rt_types_read(dwarf));
	for (size_t i = 0; i < dwarf->global_dies.len && more; i++) {
		Dwarf_Die die = dwarf->global_dies.data[i], type;
		struct rt_param spelled = { 0 };
		struct rt_elfaddr at;

		if (!rt_die_type(&die, &type))
			continue;
		rt_type_spell(dwarf, &type, &spelled);
		if (spelled.pointers == 1 && spelled.pointee && rt_global_address(dwarf, &die, &at.v))
			more = visit(at, spelled.pointee, arg);
	}
	return NULL;
}
