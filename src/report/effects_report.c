/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/effects_report.h"

#include <string.h>

#include "report/json_writer.h"
#include "report/words.h"

const char *rt_effect_word(enum rt_effect_verdict verdict)
{
	static const char *const words[] = {
		[RT_EFFECT_NEVER_RAN] = "never ran",       [RT_EFFECT_UNCHECKED] = "not checked",
		[RT_EFFECT_VERIFIED] = "verified",         [RT_EFFECT_UNCLEAR] = "unclear",
		[RT_EFFECT_CONTRADICTED] = "contradicted",
	};

	return words[verdict];
}

static const char *effect_text(struct rt_arena *arena, const struct rt_effect *e, int64_t n)
{
	if (e->op == RT_OP_NEW)
		return n == RT_START_UNKNOWN ? "starts" : rt_format(arena, "starts at %lld", (long long)n);
	if (e->op == RT_OP_FREE)
		return "frees";
	return rt_format(arena, "%+lld", (long long)n);
}

/* What was seen, where that says more than the verdict. */
static const char *details(struct rt_arena *arena, const struct rt_effect *e)
{
	const char *text = "";

	if (e->checked)
		text = rt_format(arena, "%llu of %llu", (unsigned long long)e->agreed, (unsigned long long)e->checked);
	else if (e->verdict == RT_EFFECT_UNCHECKED)
		text = "its counter is not known or was not read";
	if (e->agreed < e->checked && e->op == RT_OP_NEW)
		text = rt_format(arena, "%s; most start at %lld", text, (long long)e->usual);
	else if (e->agreed < e->checked && e->op == RT_OP_FREE)
		text = rt_format(arena, "%s; most with a count of %lld", text, (long long)e->usual);
	else if (e->agreed < e->checked)
		text = rt_format(arena, "%s; most moved it by %+lld", text, (long long)e->usual);
	else if (e->op == RT_OP_NEW && e->declared == RT_START_UNKNOWN && e->checked)
		text = rt_format(arena, "%s; at %lld", text, (long long)e->usual);
	if (e->ended)
		text = rt_format(arena, "%s%s%llu last one%s, %llu object%s counted on after that", text,
				 *text ? "; " : "", (unsigned long long)e->ended, rt_plural(e->ended),
				 (unsigned long long)e->after_end, rt_plural(e->after_end));
	return text;
}

struct rt_error *rt_effects_text(const struct rt_effect *effects, size_t count, struct rt_sink *sink)
{
	struct rt_arena arena = { 0 };
	uint64_t number[RT_EFFECT_CONTRADICTED + 1] = { 0 };

	for (size_t i = 0; i < count; i++) {
		const struct rt_effect *e = &effects[i];

		if (!i || strcmp(e->type, effects[i - 1].type) != 0)
			rt_sink_printf(sink, "%s\n", rt_type_text(&arena, e->type, NULL));
		rt_sink_printf(sink, "  %-7s%-32s %-12s%-13s%s\n", e->hidden ? "hidden" : rt_op_name(e->op),
			       rt_clean(&arena, e->function), effect_text(&arena, e, e->declared),
			       rt_effect_word(e->verdict), details(&arena, e));
		number[e->verdict]++;
	}
	rt_sink_printf(sink, "%zu function%s: ", count, rt_plural(count));
	for (size_t i = RT_EFFECT_CONTRADICTED + 1; i-- > 0;)
		rt_sink_printf(sink, "%s%llu %s", i == RT_EFFECT_CONTRADICTED ? "" : ", ",
			       (unsigned long long)number[i], rt_effect_word((enum rt_effect_verdict)i));
	rt_sink_puts(sink, "\n");
	rt_arena_deinit(&arena);
	return rt_sink_end(sink);
}

struct rt_error *rt_effects_json(const struct rt_effect *effects, size_t count, struct rt_sink *sink)
{
	struct rt_json json;

	rt_json_init(&json, sink);
	rt_json_begin_object(&json, NULL);
	rt_json_begin_array(&json, "functions");
	for (size_t i = 0; i < count; i++) {
		const struct rt_effect *e = &effects[i];

		rt_json_begin_object(&json, NULL);
		rt_json_string(&json, "type", e->type);
		rt_json_string(&json, "op", e->hidden ? "hidden" : rt_op_name(e->op));
		rt_json_string(&json, "function", e->function);
		rt_json_string(&json, "verdict", rt_effect_word(e->verdict));
		if (e->op == RT_OP_NEW && e->declared == RT_START_UNKNOWN)
			rt_json_null(&json, "declared");
		else
			rt_json_i64(&json, "declared", e->declared);
		rt_json_u64(&json, "events", e->events);
		rt_json_u64(&json, "checked", e->checked);
		rt_json_u64(&json, "agreed", e->agreed);
		if (e->usual_count)
			rt_json_i64(&json, "usual", e->usual);
		else
			rt_json_null(&json, "usual");
		rt_json_u64(&json, "ended", e->ended);
		rt_json_u64(&json, "freed", e->freed);
		rt_json_u64(&json, "after_end", e->after_end);
		rt_json_end_object(&json);
	}
	rt_json_end_array(&json);
	rt_json_end_object(&json);
	return rt_sink_end(sink);
}
