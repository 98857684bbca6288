/* SPDX-License-Identifier: GPL-2.0-only */
/* What is known already: counted in each report, so that no rule hides more than was meant without a word. */
#include "report/suppress.h"
#include "report/text.h"

enum { RULES_SHOWN = 10 };

static const char *rule_text(struct rt_text_report *report, const struct rt_rule *rule)
{
	const char *name = rt_clean(&report->arena, rule->name), *file = rt_clean(&report->arena, rule->file);

	return rt_format(&report->arena, "%s  (%s:%zu)", rt_cut(&report->arena, name, report->options.width), file,
			 rule->line);
}

static void used_rule(struct rt_text_report *report, const struct rt_rule *rule)
{
	rt_sink_printf(report->sink, "  used: %llu finding%s", (unsigned long long)rule->findings,
		       rt_plural(rule->findings));
	if (rule->suspects)
		rt_sink_printf(report->sink, ", %llu suspect%s", (unsigned long long)rule->suspects,
			       rt_plural(rule->suspects));
	rt_sink_printf(report->sink, ", %llu object%s  %s\n", (unsigned long long)rule->objects,
		       rt_plural(rule->objects), rule_text(report, rule));
}

static void unused_rule(struct rt_text_report *report, const struct rt_rule *rule)
{
	const char *why = "";

	if (rule->partly)
		why = rule->max != UINT64_MAX ? ": fits some, but for other stacks or more objects than its max"
					      : ": fits some, but not all of their stacks";
	else if (!rule->kinds)
		why = ": for findings of another tool";
	rt_sink_printf(report->sink, "  unused: %s%s\n", rule_text(report, rule), why);
}

/* used rules first; those of a long file are many, and what took nothing is the lesser news */
void rt_report_suppressed(struct rt_text_report *report)
{
	const struct rt_suppressions *s = report->run->suppressions;
	uint64_t objects = 0, used = 0, shown = 0, findings = 0;

	if (!s || !s->rules.len)
		return;
	for (size_t i = 0; i < s->rules.len; i++) {
		objects += s->rules.data[i].objects;
		findings += s->rules.data[i].findings + s->rules.data[i].suspects;
		used += s->rules.data[i].findings || s->rules.data[i].suspects;
	}
	rt_sink_printf(report->sink, "suppressed: %llu finding%s (%llu object%s) by %llu of %zu rule%s\n",
		       (unsigned long long)findings, rt_plural(findings), (unsigned long long)objects,
		       rt_plural(objects), (unsigned long long)used, s->rules.len, rt_plural(s->rules.len));
	for (int unused = 0; unused < 2; unused++) {
		for (size_t i = 0; i < s->rules.len; i++) {
			const struct rt_rule *rule = &s->rules.data[i];

			if (unused != (!rule->findings && !rule->suspects))
				continue;
			if (++shown > RULES_SHOWN && !report->options.verbose)
				continue;
			if (unused)
				unused_rule(report, rule);
			else
				used_rule(report, rule);
		}
	}
	if (shown > RULES_SHOWN && !report->options.verbose)
		rt_sink_printf(report->sink, "  and %llu more rules: -v\n", (unsigned long long)shown - RULES_SHOWN);
	for (size_t i = 0; report->options.verbose && i < report->run->suppressed_count; i++)
		rt_report_finding_line(report, report->run->suppressed[i].finding);
}

void rt_report_generated(struct rt_text_report *report)
{
	const struct rt_verdict *v = report->verdict;

	for (size_t i = 0; report->run->generate && i < v->finding_count; i++) {
		if (!i)
			rt_sink_puts(report->sink, "\n# for --suppressions=FILE\n");
		rt_sink_puts(report->sink, rt_suppression_for(&report->arena, &v->findings[i]));
	}
}
