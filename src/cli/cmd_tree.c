/* SPDX-License-Identifier: GPL-2.0-only */
/* tree: references by call path, of the objects that were never released. */
#include <string.h>

#include "base/glob.h"
#include "base/map.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/lives.h"
#include "cli/object_choice.h"

enum { OPT_OBJECT = 0x1000, OPT_ALL, OPT_INVERT };

static const struct argp_option own[] = {
	RT_LIVES_OPTIONS,
	{ "type", 't', "NAME", 0, "only this type of object (repeatable)", 1 },
	{ "object", OPT_OBJECT, "OBJECT", 0, "only this one: 5, TYPE:5, 0xADDRESS, or first:ID of a finding", 1 },
	{ "all", OPT_ALL, NULL, 0, "all objects, and branches that balance, too", 1 },
	{ "invert", OPT_INVERT, NULL, 0, "the innermost function first, its callers below", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case 't':
		if (!strncmp(arg, "struct ", 7))
			arg += 7;
		return rt_vec_push(&options->types, arg) ? 0 : rt_option_fault(options, rt_error_nomem());
	case OPT_OBJECT:
		options->view.object = arg;
		return 0;
	case OPT_ALL:
		options->view.all = true;
		return 0;
	case OPT_INVERT:
		options->view.inverted = true;
		return 0;
	default:
		return rt_lives_parse(key, arg, state);
	}
}

static const struct argp tree_argp = { own, parse };
static const struct argp_child children[] = { { &tree_argp }, { &rt_common_argp }, { 0 } };
const struct argp rt_tree_argp = {
	NULL, rt_parse_operands, "[-i FILE]",
	"Shows by call path how many references were taken and given back, of objects that were never released: "
	"branches that balance are left out, what stays leads to the culprit.",
	children
};

/* Which lives count. */
struct choice {
	const struct rt_options *options;
	struct rt_object_choice object;
	bool listed;         /* only those in kept */
	struct rt_map kept;  /* (serial, hash of the type) */
	struct rt_map count; /* type -> how many were asked for and count */
	bool nomem;
};

static bool type_wanted(const struct rt_options *options, const char *type)
{
	for (size_t i = 0; i < options->types.len; i++) {
		if (rt_glob_match(options->types.data[i], type))
			return true;
	}
	return !options->types.len;
}

static bool wants(void *arg, const char *type, uint64_t serial, uint64_t object)
{
	struct choice *c = arg;
	uint64_t *n;

	if (!type_wanted(c->options, type) ||
	    (c->options->view.object && !rt_object_wants(&c->object, type, serial, object)) ||
	    (c->listed && !rt_map_get(&c->kept, rt_key_make(serial, rt_hash(0, type, strlen(type))))))
		return false;
	n = rt_map_put(&c->count, rt_key_text(type), NULL);
	if (n)
		++*n;
	c->nomem |= !n;
	return true;
}

static void keep(struct choice *c, const char *type, uint64_t serial)
{
	c->nomem |= !rt_map_put(&c->kept, rt_key_make(serial, rt_hash(0, type, strlen(type))), NULL);
}

static bool keep_live(const struct rt_live *live, void *arg)
{
	keep(arg, live->type_name, live->serial);
	return true;
}

/* alive at the end, or freed while references were open */
static struct rt_error *list(struct choice *c, struct rt_lives *lives, const struct rt_verdict *verdict)
{
	rt_lifetime_live(lives->pipeline.lifetime, 0, keep_live, c);
	for (size_t i = 0; i < verdict->finding_count; i++) {
		const struct rt_finding *f = &verdict->findings[i];

		for (size_t k = 0; f->kind == RT_LEAK && k < f->serial_count; k++)
			keep(c, f->type, f->serials[k]);
	}
	c->listed = true;
	return c->nomem ? rt_error_nomem() : NULL;
}

struct view {
	struct rt_lives_view view;
	struct rt_view_head head;
	const struct rt_verdict *verdict;
	struct rt_view_tree *trees;
	size_t count;
};

static struct rt_error *print(const struct rt_lives_view *self, enum rt_format format,
			      const struct rt_view_options *how, struct rt_sink *sink)
{
	const struct view *v = (const struct view *)(const void *)self;

	if (format == RT_FORMAT_JSON)
		return rt_tree_json(&v->head, v->verdict, v->trees, v->count, how, sink);
	return rt_tree_text(&v->head, v->verdict, v->trees, v->count, how, sink);
}

static struct rt_error *add_paths(struct rt_balance_trees *trees, const struct rt_verdict *verdict)
{
	for (size_t i = 0; i < verdict->path_count; i++) {
		const struct rt_path *from = &verdict->paths[i];
		struct rt_balance_path p = { .type = from->type, .api = from->api, .events = from->events };

		/* what only looks, or hands on, is no part of a balance */
		if (!from->references)
			continue;
		p.frames = from->stack.frames;
		p.count = from->stack.count;
		p.gets = from->references > 0 ? (uint64_t)from->references : 0;
		p.puts = from->references < 0 ? (uint64_t)-from->references : 0;
		RT_TRY(rt_balance_add(trees, &p));
	}
	return NULL;
}

