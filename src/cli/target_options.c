/* SPDX-License-Identifier: GPL-2.0-only */
/* Options that say who is traced, and how its operations are found. */
#include "cli/options.h"

#include <string.h>

#include "base/text.h"
#include "cli/command.h"

static const struct argp_option target_options[] = {
	{ NULL, 0, NULL, 0, "Target:", 1 },
	{ "pid", 'p', "PID[,PID]", 0, "attach to running processes; ends with them, --duration or Ctrl-C" },
	{ "duration", RT_OPT_DURATION, "TIME", 0, "stop after TIME: 30s, 100ms, 5m" },
	{ "follow", 'f', NULL, 0, "follow child processes (the default)" },
	{ "no-follow", RT_OPT_NO_FOLLOW, NULL, 0, "leave child processes alone" },
	{ "user", 'u', "USER", 0, "run the program as USER (under sudo: as the invoking user)" },
	{ "as-root", RT_OPT_AS_ROOT, NULL, 0, "under sudo, keep root for the program" },
	{ "env", 'E', "VAR=VAL", 0, "set a variable for the program (repeatable)" },
	{ 0 },
};

static error_t parse_target(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case 'p':
		return rt_option_fault(options, rt_parse_pids(arg, options));
	case RT_OPT_DURATION:
		return rt_option_fault(options, rt_parse_duration(arg, &options->duration_ns));
	case 'f':
		options->no_follow = false;
		return 0;
	case RT_OPT_NO_FOLLOW:
		options->no_follow = true;
		return 0;
	case 'u':
		options->user = arg;
		return 0;
	case RT_OPT_AS_ROOT:
		options->as_root = true;
		return 0;
	case 'E':
		if (!strchr(arg, '=') || *arg == '=')
			return rt_option_fault(
				options,
				rt_error_fix(rt_error_new(RT_E_USAGE, "-E '%s' has no '='", arg), "write -E VAR=VAL"));
		return rt_vec_push(&options->env, arg) ? 0 : rt_option_fault(options, rt_error_nomem());
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp rt_target_argp = { target_options, parse_target };

static const struct argp_option trace_options[] = {
	{ NULL, 0, NULL, 0, "What to trace:", 2 },
	{ "type", 't', "NAME", 0, "only objects of struct NAME (repeatable)" },
	{ "pairs", 'P', "SPEC", 0,
	  "get/put functions, a preset's name, or a file (repeatable): -P 'type=obj new=obj_new get=obj_get:1 "
	  "put=obj_put:1'; without -P they are searched for by name and type" },
	{ "allow-unverified", RT_OPT_UNVERIFIED, NULL, 0,
	  "use cached definitions on a file without build-id, where nobody can tell whether they fit" },
	{ "allow-mismatch", RT_OPT_MISMATCH, NULL, 0, "use cached definitions on a file with another build-id" },
	{ "no-presets", RT_OPT_NO_PRESETS, NULL, 0, "use no presets, only code and names" },
	{ "no-census", RT_OPT_NO_CENSUS, NULL, 0, "do not look at the end who points to objects" },
	{ NULL, 0, NULL, 0, "Engine:", 3 },
	{ "engine", RT_OPT_ENGINE, "NAME", 0, "auto, uprobe, agent or agent+uprobe" },
	{ "inject", RT_OPT_INJECT, NULL, 0, "with -p: engine agent, put into running programs" },
	{ "attach", RT_OPT_ATTACH, "HOW", 0, "auto, multi (uprobe_multi, Linux 6.6), tracefs" },
	{ "semaphore", RT_OPT_SEMAPHORE, "HOW", 0, "who raises semaphores: auto, kernel, write, none" },
	{ "ring", 'm', "SIZE", 0, "size of the event ring: 64K, 16M" },
	{ "frames", RT_OPT_FRAMES, "N", 0, "N frames a stack: 16, --counts 8, up to 256" },
	{ "sample", RT_OPT_SAMPLE, "RATE", 0, "trace only this part of the objects: 1/100, 1%" },
	{ "max-overhead", RT_OPT_MAX_OVERHEAD, "PART", 0, "trace as many objects as cost at most: 5%" },
	{ "counts", RT_OPT_COUNTS, NULL, 0, "only count, by object and place: for days" },
	{ "first-insn", RT_OPT_FIRST_INSN, NULL, 0, "arm a function's very first instruction" },
	{ 0 },
};

static struct rt_error *bad_choice(const char *option, const char *arg, const char *choices)
{
	return rt_error_fix(rt_error_new(RT_E_USAGE, "--%s=%s is not known", option, arg), "choose one of: %s",
			    choices);
}

/* Position of arg in NULL-terminated words; -1: it is none of them. */
static int position(const char *arg, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(arg, words[i]))
			return i;
	return -1;
}

