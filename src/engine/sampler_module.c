// SPDX-License-Identifier: GPL-2.0-only
/*
 * Modules of the kernel: those that are there, as records of process -1, and those that come while it is recorded. The
 * kernel has no record for these; its tracepoints tell, on every CPU, beside the side-band.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "engine/sampler_priv.h"

/* "name size refs deps state 0xaddress ..." of /proc/modules: its fields, cut apart in place. false: another form. */
static bool parse_module(char *line, const char **ret_name, uint64_t *ret_size, uint64_t *ret_addr)
{
	const char *field[6];
	char *at = line;

	for (size_t i = 0; i < 6; i++) {
		size_t len = strcspn(at, " \n");

		if (!len)
			return false;
		field[i] = at;
		at += len;
		if (*at)
			*at++ = 0;
	}
	*ret_name = field[0];
	return strlen(field[0]) < 64 && rt_parse_u64(field[1], strlen(field[1]), 10, ret_size) && *ret_size &&
	       !strncmp(field[5], "0x", 2) && rt_parse_u64(field[5] + 2, strlen(field[5] + 2), 16, ret_addr) &&
	       *ret_addr;
}

static struct rt_error *emit_module(struct rt_sampler *s, struct rt_event_sink *sink, char *line, bool all)
{
	struct rt_synth_map map = { .pid = UINT32_MAX, .prot = PROT_EXEC, .cpumode = PERF_RECORD_MISC_KERNEL };
	char shown[68], path[160];
	const char *name;
	uint64_t *look;
	bool known;

	if (!parse_module(line, &name, &map.bytes, &map.start))
		return NULL;
	snprintf(shown, sizeof(shown), "[%s]", name);
	look = rt_map_put(&s->kernel.modules, rt_key_make(map.start, rt_key_text(shown).a), NULL);
	if (!look)
		return rt_error_nomem();
	known = *look && *look == s->kernel.looks - 1;
	*look = s->kernel.looks;
	if (known && !all)
		return NULL;
	snprintf(path, sizeof(path), "/sys/module/%s/notes/.note.gnu.build-id", name);
	rt_build_id_of_notes(path, &map.build_id);
	map.name = shown;
	return rt_sampler_emit_map(s, sink, &map);
}

struct rt_error *rt_sampler_emit_modules(struct rt_sampler *s, struct rt_event_sink *sink, bool all)
{
	_cleanup_fclose_ FILE *modules = fopen("/proc/modules", "re");
	_cleanup_free_ char *line = NULL;
	size_t cap = 0;

	s->kernel.looks++;
	while (modules && getline(&line, &cap, modules) > 0)
		RT_TRY(emit_module(s, sink, line, all));
	return NULL;
}

struct rt_error *rt_sampler_watch_modules(struct rt_sampler *s)
{
	static const char *const names[] = { "module:module_load", "module:module_free" };
	const struct rt_event_places places = { .tracefs = s->tracefs, .pmus = -1 };

	if (s->tracefs < 0 || faccessat(s->tracefs, "events/module/module_load/id", R_OK, AT_EACCESS))
		return NULL; /* a kernel without modules, or not to be asked */
	/* who records them tells of them, with formats of his own */
	for (size_t i = 0; i < s->names.len; i++) {
		const char *group = s->names.data[i].group;

		if (s->names.data[i].kind == RT_EVENT_TRACEPOINT && !strcmp(group, "module"))
			return NULL;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		RT_TRY(rt_event_names_parse(names[i], &places, &s->module_names));
	return NULL;
}

struct rt_error *rt_sampler_module_changed(struct rt_sampler *s, struct rt_event_sink *sink)
{
	struct rt_error *err;

	if (!s->kernel.module_ns)
		return NULL;
	s->synth_ns = s->kernel.module_ns;
	s->kernel.module_ns = 0;
	err = rt_sampler_emit_modules(s, sink, false);
	s->synth_ns = 0;
	return err;
}
