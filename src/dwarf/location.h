/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of dwarf/: location expressions, as far as they are a chain of loads from a register or a fixed address. */
#pragma once

#include "dwarf/unit.h"
#include "dwarf/variable.h"

struct rt_expression {
	struct rt_dwarf *dwarf;
	struct rt_unit *unit;
	const struct rt_node *node; /* the function or instance that the expression belongs to; NULL: none */
	Dwarf_Attribute *attr;      /* that holds it */
	uint64_t addr;              /* of the code where it is asked for */
};

/* NULL and *ret, or why the location cannot be told (static text). */
const char *rt_location_evaluate(const struct rt_expression *e, const Dwarf_Op *ops, size_t nops,
				 struct rt_location *ret);
