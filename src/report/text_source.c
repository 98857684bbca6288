/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Source excerpt of a finding: few lines, chosen by what they say. The guilty
 * line, then lines of the same function where the type is taken or given
 * back, then neighbours; each with its counts.
 */
#include "report/text.h"

#include <string.h>

enum { EXCERPT = 4, NEAR = 25, NOTE_COLUMN = 42 };

struct excerpt {
	uint32_t lines[EXCERPT];
	size_t count;
};

static void choose(struct excerpt *e, uint32_t line, uint32_t center)
{
	uint32_t far = line > center ? line - center : center - line;
	size_t at = 0;

	if (!line || far > NEAR || e->count == EXCERPT)
		return;
	while (at < e->count && e->lines[at] < line)
		at++;
	if (at < e->count && e->lines[at] == line)
		return;
	memmove(e->lines + at + 1, e->lines + at, (e->count - at) * sizeof(*e->lines));
	e->lines[at] = line;
	e->count++;
}

static bool same_text(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static bool same_function(const struct rt_frame *a, const struct rt_frame *b)
{
	return same_text(a->function, b->function) && same_text(a->file, b->file);
}

/* "100 gets, 20 without a put" for a line; "" when nothing is known about it. */
static const char *note(struct rt_text_report *report, const struct rt_finding *f, uint32_t line)
{
	uint64_t by_op[RT_OP_NR] = { 0 };
	const char *text = "";

	for (size_t i = 0; i < report->verdict->site_count; i++) {
		const struct rt_site_count *s = &report->verdict->sites[i];

		if (s->op < RT_OP_NR && s->site.line == line && same_function(&s->site, &f->guilty) &&
		    same_text(s->type, f->type))
			by_op[s->op] += s->events;
	}
	if (f->taken_by.line == line && same_function(&f->taken_by, &f->guilty) && !by_op[RT_OP_GET] &&
	    !by_op[RT_OP_NEW])
		by_op[RT_OP_GET] = f->taken_count;
	for (unsigned op = RT_OP_NEW; op < RT_OP_NR; op++) {
		if (by_op[op])
			text = rt_format(&report->arena, "%s%s%llu %s%s", text, *text ? ", " : "",
					 (unsigned long long)by_op[op], rt_op_name(op),
					 op == RT_OP_NEW ? "" : rt_plural(by_op[op]));
	}
	if (f->taken_by.line == line && same_function(&f->taken_by, &f->guilty) && f->taken_count > f->taken_closed)
		text = rt_format(&report->arena, "%s%s%llu without a put", text, *text ? ", " : "",
				 (unsigned long long)(f->taken_count - f->taken_closed));
	return text;
}

static void source_row(struct rt_text_report *report, const struct rt_finding *f, uint32_t line, const char *code)
{
	bool here = line == f->guilty.line;
	const char *says = note(report, f, line);
	size_t room = *says ? NOTE_COLUMN - 13 : report->options.width > 14 ? report->options.width - 13 : 1;
	size_t columns;

	/* code is cut at its end: its start says what it is */
	code = rt_cut(&report->arena, code, room);
	columns = rt_columns(code);
	rt_sink_printf(report->sink, "  %s%s%s %s%6u%s  %s%s%s", rt_paint(report, RT_PAINT_MARK), here ? ">" : " ",
		       rt_paint(report, RT_PAINT_END), rt_paint(report, RT_PAINT_DIM), line,
		       rt_paint(report, RT_PAINT_END), here ? rt_paint(report, RT_PAINT_MARK) : "", code,
		       here ? rt_paint(report, RT_PAINT_END) : "");
	if (*says)
		rt_sink_printf(report->sink, "%*s  %s", (int)(room - columns), "", says);
	rt_sink_puts(report->sink, "\n");
}

/* A neighbour that says something: no blank line, no lone brace. */
static bool telling(struct rt_text_report *report, const struct rt_finding *f, uint32_t line)
{
	const char *text =
		line ? report->namer->source_line(report->namer, f->guilty.module_id, f->guilty.file, line, NULL)
		     : NULL;

	return text && text[strspn(text, " \t\r{};")];
}

void rt_report_source(struct rt_text_report *report, const struct rt_finding *f)
{
	const char *code[EXCERPT] = { NULL };
	struct excerpt e = { 0 };
	size_t margin = SIZE_MAX;
	bool stale = false, some = false;
	uint32_t guilty = f->guilty.line;

	if (!report->namer || !f->guilty.file || !guilty)
		return;
	choose(&e, guilty, guilty);
	if (same_function(&f->taken_by, &f->guilty))
		choose(&e, f->taken_by.line, guilty);
	for (size_t i = 0; i < f->skip_count; i++)
		choose(&e, f->skips[i].line, guilty);
	for (size_t i = 0; i < f->balance_count; i++) {
		if (!same_function(&f->balance[i].site, &f->guilty))
			continue;
		for (size_t n = 0; n < sizeof(f->balance[i].lines) / sizeof(*f->balance[i].lines); n++)
			choose(&e, f->balance[i].lines[n], guilty);
	}
	for (uint32_t step = 1; step <= 3; step++) {
		if (telling(report, f, guilty + step))
			choose(&e, guilty + step, guilty);
	}
	if (telling(report, f, guilty - 1))
		choose(&e, guilty - 1, guilty);
	for (size_t i = 0; i < e.count; i++) {
		const char *text = report->namer->source_line(report->namer, f->guilty.module_id, f->guilty.file,
							      e.lines[i], &stale);
		size_t blanks;

		if (!text)
			continue;
		code[i] = rt_clean_code(&report->arena, text);
		blanks = strspn(code[i], " ");
		if (code[i][blanks]) {
			margin = blanks < margin ? blanks : margin;
			some = true;
		}
	}
	if (!some) {
		if (stale)
			rt_sink_printf(report->sink, "  (%s is newer than the program: its lines are not shown)\n",
				       rt_clean(&report->arena, rt_basename(f->guilty.file)));
		return;
	}
	rt_sink_puts(report->sink, "\n");
	for (size_t i = 0; i < e.count; i++) {
		if (code[i])
			source_row(report, f, e.lines[i], *code[i] ? code[i] + margin : "");
	}
}