static struct rt_error *parse_frames(const char *arg, unsigned *ret)
{
	uint64_t n;

	if (!rt_parse_u64(arg, strlen(arg), 10, &n) || n < 1 || n > RT_STACK_MAX)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "--frames=%s is no number of frames", arg), "1 to %d",
				    RT_STACK_MAX);
	*ret = (unsigned)n;
	return NULL;
}

static error_t parse_trace(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case 't':
		if (!strncmp(arg, "struct ", 7))
			arg += 7;
		return rt_vec_push(&options->types, arg) ? 0 : rt_option_fault(options, rt_error_nomem());
	case 'P':
		return rt_vec_push(&options->pairs, arg) ? 0 : rt_option_fault(options, rt_error_nomem());
	case RT_OPT_NO_PRESETS:
		options->no_presets = true;
		return 0;
	case RT_OPT_UNVERIFIED:
		options->allow_unverified = true;
		return 0;
	case RT_OPT_MISMATCH:
		options->allow_mismatch = true;
		return 0;
	case RT_OPT_NO_CENSUS:
		options->no_census = true;
		return 0;
	case RT_OPT_ENGINE:
		if (!strcmp(arg, "auto"))
			options->engine = NULL;
		else if (!strcmp(arg, rt_engine_uprobe.name))
			options->engine = &rt_engine_uprobe;
		else if (!strcmp(arg, rt_engine_agent.name))
			options->engine = &rt_engine_agent;
		else if (!strcmp(arg, rt_engine_mixed.name))
			options->engine = &rt_engine_mixed;
		else
			return rt_option_fault(options, bad_choice("engine", arg, "auto, uprobe, agent, agent+uprobe"));
		return 0;
	case RT_OPT_ATTACH:
		if (!strcmp(arg, "auto"))
			options->attach = RT_ATTACH_AUTO;
		else if (!strcmp(arg, "multi"))
			options->attach = RT_ATTACH_MULTI;
		else if (!strcmp(arg, "tracefs"))
			options->attach = RT_ATTACH_TRACEFS;
		else
			return rt_option_fault(options, bad_choice("attach", arg, "auto, multi, tracefs"));
		return 0;
	case RT_OPT_SEMAPHORE: {
		static const char *const ways[] = { "auto", "kernel", "write", "none", NULL };
		int way = position(arg, ways);

		if (way < 0)
			return rt_option_fault(options, bad_choice("semaphore", arg, "auto, kernel, write, none"));
		options->semaphore = (enum rt_semaphore_way)way;
		return 0;
	}
	case 'm':
		return rt_option_fault(options, rt_parse_size(arg, &options->ring_bytes));
	case RT_OPT_FRAMES:
		return rt_option_fault(options, parse_frames(arg, &options->frames));
	case RT_OPT_INJECT:
		options->inject = true;
		return 0;
	case RT_OPT_COUNTS:
		options->counts = true;
		return 0;
	case RT_OPT_SAMPLE:
		return rt_option_fault(options, rt_parse_part(arg, "sample", 1, &options->sample));
	case RT_OPT_MAX_OVERHEAD:
		return rt_option_fault(options, rt_parse_part(arg, "max-overhead", 1000, &options->overhead));
	case RT_OPT_FIRST_INSN:
		options->first_insn = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp rt_trace_argp = { trace_options, parse_trace };
