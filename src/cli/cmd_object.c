/* SPDX-License-Identifier: GPL-2.0-only */
/* object: one life completely. */
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/lives.h"
#include "cli/object_choice.h"

enum { OPT_STACKS = 0x1000 };

static const struct argp_option own[] = {
	RT_LIVES_OPTIONS,
	{ "stacks", OPT_STACKS, NULL, 0, "the whole stack of each operation", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	if (key != OPT_STACKS)
		return rt_lives_parse(key, arg, state);
	options->view.stacks = true;
	return 0;
}

static const struct argp object_argp = { own, parse };
static const struct argp_child children[] = { { &object_argp }, { &rt_common_argp }, { 0 } };
const struct argp rt_object_argp = {
	NULL, rt_parse_operands, "[-i FILE] OBJECT",
	"Shows every get and put of one object. OBJECT is a number as the report prints it (TYPE:NUMBER, where there "
	"are several types), an address (0x...: all its lives), or first:ID, the first object of a finding.",
	children
};

struct view {
	struct rt_lives_view view;
	struct rt_view_head head;
	const struct rt_verdict *verdict;
};

static struct rt_error *print(const struct rt_lives_view *self, enum rt_format format,
			      const struct rt_view_options *how, struct rt_sink *sink)
{
	const struct view *v = (const struct view *)(const void *)self;

	if (format == RT_FORMAT_JSON)
		return rt_object_json(&v->head, v->verdict, sink);
	return rt_object_text(&v->head, v->verdict, how, sink);
}

/* one number may be that of several types */
static struct rt_error *check(const struct rt_object_choice *choice, const struct rt_verdict *verdict, const char *path)
{
	_cleanup_free_ const char **types = calloc(verdict->watched_count + 1, sizeof(*types));

	if (!types)
		return rt_error_nomem();
	if (!verdict->watched_count)
		return rt_object_missing(choice, verdict, path);
	for (size_t i = 0; i < verdict->watched_count; i++)
		types[i] = verdict->watched[i].type;
	return rt_object_clear(choice, types, verdict->watched_count, "object", path);
}

static struct rt_error *show(const struct rt_options *options, struct rt_object_choice *choice, struct rt_lives *lives,
			     int *ret)
{
	const struct rt_watch watch = { .wants = rt_object_wants, .arg = choice };
	struct view view = { .view = { print } };

	RT_TRY(rt_object_parse(options->operands.data[0], choice));
	RT_TRY(rt_lives_read(options, rt_object_open(choice) ? NULL : &watch, lives, &view.verdict));
	if (rt_object_open(choice)) {
		RT_TRY(rt_object_settle(choice, view.verdict, lives->path));
		RT_TRY(rt_lives_read_again(lives, &watch, &view.verdict));
	}
	*ret = rt_lives_status(lives, view.verdict);
	RT_TRY(check(choice, view.verdict, lives->path));
	view.head = rt_lives_head(lives);
	return rt_lives_print(options, &view.view);
}

int cmd_object(int argc, char **argv)
{
	struct rt_lives lives = { .pipeline = { .fd = -1 } };
	struct rt_object_choice choice = { 0 };
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_object_argp, argc, argv, &options);
	int status = RT_EXIT_OK;

	if (!err && options.help)
		rt_options_help(&rt_object_argp, "object", stdout);
	else if (!err && options.operands.len != 1)
		err = rt_error_fix(rt_error_new(RT_E_USAGE, "object: %s",
						options.operands.len ? "more than one object" : "no object"),
				   "reftrace object -i FILE 5; or TYPE:5, 0xADDRESS, first:ID of a finding");
	else if (!err)
		err = show(&options, &choice, &lives, &status);
	if (err)
		status = rt_failure(err);
	rt_object_deinit(&choice);
	rt_lives_close(&lives);
	rt_options_deinit(&options);
	return status;
}
