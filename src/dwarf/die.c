/* SPDX-License-Identifier: GPL-2.0-only */
/* Reading single attributes of a DIE, with the checks that damaged input needs. */
#include "dwarf/unit.h"

#include <stdlib.h>
#include <string.h>

const char *rt_die_string(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, attribute, &attr) ? dwarf_formstring(&attr) : NULL;
}

bool rt_die_ref(Dwarf_Die *die, unsigned attribute, Dwarf_Die *ret)
{
	Dwarf_Attribute attr;

	return dwarf_attr(die, attribute, &attr) && dwarf_formref_die(&attr, ret) != NULL;
}

bool rt_die_number(Dwarf_Die *die, unsigned attribute, uint64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr_integrate(die, attribute, &attr) || dwarf_formudata(&attr, &value) != 0)
		return false;
	*ret = value;
	return true;
}

bool rt_die_next(Dwarf_Die *die)
{
	Dwarf_Die next;

	if (dwarf_siblingof(die, &next) != 0 || (uintptr_t)next.addr <= (uintptr_t)die->addr)
		return false;
	*die = next;
	return true;
}

bool rt_die_entry(const struct rt_dwarf *dwarf, Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Addr base, lo, hi, first = 0, lowest = UINT64_MAX, entry = 0;
	bool have_entry = false, entry_inside = false;
	Dwarf_Attribute attr;
	ptrdiff_t at = 0;
	Dwarf_Word offset;

	if (dwarf_attr(die, DW_AT_entry_pc, &attr)) {
		if (dwarf_formaddr(&attr, &entry) == 0) {
			have_entry = true;
		} else if (dwarf_formudata(&attr, &offset) == 0 && dwarf_ranges(die, 0, &base, &lo, &hi) > 0) {
			/* DWARF 5: an offset from the DIE's base address */
			entry = lo + offset;
			have_entry = true;
		}
	}
	for (unsigned i = 0; i < RT_DWARF_RANGES_MAX; i++) {
		at = dwarf_ranges(die, at, &base, &lo, &hi);
		if (at <= 0)
			break;
		if (lo >= hi || !rt_dwarf_in_code(dwarf, lo))
			continue;
		if (lowest == UINT64_MAX)
			first = lo;
		if (lo < lowest)
			lowest = lo;
		entry_inside |= have_entry && entry >= lo && entry < hi;
	}
	if (lowest == UINT64_MAX)
		return false;
	if (entry_inside)
		*ret = entry;
	else
		/* A function's first range is its hot part; that of an instance need not be its start. */
		*ret = dwarf_tag(die) == DW_TAG_subprogram ? first : lowest;
	return true;
}

const char *rt_die_file(struct rt_dwarf *dwarf, Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Half version = 0;
	Dwarf_Files *files;
	Dwarf_Attribute attr;
	Dwarf_Word index;
	Dwarf_Die unit;
	size_t count;

	/* the number counts in the table of the unit that says it, which need not be the one of die */
	if (!dwarf_attr_integrate(die, attribute, &attr) || dwarf_formudata(&attr, &index) != 0 ||
	    dwarf_cu_info(attr.cu, &version, NULL, &unit, NULL, NULL, NULL, NULL) != 0)
		return NULL;
	/* that of a split unit is its skeleton's */
	rt_unit_of_split(dwarf, attr.cu, &unit);
	if (dwarf_getsrcfiles(&unit, &files, &count) != 0)
		return NULL;
	/* libdw's own dwarf_decl_file() takes 0 for "none", which it is before DWARF 5 only */
	if (index >= count || (index == 0 && version < 5))
		return NULL;
	return rt_dwarf_path(dwarf, &unit, dwarf_filesrc(files, index, NULL, NULL));
}

const char *rt_die_linkage(struct rt_dwarf *dwarf, Dwarf_Die *die)
{
	const char *linkage = rt_die_string(die, DW_AT_linkage_name);
	const char *name = rt_die_string(die, DW_AT_name);

	if (!linkage)
		linkage = rt_die_string(die, DW_AT_MIPS_linkage_name);
	if (linkage && name && strcmp(linkage, name) == 0)
		return NULL;
	return rt_dwarf_text(dwarf, linkage);
}

bool rt_die_type(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, DW_AT_type, &attr) && dwarf_formref_die(&attr, ret) != NULL;
}

bool rt_type_peel(Dwarf_Die *type, Dwarf_Die *ret)
{
	Dwarf_Die at = *type, next;

	for (unsigned i = 0; i < RT_DWARF_HOPS_MAX; i++) {
		switch (dwarf_tag(&at)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			if (!rt_die_type(&at, &next))
				return false;
			at = next;
			break;
		default:
			*ret = at;
			return true;
		}
	}
	return false;
}
