/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An annotation as text: the hottest lines first, then every instruction under
 * its source line. A source line shows what all its instructions in the function
 * were hit, once, where it first stands.
 */
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "report/annotate.h"
#include "report/words.h"

enum { DEFAULT_WIDTH = 80, MIN_WIDTH = 40, HOTTEST = 5, AROUND = 3, RUN_MIN = 6, EVENT_COLUMNS = 17, CODE_INDENT = 8 };
/* per cent of the function's hits */
#define HOT 5.0
#define WARM 0.5

/* A source line of the function. */
struct place {
	const char *file;
	uint32_t line;
	const char *source;
	uint64_t *hits;
	bool shown;
};

struct page {
	const struct rt_annotation *a;
	struct rt_annotate_options options;
	struct rt_sink *sink;
	struct rt_arena arena;
	RT_VEC(struct place) places;
	RT_VEC(size_t) place_of; /* beside the annotation's lines; RT_NO_LINE = no source line */
	struct rt_map by_key;    /* (file pointer, line) -> index of places + 1 */
	const char *file;        /* that was named last */
};

static double percent(const struct page *p, const uint64_t *hits, size_t event)
{
	return p->a->hits[event] ? 100.0 * (double)hits[event] / (double)p->a->hits[event] : 0;
}

static double hottest(const struct page *p, const uint64_t *hits)
{
	double most = 0;

	for (size_t e = 0; e < p->a->event_count; e++) {
		double value = percent(p, hits, e);

		most = value > most ? value : most;
	}
	return most;
}

static const char *heat(const struct page *p, double value)
{
	return !p->options.color ? "" : value >= HOT ? "\033[1;31m" : value >= WARM ? "\033[32m" : "";
}

