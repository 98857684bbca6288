/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The text report: what was run, the findings, and how far the answer can be
 * trusted. "no leaks" is only said when nothing is missing.
 */
#include "report/text.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

enum { DEFAULT_WIDTH = 80, MIN_WIDTH = 40, DEFAULT_FINDINGS = 5, LINE_FINDINGS = 10, NOTES = 3, BALANCE_ROWS = 6 };

const char *rt_paint(const struct rt_text_report *report, enum rt_paint paint)
{
	static const char *const codes[] = {
		[RT_PAINT_BAD] = "\033[1;31m", [RT_PAINT_GOOD] = "\033[32m", [RT_PAINT_STRONG] = "\033[1m",
		[RT_PAINT_MARK] = "\033[33m",  [RT_PAINT_DIM] = "\033[2m",   [RT_PAINT_END] = "\033[0m",
	};

	return report->options.color ? codes[paint] : "";
}

const char *rt_report_fit(struct rt_text_report *report, const char *text)
{
	size_t most = report->options.width + report->options.width / 2;

	return report->options.verbose ? text : rt_shorten(&report->arena, text, most);
}

static const char *command_text(struct rt_text_report *report)
{
	const char *text = "";

	for (size_t i = 0; report->run->command && report->run->command[i] && strlen(text) < 4096; i++)
		text = rt_format(&report->arena, "%s%s%s", text, i ? " " : "",
				 rt_clean(&report->arena, report->run->command[i]));
	return text;
}

static const char *end_text(struct rt_text_report *report)
{
	int status = report->run->program_status;
	const char *name;

	if (!report->run->program_ended)
		return strcmp(report->run->engine ?: "", "replay") ? "still running" : "end unknown";
	if (!WIFSIGNALED(status))
		return rt_format(&report->arena, "exit %d", WEXITSTATUS(status));
	name = sigabbrev_np(WTERMSIG(status));
	return name ? rt_format(&report->arena, "killed by SIG%s", name)
		    : rt_format(&report->arena, "killed by signal %d", WTERMSIG(status));
}

static void head(struct rt_text_report *report)
{
	const struct rt_verdict *v = report->verdict;
	const char *command = command_text(report), *tail;
	uint64_t took = v->end_ns > v->start_ns ? v->end_ns - v->start_ns : 0;
	size_t width = report->options.width, used;
	bool unknown_end = !report->run->program_ended && !strcmp(report->run->engine ?: "", "text");

	tail = unknown_end ? "" : rt_format(&report->arena, "%s, ", end_text(report));
	tail = rt_format(&report->arena, "%s%s, %llu event%s, %llu lost", tail, rt_duration_text(&report->arena, took),
			 (unsigned long long)v->trust.events, rt_plural(v->trust.events),
			 (unsigned long long)v->trust.lost);
	if (v->trust.sampling.partial)
		tail = rt_format(&report->arena, "%s, a sample", tail);
	if (report->run->slowdown > 0)
		tail = rt_format(&report->arena, "%s, slowdown ~%.0fx", tail, report->run->slowdown);
	if (report->run->pid)
		tail = rt_format(&report->arena, "(pid %u) %s", report->run->pid, tail);
	if (v->process_count > 1)
		tail = rt_format(&report->arena, "%s, %zu processes", tail, v->process_count);
	used = strlen("reftrace:  ") + rt_columns(tail);
	command = rt_shorten(&report->arena, command, width > used + 20 ? width - used : 20);
	if (report->run->moment)
		rt_sink_printf(report->sink, "%slook %u at what lives:\n", report->run->moment > 1 ? "\n" : "",
			       report->run->moment);
	rt_sink_printf(report->sink, "reftrace: %s%s%s\n", command, *command ? " " : "", tail);
	if (report->run->pairs) {
		const char *pairs = rt_clean(&report->arena, report->run->pairs);

		rt_sink_printf(report->sink, "%s%s\n", strncmp(pairs, "pairs:", 6) ? "pairs: " : "",
			       rt_report_fit(report, pairs));
	}
	rt_sink_puts(report->sink, "\n");
}

