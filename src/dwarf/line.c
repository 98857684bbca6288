/* SPDX-License-Identifier: GPL-2.0-only */
/* Source lines. libdw keeps each unit's table, sorted, from the first question on. */
#include "dwarf/unit.h"

bool rt_dwarf_line(struct rt_dwarf *dwarf, struct rt_elfaddr addr, struct rt_source_line *ret)
{
	size_t pos = SIZE_MAX;
	uint32_t index;

	while (dwarf->dw && rt_spans_next(&dwarf->spans, addr.v, &pos, &index)) {
		struct rt_unit *unit = &dwarf->units.data[index];
		Dwarf_Line *line = dwarf_getsrc_die(&unit->die, addr.v);
		const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
		int number = 0, column = 0;
		bool stmt = false;

		if (!file)
			continue;
		dwarf_lineno(line, &number);
		dwarf_linecol(line, &column);
		dwarf_linebeginstatement(line, &stmt);
		ret->file = rt_dwarf_path(dwarf, &unit->die, file);
		ret->line = number > 0 ? number : 0;
		ret->column = column > 0 ? column : 0;
		ret->is_stmt = stmt;
		return ret->file != NULL;
	}
	return false;
}
