/* SPDX-License-Identifier: GPL-2.0-only */
/* Members of structs, and variables, that point to functions. */
#include "dwarf/types.h"

#include <string.h>

enum { NESTING_MAX = 8, MEMBERS_MAX = 2000000 };

struct search {
	struct rt_dwarf *dwarf;
	bool (*wanted)(const char *name, void *arg);
	bool (*visit)(const struct rt_function_pointer *p, void *arg);
	void *arg;
	const char *structure;
	unsigned budget;
	bool stopped;
};

/* It is given in one register, and not in one for fractions. */
static bool is_scalar(Dwarf_Die *type)
{
	Dwarf_Die peeled;
	uint64_t encoding;

	if (!rt_type_peel(type, &peeled))
		return false;
	switch (dwarf_tag(&peeled)) {
	case DW_TAG_pointer_type:
	case DW_TAG_enumeration_type:
		return true;
	case DW_TAG_base_type:
		return rt_die_number(&peeled, DW_AT_encoding, &encoding) && encoding != DW_ATE_float &&
		       encoding != DW_ATE_complex_float;
	default:
		return false;
	}
}

/* Which argument of the functions that type points to is a pointer to anything; 0: none, or it is not one alone. */
static unsigned mere_pointer(const struct search *s, Dwarf_Die *type)
{
	Dwarf_Die at, child, param;
	unsigned found = 0, n = 0;
	bool scalar = true;

	if (!rt_type_peel(type, &at) || dwarf_tag(&at) != DW_TAG_pointer_type || !rt_die_type(&at, &at) ||
	    !rt_type_peel(&at, &at) || dwarf_tag(&at) != DW_TAG_subroutine_type || dwarf_child(&at, &child) != 0)
		return 0;
	do {
		struct rt_param spelled = { 0 };

		if (dwarf_tag(&child) != DW_TAG_formal_parameter || !rt_die_type(&child, &param))
			continue;
		n++;
		rt_type_spell(s->dwarf, &param, &spelled);
		if (rt_param_is_anything(&spelled)) {
			if (found || !scalar)
				return 0;
			found = n;
		}
		scalar &= is_scalar(&param);
	} while (rt_die_next(&child));
	return found;
}

static void see(struct search *s, Dwarf_Die *die, uint64_t place, unsigned level);

/* the struct lies at this place */
static void see_members(struct search *s, Dwarf_Die *structure, uint64_t place, unsigned level)
{
	Dwarf_Die child;
	uint64_t offset;

	if (dwarf_child(structure, &child) != 0)
		return;
	do {
		if (rt_is_member(&child) && rt_member_offset(&child, &offset))
			see(s, &child, place + offset, level);
	} while (!s->stopped && rt_die_next(&child));
}

/* die, a member or a variable, lies at this place */
static void see(struct search *s, Dwarf_Die *die, uint64_t place, unsigned level)
{
	const char *name = dwarf_diename(die);
	struct rt_function_pointer p = { .structure = s->structure, .place = place };
	Dwarf_Die type, inner;

	if (!s->budget || !rt_die_type(die, &type))
		return;
	s->budget--;
	if (!rt_type_struct(s->dwarf, &type, &inner)) {
		p.argument = name && s->wanted(name, s->arg) ? mere_pointer(s, &type) : 0;
		s->stopped = p.argument && !s->visit(&p, s->arg);
		return;
	}
	if (level <= NESTING_MAX)
		see_members(s, &inner, place, level + 1);
}

static bool see_struct(const char *name, Dwarf_Die *structure, void *arg)
{
	struct search *s = arg;

	s->structure = name;
	see_members(s, structure, 0, 1);
	return !s->stopped;
}

struct rt_error *rt_dwarf_function_pointers(struct rt_dwarf *dwarf, bool (*wanted)(const char *name, void *arg),
					    bool (*visit)(const struct rt_function_pointer *p, void *arg), void *arg)
{
	struct search s = { .dwarf = dwarf, .wanted = wanted, .visit = visit, .arg = arg, .budget = MEMBERS_MAX };
	uint64_t address;

	RT_TRY(rt_type_each_struct(dwarf, see_struct, &s));
	s.structure = NULL;
	for (size_t i = 0; dwarf->dw && i < dwarf->global_dies.len && !s.stopped; i++) {
		Dwarf_Die variable = dwarf->global_dies.data[i];

		if (rt_global_address(dwarf, &variable, &address))
			see(&s, &variable, address, 0);
	}
	return NULL;
}