static void findings(struct rt_text_report *report)
{
	const struct rt_verdict *v = report->verdict;
	size_t full = report->options.max_findings, lines;

	if (report->options.verbose || full > v->finding_count)
		full = v->finding_count;
	for (size_t i = 0; i < full; i++)
		rt_report_finding(report, &v->findings[i]);
	lines = v->finding_count - full > LINE_FINDINGS ? LINE_FINDINGS : v->finding_count - full;
	for (size_t i = full; i < full + lines; i++)
		rt_report_finding_line(report, &v->findings[i]);
	if (full + lines < v->finding_count)
		rt_sink_printf(report->sink, "and %zu more findings: -v\n", v->finding_count - full - lines);
	if (lines)
		rt_sink_puts(report->sink, "\n");
}

static void summary(struct rt_text_report *report)
{
	const struct rt_verdict *v = report->verdict;
	uint64_t count[4] = { 0 }, leaked = 0;

	for (size_t i = 0; i < v->finding_count; i++) {
		if ((unsigned)v->findings[i].kind < 4)
			count[v->findings[i].kind]++;
		if (v->findings[i].kind == RT_LEAK)
			leaked += v->findings[i].objects;
	}
	rt_sink_printf(report->sink, "%zu finding%s: %llu leak%s", v->finding_count, rt_plural(v->finding_count),
		       (unsigned long long)count[RT_LEAK], rt_plural(count[RT_LEAK]));
	if (count[RT_LEAK])
		rt_sink_printf(report->sink, " (%llu object%s)", (unsigned long long)leaked, rt_plural(leaked));
	rt_sink_printf(report->sink, ", %llu extra put%s, %llu use%s after put",
		       (unsigned long long)count[RT_EXTRA_PUT], rt_plural(count[RT_EXTRA_PUT]),
		       (unsigned long long)count[RT_USE_AFTER_PUT], rt_plural(count[RT_USE_AFTER_PUT]));
	if (count[RT_RACY_UPDATE])
		rt_sink_printf(report->sink, ", %llu racy update%s", (unsigned long long)count[RT_RACY_UPDATE],
			       rt_plural(count[RT_RACY_UPDATE]));
	rt_sink_printf(report->sink, "%s\n", v->trust.sampling.partial ? "; of a sample: there may be more" : "");
}

/* objects that nobody points to, and whose loss is no more than a suspicion against anybody */
static uint64_t lost_by_nobody(const struct rt_verdict *v)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < v->suspect_count; i++)
		lost += v->suspects[i].lost;
	return lost;
}

/* No finding, and something was seen. */
static void clean_result(struct rt_text_report *report)
{
	const struct rt_verdict *v = report->verdict;
	uint64_t objects = 0, live = 0, swept = 0, lost = lost_by_nobody(v);
	const char *names = "";
	unsigned named = 0;

	for (size_t i = 0; i < v->type_count; i++) {
		const struct rt_type_count *t = &v->types[i];

		objects += t->incarnations;
		live += t->live;
		swept += t->swept;
		if (!t->incarnations || ++named > 4)
			continue;
		names = rt_format(&report->arena, "%s%s%s", names, named > 1 ? ", " : "",
				  named > 3 ? "..." : rt_type_text(&report->arena, t->name, NULL));
	}
	if (v->trust.sampling.partial)
		rt_sink_printf(report->sink,
			       "no finding in a sample, which says nothing of the rest: %llu object%s (%s), ",
			       (unsigned long long)objects, rt_plural(objects), names);
	else if (v->tally_count)
		rt_sink_printf(report->sink, "counted, and nobody is accused: %llu object%s (%s), ",
			       (unsigned long long)objects, rt_plural(objects), names);
	else if (v->trust.complete && report->run->suppressed_count)
		rt_sink_printf(report->sink, "no finding but what is suppressed: %llu object%s (%s), ",
			       (unsigned long long)objects, rt_plural(objects), names);
	else if (v->trust.complete && lost)
		rt_sink_printf(report->sink,
			       "no finding, but nobody points to %llu object%s that %s left (-v): %llu object%s (%s), ",
			       (unsigned long long)lost, rt_plural(lost), lost == 1 ? "is" : "are",
			       (unsigned long long)objects, rt_plural(objects), names);
	else if (v->trust.complete)
		rt_sink_printf(report->sink, "%sno leaks%s: %llu object%s (%s), ", rt_paint(report, RT_PAINT_GOOD),
			       rt_paint(report, RT_PAINT_END), (unsigned long long)objects, rt_plural(objects), names);
	else
		rt_sink_printf(report->sink, "no finding, but the answer is not complete: %llu object%s (%s), ",
			       (unsigned long long)objects, rt_plural(objects), names);
	if (!live)
		rt_sink_puts(report->sink, v->counted ? "all balanced" : "all released");
	else
		rt_sink_printf(report->sink, "%llu released, %llu alive at the end",
			       (unsigned long long)(objects - (live < objects ? live : objects)),
			       (unsigned long long)live);
	/* whoever sweeps a pool may do so on purpose; it is said all the same */
	if (swept)
		rt_sink_printf(report->sink, ", %llu freed with references open", (unsigned long long)swept);
	rt_sink_puts(report->sink, "\n");
}

