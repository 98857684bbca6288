/* SPDX-License-Identifier: GPL-2.0-only */
/* Options that say what is printed and where, and those that every command has. */
#include "cli/options.h"

#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"

static const struct argp_option output_options[] = {
	{ NULL, 0, NULL, 0, "Output:", 4 },
	{ "output", 'o', "FILE", 0, "write the report to FILE" },
	{ "format", RT_OPT_FORMAT, "NAME", 0, "text or json" },
	{ "json", RT_OPT_JSON, "FILE", OPTION_ARG_OPTIONAL,
	  "as --format json; with =FILE: JSON there, and the text report" },
	{ "quiet", 'q', NULL, 0, "only findings; nothing when all is well" },
	{ "verbose", 'v', NULL, 0, "everything: all findings, suspects, counts" },
	{ "color", RT_OPT_COLOR, "WHEN", 0, "auto, always or never" },
	{ "error-exitcode", RT_OPT_ERROR_EXITCODE, "N", OPTION_ARG_OPTIONAL,
	  "exit with N (23 without =N) when there are findings" },
	{ "strict", RT_OPT_STRICT, NULL, 0, "report objects that a cache still holds, too" },
	{ "suppressions", RT_OPT_SUPPRESSIONS, "FILE", 0,
	  "count findings that the rules in FILE know, and do not report them (repeatable); also files of "
	  "LeakSanitizer and valgrind" },
	{ "gen-suppressions", RT_OPT_GEN_SUPPRESSIONS, NULL, 0, "print a rule for each finding" },
	{ "models", RT_OPT_MODELS, "FILE", 0, "what other runs have learnt of healthy objects (repeatable)" },
	{ "save-models", RT_OPT_SAVE_MODELS, "FILE", 0,
	  "write what is known of healthy objects, for --models; with FILE/: as "
	  "its build-id" },
	{ "no-models", RT_OPT_NO_MODELS, NULL, 0, "no models but those of --models" },
	{ "symfs", RT_OPT_SYMFS, "DIR", 0, "look for binaries and sources below DIR" },
	{ 0 },
};

static struct rt_error *bad_choice(const char *option, const char *arg, const char *choices)
{
	return rt_error_fix(rt_error_new(RT_E_USAGE, "--%s=%s is not known", option, arg), "choose one of: %s",
			    choices);
}

static struct rt_error *parse_exitcode(const char *arg, int *ret)
{
	uint64_t n = RT_EXIT_FINDINGS;

	if (arg && (!rt_parse_u64(arg, strlen(arg), 10, &n) || !n || n > 255))
		return bad_choice("error-exitcode", arg, "1 to 255");
	*ret = (int)n;
	return NULL;
}

static error_t parse_output(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case 'o':
		options->output = arg;
		return 0;
	case RT_OPT_FORMAT:
		if (!strcmp(arg, "json"))
			options->format = RT_FORMAT_JSON;
		else if (!strcmp(arg, "text"))
			options->format = RT_FORMAT_TEXT;
		else
			return rt_option_fault(options, bad_choice("format", arg, "text, json"));
		return 0;
	case RT_OPT_JSON:
		if (arg)
			options->json = arg;
		else
			options->format = RT_FORMAT_JSON;
		return 0;
	case 'q':
		options->quiet = true;
		return 0;
	case 'v':
		options->verbose = true;
		return 0;
	case RT_OPT_COLOR:
		if (!strcmp(arg, "auto"))
			options->color = RT_COLOR_AUTO;
		else if (!strcmp(arg, "always"))
			options->color = RT_COLOR_ALWAYS;
		else if (!strcmp(arg, "never"))
			options->color = RT_COLOR_NEVER;
		else
			return rt_option_fault(options, bad_choice("color", arg, "auto, always, never"));
		return 0;
	case RT_OPT_ERROR_EXITCODE:
		return rt_option_fault(options, parse_exitcode(arg, &options->error_exitcode));
	case RT_OPT_STRICT:
		options->strict = true;
		return 0;
	case RT_OPT_SUPPRESSIONS:
		return rt_vec_push(&options->suppressions, arg) ? 0 : rt_option_fault(options, rt_error_nomem());
	case RT_OPT_MODELS:
		return rt_vec_push(&options->models, arg) ? 0 : rt_option_fault(options, rt_error_nomem());
	case RT_OPT_SAVE_MODELS:
		options->save_models = arg;
		return 0;
	case RT_OPT_NO_MODELS:
		options->no_models = true;
		return 0;
	case RT_OPT_GEN_SUPPRESSIONS:
		options->gen_suppressions = true;
		return 0;
	case RT_OPT_SYMFS:
		options->symfs = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp rt_output_argp = { output_options, parse_output };

static const struct argp_option common_options[] = {
	{ NULL, 0, NULL, 0, "Common:", 9 },
	{ "help", 'h', NULL, 0, "show this help" },
	{ "debug", RT_OPT_DEBUG, "DOMAINS", 0, "chatter on stderr: session, engine, all" },
	{ 0 },
};

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case 'h':
		options->help = true;
		return 0;
	case RT_OPT_DEBUG:
		rt_log_enable(arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp rt_common_argp = { common_options, parse_common };