/* Each tree with the number of its objects. Caller frees. */
static struct rt_error *describe(const struct choice *c, const struct rt_verdict *verdict,
				 const struct rt_balance_type *types, size_t count, struct rt_view_tree **ret)
{
	struct rt_view_tree *out = calloc(count + 1, sizeof(*out));

	if (!out)
		return rt_error_nomem();
	for (size_t i = 0; i < count; i++) {
		const uint64_t *n = rt_map_get(&c->count, rt_key_text(types[i].type));

		out[i].tree = &types[i];
		out[i].objects = n ? *n : 0;
		out[i].all = !c->listed;
		for (size_t k = 0; k < verdict->type_count; k++) {
			if (!strcmp(verdict->types[k].name, types[i].type))
				out[i].of = verdict->types[k].incarnations;
		}
	}
	*ret = out;
	return NULL;
}

/* Nothing to show: because of what was asked for, or because all is well. */
static struct rt_error *nothing(const struct choice *c, const struct rt_verdict *verdict, const char *path)
{
	bool known = !c->options->types.len;

	if (c->options->view.object)
		return rt_object_missing(&c->object, verdict, path);
	for (size_t i = 0; i < verdict->type_count && !known; i++)
		known = type_wanted(c->options, verdict->types[i].name);
	if (!known)
		return rt_error_fix(
			rt_error_new(RT_E_NOT_FOUND, "%s has no object of type %s", path, c->options->types.data[0]),
			"its types: reftrace report -v -i %s", path);
	return NULL;
}

static struct rt_error *check(const struct choice *c, const struct rt_balance_type *types, size_t count,
			      const char *path)
{
	_cleanup_free_ const char **names = calloc(count + 1, sizeof(*names));

	if (!names)
		return rt_error_nomem();
	for (size_t i = 0; i < count; i++)
		names[i] = types[i].type;
	return c->options->view.object ? rt_object_clear(&c->object, names, count, "tree", path) : NULL;
}

static struct rt_error *show(struct choice *c, struct rt_lives *lives, int *ret)
{
	const struct rt_options *options = c->options;
	const struct rt_watch watch = { .wants = wants, .arg = c, .counts = true };
	_cleanup_(rt_balance_destroyp) struct rt_balance_trees *trees = NULL;
	_cleanup_free_ struct rt_view_tree *described = NULL;
	struct view view = { .view = { print } };
	const struct rt_balance_type *types;
	/* what is asked for is known only when all was read */
	bool first = !options->view.all && !options->view.object;

	if (options->view.object) {
		RT_TRY(rt_object_parse(options->view.object, &c->object));
		first |= rt_object_open(&c->object);
	}
	RT_TRY(rt_lives_read(options, first ? NULL : &watch, lives, &view.verdict));
	if (options->view.object && rt_object_open(&c->object))
		RT_TRY(rt_object_settle(&c->object, view.verdict, lives->path));
	else if (first)
		RT_TRY(list(c, lives, view.verdict));
	if (first)
		RT_TRY(rt_lives_read_again(lives, &watch, &view.verdict));
	if (c->nomem)
		return rt_error_nomem();
	*ret = rt_lives_status(lives, view.verdict);
	RT_TRY(rt_balance_create(options->view.inverted, &trees));
	RT_TRY(add_paths(trees, view.verdict));
	RT_TRY(rt_balance_types(trees, options->view.all, &types, &view.count));
	if (!view.count)
		RT_TRY(nothing(c, view.verdict, lives->path));
	RT_TRY(check(c, types, view.count, lives->path));
	RT_TRY(describe(c, view.verdict, types, view.count, &described));
	view.trees = described;
	view.head = rt_lives_head(lives);
	return rt_lives_print(options, &view.view);
}

int cmd_tree(int argc, char **argv)
{
	struct rt_lives lives = { .pipeline = { .fd = -1 } };
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_tree_argp, argc, argv, &options);
	struct choice choice = { .options = &options };
	int status = RT_EXIT_OK;

	for (size_t i = 0; !err && i < options.operands.len; i++)
		rt_input_name(&options, options.operands.data[i]);
	if (!err)
		err = rt_take(options.err);
	if (!err && options.help)
		rt_options_help(&rt_tree_argp, "tree", stdout);
	else if (!err)
		err = show(&choice, &lives, &status);
	if (err)
		status = rt_failure(err);
	rt_map_deinit(&choice.kept);
	rt_map_deinit(&choice.count);
	rt_object_deinit(&choice.object);
	rt_lives_close(&lives);
	rt_options_deinit(&options);
	return status;
}
