/* SPDX-License-Identifier: GPL-2.0-only */
/* Which file is to blame for samples without a function. */
#include <string.h>

#include "base/fs.h"
#include "base/map.h"
#include "report/profile_report.h"
#include "report/words.h"

/* "cc1: cannot read ..." is about /usr/lib/gcc/cc1 */
static bool is_noted(const char *module, const char *const *unnamed, size_t unnamed_count)
{
	const char *name = rt_basename(module);
	size_t len = strlen(name);

	for (size_t i = 0; i < unnamed_count; i++) {
		if (!strncmp(unnamed[i], name, len) && unnamed[i][len] == ':')
			return true;
	}
	return false;
}

struct rt_profile_stripped rt_profile_stripped(const struct rt_profile_part *parts, size_t count,
					       const char *const *unnamed, size_t unnamed_count)
{
	struct rt_profile_stripped most = { .module = NULL };
	struct rt_map by_module = { 0 };

	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < parts[i].table->row_count; k++) {
			const struct rt_profile_row *row = &parts[i].table->rows[k];
			const struct rt_profile_symbol *s = &row->symbol;
			uint64_t *samples;

			/* "[unknown]", "[anon]": no file at all */
			if (!row->samples || s->function || s->kernel || *s->module != '/' ||
			    is_noted(s->module, unnamed, unnamed_count))
				continue;
			samples = rt_map_put(&by_module, rt_key_text(s->module), NULL);
			if (!samples)
				continue; /* no memory: a hint less */
			*samples += row->samples;
			if (*samples > most.samples)
				most = (struct rt_profile_stripped){ s->module, *samples };
		}
	}
	rt_map_deinit(&by_module);
	return most;
}
