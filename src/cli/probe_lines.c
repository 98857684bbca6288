/* SPDX-License-Identifier: GPL-2.0-only */
/* probe lines: source, with the lines marked where a probe can stand. */
#include <string.h>

#include "cli/probe_command.h"
#include "cli/probe_place.h"
#include "cli/probe_source.h"
#include "probe/lines.h"
#include "report/words.h"

static const struct argp_option own[] = {
	{ "source-dir", RT_OPT_SOURCE_DIR, "DIR", 0, "look for source files below DIR first", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	if (key != RT_OPT_SOURCE_DIR)
		return ARGP_ERR_UNKNOWN;
	options->list.sources = arg;
	return 0;
}

const struct argp rt_probe_lines_options = { own, parse };
static const struct argp_child children[] = {
	{ &rt_listing_options }, { &rt_probe_lines_options }, { &rt_root_argp }, { &rt_common_argp }, { 0 }
};
static const struct argp lines_argp = { NULL, rt_parse_operands, "lines FILE FUNC[@SRC][:N-M]\nlines FILE SRC[:N-M]",
					"Shows source lines, and at how many places a probe can stand on each.",
					children };

struct showing {
	struct rt_listing *file;
	const struct rt_probe_range *range;
	struct rt_probe_source source;
	struct rt_lines lines;
	bool json, refused;
	size_t marked;
};

/* Places of the line: [*ret_first, result). */
static size_t places_of(const struct showing *s, uint32_t line, size_t *ret_first)
{
	size_t low = 0, high = s->lines.places.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->lines.places.data[mid].line < line)
			low = mid + 1;
		else
			high = mid;
	}
	*ret_first = low;
	while (low < s->lines.places.len && s->lines.places.data[low].line == line)
		low++;
	return low;
}

/* Functions and inlined instances in which the line begins: a probe on the line stands in each. */
static unsigned count_instances(const struct rt_line_place *first, const struct rt_line_place *end, bool *ret_refused)
{
	unsigned count = 0;

	for (const struct rt_line_place *p = first, *next; p < end; p = next) {
		bool possible = false;

		for (next = p; next < end && rt_line_same_instance(next, p); next++)
			possible |= !next->refused;
		count += possible;
		*ret_refused |= !possible;
	}
	return count;
}

static void line_text(struct showing *s, uint32_t line, const char *source, unsigned places, bool refused)
{
	const char *mark = places ? rt_format(&s->file->arena, "%u", places) : refused ? "!" : "";

	rt_sink_printf(&s->file->out, "%7u", line);
	if (s->range->base)
		rt_sink_printf(&s->file->out, " %5d", (int)(line - s->range->base));
	rt_sink_printf(&s->file->out, " %4s%s%s\n", mark, source && *source ? "  " : "",
		       source ? rt_clean_code(&s->file->arena, source) : "");
}

