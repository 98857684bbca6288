/* SPDX-License-Identifier: GPL-2.0-only */
/* Stacks with their sums into balance trees: hand-made, so that every sum can be done in the head. */
#include <string.h>

#include "profile/balance.h"
#include "test.h"

/* frames of "main;serve@a.c:40;parse@a.c:29", innermost first; the line holds for the call that the frame makes */
static size_t frames(const char *stack, char *copy, struct rt_frame *ret)
{
	size_t n = 0;

	strcpy(copy, stack);
	for (char *end = copy + strlen(copy); end; n++) {
		char *semi = strrchr(copy, ';'), *name = semi ? semi + 1 : copy, *at = strchr(name, '@');
		char *colon = at ? strrchr(at, ':') : NULL;

		ret[n] = (struct rt_frame){ .function = name, .module = "/bin/prog" };
		if (*name == '?')
			ret[n] = (struct rt_frame){ .module = "/lib/x.so", .address = 0x100 + n };
		if (at) {
			*at = *colon = 0;
			ret[n].file = at + 1;
			for (const char *p = colon + 1; *p; p++)
				ret[n].line = ret[n].line * 10 + (uint32_t)(*p - '0');
		}
		end = semi;
		if (semi)
			*semi = 0;
	}
	return n;
}

static void add(struct rt_balance_trees *t, const char *type, const char *api, const char *stack, uint64_t gets,
		uint64_t puts)
{
	char copy[256];
	struct rt_frame f[16];
	struct rt_balance_path p = { .type = type, .api = api, .frames = f, .gets = gets, .puts = puts };

	p.count = stack ? frames(stack, copy, f) : 0;
	p.events = gets + puts;
	assert_ok(rt_balance_add(t, &p));
	memset(copy, 'x', sizeof(copy)); /* nothing of it is kept */
}

static const struct rt_balance_type *only(struct rt_balance_trees *t, bool all)
{
	const struct rt_balance_type *types;
	size_t n;

	assert_ok(rt_balance_types(t, all, &types, &n));
	assert_int_equal(n, 1);
	return types;
}

static const struct rt_balance_node *child(const struct rt_balance_node *nodes, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		const char *what = nodes[i].api ? nodes[i].api : nodes[i].function;

		if (what && !strcmp(what, name))
			return &nodes[i];
	}
	return NULL;
}

/* main makes 20, serve gives back what it takes, parse forgets 20 */
static void leak(struct rt_balance_trees *t)
{
	add(t, "obj", "obj_new", "main@a.c:38", 20, 0);
	add(t, "obj", "obj_get", "main@a.c:40;serve@a.c:50", 20, 0);
	add(t, "obj", "obj_put", "main@a.c:40;serve@a.c:52", 0, 20);
	add(t, "obj", "obj_get", "main@a.c:41;handle@a.c:60;parse@a.c:29", 20, 0);
	add(t, "obj", "obj_put", "main@a.c:43", 0, 20);
}

TEST(what_balances_is_hidden)
{
	_cleanup_(rt_balance_destroyp) struct rt_balance_trees *t = NULL;
	const struct rt_balance_type *type;
	const struct rt_balance_node *top, *handle, *parse;

	assert_ok(rt_balance_create(false, &t));
	leak(t);
	type = only(t, false);
	assert_string_equal(type->type, "obj");
	assert_int_equal(type->gets, 60);
	assert_int_equal(type->puts, 40);
	assert_int_equal(type->events, 100);
	assert_int_equal(type->node_count, 1);
	top = type->nodes;
	assert_string_equal(top->function, "main");
	assert_int_equal(top->line, 0);     /* several */
	assert_int_equal(top->balanced, 2); /* serve; its own calls */
	assert_null(child(top->children, top->child_count, "serve"));
	handle = child(top->children, top->child_count, "handle");
	assert_non_null(handle);
	assert_int_equal(handle->gets - handle->puts, 20);
	assert_int_equal(handle->line, 60);
	parse = child(handle->children, handle->child_count, "parse");
	assert_non_null(parse);
	assert_int_equal(parse->child_count, 1);
	assert_string_equal(parse->children->api, "obj_get");
	assert_int_equal(parse->children->line, 29);
	/* the calls of main itself balance only together */
	assert_null(child(top->children, top->child_count, "obj_new"));
	assert_null(child(top->children, top->child_count, "obj_put"));
	assert_int_equal(top->child_count, 1);
}

