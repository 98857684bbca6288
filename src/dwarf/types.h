/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of dwarf/: finding the definition of a struct. */
#pragma once

#include "dwarf/unit.h"

/* Definition of the struct, class or union of this tag or typedef name. */
bool rt_type_find(struct rt_dwarf *dwarf, const char *name, Dwarf_Die *ret);
/* Definition of the struct that type is, behind typedefs and qualifiers; false when it is none. */
bool rt_type_struct(struct rt_dwarf *dwarf, Dwarf_Die *type, Dwarf_Die *ret);
bool rt_type_is_aggregate(Dwarf_Die *type);
