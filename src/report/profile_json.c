/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/cached.h"
#include "report/json_writer.h"
#include "report/profile_report.h"

static void symbol(struct rt_json *json, const struct rt_profile_symbol *s)
{
	rt_json_string(json, "function", s->function);
	rt_json_string(json, "module", s->module);
	rt_json_hex(json, "address", s->function ? s->entry : s->address);
	rt_json_bool(json, "kernel", s->kernel);
}

/* The writer holds 63 levels: deeper callers are counted in their caller. */
enum { DEPTH_MAX = 26 };

static void callers(struct rt_json *json, const struct rt_profile_node *nodes, size_t count, unsigned depth)
{
	if (!count || depth > DEPTH_MAX)
		return;
	rt_json_begin_array(json, "callers");
	for (size_t i = 0; i < count; i++) {
		rt_json_begin_object(json, NULL);
		symbol(json, &nodes[i].symbol);
		rt_json_u64(json, "samples", nodes[i].samples);
		rt_json_u64(json, "period", nodes[i].period);
		callers(json, nodes[i].children, nodes[i].child_count, depth + 1);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
}

static void part(struct rt_json *json, const struct rt_profile_part *p)
{
	rt_json_begin_object(json, NULL);
	rt_json_string(json, "name", p->event);
	if (rt_cached_marked(p->event))
		rt_json_string(json, "trust", rt_cached_marked(p->event));
	rt_json_string(json, "unit", p->unit);
	rt_json_u64(json, "samples", p->table->samples);
	rt_json_u64(json, "period", p->table->period);
	rt_json_u64(json, "without_callchain", p->table->without_chain);
	rt_json_u64(json, "cut_callchains", p->table->cut_chains);
	rt_json_begin_array(json, "rows");
	for (size_t i = 0; i < p->table->row_count; i++) {
		const struct rt_profile_row *r = &p->table->rows[i];

		rt_json_begin_object(json, NULL);
		rt_json_string(json, "comm", r->comm);
		symbol(json, &r->symbol);
		rt_json_u64(json, "samples", r->samples);
		rt_json_u64(json, "period", r->period);
		rt_json_u64(json, "total_samples", r->total_samples);
		rt_json_u64(json, "total_period", r->total_period);
		callers(json, r->callers, r->caller_count, 0);
		rt_json_end_object(json);
	}
	rt_json_end_array(json);
	rt_json_end_object(json);
}

struct rt_error *rt_profile_json(const struct rt_profile_head *head, const struct rt_profile_part *parts, size_t count,
				 struct rt_sink *sink)
{
	struct rt_json json;

	rt_json_init(&json, sink);
	rt_json_begin_object(&json, NULL);
	rt_json_string(&json, "schema", "reftrace-profile-1");
	rt_json_begin_array(&json, "command");
	for (const char *const *word = head->command; word && *word; word++)
		rt_json_string(&json, NULL, *word);
	rt_json_end_array(&json);
	rt_json_u64(&json, "lost", head->lost);
	rt_json_string(&json, "damage", head->damage);
	rt_json_begin_array(&json, "unnamed");
	for (size_t i = 0; i < head->unnamed_count; i++)
		rt_json_string(&json, NULL, head->unnamed[i]);
	rt_json_end_array(&json);
	rt_json_begin_object(&json, "stacks");
	rt_json_u64(&json, "copied", head->stacks.samples);
	rt_json_u64(&json, "whole", head->stacks.whole);
	rt_json_u64(&json, "copy_too_short", head->stacks.short_copy);
	rt_json_u64(&json, "no_unwind_information", head->stacks.no_rows);
	rt_json_u64(&json, "too_deep", head->stacks.too_deep);
	rt_json_u64(&json, "other_architecture", head->stacks.foreign);
	rt_json_end_object(&json);
	rt_json_begin_array(&json, "events");
	for (size_t i = 0; i < count; i++)
		part(&json, &parts[i]);
	rt_json_end_array(&json);
	rt_json_end_object(&json);
	rt_sink_puts(sink, "\n");
	return rt_sink_end(sink);
}
