/* SPDX-License-Identifier: GPL-2.0-only */
/* Nodes are a flat list in the order of the text: a call path may be deeper than readers nest. */
#include "report/json_writer.h"
#include "report/view.h"

static void nodes(struct rt_json *json, const struct rt_balance_node *list, size_t count, unsigned depth)
{
	for (size_t i = 0; i < count; i++) {
		const struct rt_balance_node *n = &list[i];

		rt_json_begin_object(json, NULL);
		rt_json_u64(json, "depth", depth);
		rt_json_string(json, "function", n->function);
		rt_json_string(json, "file", n->file);
		if (n->line)
			rt_json_u64(json, "line", n->line);
		else
			rt_json_null(json, "line");
		rt_json_string(json, "module", n->module);
		if (n->function)
			rt_json_null(json, "offset");
		else
			rt_json_hex(json, "offset", n->address);
		rt_json_string(json, "api", n->api);
		rt_json_u64(json, "events", n->events);
		rt_json_u64(json, "gets", n->gets);
		rt_json_u64(json, "puts", n->puts);
		rt_json_i64(json, "balance", (int64_t)(n->gets - n->puts));
		rt_json_u64(json, "hidden", n->balanced);
		rt_json_end_object(json);
		nodes(json, n->children, n->child_count, depth + 1);
	}
}

static void type(struct rt_json *json, const struct rt_view_tree *v)
{
	const struct rt_balance_type *b = v->tree;

	rt_json_begin_object(json, NULL);
	rt_json_string(json, "type", b->type);
	rt_json_u64(json, "objects", v->objects);
	rt_json_u64(json, "of", v->of);
	rt_json_u64(json, "events", b->events);
	rt_json_u64(json, "gets", b->gets);
	rt_json_u64(json, "puts", b->puts);
	rt_json_i64(json, "balance", (int64_t)(b->gets - b->puts));
	rt_json_u64(json, "at_first_sight", b->at_first_sight);
	rt_json_u64(json, "hidden", b->balanced);
	rt_json_u64(json, "cut_events", b->cut);
	rt_json_begin_array(json, "nodes");
	nodes(json, b->nodes, b->node_count, 0);
	rt_json_end_array(json);
	rt_json_end_object(json);
}

struct rt_error *rt_tree_json(const struct rt_view_head *head, const struct rt_verdict *verdict,
			      const struct rt_view_tree *trees, size_t count, const struct rt_view_options *options,
			      struct rt_sink *sink)
{
	struct rt_json json;

	rt_json_init(&json, sink);
	rt_json_begin_object(&json, NULL);
	rt_json_string(&json, "schema", "reftrace-tree-1");
	rt_json_begin_array(&json, "command");
	for (const char *const *word = head->command; word && *word; word++)
		rt_json_string(&json, NULL, *word);
	rt_json_end_array(&json);
	rt_json_bool(&json, "inverted", options->inverted);
	rt_json_bool(&json, "complete", verdict->trust.complete);
	rt_json_u64(&json, "lost", verdict->trust.lost);
	rt_json_begin_array(&json, "types");
	for (size_t i = 0; i < count; i++)
		type(&json, &trees[i]);
	rt_json_end_array(&json);
	rt_json_end_object(&json);
	rt_sink_puts(sink, "\n");
	return rt_sink_end(sink);
}
