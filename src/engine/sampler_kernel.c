// SPDX-License-Identifier: GPL-2.0-only
/* The kernel's own text, as a record of process -1. */
#include <sys/mman.h>

#include "base/text.h"
#include "engine/sampler_priv.h"

/* "ffffffff81000000 T _text" */
static bool parse_symbol(char *line, uint64_t *ret_addr, const char **ret_name)
{
	size_t digits = strspn(line, "0123456789abcdef");

	if (!rt_parse_u64(line, digits, 16, ret_addr) || line[digits] != ' ' || !line[digits + 1] ||
	    line[digits + 2] != ' ')
		return false;
	*ret_name = line + digits + 3;
	line[strcspn(line, "\t\n")] = 0;
	return true;
}

/*
 * _text and _etext; both 0 where the kernel hides its addresses (kernel.kptr_restrict). The code that it started with
 * lies further back, and is what the idle tasks were called from: up to _einittext, where perf would else know no
 * mapping.
 */
static void find_text(struct rt_sampler *s)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	_cleanup_free_ char *line = NULL;
	size_t cap = 0;
	uint64_t start = 0, end = 0;

	s->kernel.looked = true;
	while (f && getline(&line, &cap, f) > 0) {
		const char *name;
		uint64_t addr;

		if (!parse_symbol(line, &addr, &name))
			continue;
		if (!strcmp(name, "_text") || (!start && !strcmp(name, "_stext")))
			start = addr;
		else if (!strcmp(name, "_etext"))
			end = addr;
		if (start && end && !strcmp(name, "_einittext")) {
			end = addr > end ? addr : end;
			break;
		}
		if (addr == 0 && !strcmp(name, "_text"))
			return;
	}
	if (start && end > start) {
		s->kernel.start = start;
		s->kernel.end = end;
	}
}

struct rt_error *rt_sampler_emit_kernel(struct rt_sampler *s, struct rt_event_sink *sink)
{
	struct rt_synth_map map = {
		.pid = UINT32_MAX,
		.prot = PROT_EXEC,
		.cpumode = PERF_RECORD_MISC_KERNEL,
		.name = "[kernel.kallsyms]_text",
	};

	if (!s->kernel.looked)
		find_text(s);
	if (!s->kernel.start)
		return NULL;
	map.start = map.offset = s->kernel.start;
	map.bytes = s->kernel.end - s->kernel.start;
	rt_build_id_of_notes("/sys/kernel/notes", &map.build_id);
	RT_TRY(rt_sampler_emit_map(s, sink, &map));
	return rt_sampler_emit_modules(s, sink, true);
}
