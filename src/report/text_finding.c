/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/text.h"

#include <string.h>

/* ".../parser/leak.c": as many last parts of a path as fit; the file's own name is cut only when it does not fit alone.
 */
static const char *last_parts(struct rt_text_report *report, const char *path, size_t max)
{
	const char *base = rt_basename(path), *from = base;

	if (rt_columns(base) > max)
		return rt_shorten(&report->arena, base, max > 8 ? max : 8);
	while (from > path + 1) {
		const char *before = from - 1;

		while (before > path && before[-1] != '/')
			before--;
		if (rt_columns(before) + 4 > max || !strncmp(before, "../", 3))
			break;
		from = before;
	}
	return from == base ? base : rt_format(&report->arena, ".../%s", from);
}

const char *rt_report_place(struct rt_text_report *report, const struct rt_frame *frame, size_t max)
{
	const char *file = frame->file, *line;
	size_t least;

	if (!file || !*file) {
		/* the place itself is what it has instead of a name */
		if (!frame->function && frame->entry)
			return rt_shorten(
				&report->arena,
				rt_format(&report->arena, "function at 0x%llx", (unsigned long long)frame->entry), max);
		if (!frame->module || !frame->function)
			return "";
		line = rt_clean(&report->arena, rt_basename(frame->module));
		/* without an address it is a function by its name alone */
		if (frame->address)
			line = rt_format(&report->arena, "%s+0x%llx", line, (unsigned long long)frame->address);
		return rt_shorten(&report->arena, line, max);
	}
	file = rt_clean(&report->arena, file);
	line = frame->line ? rt_format(&report->arena, ":%u", frame->line) : "";
	least = strlen(line);
	if (rt_columns(file) + least > max)
		file = last_parts(report, file, max > least ? max - least : 0);
	return rt_format(&report->arena, "%s%s", file, line);
}

static const char *kind_head(enum rt_finding_kind kind)
{
	switch (kind) {
	case RT_LEAK:
		return "LEAK";
	case RT_EXTRA_PUT:
		return "EXTRA PUT";
	case RT_USE_AFTER_PUT:
		return "USE AFTER PUT";
	case RT_RACY_UPDATE:
		return "RACY UPDATE";
	}
	return "LEAK";
}

/* "struct obj: 20 of 100 objects never released (1.9 KiB)" */
static const char *what(struct rt_text_report *report, const struct rt_finding *f)
{
	static const char *const many[] = {
		[RT_LEAK] = "never released",
		[RT_EXTRA_PUT] = "put without a reference",
		[RT_USE_AFTER_PUT] = "used after the last put",
		[RT_RACY_UPDATE] = "counted by two threads at once",
	};
	const char *type = rt_type_text(&report->arena, f->type, f->klass), *extra = "";
	unsigned kind = (unsigned)f->kind < sizeof(many) / sizeof(*many) ? f->kind : RT_LEAK;

	if (f->bytes && f->kind == RT_LEAK)
		extra = rt_format(&report->arena, " (%s)", rt_bytes_text(&report->arena, f->bytes));
	if (f->references > f->objects && f->kind == RT_LEAK)
		extra = rt_format(&report->arena, "%s, %llu references", extra, (unsigned long long)f->references);
	if (f->objects == 1 && f->kind != RT_LEAK)
		return rt_format(&report->arena, "%s #%llu: %s", type, (unsigned long long)f->first_object, many[kind]);
	return rt_format(&report->arena, "%s: %llu of %llu object%s %s%s", type, (unsigned long long)f->objects,
			 (unsigned long long)f->of, rt_plural(f->of), many[kind], extra);
}

static const char *role_text(enum rt_role role)
{
	switch (role) {
	case RT_ROLE_MISSING_PUT:
		return "missing put in";
	case RT_ROLE_EXTRA_GET:
		return "extra get in";
	case RT_ROLE_EXTRA_PUT:
		return "extra put in";
	case RT_ROLE_USE:
		return "use after put in";
	case RT_ROLE_RACY_UPDATE:
		return "racy update in";
	}
	return "missing put in";
}

/* "certain: all 20 point here", "likely (0.82)". */
static const char *certainty(struct rt_text_report *report, const struct rt_finding *f)
{
	const char *word = rt_confidence_word(f->confidence);

	if (f->confidence < RT_CERTAIN)
		return rt_format(&report->arena, "%s (%.2f)", word, f->confidence);
	if (f->objects > 1)
		return rt_format(&report->arena, "%s: all %llu point here", word, (unsigned long long)f->objects);
	return word;
}

static const char *call_text(struct rt_text_report *report, const struct rt_frame *frame)
{
	return rt_format(&report->arena, "%s%s", rt_place_text(&report->arena, frame), frame->function ? "()" : "");
}