TEST(all_hides_nothing)
{
	_cleanup_(rt_balance_destroyp) struct rt_balance_trees *t = NULL;
	const struct rt_balance_node *top, *serve;

	assert_ok(rt_balance_create(false, &t));
	leak(t);
	top = only(t, true)->nodes;
	serve = child(top->children, top->child_count, "serve");
	assert_non_null(serve);
	assert_int_equal(serve->gets, 20);
	assert_int_equal(serve->puts, 20);
	assert_int_equal(serve->child_count, 2);
	assert_int_equal(top->child_count, 4);
	assert_int_equal(top->balanced, 0);
	/* and asked again, it is hidden again */
	assert_int_equal(only(t, false)->nodes->balanced, 2);
}

TEST(inverted)
{
	_cleanup_(rt_balance_destroyp) struct rt_balance_trees *t = NULL;
	const struct rt_balance_type *type;
	const struct rt_balance_node *parse;

	assert_ok(rt_balance_create(true, &t));
	leak(t);
	type = only(t, false);
	/* main took 20 and gave 20 back by its own hand, serve too: who is left is parse */
	assert_int_equal(type->node_count, 1);
	assert_int_equal(type->balanced, 2);
	parse = type->nodes;
	assert_string_equal(parse->function, "parse");
	assert_string_equal(parse->children->function, "handle");
	assert_string_equal(parse->children->children->function, "main");
	assert_int_equal(parse->children->children->child_count, 0);
}

TEST(largest_first)
{
	_cleanup_(rt_balance_destroyp) struct rt_balance_trees *t = NULL;
	const struct rt_balance_type *types;
	size_t n;

	assert_ok(rt_balance_create(false, &t));
	add(t, "small", "get", "main;a", 3, 0);
	add(t, "large", "get", "main;a", 5, 0);
	add(t, "large", "put", "main;b", 0, 9);
	add(t, "large", "put", "main;c", 0, 7);
	assert_ok(rt_balance_types(t, false, &types, &n));
	assert_int_equal(n, 2);
	assert_string_equal(types[0].type, "large");
	assert_string_equal(types[0].nodes->children[0].function, "b");
	assert_string_equal(types[0].nodes->children[1].function, "c");
	assert_string_equal(types[0].nodes->children[2].function, "a");
}

TEST(names_that_are_not_known)
{
	_cleanup_(rt_balance_destroyp) struct rt_balance_trees *t = NULL;
	const struct rt_balance_type *type;

	assert_ok(rt_balance_create(false, &t));
	add(t, "obj", "get", "main;?", 1, 0);
	add(t, "obj", "get", "?;f", 2, 0); /* another place: not merged */
	add(t, "obj", "get", NULL, 3, 0);
	add(t, "obj", NULL, NULL, 4, 0);
	type = only(t, false);
	assert_int_equal(type->gets, 10);
	assert_int_equal(type->at_first_sight, 4);
	assert_int_equal(type->node_count, 3);
	assert_string_equal(type->nodes[0].api, "get"); /* without a stack: 3 */
	assert_null(type->nodes[1].function);
	assert_int_equal(type->nodes[1].address, 0x101);
	assert_string_equal(type->nodes[2].function, "main");
	assert_int_equal(type->nodes[2].children->address, 0x100);
}

TEST(recursion_and_depth)
{
	_cleanup_(rt_balance_destroyp) struct rt_balance_trees *t = NULL;
	struct rt_frame deep[600];
	struct rt_balance_path p = {
		.type = "obj", .api = "get", .frames = deep, .count = 600, .events = 1, .gets = 1
	};
	const struct rt_balance_node *n;
	size_t depth = 0;

	for (size_t i = 0; i < 600; i++)
		deep[i] = (struct rt_frame){ .function = "again" };
	assert_ok(rt_balance_create(false, &t));
	assert_ok(rt_balance_add(t, &p));
	for (n = only(t, false)->nodes; n && !n->api; n = n->child_count ? n->children : NULL)
		depth++;
	assert_int_equal(depth, 256);
	assert_non_null(n);
	assert_int_equal(n->gets, 1);
}

TEST(nothing)
{
	_cleanup_(rt_balance_destroyp) struct rt_balance_trees *t = NULL;
	const struct rt_balance_type *types;
	size_t n = 1;

	assert_ok(rt_balance_create(false, &t));
	assert_ok(rt_balance_types(t, false, &types, &n));
	assert_int_equal(n, 0);
}

TEST_MAIN();
