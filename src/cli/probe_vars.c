/* SPDX-License-Identifier: GPL-2.0-only */
/* probe vars: the variables in scope at a place, and whether they can be read there. */
#include <inttypes.h>
#include <string.h>

#include "cli/probe_command.h"
#include "cli/probe_place.h"
#include "probe/lines.h"
#include "report/words.h"

static const struct argp_option own[] = {
	{ "externs", RT_OPT_EXTERNS, NULL, 0, "variables outside of functions, too", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	(void)arg;
	if (key != RT_OPT_EXTERNS)
		return ARGP_ERR_UNKNOWN;
	options->list.externs = true;
	return 0;
}

const struct argp rt_probe_vars_options = { own, parse };
static const struct argp_child children[] = {
	{ &rt_listing_options }, { &rt_probe_vars_options }, { &rt_root_argp }, { &rt_common_argp }, { 0 }
};
static const struct argp vars_argp = { NULL, rt_parse_operands,
				       "vars FILE FUNC[@SRC][:LINE]\nvars FILE SRC:LINE\nvars FILE 0xADDR",
				       "Shows the variables in scope at a place, and where each is there.", children };

struct site {
	struct rt_elfaddr addr;
	struct rt_instance in;
};

struct search {
	struct rt_listing *file;
	const struct rt_probe_place *place;
	RT_VEC(struct site) sites;
};

static const char *word(enum rt_where where)
{
	switch (where) {
	case RT_WHERE_READABLE:
		return "readable";
	case RT_WHERE_CONSTANT:
		return "constant";
	case RT_WHERE_ENTRY_VALUE:
		return "entry-value";
	case RT_WHERE_PIECES:
		return "pieces";
	case RT_WHERE_IMPLICIT_POINTER:
		return "implicit-pointer";
	case RT_WHERE_ELSEWHERE:
		return "elsewhere";
	case RT_WHERE_PROLOGUE:
		return "behind-prologue";
	case RT_WHERE_GONE:
		return "optimized-out";
	case RT_WHERE_DECLARED:
		return "declared";
	case RT_WHERE_UNKNOWN:
		break;
	}
	return "unknown";
}

struct showing {
	struct rt_listing *file;
	bool json;
	struct rt_elfaddr prologue;
	size_t count, behind;
};

static const char *ranges_text(struct rt_arena *arena, const struct rt_variable *v)
{
	const char *text = "";

	for (size_t i = 0; i < v->range_count && i < 4; i++)
		text = rt_format(arena, "%s%s0x%" PRIx64 "-0x%" PRIx64, text, i ? ", " : "", v->ranges[i].start.v,
				 v->ranges[i].end.v);
	return v->range_count > 4 ? rt_format(arena, "%s and %zu more", text, v->range_count - 4) : text;
}

static const char *availability(struct rt_arena *arena, const struct rt_variable *v)
{
	switch ((enum rt_where)v->where) {
	case RT_WHERE_ELSEWHERE:
		return rt_format(arena, "not here, but at %s", ranges_text(arena, v));
	case RT_WHERE_PROLOGUE:
		return rt_format(arena, "not yet: the prologue puts it %s", v->text);
	case RT_WHERE_GONE:
		return "optimized out";
	case RT_WHERE_DECLARED:
		return "only declared: it is in another unit or module";
	case RT_WHERE_ENTRY_VALUE:
		return rt_format(arena, "%s: only what a register held at the entry of the function", v->text);
	case RT_WHERE_PIECES:
		return rt_format(arena, "in pieces: %s", v->text);
	default:
		return v->text ?: "unknown";
	}
}

static bool show_variable(const struct rt_variable *v, void *arg)
{
	struct showing *s = arg;
	struct rt_json *json = &s->file->json;
	struct rt_arena *arena = &s->file->arena;

	s->count++;
	s->behind += v->where == RT_WHERE_PROLOGUE;
	if (!s->json) {
		rt_sink_printf(&s->file->out, "  %*s%s%s %s  %s%s%s\n", 2 * v->depth, "",
			       v->external    ? "extern "
			       : v->parameter ? "param "
					      : "",
			       rt_clean(arena, v->type ?: "?"), rt_clean(arena, v->name),
			       rt_clean(arena, availability(arena, v)),
			       v->shadowed ? "  (hidden by one of the same name)" : "",
			       !s->file->options->verbose || !v->line ? "" : rt_format(arena, "  line %u", v->line));
		return true;
	}
	rt_json_begin_object(json, NULL);
	rt_json_string(json, "name", v->name);
	rt_json_string(json, "type", v->type);
	rt_json_string(json, "kind", v->external ? "extern" : v->parameter ? "parameter" : "local");
	rt_json_u64(json, "depth", v->depth);
	rt_json_bool(json, "shadowed", v->shadowed);
	rt_json_string(json, "where", word(v->where));
	if (v->text)
		rt_json_string(json, "location", v->text);
	if (v->line)
		rt_json_u64(json, "line", v->line);
	rt_json_begin_array(json, "ranges");
	for (size_t i = 0; i < v->range_count; i++) {
		rt_json_begin_object(json, NULL);
		rt_json_hex(json, "start", v->ranges[i].start.v);
		rt_json_hex(json, "end", v->ranges[i].end.v);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
	rt_json_end_object(json);
	return true;
}

static void site_head(struct showing *s, const struct site *site)
{
	const struct rt_instance *in = &site->in;
	struct rt_listing *file = s->file;
	struct rt_source_line line = { 0 };
	const char *name = rt_listing_name(file, in->linkage ?: in->function ?: "?");
	bool known = rt_dwarf_line(file->dwarf, site->addr, &line), called;
	const char *call_file = NULL;
	uint32_t call_line = 0;

	called = rt_dwarf_instance_call(file->dwarf, in, &call_file, &call_line);
	if (s->json) {
		rt_json_begin_object(&file->json, NULL);
		rt_json_hex(&file->json, "address", site->addr.v);
		rt_json_string(&file->json, "function", name);
		rt_json_hex(&file->json, "entry", in->entry.v);
		rt_json_bool(&file->json, "inlined", in->inlined);
		if (in->inlined) {
			rt_json_string(&file->json, "caller", in->caller);
			rt_json_string(&file->json, "call_source", call_file);
			rt_json_u64(&file->json, "call_line", call_line);
		}
		if (known) {
			rt_json_string(&file->json, "source", line.file);
			rt_json_u64(&file->json, "line", line.line);
		}
		rt_json_begin_array(&file->json, "variables");
		return;
	}
	rt_sink_printf(&file->out, "%s at 0x%" PRIx64, name, site->addr.v);
	if (site->addr.v != in->entry.v)
		rt_sink_printf(&file->out, " (+0x%" PRIx64 ")", site->addr.v - in->entry.v);
	if (in->inlined)
		rt_sink_printf(&file->out, ", inlined in %s (%s:%u)", rt_clean(&file->arena, in->caller ?: "?"),
			       called ? rt_clean(&file->arena, rt_basename(call_file)) : "?", call_line);
	rt_sink_puts(&file->out, "\n");
}

static struct rt_error *show_site(struct showing *s, const struct site *site)
{
	struct rt_listing *file = s->file;
	struct rt_error *err;
	size_t hidden = 0;

	s->count = s->behind = 0;
	site_head(s, site);
	err = rt_dwarf_variables(file->dwarf, &site->in, site->addr, file->options->list.externs, show_variable, s,
				 &hidden, &s->prologue);
	if (s->json) {
		rt_json_end_array(&file->json);
		rt_json_end_object(&file->json);
	} else if (!s->count) {
		rt_sink_puts(&file->out, "  no variables\n");
	}
	if (hidden)
		rt_listing_note(file, NULL,
				"%zu variable%s of blocks that debug information gives no addresses: not shown", hidden,
				rt_plural(hidden));
	if (s->behind)
		rt_listing_note(file,
				rt_format(&file->arena, "ask behind it: reftrace probe vars %s 0x%" PRIx64, file->path,
					  s->prologue.v),
				"%zu variable%s of %s are put on the stack by its prologue, which 0x%" PRIx64
				" is part of",
				s->behind, rt_plural(s->behind), site->in.function, site->addr.v);
	return err;
}

static bool is_function(struct rt_dwarf *dwarf, const struct rt_instance *fn, void *arg)
{
	const struct search *s = arg;

	(void)dwarf;
	return rt_probe_is_named(fn->function, fn->linkage, s->place->name) &&
	       (!s->place->source || (fn->file && rt_path_is(fn->file, s->place->source)));
}

static struct rt_error *take_functions(struct search *s)
{
	_cleanup_free_ struct rt_instance *list = NULL;
	size_t count;

	RT_TRY(rt_dwarf_instances(s->file->dwarf, NULL, is_function, s, &list, &count));
	for (size_t i = 0; i < count; i++) {
		if (!rt_vec_push(&s->sites, ((struct site){ list[i].entry, list[i] })))
			return rt_error_nomem();
	}
	return NULL;
}

static struct rt_error *take_address(struct search *s)
{
	struct site site = { .addr = { s->place->address } };

	if (!rt_dwarf_instance_at(s->file->dwarf, site.addr, &site.in))
		return rt_error_fix(rt_error_new(RT_E_NO_FUNCTION, "no function of debug information is at 0x%" PRIx64,
						 site.addr.v),
				    "all functions: reftrace probe funcs %s", s->file->path);
	return rt_vec_push(&s->sites, site) ? NULL : rt_error_nomem();
}

/* The first place of the line in each function and instance, where it can be one that a probe can stand at. */
static struct rt_error *take_line(struct search *s, const struct rt_probe_range *range)
{
	struct rt_lines lines;
	struct rt_error *err =
		rt_lines_read(s->file->image, s->file->dwarf, range->path, range->first, range->first, &lines);

	for (size_t i = 0, next; !err && i < lines.places.len; i = next) {
		const struct rt_line_place *p = &lines.places.data[i];

		for (next = i; next < lines.places.len && rt_line_same_instance(&lines.places.data[next], p); next++)
			;
		for (size_t k = i; k < next && p->refused; k++)
			p = lines.places.data[k].refused ? p : &lines.places.data[k];
		if (!rt_vec_push(&s->sites, ((struct site){ p->address, p->in })))
			err = rt_error_nomem();
	}
	if (!err && !lines.places.len)
		err = rt_error_fix(
			rt_error_new(RT_E_NO_FUNCTION, "no code begins at line %u of %s", range->first, range->path),
			"which lines have some: reftrace probe lines %s %s", s->file->path, s->place->name);
	rt_lines_deinit(&lines);
	return err;
}

static struct rt_error *find_sites(struct search *s)
{
	_cleanup_free_ struct rt_probe_range *ranges = NULL;
	size_t count;

	if (s->place->at_address)
		return take_address(s);
	if (s->place->ranged && s->place->first != s->place->last)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "'%s' is more than one line", s->place->text),
				    "variables are asked for at FUNC, FUNC:LINE, SRC:LINE or 0xADDR");
	RT_TRY(rt_probe_place_find(s->file, s->place, &ranges, &count));
	for (size_t i = 0; s->place->ranged && i < count; i++)
		RT_TRY(take_line(s, &ranges[i]));
	if (s->place->ranged)
		return NULL;
	RT_TRY(take_functions(s));
	if (!s->sites.len)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "'%s' is a whole file", s->place->text),
				    "variables are asked for at FUNC, FUNC:LINE, SRC:LINE or 0xADDR");
	return NULL;
}

