/* SPDX-License-Identifier: GPL-2.0-only */
/* A diff for people: what is worse first, what stayed only counted. */
#include "report/diff.h"
#include "report/text.h"

#include <ctype.h>
#include <string.h>

enum { ROWS_SHOWN = 20, SITES_SHOWN = 4 };

static const char *side_text(struct rt_text_report *t, const struct rt_diff_side *side)
{
	const char *text = rt_clean(&t->arena, side->path);

	for (size_t i = 0; side->command && side->command[i] && i < 8; i++)
		text = rt_format(&t->arena, "%s%s%s", text, i ? " " : ": ", rt_clean(&t->arena, side->command[i]));
	return rt_shorten(&t->arena, text, t->options.width > 20 ? t->options.width - 5 : 15);
}

static const char *number(struct rt_text_report *t, uint64_t before, uint64_t after)
{
	if (before == after)
		return rt_format(&t->arena, "%llu", (unsigned long long)after);
	return rt_format(&t->arena, "%llu -> %llu", (unsigned long long)before, (unsigned long long)after);
}

/* "12 -> 20 of 100 objects" */
static const char *objects(struct rt_text_report *t, const struct rt_diff_row *row)
{
	const struct rt_finding *old = row->old_one, *young = row->new_one;

	if (!old || !young)
		return rt_format(&t->arena, "%llu of %llu objects",
				 (unsigned long long)(old ? row->old_objects : row->new_objects),
				 (unsigned long long)(old ?: young)->of);
	return rt_format(&t->arena, "%llu of %llu -> %llu of %llu objects", (unsigned long long)row->old_objects,
			 (unsigned long long)old->of, (unsigned long long)row->new_objects,
			 (unsigned long long)young->of);
}

static const char *line_move(struct rt_text_report *t, const struct rt_frame *before, const struct rt_frame *after)
{
	const struct rt_frame *frame = after ?: before;
	const char *place = rt_report_place(t, frame, 48);

	if (!before || !after || !before->line || !after->line || before->line == after->line)
		return place;
	return rt_format(&t->arena, "%s (was line %u)", place, before->line);
}

static void sites(struct rt_text_report *t, const struct rt_diff_row *row)
{
	size_t shown = 0;

	for (size_t i = 0; i < row->site_count; i++) {
		const struct rt_diff_site *s = &row->sites[i];
		bool both = s->old_references && s->new_references;

		/* of what is there on one side only, each site is as new or gone as the whole */
		if (s->change == RT_SAME && !t->options.verbose)
			continue;
		if (shown++ == SITES_SHOWN && !t->options.verbose) {
			rt_sink_puts(t->sink, "    and more sites: -v\n");
			break;
		}
		rt_sink_printf(t->sink, "    %-7s%s reference%s taken in %s  %s\n", rt_change_word(s->change),
			       number(t, both ? s->old_references : s->new_references ?: s->old_references,
				      s->new_references ?: s->old_references),
			       rt_plural(s->new_references ?: s->old_references),
			       rt_clean(&t->arena, s->function),
			       line_move(t, s->old_references ? &s->old_frame : NULL,
					 s->new_references ? &s->new_frame : NULL));
	}
}

static void row_text(struct rt_text_report *t, const struct rt_diff_row *row)
{
	const struct rt_finding *f = row->new_one ?: row->old_one;
	bool bad = row->change <= RT_GROWN && !row->suspect;
	char word[16];

	snprintf(word, sizeof(word), "%s", rt_change_word(row->change));
	for (char *c = word; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	rt_sink_printf(
		t->sink, "%s%s%s %s  %s%s: %s\n",
		rt_paint(t, bad                      ? RT_PAINT_BAD
			    : row->change == RT_GONE ? RT_PAINT_GOOD
						     : RT_PAINT_STRONG),
		word, rt_paint(t, RT_PAINT_END), f->id, row->suspect ? "suspicion of " : "",
		rt_format(&t->arena, "%s of %s", rt_finding_word(f->kind), rt_type_text(&t->arena, f->type, f->klass)),
		objects(t, row));
	rt_sink_printf(
		t->sink, "  in %s%s%s  %s\n", rt_paint(t, RT_PAINT_STRONG), rt_place_text(&t->arena, &f->guilty),
		rt_paint(t, RT_PAINT_END),
		line_move(t, row->old_one ? &row->old_one->guilty : NULL, row->new_one ? &row->new_one->guilty : NULL));
	sites(t, row);
}

static void rows(struct rt_text_report *t, const struct rt_diff *diff)
{
	size_t shown = 0, more = 0;

	for (size_t i = 0; i < diff->count; i++) {
		const struct rt_diff_row *row = &diff->rows[i];

		if (!t->options.verbose && (row->change == RT_SAME || row->suspect))
			continue;
		if (shown == ROWS_SHOWN && !t->options.verbose) {
			more++;
			continue;
		}
		row_text(t, row);
		shown++;
	}
	if (more)
		rt_sink_printf(t->sink, "and %zu more: -v\n", more);
	if (shown)
		rt_sink_puts(t->sink, "\n");
}

static void alive(struct rt_text_report *t, const struct rt_diff *diff)
{
	for (size_t i = 0; i < diff->alive_count; i++) {
		const struct rt_diff_alive *a = &diff->alive[i];

		if (a->old_objects != a->new_objects || t->options.verbose)
			rt_sink_printf(t->sink, "alive, not accused: %s %s\n",
				       rt_type_text(&t->arena, a->type, a->klass),
				       number(t, a->old_objects, a->new_objects));
	}
}

static void doubts(struct rt_text_report *t, const struct rt_diff_side *side)
{
	const struct rt_trust *trust = &side->verdict->trust;

	if (trust->complete && !trust->nothing_seen && !trust->lost)
		return;
	rt_sink_printf(t->sink,
		       "trust: %s is %s: what is new or gone may be so for that reason; reftrace report -i %s\n",
		       rt_clean(&t->arena, side->path), trust->nothing_seen ? "without any event" : "incomplete",
		       rt_clean(&t->arena, side->path));
}

struct rt_error *rt_diff_text(const struct rt_diff *diff, const struct rt_diff_head *head,
			      const struct rt_text_options *options, struct rt_sink *sink)
{
	struct rt_text_report t = { .verdict = head->after.verdict, .options = *options, .sink = sink };
	size_t suspects = 0;

	t.options.width = t.options.width ?: 80;
	for (size_t i = 0; i < diff->count; i++)
		suspects += diff->rows[i].suspect;
	rt_sink_printf(sink, "old: %s\nnew: %s\n\n", side_text(&t, &head->before), side_text(&t, &head->after));
	rows(&t, diff);
	rt_sink_printf(sink, "%zu new, %zu grown, %zu gone, %zu shrunk, %zu the same", diff->changes[RT_NEW],
		       diff->changes[RT_GROWN], diff->changes[RT_GONE], diff->changes[RT_SHRUNK],
		       diff->changes[RT_SAME]);
	if (suspects)
		rt_sink_printf(sink, "; %zu suspicion%s%s", suspects, rt_plural(suspects),
			       options->verbose ? "" : ": -v");
	rt_sink_puts(sink, "\n");
	alive(&t, diff);
	doubts(&t, &head->before);
	doubts(&t, &head->after);
	rt_arena_deinit(&t.arena);
	return rt_sink_end(sink);
}