static void line_json(struct showing *s, uint32_t line, const char *source, size_t first, size_t end)
{
	struct rt_json *json = &s->file->json;

	rt_json_begin_object(json, NULL);
	rt_json_u64(json, "line", line);
	if (s->range->base)
		rt_json_i64(json, "relative", (int64_t)line - s->range->base);
	if (source)
		rt_json_string(json, "text", source);
	rt_json_begin_array(json, "places");
	for (size_t i = first; i < end; i++) {
		const struct rt_line_place *p = &s->lines.places.data[i];

		rt_json_begin_object(json, NULL);
		rt_json_hex(json, "address", p->address.v);
		rt_json_string(json, "function", p->in.function);
		rt_json_hex(json, "entry", p->in.entry.v);
		rt_json_bool(json, "inlined", p->in.inlined);
		rt_json_bool(json, "refused", p->refused);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
	rt_json_end_object(json);
}

static void show_line(struct showing *s, uint32_t line)
{
	const char *source = rt_probe_source_line(&s->source, line);
	const struct rt_line_place *all = s->lines.places.data;
	size_t first, end = places_of(s, line, &first);
	bool refused = false;
	unsigned places = end > first ? count_instances(&all[first], &all[end], &refused) : 0;

	s->marked += places > 0;
	s->refused |= refused;
	/* without source, lines that say nothing */
	if (!source && end == first)
		return;
	if (s->json)
		line_json(s, line, source, first, end);
	else
		line_text(s, line, source, places, refused);
}

static unsigned indentation(const char *line)
{
	unsigned columns = 0;

	for (; *line == ' ' || *line == '\t'; line++)
		columns = *line == '\t' ? (columns | 7) + 1 : columns + 1;
	return columns;
}

/*
 * Debug info knows a function to its last statement, where it has no code of its own less: its text goes on to the
 * brace that stands no deeper than its first line. Without one before something else that stands there: to where it is
 * known.
 */
static uint32_t function_end(const struct rt_probe_source *source, uint32_t first, uint32_t last)
{
	const char *line = rt_probe_source_line(source, first);
	unsigned level = line ? indentation(line) : 0;

	if (!line)
		return last;
	for (uint32_t n = last; (line = rt_probe_source_line(source, n)) != NULL; n++) {
		const char *text = line + strspn(line, " \t\r");

		if (n > first && *text == '}' && indentation(line) <= level)
			return n;
		/* a label and an #if may stand that far left */
		if (n > last && *text && indentation(line) <= level && *text != '{' && *text != '#' &&
		    text[strlen(text) - 1] != ':')
			break;
	}
	return last;
}

static void begin(struct showing *s)
{
	const struct rt_probe_range *r = s->range;
	struct rt_listing *file = s->file;

	if (s->json) {
		rt_json_begin_object(&file->json, NULL);
		rt_json_string(&file->json, "function", r->function);
		rt_json_string(&file->json, "source", r->path);
		if (r->base)
			rt_json_u64(&file->json, "inlined", r->inlined);
		rt_json_begin_array(&file->json, "lines");
		return;
	}
	if (r->function)
		rt_sink_printf(&file->out, "%s  ", r->function);
	rt_sink_puts(&file->out, rt_clean(&file->arena, r->path));
	if (r->function && r->inlined)
		rt_sink_printf(&file->out, "  (%s%u inlined instance%s)", r->bodies ? "and " : "only ", r->inlined,
			       rt_plural(r->inlined));
	rt_sink_printf(&file->out, "\n%7s%s %4s\n", "line", r->base ? " FUNC+" : "", "at");
}

static void note_missing(struct showing *s)
{
	struct rt_listing *file = s->file;

	if (s->source.why)
		rt_listing_note(
			file, "tell where its folder is: --source-dir DIR (DIR/.../FILE by the whole path or its end)",
			"no source text: %s", s->source.why);
	if (s->source.newer)
		rt_listing_note(file, "build again, or --source-dir with the source that the program was made of",
				"%s is newer than the program: its text may not be that of these lines",
				s->range->path);
	if (s->lines.torn)
		rt_listing_note(file, NULL, "%zu row%s of the line table stand at no instruction and are left out",
				s->lines.torn, rt_plural(s->lines.torn));
	if (s->lines.unchecked)
		rt_listing_note(file, NULL,
				"instructions of this machine are not decoded: places are as the line table says");
	if (s->refused && !s->json)
		rt_listing_note(
			file, NULL,
			"!: the line begins with an instruction that the kernel refuses (lock prefix and the like)");
	if (!s->marked)
		rt_listing_note(file, NULL, "no probe can stand on lines %u to %u of %s: no statement begins there",
				s->range->first, s->range->last == UINT32_MAX ? s->lines.last : s->range->last,
				s->range->path);
}

static void show_range(struct showing *s, bool whole_function)
{
	uint32_t last = s->range->last;

	if (whole_function)
		last = function_end(&s->source, s->range->first, last);
	if (last > s->lines.last && last > s->source.lines.len)
		last = s->lines.last > s->source.lines.len ? s->lines.last : s->source.lines.len;
	begin(s);
	for (uint32_t line = s->range->first ?: 1; line <= last; line++)
		show_line(s, line);
	if (s->json) {
		rt_json_end_array(&s->file->json);
		rt_json_end_object(&s->file->json);
	}
	note_missing(s);
}

static struct rt_error *show(struct rt_listing *file, const struct rt_probe_place *place,
			     const struct rt_probe_range *ranges, size_t count)
{
	bool json = file->options->format == RT_FORMAT_JSON;

	if (json) {
		rt_listing_json_begin(file);
		rt_json_begin_array(&file->json, "listings");
	}
	for (size_t i = 0; i < count; i++) {
		struct showing s = { .file = file, .range = &ranges[i], .json = json };
		struct rt_error *err;

		err = rt_lines_read(file->image, file->dwarf, ranges[i].path, ranges[i].first, ranges[i].last,
				    &s.lines);
		if (!err) {
			rt_probe_source_read(file, ranges[i].path, &s.source);
			show_range(&s, ranges[i].function && !place->ranged);
		}
		rt_probe_source_deinit(&s.source);
		rt_lines_deinit(&s.lines);
		RT_TRY(err);
	}
	if (json)
		rt_json_end_array(&file->json);
	return rt_listing_end(file);
}

static struct rt_error *lines(const struct rt_options *options, struct rt_listing *file)
{
	const char *text = rt_listing_operand(options, 0);
	_cleanup_free_ struct rt_probe_range *ranges = NULL;
	struct rt_probe_place place;
	size_t count;

	if (!text)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe lines: which FUNC or SRC:N-M?"),
				    "all functions: reftrace probe funcs %s", file->path);
	RT_TRY(rt_probe_place_parse(file, text, &place));
	if (place.at_address)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe lines: an address is on one line only"),
				    "what is in scope there: reftrace probe vars %s %s", file->path, text);
	RT_TRY(rt_probe_place_find(file, &place, &ranges, &count));
	return show(file, &place, ranges, count);
}

int rt_probe_lines(int argc, char **argv)
{
	return rt_listing_run(&lines_argp, argc, argv, lines, 1);
}