static void nothing_seen(struct rt_text_report *report)
{
	const struct rt_verdict *v = report->verdict;
	uint64_t took = v->end_ns > v->start_ns ? v->end_ns - v->start_ns : 0;
	const char *program = report->run->command && report->run->command[0]
				      ? rt_clean(&report->arena, report->run->command[0])
				      : "PROGRAM";

	rt_sink_printf(report->sink, "%s%s%s %s: this is NOT a clean result (exit 24)\n",
		       rt_paint(report, RT_PAINT_BAD), rt_code_text(RT_E_NO_EVENT), rt_paint(report, RT_PAINT_END),
		       "no get/put event was seen");
	rt_sink_printf(report->sink, "      ran %s, probes placed %llu, hit %llu\n",
		       rt_duration_text(&report->arena, took), (unsigned long long)v->trust.points,
		       (unsigned long long)v->trust.points_hit);
	if (report->run->engine && !strcmp(report->run->engine, "uprobe"))
		rt_sink_printf(report->sink,
			       "      fix: reftrace scan %s shows what can be traced; name functions with -P\n",
			       program);
}

/* Suspects, alive groups and balanced types: one folded line each. */
static void folded(struct rt_text_report *report)
{
	const struct rt_verdict *v = report->verdict;
	bool all = report->options.verbose;

	if (v->suspect_count && !all)
		rt_sink_printf(report->sink, "%zu suspect%s (confidence < 0.5): -v\n", v->suspect_count,
			       rt_plural(v->suspect_count));
	for (size_t i = 0; all && i < v->suspect_count; i++) {
		if (!i)
			rt_sink_puts(report->sink, "suspects (confidence < 0.5, no effect on the exit status):\n");
		rt_report_finding_line(report, &v->suspects[i]);
	}
	for (size_t i = 0; i < v->alive_count && (all || i < 4); i++)
		rt_sink_printf(report->sink, "%s%llu %s (%s)",
			       i ? ", " : "alive at exit: ", (unsigned long long)v->alive[i].objects,
			       rt_type_text(&report->arena, v->alive[i].type, v->alive[i].klass) + strlen("struct "),
			       rt_clean(&report->arena, v->alive[i].reason));
	if (v->alive_count > 4 && !all)
		rt_sink_printf(report->sink, ", %zu more: -v", v->alive_count - 4);
	if (v->alive_count)
		rt_sink_puts(report->sink, "\n");
}