static const char *paint(const struct page *p, const char *code)
{
	return p->options.color ? code : "";
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Builders keep each string once: equal files are equal pointers. */
static bool find_places(struct page *p)
{
	const struct rt_annotation *a = p->a;

	for (size_t i = 0; i < a->line_count; i++) {
		const struct rt_annotation_line *l = &a->lines[i];
		uint64_t *slot;
		bool is_new;

		if (!rt_vec_push(&p->place_of, RT_NO_LINE))
			return false;
		if (!l->line && !l->source)
			continue;
		slot = rt_map_put(&p->by_key, rt_key_make((uintptr_t)l->file, l->line), &is_new);
		if (!slot)
			return false;
		if (is_new) {
			struct place *place = rt_vec_add(&p->places);

			if (!place)
				return false;
			*place = (struct place){ .file = l->file, .line = l->line, .source = l->source };
			place->hits = rt_arena_alloc(&p->arena, a->event_count * sizeof(*place->hits));
			if (!place->hits)
				return false;
			*slot = p->places.len;
		}
		p->place_of.data[i] = *slot - 1;
		for (size_t e = 0; e < a->event_count; e++)
			p->places.data[*slot - 1].hits[e] += l->hits[e];
	}
	return true;
}

/* Columns of numbers; blank where there was no hit. */
static void put_numbers(struct page *p, const uint64_t *hits)
{
	for (size_t e = 0; e < p->a->event_count; e++) {
		double value = hits ? percent(p, hits, e) : 0;

		if (!hits || !hits[e])
			rt_sink_printf(p->sink, "%*s", EVENT_COLUMNS, "");
		else
			rt_sink_printf(p->sink, "%s%9llu %5.1f %%%s", heat(p, value), (unsigned long long)hits[e],
				       value, *heat(p, value) ? "\033[0m" : "");
	}
}

static void put_head(struct page *p)
{
	const struct rt_annotation *a = p->a;

	rt_sink_printf(p->sink, "%s%s%s in %s, %s\n", paint(p, "\033[1m"), rt_clean(&p->arena, a->function),
		       paint(p, "\033[0m"), rt_clean(&p->arena, a->module),
		       a->xlated ? "eBPF instructions" : "machine code");
	for (size_t e = 0; e < a->event_count; e++) {
		rt_sink_printf(p->sink, "  %s: %llu hit%s", rt_clean(&p->arena, a->events[e]),
			       (unsigned long long)a->hits[e], rt_plural(a->hits[e]));
		if (a->totals[e])
			rt_sink_printf(p->sink, ", %.1f %% of %llu", 100.0 * (double)a->hits[e] / (double)a->totals[e],
				       (unsigned long long)a->totals[e]);
		rt_sink_puts(p->sink, "\n");
	}
	if (a->note)
		rt_sink_printf(p->sink, "  note: %s\n", a->note);
}

/* Columns that are left for text behind the numbers. */
static size_t room(const struct page *p, size_t used)
{
	used += EVENT_COLUMNS * p->a->event_count;
	return p->options.width > used + 8 ? p->options.width - used : 8;
}

static const char *place_name(struct page *p, const struct place *place)
{
	const char *file = place->file ? rt_basename(rt_clean(&p->arena, place->file)) : "?";

	return place->line ? rt_format(&p->arena, "%s:%u", file, place->line) : file;
}

static void put_hottest(struct page *p)
{
	bool *taken = rt_arena_alloc(&p->arena, p->places.len + 1);

	if (!taken || p->places.len < 2)
		return;
	for (int n = 0; n < HOTTEST; n++) {
		size_t best = RT_NO_LINE;
		const char *name, *code;

		for (size_t i = 0; i < p->places.len; i++) {
			double value = hottest(p, p->places.data[i].hits);

			if (!taken[i] && value >= WARM &&
			    (best == RT_NO_LINE || value > hottest(p, p->places.data[best].hits)))
				best = i;
		}
		if (best == RT_NO_LINE)
			break;
		taken[best] = true;
		if (!n)
			rt_sink_puts(p->sink, "\nhottest lines\n");
		put_numbers(p, p->places.data[best].hits);
		name = place_name(p, &p->places.data[best]);
		code = p->places.data[best].source ? rt_clean_code(&p->arena, p->places.data[best].source) : "";
		code += strspn(code, " ");
		rt_sink_printf(p->sink, "  %s  %s\n", name, rt_cut(&p->arena, code, room(p, 4 + rt_columns(name))));
	}
}

static void put_columns(struct page *p)
{
	rt_sink_puts(p->sink, "\n");
	for (size_t e = 0; e < p->a->event_count; e++) {
		if (p->a->event_count == 1)
			rt_sink_printf(p->sink, "%9s %7s", "hits", "%");
		else
			rt_sink_printf(p->sink, "%*s", EVENT_COLUMNS,
				       rt_shorten(&p->arena, rt_clean(&p->arena, p->a->events[e]), EVENT_COLUMNS - 2));
	}
	rt_sink_puts(p->sink, "\n");
}

/* The source line above its instructions; the file where it changes. */
static void put_source(struct page *p, size_t index)
{
	const struct rt_annotation_line *l = &p->a->lines[index];
	struct place *place;
	const char *code = "", *inlined = "";

	if (p->place_of.data[index] == RT_NO_LINE) {
		put_numbers(p, NULL);
		rt_sink_printf(p->sink, "  %s    -  (of no source line)%s\n", paint(p, "\033[2m"), paint(p, "\033[0m"));
		return;
	}
	place = &p->places.data[p->place_of.data[index]];
	if (place->source)
		code = rt_clean_code(&p->arena, place->source);
	if (!same(l->file, p->file)) {
		put_numbers(p, NULL);
		rt_sink_printf(p->sink, "  %s%s%s\n", paint(p, "\033[2m"),
			       rt_shorten(&p->arena, rt_clean(&p->arena, l->file ?: "?"), room(p, 2)),
			       paint(p, "\033[0m"));
		p->file = l->file;
	}
	if (l->inlined)
		inlined = rt_format(&p->arena, "  (inlined %s)", rt_clean(&p->arena, l->inlined));
	put_numbers(p, place->shown ? NULL : place->hits);
	rt_sink_printf(p->sink, "  %s%5u%s  %s%s%s%s\n", paint(p, "\033[33m"), place->line, paint(p, "\033[0m"),
		       rt_cut(&p->arena, code, room(p, 9 + rt_columns(inlined))), paint(p, "\033[2m"), inlined,
		       paint(p, "\033[0m"));
	place->shown = true;
}

static void put_bytes(struct page *p, const struct rt_annotation_line *l)
{
	enum { SHOWN = 8 };

	for (size_t i = 0; i < SHOWN || i < l->bytes.size; i++) {
		if (i < l->bytes.size)
			rt_sink_printf(p->sink, "%02x ", l->bytes.data[i]);
		else
			rt_sink_puts(p->sink, "   ");
	}
	rt_sink_puts(p->sink, " ");
}

/* The mnemonic in a column of its own; the target by its name or label. */
static void put_text(struct page *p, const struct rt_annotation_line *l)
{
	const char *label = l->target == RT_NO_LINE ? NULL : rt_format(&p->arena, "L%u", p->a->lines[l->target].label);
	const char *text = rt_clean(&p->arena, l->text), *name = l->target_name, *to = label;
	size_t mnemonic = p->a->xlated ? 0 : strcspn(text, " ");

	if (name)
		to = rt_clean(&p->arena, name);
	if (to && l->stem)
		text = rt_format(&p->arena, "%.*s%s", (int)l->stem, text, to);
	else if (to)
		text = rt_format(&p->arena, "%s  -> %s", text, to);
	if (mnemonic && text[mnemonic])
		rt_sink_printf(p->sink, "%-7.*s %s\n", (int)mnemonic, text, text + mnemonic + 1);
	else
		rt_sink_printf(p->sink, "%s\n", text);
}

static void put_instruction(struct page *p, size_t index)
{
	const struct rt_annotation_line *l = &p->a->lines[index];
	const char *label = l->label ? rt_format(&p->arena, "L%u:", l->label) : "";
	bool deep = p->places.len && !p->options.no_source;

	put_numbers(p, l->hits);
	rt_sink_printf(p->sink, "  %*s%s%5s%s ", deep ? CODE_INDENT : 0, "", paint(p, "\033[36m"), label,
		       paint(p, "\033[0m"));
	if (p->a->xlated)
		rt_sink_printf(p->sink, "%5llu  ", (unsigned long long)(l->address - p->a->base));
	else
		rt_sink_printf(p->sink, "%5llx  ", (unsigned long long)(l->address - p->a->base));
	if (p->options.bytes)
		put_bytes(p, l);
	put_text(p, l);
}

/* How many instructions from index on are left out: none is hit, nor near one that is. */
static size_t cold_run(const struct page *p, size_t index)
{
	const struct rt_annotation *a = p->a;
	size_t from = index > AROUND ? index - AROUND : 0, cold = 0;

	if (!p->options.hide_cold)
		return 0;
	for (; from < index; from++) {
		if (hottest(p, a->lines[from].hits) > 0)
			return 0;
	}
	while (index + cold < a->line_count && hottest(p, a->lines[index + cold].hits) <= 0)
		cold++;
	if (index + cold < a->line_count)
		cold = cold > AROUND ? cold - AROUND : 0;
	return cold >= RUN_MIN ? cold : 0;
}

static bool any_hits(const struct rt_annotation *a)
{
	for (size_t e = 0; e < a->event_count; e++) {
		if (a->hits[e])
			return true;
	}
	return false;
}

static void put_body(struct page *p)
{
	const struct rt_annotation *a = p->a;
	size_t last = RT_NO_LINE;

	if (!any_hits(a))
		p->options.hide_cold = false;
	for (size_t i = 0; i < a->line_count; i++) {
		size_t cold = cold_run(p, i);

		if (cold) {
			put_numbers(p, NULL);
			rt_sink_printf(p->sink, "  %s... %zu instructions without hits%s\n", paint(p, "\033[2m"), cold,
				       paint(p, "\033[0m"));
			last = RT_NO_LINE;
			i += cold - 1;
			continue;
		}
		if (!p->options.no_source && p->place_of.data[i] != last)
			put_source(p, i);
		last = p->place_of.data[i];
		put_instruction(p, i);
	}
}

struct rt_error *rt_annotate_text(const struct rt_annotation *annotation, const struct rt_annotate_options *options,
				  struct rt_sink *sink)
{
	struct page page = { .a = annotation,
			     .options = options ? *options : (struct rt_annotate_options){ 0 },
			     .sink = sink };
	struct rt_error *err = NULL;

	if (!page.options.width)
		page.options.width = DEFAULT_WIDTH;
	if (page.options.width < MIN_WIDTH)
		page.options.width = MIN_WIDTH;
	if (find_places(&page)) {
		put_head(&page);
		put_hottest(&page);
		put_columns(&page);
		put_body(&page);
	} else {
		err = rt_error_nomem();
	}
	rt_vec_deinit(&page.places);
	rt_vec_deinit(&page.place_of);
	rt_map_deinit(&page.by_key);
	rt_arena_deinit(&page.arena);
	return err;
}
