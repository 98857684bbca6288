/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The balance tree: numbers on the left, the call path on the right. A chain without branches is one
 * line per function, not one level each.
 */
#include <inttypes.h>
#include <string.h>

#include "report/view.h"
#include "report/words.h"

enum { DEPTH_MAX = 256 };

struct text {
	struct rt_sink *sink;
	struct rt_view_options options;
	struct rt_arena arena;
	uint64_t hidden;
};

static const char *place(struct text *t, const struct rt_balance_node *n)
{
	struct rt_frame f = { .function = n->function, .module = n->module, .address = n->address };
	const char *file = n->file ? rt_clean(&t->arena, rt_basename(n->file)) : NULL;
	const char *name =
		n->api ? rt_format(&t->arena, "%s()", rt_clean(&t->arena, n->api)) : rt_place_text(&t->arena, &f);

	if (!file || (!n->line && n->api))
		return name;
	return n->line ? rt_format(&t->arena, "%s  %s:%u", name, file, n->line)
		       : rt_format(&t->arena, "%s  %s", name, file);
}

static bool functions_below(const struct rt_balance_node *n)
{
	for (size_t i = 0; i < n->child_count; i++) {
		if (!n->children[i].api)
			return true;
	}
	return false;
}

static const char *signed_text(struct text *t, uint64_t gets, uint64_t puts)
{
	int64_t left = (int64_t)(gets - puts);

	return left ? rt_format(&t->arena, "%+" PRId64, left) : "0";
}

static void nodes(struct text *t, const struct rt_balance_node *list, size_t count, const char *indent, unsigned depth)
{
	for (size_t i = 0; i < count && depth < DEPTH_MAX; i++) {
		const struct rt_balance_node *n = &list[i];
		bool last = i + 1 == count, unbalanced = n->gets != n->puts;
		/* where the way ends, and what is called there */
		bool here = unbalanced && !n->api && (t->options.inverted ? !depth : !functions_below(n));
		const char *branch = !depth ? "" : count == 1 ? "  " : last ? "`-" : "|-";
		const char *deeper = !depth       ? ""
				     : count == 1 ? indent
						  : rt_format(&t->arena, "%s%s", indent, last ? "  " : "| ");

		rt_sink_printf(t->sink, "%8" PRIu64 " %8" PRIu64 " %s%8s%s  %s%s%s%s%s\n", n->gets, n->puts,
			       here && t->options.color ? "\033[1;31m" : "", signed_text(t, n->gets, n->puts),
			       here && t->options.color ? "\033[0m" : "", indent, branch,
			       n->api && t->options.color ? "\033[2m" : "", place(t, n),
			       n->api && t->options.color ? "\033[0m" : "");
		t->hidden += n->balanced;
		nodes(t, n->children, n->child_count, deeper, depth + 1);
	}
}

static void type(struct text *t, const struct rt_view_tree *v)
{
	const struct rt_balance_type *b = v->tree;

	rt_sink_printf(t->sink,
		       "%s: %" PRIu64 " of %" PRIu64 " object%s%s: %" PRIu64 " reference%s taken, %" PRIu64
		       " given back, %s left\n\n",
		       rt_type_text(&t->arena, b->type, NULL), v->objects, v->of, rt_plural(v->of),
		       v->all       ? ""
		       : v->of == 1 ? " was never released"
				    : " were never released",
		       b->gets, rt_plural(b->gets), b->puts, signed_text(t, b->gets, b->puts));
	t->hidden = b->balanced;
	rt_sink_printf(t->sink, "%8s %8s %8s  %s\n", "GETS", "PUTS", "BALANCE",
		       t->options.inverted ? "FUNCTION, CALLERS BELOW" : "CALL PATH");
	if (b->at_first_sight)
		rt_sink_printf(t->sink, "%8" PRIu64 " %8d %8s  (taken before the first event)\n", b->at_first_sight, 0,
			       signed_text(t, b->at_first_sight, 0));
	nodes(t, b->nodes, b->node_count, "", 0);
	if (t->hidden)
		rt_sink_printf(t->sink, "%" PRIu64 " branch%s that give%s back what %s: --all\n", t->hidden,
			       t->hidden == 1 ? "" : "es", t->hidden == 1 ? "s" : "",
			       t->hidden == 1 ? "it takes" : "they take");
	if (b->cut)
		rt_sink_printf(t->sink,
			       "%" PRIu64 " events without their deeper frames: too many distinct call paths\n",
			       b->cut);
	rt_sink_puts(t->sink, "\n");
}

void rt_view_command(const struct rt_view_head *head, struct rt_sink *sink)
{
	struct rt_arena arena = { 0 };

	if (!head->command || !*head->command)
		return;
	rt_sink_puts(sink, "command:");
	for (const char *const *word = head->command; *word; word++)
		rt_sink_printf(sink, " %s", rt_clean(&arena, *word));
	rt_sink_puts(sink, "\n\n");
	rt_arena_deinit(&arena);
}

struct rt_error *rt_tree_text(const struct rt_view_head *head, const struct rt_verdict *verdict,
			      const struct rt_view_tree *trees, size_t count, const struct rt_view_options *options,
			      struct rt_sink *sink)
{
	struct text t = { .sink = sink, .options = *options };

	rt_view_command(head, sink);
	for (size_t i = 0; i < count; i++) {
		type(&t, &trees[i]);
		rt_arena_deinit(&t.arena);
	}
	if (!count)
		rt_sink_printf(sink, "no references to show: %s\n",
			       verdict->trust.nothing_seen ? "no get or put was seen"
							   : "every object was released; --all shows them, too");
	if (!verdict->trust.complete)
		rt_sink_puts(sink, "trust: incomplete: reftrace report says what is missing\n");
	return rt_sink_end(sink);
}
