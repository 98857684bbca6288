/* SPDX-License-Identifier: GPL-2.0-only */
/* Source lines. libdw keeps each unit's table, sorted, from the first question on. */
#include "dwarf/listing.h"
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

struct rt_error *rt_dwarf_each_file(struct rt_dwarf *dwarf, bool (*visit)(const char *file, void *arg), void *arg)
{
	_cleanup_(rt_map_deinit) struct rt_map seen = { 0 };

	for (size_t u = 0; dwarf->dw && u < dwarf->units.len; u++) {
		struct rt_unit *unit = &dwarf->units.data[u];
		Dwarf_Files *files;
		size_t count;

		if (!unit->code || dwarf_getsrcfiles(&unit->die, &files, &count) != 0)
			continue;
		for (size_t i = 0; i < count; i++) {
			const char *file = rt_dwarf_path(dwarf, &unit->die, dwarf_filesrc(files, i, NULL, NULL));
			bool is_new;

			if (!file)
				continue;
			/* interned: equal text, equal pointer */
			if (!rt_map_put(&seen, rt_key_make((uintptr_t)file, 0), &is_new))
				return rt_error_nomem();
			if (is_new && !visit(file, arg))
				return NULL;
		}
	}
	return NULL;
}
