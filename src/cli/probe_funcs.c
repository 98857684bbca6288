/* SPDX-License-Identifier: GPL-2.0-only */
/* probe funcs: the functions of a file that a probe can name. */
#include <string.h>

#include "cli/listing.h"
#include "cli/probe_command.h"
#include "elf/demangle.h"
#include "probe/functions.h"
#include "probe/near.h"
#include "probe/spec.h"
#include "report/words.h"

static const struct argp_child children[] = { { &rt_listing_options }, { &rt_root_argp }, { &rt_common_argp }, { 0 } };
static const struct argp funcs_argp = { NULL, rt_parse_operands, "funcs FILE [GLOB]",
					"Lists the functions of a program or library that can be probed.", children };

static bool matches(const char *pattern, const struct rt_listed *f, const char *name)
{
	_cleanup_free_ char *bare = NULL;

	if (!pattern || rt_glob_match(pattern, f->name) || (name && rt_glob_match(pattern, name)) ||
	    (f->source_name && rt_glob_match(pattern, f->source_name)))
		return true;
	for (size_t i = 0; i < f->alias_count; i++) {
		if (rt_glob_match(pattern, f->aliases[i]))
			return true;
	}
	/* "ns::work" is also "ns::work(int)" */
	bare = name ? rt_demangle_name(f->name) : NULL;
	return bare && rt_glob_match(pattern, bare);
}

static void function_text(struct rt_listing *file, const struct rt_listed *f)
{
	if (f->has_body)
		rt_sink_printf(&file->out, "  0x%-10llx %6llu  ", (unsigned long long)f->addr.v,
			       (unsigned long long)f->size);
	else
		rt_sink_printf(&file->out, "  %-12s %6s  ", "inlined", "");
	rt_sink_puts(&file->out, rt_listing_name(file, f->name));
	if (f->file)
		rt_sink_printf(&file->out, "  %s:%u", rt_shorten(&file->arena, rt_clean(&file->arena, f->file), 48),
			       f->line);
	if (f->inlined)
		rt_sink_printf(&file->out, "  %s%u instance%s",
			       f->has_body ? "and inlined: " : "only inlined: ", f->inlined, rt_plural(f->inlined));
	if (f->ifunc)
		rt_sink_puts(&file->out, "  chooses an implementation (ifunc): runs once");
	for (size_t i = 0; i < f->alias_count; i++)
		rt_sink_printf(&file->out, "%s%s", i ? ", " : "  also: ", rt_listing_name(file, f->aliases[i]));
	rt_sink_puts(&file->out, "\n");
}

static void function_json(struct rt_listing *file, const struct rt_listed *f)
{
	rt_json_begin_object(&file->json, NULL);
	rt_json_string(&file->json, "name", rt_listing_name(file, f->name));
	rt_json_string(&file->json, "symbol", f->name);
	if (f->has_body) {
		rt_json_hex(&file->json, "address", f->addr.v);
		rt_json_u64(&file->json, "size", f->size);
	}
	if (f->file) {
		rt_json_string(&file->json, "source", f->file);
		rt_json_u64(&file->json, "line", f->line);
	}
	rt_json_u64(&file->json, "inlined", f->inlined);
	rt_json_bool(&file->json, "only_inlined", !f->has_body);
	rt_json_bool(&file->json, "exported", f->exported);
	rt_json_bool(&file->json, "ifunc", f->ifunc);
	rt_json_begin_array(&file->json, "aliases");
	for (size_t i = 0; i < f->alias_count; i++)
		rt_json_string(&file->json, NULL, f->aliases[i]);
	rt_json_end_array(&file->json);
	rt_json_end_object(&file->json);
}

static struct rt_error *nothing(struct rt_listing *file, const struct rt_functions *functions, const char *pattern)
{
	struct rt_near near = { .wanted = pattern };
	struct rt_error *err;

	if (!functions->list.len)
		return rt_error_fix(rt_error_new(RT_E_STRIPPED, "%s has no function with a name", file->path), "%s",
				    rt_listing_debug_fix(file));
	err = rt_error_new(RT_E_NO_FUNCTION, "no function of %s is called '%s'", file->path, pattern);
	for (size_t i = 0; i < functions->list.len; i++)
		rt_near_offer(&near, functions->list.data[i].source_name ?: functions->list.data[i].name);
	if (near.count)
		return rt_error_fix(err, "did you mean %s? all of them: reftrace probe funcs %s", near.names[0],
				    file->path);
	return rt_error_fix(err, "all of them: reftrace probe funcs %s", file->path);
}

static struct rt_error *show(struct rt_listing *file, const struct rt_functions *functions, const char *pattern)
{
	bool json = file->options->format == RT_FORMAT_JSON;
	size_t shown = 0, inlined = 0, exported = 0;

	if (json) {
		rt_listing_json_begin(file);
		rt_json_begin_array(&file->json, "functions");
	}
	for (size_t i = 0; i < functions->list.len; i++) {
		const struct rt_listed *f = &functions->list.data[i];
		_cleanup_free_ char *name = pattern ? rt_demangle(f->name) : NULL;

		exported += f->exported;
		if (!matches(pattern, f, name))
			continue;
		shown++;
		inlined += !f->has_body;
		(json ? function_json : function_text)(file, f);
	}
	if (json)
		rt_json_end_array(&file->json);
	else if (shown)
		rt_sink_printf(&file->out, "%zu function%s of %s, %zu only inlined\n", shown, rt_plural(shown),
			       rt_clean(&file->arena, file->path), inlined);
	if (shown)
		rt_listing_note_missing(file, exported);
	RT_TRY(rt_listing_end(file));
	return shown ? NULL : nothing(file, functions, pattern ?: "*");
}

static struct rt_error *funcs(const struct rt_options *options, struct rt_listing *file)
{
	struct rt_functions functions;
	struct rt_error *err = rt_functions_read(file->image, file->symtab, file->dwarf, &functions);

	if (!err)
		err = show(file, &functions, rt_listing_operand(options, 0));
	rt_functions_deinit(&functions);
	return err;
}

int rt_probe_funcs(int argc, char **argv)
{
	return rt_listing_run(&funcs_argp, argc, argv, funcs, 1);
}