static struct rt_error *show(struct search *s)
{
	struct showing showing = { .file = s->file, .json = s->file->options->format == RT_FORMAT_JSON };

	if (showing.json) {
		rt_listing_json_begin(s->file);
		rt_json_begin_array(&s->file->json, "sites");
	}
	for (size_t i = 0; i < s->sites.len; i++)
		RT_TRY(show_site(&showing, &s->sites.data[i]));
	if (showing.json)
		rt_json_end_array(&s->file->json);
	return rt_listing_end(s->file);
}

static struct rt_error *vars(const struct rt_options *options, struct rt_listing *file)
{
	const char *text = rt_listing_operand(options, 0);
	struct search s = { .file = file };
	struct rt_probe_place place;
	struct rt_error *err;

	if (!text)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe vars: at which FUNC, SRC:LINE or 0xADDR?"),
				    "all functions: reftrace probe funcs %s", file->path);
	RT_TRY(rt_probe_place_parse(file, text, &place));
	if (!rt_dwarf_present(file->dwarf))
		return rt_error_fix(rt_error_new(RT_E_DEBUG_INFO,
						 "%s has no debug information: nothing tells its variables",
						 file->path),
				    "%s", rt_listing_debug_fix(file));
	s.place = &place;
	err = find_sites(&s);
	if (!err)
		err = show(&s);
	rt_vec_deinit(&s.sites);
	return err;
}

int rt_probe_vars(int argc, char **argv)
{
	return rt_listing_run(&vars_argp, argc, argv, vars, 1);
}
