/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of dwarf/: finding the definition of a struct. */
#pragma once

#include "dwarf/unit.h"

/*
 * Reads the names of all types, those of dwarf->type_dies, and finds the units' variables that are pointers,
 * or structs: dwarf->global_dies. Doing it again costs nothing.
 */
RT_CHECK struct rt_error *rt_types_read(struct rt_dwarf *dwarf);
/* Definition of the struct, class or union of this tag or typedef name. */
bool rt_type_find(struct rt_dwarf *dwarf, const char *name, Dwarf_Die *ret);
/* Definition of the struct that type is, behind typedefs and qualifiers; false when it is none. */
bool rt_type_struct(struct rt_dwarf *dwarf, Dwarf_Die *type, Dwarf_Die *ret);
bool rt_type_is_aggregate(Dwarf_Die *type);
/* Each named struct once, by its tag, or by the typedef of one that has none; until visit returns false. */
RT_CHECK struct rt_error *rt_type_each_struct(struct rt_dwarf *dwarf,
					      bool (*visit)(const char *name, Dwarf_Die *structure, void *arg),
					      void *arg);
/* die describes what lies in a struct: a member, or a base; not what a class merely declares */
bool rt_is_member(Dwarf_Die *die);
/* The variable has one address, for all of the code. */
bool rt_global_address(struct rt_dwarf *dwarf, Dwarf_Die *variable, uint64_t *ret);
/* Member of a struct's definition by its name, nameless structs and base classes looked into: its DIE, and where it is.
 */
bool rt_member_find(struct rt_dwarf *dwarf, Dwarf_Die *structure, const char *name, uint64_t *ret_offset,
		    Dwarf_Die *ret);
/* Bytes from the start of the struct that the member's DIE lies in; of a bit field the byte that its first bit is in.
 */
bool rt_member_offset(Dwarf_Die *die, uint64_t *ret);
/*
 * spelled->type, which is that of `type`; of a pointer to a struct that begins with others, by value, with '|' between
 * the pointers to those as well ("struct sub *|struct base *"): it is each of them. Structs that the unit only declares
 * begin with nothing that is known. NULL: spelled has none, or out of memory.
 */
const char *rt_type_spell_heads(struct rt_dwarf *dwarf, Dwarf_Die *type, const struct rt_param *spelled);
