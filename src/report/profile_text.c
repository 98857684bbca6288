/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rows by share, each with its callers below: who called it, outermost last.
 * A chain without branches is one line per function, not one level each.
 */
#include "report/profile_report.h"

#include <string.h>

#include "probe/cached.h"
#include "report/words.h"

enum { DEFAULT_WIDTH = 80, COMM_MIN = 7, COMM_MAX = 16, MODULE_MAX = 24, DEPTH_MAX = 64, NAMES = 3 };

struct text {
	struct rt_sink *sink;
	struct rt_profile_text_options options;
	struct rt_arena arena;
	uint64_t whole; /* period of the table */
};

static double share(const struct text *t, uint64_t period)
{
	return t->whole ? 100.0 * (double)period / (double)t->whole : 0;
}

static const char *function(struct text *t, const struct rt_profile_symbol *s)
{
	if (s->function)
		return rt_clean(&t->arena, s->function);
	return rt_format(&t->arena, "0x%llx", (unsigned long long)s->address);
}

static const char *module(struct text *t, const struct rt_profile_symbol *s)
{
	const char *name = rt_basename(rt_clean(&t->arena, s->module));

	return *name ? name : "[unknown]";
}

static const char *number(struct text *t, uint64_t n)
{
	const char *plain = rt_format(&t->arena, "%llu", (unsigned long long)n);
	size_t len = rt_columns(plain), at = 0;
	char out[40];

	for (size_t i = 0; i < len && at + 2 < sizeof(out); i++) {
		if (i && (len - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = plain[i];
	}
	out[at] = 0;
	return rt_format(&t->arena, "%s", out);
}

static void callers(struct text *t, const struct rt_profile_node *nodes, size_t count, const char *indent,
		    unsigned depth)
{
	uint64_t left_out = 0;
	size_t hidden = 0;

	for (size_t i = 0; i < count && depth < DEPTH_MAX; i++) {
		const struct rt_profile_node *n = &nodes[i];
		bool last = i + 1 == count;

		if (share(t, n->period) < t->options.min_percent && (i || count > 1)) {
			left_out += n->period;
			hidden++;
			continue;
		}
		rt_sink_printf(t->sink, "%s%s%6.2f%% %s\n", indent,
			       count == 1 ? "  "
			       : last     ? "`-"
					  : "|-",
			       share(t, n->period), function(t, &n->symbol));
		/* the only caller stays in its column */
		callers(t, n->children, n->child_count,
			count == 1 ? indent : rt_format(&t->arena, "%s%s", indent, last ? "  " : "| "), depth + 1);
	}
	if (hidden)
		rt_sink_printf(t->sink, "%s`-%6.2f%% %zu more caller%s\n", indent, share(t, left_out), hidden,
			       rt_plural(hidden));
}

static void row(struct text *t, const struct rt_profile_row *r, bool chains, int comm, int where)
{
	double self = share(t, r->period);
	const char *hot = t->options.color && self >= 5     ? "\033[1;31m"
			  : t->options.color && self >= 0.5 ? "\033[32m"
							    : "";

	rt_sink_printf(t->sink, "%s%6.2f%%%s", hot, self, *hot ? "\033[0m" : "");
	if (chains)
		rt_sink_printf(t->sink, " %6.2f%%", share(t, r->total_period));
	rt_sink_printf(t->sink, " %8s  %-*s  %-*s  %s%s\n", number(t, r->samples), comm,
		       rt_shorten(&t->arena, rt_clean(&t->arena, r->comm), COMM_MAX), where,
		       rt_shorten(&t->arena, module(t, &r->symbol), MODULE_MAX), r->symbol.kernel ? "[k] " : "",
		       function(t, &r->symbol));
	if (!t->options.no_callers && r->caller_count)
		callers(t, r->callers, r->caller_count, chains ? "                 " : "         ", 0);
}

static size_t at_least(size_t a, size_t b)
{
	return a > b ? a : b;
}

static void part(struct text *t, const struct rt_profile_part *p)
{
	const struct rt_profile_table *table = p->table;
	size_t comm = COMM_MIN, where = sizeof("MODULE") - 1, hidden = 0;
	uint64_t left_out = 0;

	t->whole = table->period;
	rt_sink_printf(t->sink, "\n%s: %s sample%s", rt_clean(&t->arena, p->event), number(t, table->samples),
		       rt_plural(table->samples));
	if (p->unit && !strcmp(p->unit, "ns"))
		rt_sink_printf(t->sink, ", %s", rt_duration_text(&t->arena, table->period));
	else
		rt_sink_printf(t->sink, ", about %s event%s", number(t, table->period), rt_plural(table->period));
	if (table->has_chains && table->without_chain)
		rt_sink_printf(t->sink, ", %s without a callchain", number(t, table->without_chain));
	rt_sink_puts(t->sink, "\n");
	if (rt_cached_marked(p->event))
		rt_sink_printf(t->sink, "trust: %s\n", rt_cached_marked(p->event));
	if (!table->samples)
		return;
	for (size_t i = 0; i < table->row_count; i++) {
		const struct rt_profile_row *r = &table->rows[i];

		comm = at_least(comm, rt_columns(rt_shorten(&t->arena, rt_clean(&t->arena, r->comm), COMM_MAX)));
		where = at_least(where, rt_columns(rt_shorten(&t->arena, module(t, &r->symbol), MODULE_MAX)));
	}
	rt_sink_printf(t->sink, "%7s%s %8s  %-*s  %-*s  %s\n", "SELF", table->has_chains ? "   TOTAL" : "", "SAMPLES",
		       (int)comm, "COMMAND", (int)where, "MODULE", "FUNCTION");
	for (size_t i = 0; i < table->row_count; i++) {
		const struct rt_profile_row *r = &table->rows[i];

		/* a pure caller is a row of its own as long as its share is worth a line */
		if (share(t, r->period) < t->options.min_percent &&
		    (!r->samples || share(t, r->total_period) < t->options.min_percent)) {
			if (r->samples) {
				left_out += r->period;
				hidden++;
			}
			continue;
		}
		row(t, r, table->has_chains, (int)comm, (int)where);
	}
	if (hidden)
		rt_sink_printf(t->sink, "%6.2f%%  in %zu more function%s, below %g%% each\n", share(t, left_out),
			       hidden, rt_plural(hidden), t->options.min_percent);
	if (table->cut_chains)
		rt_sink_printf(t->sink, "%s callers were left out: too many distinct call paths\n",
			       number(t, table->cut_chains));
}

/* A file without symbols, where that hides a part worth a row. */
static void stripped(struct text *t, const struct rt_profile_head *head, const struct rt_profile_part *parts,
		     size_t count)
{
	const struct rt_profile_stripped s = rt_profile_stripped(parts, count, head->unnamed, head->unnamed_count);
	uint64_t all = 0;

	for (size_t i = 0; i < count; i++)
		all += parts[i].table->samples;
	if (!s.samples || (double)s.samples * 100 < t->options.min_percent * (double)all)
		return;
	rt_sink_printf(t->sink, "%snames: %s sample%s in %s: it has no symbols there\n  fix: " RT_SYMBOLS_FIX "\n",
		       head->unnamed_count ? "" : "\n", number(t, s.samples), rt_plural(s.samples),
		       rt_basename(rt_clean(&t->arena, s.module)));
}

struct rt_error *rt_profile_text(const struct rt_profile_head *head, const struct rt_profile_part *parts, size_t count,
				 const struct rt_profile_text_options *options, struct rt_sink *sink)
{
	const char *notes[RT_UNWOUND_NOTES];
	struct text t = { .sink = sink };
	size_t n;

	if (options)
		t.options = *options;
	t.options.width = t.options.width ? t.options.width : DEFAULT_WIDTH;
	t.options.min_percent = t.options.min_percent > 0 ? t.options.min_percent : 0.5;
	if (head->command && *head->command) {
		rt_sink_puts(sink, "command:");
		for (const char *const *word = head->command; *word; word++)
			rt_sink_printf(sink, " %s", rt_clean(&t.arena, *word));
		rt_sink_puts(sink, "\n");
	}
	for (size_t i = 0; i < count; i++)
		part(&t, &parts[i]);
	for (size_t i = 0; i < head->unnamed_count && (i < NAMES || t.options.min_percent < 1e-6); i++)
		rt_sink_printf(sink, "%snames: %s\n", i ? "" : "\n", rt_clean(&t.arena, head->unnamed[i]));
	if (head->unnamed_count > NAMES && t.options.min_percent >= 1e-6)
		rt_sink_printf(sink, "names: and %zu more: -v\n", head->unnamed_count - NAMES);
	if (head->unnamed_count)
		rt_sink_puts(sink, "  fix: " RT_NAMES_FIX "\n");
	stripped(&t, head, parts, count);
	n = rt_unwound_notes(&t.arena, &head->stacks, notes);
	for (size_t i = 0; i < n; i++)
		rt_sink_printf(sink, "%sstacks: %s\n", i ? "" : "\n", notes[i]);
	if (head->lost)
		rt_sink_printf(sink, "\nlost: %s record%s: the shares are of what was kept\n", number(&t, head->lost),
			       rt_plural(head->lost));
	if (head->damage)
		rt_sink_printf(sink, "\ncut: %s\n", rt_clean(&t.arena, head->damage));
	rt_arena_deinit(&t.arena);
	return rt_sink_end(sink);
}
