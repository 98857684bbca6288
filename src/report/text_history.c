/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What happened to the references of a finding: the balance of each caller,
 * the life of the first object, the stacks.
 */
#include "report/text.h"

#include <string.h>

enum { NAME_LEAST = 12, NUMBER = 8 };

/* "29,32" or "38-43,50,..." */
static const char *line_list(struct rt_text_report *report, const struct rt_balance *b)
{
	enum { LINES = sizeof(b->lines) / sizeof(*b->lines) };
	const char *text = "";

	for (size_t i = 0; i < LINES && b->lines[i]; i++)
		text = rt_format(&report->arena, "%s%s%u", text, i ? "," : "", b->lines[i]);
	return text;
}

static const char *balance_place(struct rt_text_report *report, const struct rt_balance *b, size_t max)
{
	const char *file = b->site.file ? rt_clean(&report->arena, rt_basename(b->site.file)) : "";
	const char *lines = line_list(report, b), *text;

	if (!*file && !b->site.function && b->site.entry)
		return rt_report_place(report, &b->site, max);
	if (!*file)
		return b->site.module
			       ? rt_shorten(&report->arena, rt_clean(&report->arena, rt_basename(b->site.module)), max)
			       : "";
	text = rt_format(&report->arena, "%s%s%s", file, *lines ? ":" : "", lines);
	if (rt_columns(text) <= max)
		return text;
	if (b->lines[0])
		text = rt_format(&report->arena, "%s:%u,...", file, b->lines[0]);
	return rt_shorten(&report->arena, text, max);
}

struct columns {
	size_t name, place;
	bool news;
};

static struct columns columns(struct rt_text_report *report, const struct rt_finding *f)
{
	struct columns c = { .name = NAME_LEAST };
	size_t numbers, width = report->options.width;

	for (size_t i = 0; i < f->balance_count; i++) {
		size_t n = rt_columns(rt_place_text(&report->arena, &f->balance[i].site));

		c.name = n > c.name ? n : c.name;
		c.news |= f->balance[i].news != 0;
	}
	/* four blanks before the name, one behind, the mark "  <==" at the end */
	numbers = (c.news ? 4 : 3) * NUMBER + 5;
	if (c.name > 28)
		c.name = 28;
	c.place = width > numbers + c.name + 5 + 10 ? width - numbers - c.name - 5 : 10;
	if (c.place > 24)
		c.place = 24;
	return c;
}

static void balance_row(struct rt_text_report *report, const struct rt_balance *b, const struct columns *c)
{
	const char *name = rt_place_text(&report->arena, &b->site), *place = balance_place(report, b, c->place);
	size_t used = rt_columns(name);
	const char *left = b->left > 0 ? rt_format(&report->arena, "+%lld", (long long)b->left)
				       : rt_format(&report->arena, "%lld", (long long)b->left);

	rt_sink_printf(report->sink, "    %s", name);
	if (used > c->name) {
		/* a name is never cut: its numbers go to the next line */
		rt_sink_puts(report->sink, "\n    ");
		used = 0;
	}
	rt_sink_printf(report->sink, "%*s %s%*s", (int)(c->name - used), "", place, (int)(c->place - rt_columns(place)),
		       "");
	if (c->news)
		rt_sink_printf(report->sink, "%*llu", NUMBER, (unsigned long long)b->news);
	rt_sink_printf(report->sink, "%*llu%*llu%s%*s%s%s\n", NUMBER, (unsigned long long)b->gets, NUMBER,
		       (unsigned long long)b->puts, b->left ? rt_paint(report, RT_PAINT_BAD) : "", NUMBER, left,
		       b->left ? rt_paint(report, RT_PAINT_END) : "", b->guilty ? "  <==" : "");
}

void rt_report_balance(struct rt_text_report *report, const struct rt_finding *f)
{
	size_t rows = report->options.verbose ? f->balance_count : report->balance_rows, hidden = 0, room;
	struct columns c;

	if (!f->balance_count)
		return;
	c = columns(report, f);
	rt_sink_printf(report->sink, "\n  %s", "balance by caller");
	rt_sink_printf(report->sink, "%*s", (int)(c.name + c.place + 5 - 19), "");
	if (c.news)
		rt_sink_printf(report->sink, "%*s", NUMBER, "new");
	rt_sink_printf(report->sink, "%*s%*s%*s\n", NUMBER, "gets", NUMBER, "puts", NUMBER, "left");
	/* one row is kept for "and N more"; guilty rows and those with something left come first */
	room = f->balance_count > rows ? rows - 1 : rows;
	for (unsigned pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < f->balance_count; i++) {
			const struct rt_balance *b = &f->balance[i];
			bool first = b->guilty || b->left;

			if (f->balance_count <= rows) {
				if (!pass)
					balance_row(report, b, &c);
			} else if (first == !pass && room) {
				room--;
				balance_row(report, b, &c);
			} else if (first == !pass) {
				hidden++;
			}
		}
	}
	if (hidden)
		rt_sink_printf(report->sink, "    and %zu more caller%s: -v\n", hidden, rt_plural(hidden));
}

static const char *since_start(struct rt_text_report *report, uint64_t time_ns)
{
	uint64_t start = report->verdict->start_ns;

	return rt_duration_text(&report->arena, time_ns > start ? time_ns - start : 0);
}

