/* SPDX-License-Identifier: GPL-2.0-only */
/* Counting mode: objects that are not balanced, by what was done to them and where. */
#include "report/text.h"

enum { GROUPS = 5, ROWS = 8, PLACE = 32 };

static void row(struct rt_text_report *report, const struct rt_tally_row *r)
{
	const char *function =
		r->site.function ? rt_clean(&report->arena, r->site.function) : rt_place_text(&report->arena, &r->site);

	rt_sink_printf(report->sink, "  %-5s%-24s %-24s%10llu of %llu\n", rt_op_name(r->op), function,
		       rt_report_place(report, &r->site, PLACE), (unsigned long long)r->events,
		       (unsigned long long)r->in_all);
}

static void group(struct rt_text_report *report, const struct rt_tally_group *g)
{
	const char *type = rt_type_text(&report->arena, g->type, NULL);
	unsigned long long n = g->balance < 0 ? 0 - (unsigned long long)g->balance : (unsigned long long)g->balance;
	size_t rows = report->options.verbose || g->row_count < ROWS ? g->row_count : ROWS;

	rt_sink_printf(report->sink, "%s%s%s: %llu object%s with %llu reference%s %s%s\n",
		       rt_paint(report, RT_PAINT_STRONG), type, rt_paint(report, RT_PAINT_END),
		       (unsigned long long)g->objects, rt_plural(g->objects), n, rt_plural(n),
		       g->made          ? "open"
		       : g->balance < 0 ? "given back that nobody was seen to take"
					: "taken and not given back, made unseen",
		       g->several ? ", perhaps several at one address" : "");
	for (size_t i = 0; i < rows; i++)
		row(report, &g->rows[i]);
	if (rows < g->row_count)
		rt_sink_printf(report->sink, "  and %zu more places: -v\n", g->row_count - rows);
	if (g->others)
		rt_sink_printf(report->sink, "  and %llu operations at further places\n",
			       (unsigned long long)g->others);
}

void rt_report_tallies(struct rt_text_report *report)
{
	const struct rt_verdict *v = report->verdict;
	size_t shown = report->options.verbose || v->tally_count < GROUPS ? v->tally_count : GROUPS;

	for (size_t i = 0; i < shown; i++)
		group(report, &v->tallies[i]);
	if (shown < v->tally_count)
		rt_sink_printf(report->sink, "and %zu more kinds: -v\n", v->tally_count - shown);
	if (shown)
		rt_sink_puts(report->sink, "\n");
}
