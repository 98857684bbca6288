/* SPDX-License-Identifier: GPL-2.0-only */
/* diff: what a newer recording has of findings that an older one has not, and the other way round. */
#include <string.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/lives.h"
#include "cli/suppression_options.h"
#include "report/diff.h"

enum { OPT_BISECT = 0x1000, OPT_FINDING };

/* What git bisect run makes of a status: 1 bad, 125 cannot be tested, from 128 on the search ends. */
enum { BISECT_GOOD = 0, BISECT_BAD = 1, BISECT_SKIP = 125, BISECT_END = 255 };

struct diff_options {
	struct rt_options common; /* first: argp hands it on; operands are the recordings */
	const char *finding;
	bool bisect;
};

static const struct argp_option own[] = {
	{ "type", 't', "NAME", 0, "only findings about this type of object (repeatable)", 1 },
	{ "finding", OPT_FINDING, "ID", 0, "only the finding of this id", 1 },
	{ "suppressions", RT_OPT_SUPPRESSIONS, "FILE", 0, "leave out what the rules in FILE know (repeatable)", 1 },
	{ "error-exitcode", RT_OPT_ERROR_EXITCODE, "N", OPTION_ARG_OPTIONAL,
	  "exit with N (23 without =N) when something is new or grown", 2 },
	{ "bisect", OPT_BISECT, NULL, 0,
	  "exit status for git bisect run: 0 good, 1 bad, 125 when NEW cannot be judged, 255 to stop", 2 },
	{ "output", 'o', "FILE", 0, "write to FILE", 4 },
	{ "format", RT_OPT_FORMAT, "NAME", 0, "text or json", 4 },
	{ "json", RT_OPT_JSON, "FILE", OPTION_ARG_OPTIONAL,
	  "as --format json; with =FILE: JSON there, and the text as well", 4 },
	{ "verbose", 'v', NULL, 0, "what is the same, and suspicions, too", 4 },
	{ "color", RT_OPT_COLOR, "WHEN", 0, "auto, always or never", 4 },
	{ "strict", RT_OPT_STRICT, NULL, 0, "count objects that a cache still holds, too", 4 },
	{ "symfs", RT_OPT_SYMFS, "DIR", 0, "look for binaries and sources below DIR", 4 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct diff_options *options = state->input;

	switch (key) {
	case 't':
		if (!strncmp(arg, "struct ", 7))
			arg += 7;
		return rt_vec_push(&options->common.types, arg) ? 0
								: rt_option_fault(&options->common, rt_error_nomem());
	case OPT_FINDING:
		options->finding = arg;
		return 0;
	case OPT_BISECT: /* seen before: cmd_diff() */
		return 0;
	default:
		return rt_output_argp.parser(key, arg, state);
	}
}

static const struct argp diff_argp = { own, parse };
static const struct argp_child children[] = { { &diff_argp }, { &rt_common_argp }, { 0 } };
const struct argp rt_diff_argp = {
	NULL, rt_parse_operands, "OLD NEW",
	"Compares the findings of two recordings or .events files, also of different builds: "
	"what is new, grown, gone or shrunk, by type and function.",
	children
};

struct side {
	struct rt_lives lives;
	struct rt_suppression_result known;
	const struct rt_verdict *verdict;
	int status; /* 0, or RT_EXIT_TRUST */
};

static struct rt_error *read_side(const struct diff_options *options, struct rt_suppressions *rules, const char *path,
				  struct side *side)
{
	struct rt_options named = options->common;

	/* the vectors stay those of options */
	named.input = path;
	named.more_inputs.len = 0;
	RT_TRY(rt_lives_read(&named, NULL, &side->lives, &side->verdict));
	side->status = rt_lives_status(&side->lives, side->verdict);
	if (!rules->rules.len)
		return NULL;
	RT_TRY(rt_suppress(rules, side->verdict, &side->known));
	side->verdict = &side->known.verdict;
	return NULL;
}

static void close_side(struct side *side)
{
	rt_suppression_result_deinit(&side->known);
	rt_lives_close(&side->lives);
}

static struct rt_diff_side describe(const struct side *side)
{
	return (struct rt_diff_side){ side->lives.path, rt_lives_head(&side->lives).command, side->verdict };
}

static int status_of(const struct diff_options *options, const struct rt_diff *diff, const struct side *old,
		     const struct side *young)
{
	bool worse = diff->changes[RT_NEW] || diff->changes[RT_GROWN];
	bool broke = old->status || young->status;

	/* what cannot be trusted is neither good nor bad */
	if (options->bisect)
		return broke ? BISECT_SKIP : worse ? BISECT_BAD : BISECT_GOOD;
	if (worse && options->common.error_exitcode)
		return options->common.error_exitcode;
	return broke ? RT_EXIT_TRUST : RT_EXIT_OK;
}

struct view {
	struct rt_lives_view view;
	const struct rt_diff *diff;
	const struct rt_diff_head *head;
	bool verbose;
};

static struct rt_error *print(const struct rt_lives_view *self, enum rt_format format,
			      const struct rt_view_options *how, struct rt_sink *sink)
{
	const struct view *v = (const struct view *)(const void *)self;
	const struct rt_text_options text = { .width = how->width, .color = how->color, .verbose = v->verbose };

	if (format == RT_FORMAT_JSON)
		return rt_diff_json(v->diff, v->head, sink);
	return rt_diff_text(v->diff, v->head, &text, sink);
}

static struct rt_error *show(const struct diff_options *options, const struct side *old, const struct side *young,
			     int *ret)
{
	const struct rt_diff_filter filter = { options->common.types.data, options->common.types.len,
					       options->finding };
	_cleanup_(rt_diff_deinit) struct rt_diff diff = { 0 };
	struct rt_diff_head head = { describe(old), describe(young), 0 };
	const struct view view = { { print }, &diff, &head, options->common.verbose };

	RT_TRY(rt_diff_make(old->verdict, young->verdict, &filter, &diff));
	*ret = head.exit_status = status_of(options, &diff, old, young);
	return rt_lives_print(&options->common, &view.view);
}

static struct rt_error *compare(const struct diff_options *options, int *ret)
{
	_cleanup_(rt_suppressions_deinit) struct rt_suppressions rules = { 0 };
	_cleanup_(close_side) struct side old = { .lives.pipeline.fd = -1 }, young = { .lives.pipeline.fd = -1 };
	struct rt_error *err;

	if (options->common.operands.len != 2)
		return rt_error_fix(
			rt_error_new(RT_E_USAGE, "diff compares two recordings, not %zu", options->common.operands.len),
			"reftrace diff OLD NEW; to make one: reftrace record -o OLD -- PROG ARGS");
	RT_TRY(rt_suppressions_read(&options->common, &rules));
	RT_TRY(read_side(options, &rules, options->common.operands.data[0], &old));
	err = read_side(options, &rules, options->common.operands.data[1], &young);
	/* a build that does not come so far is no verdict about it, and no reason to stop the search */
	if (err && options->bisect)
		*ret = BISECT_SKIP;
	RT_TRY(err);
	return show(options, &old, &young, ret);
}

int cmd_diff(int argc, char **argv)
{
	struct diff_options options = { 0 };
	struct rt_error *err;
	int status = RT_EXIT_OK;

	/* also where the rest is not understood: an error must not look like a bad commit */
	for (int i = 1; i < argc; i++)
		options.bisect |= !strcmp(argv[i], "--bisect");
	err = rt_options_parse(&rt_diff_argp, argc, argv, &options.common);
	if (!err)
		err = rt_take(options.common.err);
	if (!err && options.common.help)
		rt_options_help(&rt_diff_argp, "diff", stdout);
	else if (!err)
		err = compare(&options, &status);
	if (err) {
		int failed = rt_failure(err);

		if (!options.bisect)
			status = failed;
		else if (status != BISECT_SKIP)
			status = BISECT_END;
	}
	rt_options_deinit(&options.common);
	return status;
}