/* Words after a head, wrapped to the width with an indent; stops at two lines. */
struct wrap {
	struct rt_text_report *report;
	size_t column, indent;
	unsigned line, lines;
	bool full, any;
};

static void wrap_word(struct wrap *w, const char *separator, const char *word, bool last)
{
	size_t need = rt_columns(word) + (w->any ? strlen(separator) : 0);

	if (w->full)
		return;
	/* unless it is the last one, room for the comma or the dots behind it */
	if (w->any && w->column + need + (last ? 0 : 5) > w->report->options.width) {
		if (++w->line >= w->lines) {
			rt_sink_puts(w->report->sink, " ...");
			w->full = true;
			return;
		}
		if (*separator == ',')
			rt_sink_puts(w->report->sink, ",");
		rt_sink_printf(w->report->sink, "\n%*s", (int)w->indent, "");
		w->column = w->indent;
		separator = "";
		need = rt_columns(word);
	}
	rt_sink_printf(w->report->sink, "%s%s", w->any ? separator : "", word);
	w->column += need;
	w->any = true;
}

static bool one_file(const struct rt_finding *f)
{
	for (size_t i = 0; i < f->history_count; i++) {
		const struct rt_frame *a = &f->history[0].site, *b = &f->history[i].site;

		if (!b->line || !b->file || !a->file || strcmp(a->file, b->file) != 0)
			return false;
	}
	return true;
}

void rt_report_first(struct rt_text_report *report, const struct rt_finding *f)
{
	const char *head = rt_format(&report->arena, "  first: object #%llu at +%s  ",
				     (unsigned long long)f->first_object, since_start(report, f->first_time_ns));
	struct wrap w = { .report = report, .column = rt_columns(head), .indent = 9, .lines = 1 };
	bool by_line = one_file(f);

	if (!f->history_count)
		return;
	rt_sink_printf(report->sink, "%s ", head);
	if (report->options.verbose)
		w.lines = 8;
	for (size_t i = 0; i < f->history_count; i++) {
		const struct rt_history *h = &f->history[i];

		if (h->gap_before)
			wrap_word(&w, ", ", "...", false);
		if (by_line)
			wrap_word(&w, ", ", rt_format(&report->arena, "%s %u", rt_op_name(h->op), h->site.line), false);
		else
			wrap_word(&w, ", ",
				  rt_format(&report->arena, "%s %s", rt_op_name(h->op),
					    rt_place_text(&report->arena, &h->site)),
				  false);
	}
	wrap_word(&w, ", ", "(end)", true);
	rt_sink_puts(report->sink, "\n");
}

void rt_report_ledger(struct rt_text_report *report, const struct rt_finding *f)
{
	struct wrap w = { .report = report, .column = 10, .indent = 10, .lines = report->options.verbose ? 32 : 6 };
	bool dead = false;

	if (!f->history_count)
		return;
	rt_sink_printf(report->sink, "  ledger  ");
	for (size_t i = 0; i < f->history_count; i++) {
		const struct rt_history *h = &f->history[i];
		const char *word =
			rt_format(&report->arena, "%s %s", rt_op_name(h->op), rt_place_text(&report->arena, &h->site));

		if (h->gap_before)
			wrap_word(&w, " | ", "...", false);
		if (h->site.line)
			word = rt_format(&report->arena, "%s:%u", word, h->site.line);
		if (h->delta)
			word = rt_format(&report->arena, "%s %+d", word, h->delta);
		if ((h->delta || h->op == RT_OP_NEW) && h->count_after != INT64_MIN && !dead)
			word = rt_format(&report->arena, "%s =%lld", word, (long long)h->count_after);
		if (h->op == RT_OP_FREE)
			word = rt_format(&report->arena, "%s FREED", word);
		else if (dead)
			word = rt_format(&report->arena, "%s AFTER THE LAST PUT", word);
		else if (h->delta < 0 && h->count_after == 0)
			word = rt_format(&report->arena, "%s LAST PUT", word);
		dead |= h->op == RT_OP_FREE || (h->delta < 0 && h->count_after == 0);
		wrap_word(&w, " | ", word, i + 1 == f->history_count);
	}
	rt_sink_puts(report->sink, "\n");
}

void rt_report_stacks(struct rt_text_report *report, const struct rt_finding *f)
{
	size_t most = report->options.verbose ? f->stack_count : 4, label = 0;

	for (size_t i = 0; i < f->stack_count && i < most; i++) {
		size_t n = strlen(f->stacks[i].label);

		label = n > label ? n : label;
	}
	for (size_t i = 0; i < f->stack_count && i < most; i++) {
		const struct rt_trace_stack *s = &f->stacks[i];
		struct wrap w = { .report = report, .column = label + 4, .indent = label + 4, .lines = 1 };

		if (report->options.verbose)
			w.lines = 16;
		rt_sink_printf(report->sink, "  %s%*s  ", s->label, (int)(label - strlen(s->label)), "");
		for (size_t n = 0; n < s->count; n++) {
			const char *word = rt_place_text(&report->arena, &s->frames[n]);

			if (s->frames[n].line && s->frames[n].file)
				word = rt_format(&report->arena, "%s %s", word,
						 rt_report_place(report, &s->frames[n],
								 n && !report->options.verbose ? 20 : 32));
			wrap_word(&w, " < ", word, n + 1 == s->count);
		}
		rt_sink_puts(report->sink, "\n");
	}
}