static void counts(struct rt_text_report *report)
{
	const struct rt_verdict *v = report->verdict;

	if (v->type_count)
		rt_sink_printf(report->sink, "\n%-28s%10s%10s%10s%10s%10s\n",
			       v->trust.sampling.partial ? "types (of the sample)" : "types", "objects", "gets", "puts",
			       "freed", "live");
	for (size_t i = 0; i < v->type_count; i++) {
		const struct rt_type_count *t = &v->types[i];

		rt_sink_printf(report->sink, "  %-26s%10llu%10llu%10llu%10llu%10llu\n",
			       rt_type_text(&report->arena, t->name, NULL), (unsigned long long)t->incarnations,
			       (unsigned long long)t->gets, (unsigned long long)t->puts, (unsigned long long)t->frees,
			       (unsigned long long)t->live);
	}
	if (v->class_count)
		rt_sink_printf(report->sink, "\n%-48s%10s%10s\n", "classes", "objects", "live");
	for (size_t i = 0; i < v->class_count; i++)
		rt_sink_printf(report->sink, "  %-46s%10llu%10llu\n",
			       rt_type_text(&report->arena, v->classes[i].type, v->classes[i].name),
			       (unsigned long long)v->classes[i].incarnations, (unsigned long long)v->classes[i].live);
	if (v->point_count)
		rt_sink_printf(report->sink, "\n%-38s%10s%10s%10s%10s\n", "points", "op", "hits", "events", "dropped");
	for (size_t i = 0; i < v->point_count; i++) {
		const struct rt_point_count *p = &v->points[i];
		const char *hits =
			p->hits == UINT64_MAX ? "-" : rt_format(&report->arena, "%llu", (unsigned long long)p->hits);

		rt_sink_printf(report->sink, "  %-36s%10s%10s%10llu%10llu\n", rt_clean(&report->arena, p->function),
			       rt_op_name(p->op), hits, (unsigned long long)p->events, (unsigned long long)p->dropped);
	}
	if (v->type_count || v->point_count)
		rt_sink_puts(report->sink, "\n");
}

static void notes(struct rt_text_report *report, const char *head_text, const char *const *texts, size_t count)
{
	size_t shown = report->options.verbose || count <= NOTES ? count : NOTES;

	for (size_t i = 0; i < shown; i++)
		rt_sink_printf(report->sink, "  %s%s\n", head_text,
			       rt_report_fit(report, rt_clean(&report->arena, texts[i])));
	if (shown < count)
		rt_sink_printf(report->sink, "  %sand %zu more: -v\n", head_text, count - shown);
}

/* What --max-overhead has picked. */
static void governed(struct rt_text_report *report, const struct rt_sampling *s)
{
	rt_sink_printf(report->sink, "  overhead: at most %.3g %% was asked for: ", 100 * s->limit);
	if (s->rate >= 1)
		rt_sink_puts(report->sink, "every object was traced at the end");
	else
		rt_sink_printf(report->sink, "one object of %.0f was traced at the end", 1 / s->rate);
	if (s->lowest < s->rate)
		rt_sink_printf(report->sink, ", one of %.0f at times", 1 / s->lowest);
	if (s->cost > 0)
		rt_sink_printf(report->sink, "; about %.3g %% of its own CPU time%s (%u ns an event, %u ns without)",
			       100 * s->cost, s->cost > s->limit ? ", more than that," : "", s->event_ns, s->passed_ns);
	rt_sink_puts(report->sink, "\n");
	if (s->cost > s->limit && s->lowest < 1)
		rt_sink_puts(report->sink, "  fix: fewer functions (-t NAME, -P SPEC), or a larger part\n");
}

static void trust(struct rt_text_report *report)
{
	const struct rt_trust *t = &report->verdict->trust;

	rt_sink_printf(report->sink, "trust: %s%s%s - %llu event%s, %llu lost, %llu point%s armed",
		       t->complete && !t->nothing_seen ? "" : rt_paint(report, RT_PAINT_BAD),
		       t->nothing_seen ? "nothing seen"
		       : t->complete   ? "complete"
				       : "incomplete",
		       t->complete && !t->nothing_seen ? "" : rt_paint(report, RT_PAINT_END),
		       (unsigned long long)t->events, rt_plural(t->events), (unsigned long long)t->lost,
		       (unsigned long long)t->points, rt_plural(t->points));
	if (t->unwind)
		rt_sink_printf(report->sink, ", stacks %s %s", strcmp(t->unwind, "given") ? "by" : "as", t->unwind);
	rt_sink_puts(report->sink, "\n");
	if (t->sampling.governed)
		governed(report, &t->sampling);
	notes(report, "not armed: ", t->unarmed, t->unarmed_count);
	notes(report, "note: ", t->notes, t->note_count);
	if (report->options.verbose)
		notes(report, "not looked at: ", t->limits, t->limit_count);
	notes(report, "names: ", report->run->unnamed, report->run->unnamed_count);
	if (report->run->unnamed_count)
		rt_sink_puts(report->sink, "  fix: " RT_NAMES_FIX "\n");
}