static void guilty_line(struct rt_text_report *report, const struct rt_finding *f)
{
	const char *call = call_text(report, &f->guilty), *sure = certainty(report, f);
	size_t taken = 2 + strlen(role_text(f->role)) + 1 + rt_columns(call) + 2 + 3 + rt_columns(sure);
	size_t width = report->options.width, room = width > taken + 16 ? width - taken : 16;

	rt_sink_printf(report->sink, "  %s %s%s%s  %s   %s\n", role_text(f->role), rt_paint(report, RT_PAINT_STRONG),
		       call, rt_paint(report, RT_PAINT_END), rt_report_place(report, &f->guilty, room), sure);
}

/* "from line 30 to 31, from line 44 to 52" */
static const char *skips(struct rt_text_report *report, const struct rt_finding *f)
{
	const char *text = "";

	for (size_t i = 0; i < f->skip_count; i++) {
		text = rt_format(&report->arena, "%s%sfrom line %u", text, i ? ", " : "", f->skips[i].line);
		if (f->skips[i].to && f->skips[i].to != f->skips[i].line)
			text = rt_format(&report->arena, "%s to %u", text, f->skips[i].to);
	}
	return text;
}

/* Where it was taken, other candidates, and why: as much as is needed to believe the line above. */
static void reasons(struct rt_text_report *report, const struct rt_finding *f)
{
	bool all = report->options.verbose;
	size_t evidence = all ? f->evidence_count : f->evidence_count ? 1 : 0;
	bool elsewhere =
		f->taken_by.function && f->guilty.function && strcmp(f->taken_by.function, f->guilty.function) != 0;

	if (elsewhere && f->kind == RT_LEAK)
		rt_sink_printf(report->sink, "  taken in %s  %s\n", call_text(report, &f->taken_by),
			       rt_report_place(report, &f->taken_by, 40));
	if (f->confidence < RT_CERTAIN || all || f->kind != RT_LEAK) {
		for (size_t i = 0; i < evidence; i++)
			rt_sink_printf(report->sink, "  why: %s\n",
				       rt_report_fit(report, rt_clean(&report->arena, f->evidence[i])));
	}
	if (f->skip_count)
		rt_sink_printf(report->sink, "  can skip the put: %s\n", rt_report_fit(report, skips(report, f)));
	for (size_t i = 0; i < f->alternative_count && (all || (i < 1 && f->confidence < RT_CERTAIN)); i++)
		rt_sink_printf(report->sink, "  or: %s  %s   (%.2f)\n", call_text(report, &f->alternatives[i].frame),
			       rt_report_place(report, &f->alternatives[i].frame, 40), f->alternatives[i].confidence);
	if (f->incomplete)
		rt_sink_puts(report->sink, "  note: some operations of these objects were not seen\n");
}

/* of a suite: "in 3 of 212 processes: test-read (pid 71), test-write (pid 80), ..." */
static void process_line(struct rt_text_report *report, const struct rt_finding *f)
{
	enum { NAMED = 3 };
	const struct rt_verdict *v = report->verdict;
	const char *text = "";

	if (v->process_count < 2 || !f->pid_count)
		return;
	for (size_t i = 0; i < f->pid_count && i < NAMED; i++) {
		const char *exe = "";

		for (size_t k = 0; k < v->process_count; k++) {
			if (v->processes[k].pid == f->pids[i])
				exe = rt_clean(&report->arena, rt_basename(v->processes[k].exe ?: ""));
		}
		text = rt_format(&report->arena, "%s%s %s%s%u%s", text, i ? "," : "", exe, *exe ? " (pid " : "pid ",
				 RT_PID_OF(f->pids[i]), *exe ? ")" : "");
	}
	text = rt_format(&report->arena, "in %zu of %zu processes:%s%s", f->pid_count, v->process_count, text,
			 f->pid_count > NAMED ? ", ..." : "");
	rt_sink_printf(report->sink, "  %s\n", rt_report_fit(report, text));
}

void rt_report_finding(struct rt_text_report *report, const struct rt_finding *f)
{
	rt_sink_printf(report->sink, "%s%s%s %s  %s\n", rt_paint(report, RT_PAINT_BAD), kind_head(f->kind),
		       rt_paint(report, RT_PAINT_END), f->id, what(report, f));
	guilty_line(report, f);
	process_line(report, f);
	reasons(report, f);
	rt_report_source(report, f);
	if (f->kind == RT_LEAK || report->options.verbose)
		rt_report_balance(report, f);
	if (f->kind == RT_LEAK && !report->options.verbose)
		rt_report_first(report, f);
	else
		rt_report_ledger(report, f);
	if (f->kind != RT_LEAK || report->options.verbose)
		rt_report_stacks(report, f);
	rt_sink_puts(report->sink, "\n");
}

void rt_report_finding_line(struct rt_text_report *report, const struct rt_finding *f)
{
	rt_sink_printf(report->sink, "%s%s%s %s  %s\n", rt_paint(report, RT_PAINT_BAD), kind_head(f->kind),
		       rt_paint(report, RT_PAINT_END), f->id, what(report, f));
	guilty_line(report, f);
}