/* A leak in code without debug information, of which it is not clear who was handed what. */
static bool may_be_narrowed(const struct rt_verdict *v)
{
	for (size_t i = 0; i < v->finding_count; i++)
		if (rt_finding_is_thin(&v->findings[i]) && !v->findings[i].guilty.file)
			return true;
	return false;
}

/* Only commands and options that exist: tests/live/test_cli.py looks every one up. */
static void next(struct rt_text_report *report)
{
	const struct rt_verdict *v = report->verdict;
	const char *command = rt_shorten(&report->arena, command_text(report), 24);
	const char *separator = "next: ";

	if (report->run->recording && v->finding_count) {
		const char *from =
			rt_format(&report->arena, " -i %s", rt_clean(&report->arena, report->run->recording));

		for (size_t i = 0; i < report->run->more_count; i++)
			from = rt_format(&report->arena, "%s -i %s", from,
					 rt_clean(&report->arena, report->run->more[i]));

		rt_sink_printf(report->sink, "%sreftrace object first:%s%s", separator, v->findings[0].id, from);
		separator = " | ";
		if (v->findings[0].kind == RT_LEAK)
			rt_sink_printf(report->sink, "%sreftrace tree%s", separator, from);
	} else if (*command && report->run->engine && !strcmp(report->run->engine, "uprobe")) {
		rt_sink_printf(report->sink, "%sreftrace run -w run.rtspool -- %s", separator, command);
		separator = " | ";
	}
	if (report->run->again && may_be_narrowed(v)) {
		rt_sink_printf(report->sink, "%s--narrow for a closer look", separator);
		separator = " | ";
	}
	if (!report->options.verbose && (v->finding_count || v->suspect_count)) {
		rt_sink_printf(report->sink, "%s-v for more", separator);
		separator = " | ";
	}
	if (v->finding_count) {
		rt_sink_printf(report->sink, "%s--json for programs", separator);
		separator = " | ";
	}
	if (*separator == ' ')
		rt_sink_puts(report->sink, "\n");
}

static void render(struct rt_text_report *report)
{
	const struct rt_verdict *v = report->verdict;
	bool clean = !v->finding_count, sure = v->trust.complete && !v->trust.nothing_seen;
	bool quiet = report->options.quiet;

	if (quiet && clean && sure) {
		if (report->run->suppressed_count)
			rt_report_suppressed(report);
		return;
	}
	if (!quiet)
		head(report);
	findings(report);
	rt_report_tallies(report);
	if (v->trust.nothing_seen && clean)
		nothing_seen(report);
	else if (clean)
		clean_result(report);
	else
		summary(report);
	rt_report_suppressed(report);
	if (!quiet)
		folded(report);
	if (report->options.verbose)
		counts(report);
	if (!quiet || !sure)
		trust(report);
	if (!quiet && !clean)
		next(report);
	rt_report_generated(report);
}

struct rt_error *rt_report_text(const struct rt_verdict *verdict, const struct rt_run_info *run,
				const struct rt_text_options *options, struct rt_namer *namer, struct rt_sink *sink)
{
	struct rt_text_report report = { .verdict = verdict, .run = run, .namer = namer, .sink = sink };

	if (options)
		report.options = *options;
	if (!report.options.width)
		report.options.width = DEFAULT_WIDTH;
	if (report.options.width < MIN_WIDTH)
		report.options.width = MIN_WIDTH;
	if (!report.options.max_findings)
		report.options.max_findings = DEFAULT_FINDINGS;
	report.balance_rows = BALANCE_ROWS - (verdict->suspect_count != 0) - (verdict->alive_count != 0) -
			      (verdict->process_count > 1);
	render(&report);
	rt_arena_deinit(&report.arena);
	return rt_sink_end(sink);
}
