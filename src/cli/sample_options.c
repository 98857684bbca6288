/* SPDX-License-Identifier: GPL-2.0-only */
/* Options of record that say what is sampled, and how the recording is kept in bounds. perf's letters and names. */
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "engine/sampler.h"

static const struct argp_option sample_options[] = {
	{ NULL, 0, NULL, 0, "Samples and events, beside or instead of lifetimes:", 4 },
	{ "freq", 'F', "HZ", 0, "sample the CPU so many times a second (max: as often as the kernel allows)" },
	{ "count", 'c', "N", 0, "one sample per N events" },
	{ "event", 'e', "EVENT", 0,
	  "record cycles, cpu-clock, page-faults, PMU/TERM=N/, SYS:TRACEPOINT, sdt_PROVIDER:MARKER, "
	  "%GROUP:EVENT of the build-id cache, u:FILE:FUNCTION (repeatable, comma-separated)" },
	{ NULL, 'g', NULL, 0, "keep call chains (--call-graph fp)" },
	{ "call-graph", RT_OPT_CALL_GRAPH, "HOW", 0,
	  "keep call chains: fp (frame pointers) or dwarf[,BYTES] (copies of the stack)" },
	{ "all-cpus", 'a', NULL, 0, "record every process; with PROG: as long as it runs, else until Ctrl-C" },
	{ "delay", 'D', "MS", 0, "begin sampling after MS milliseconds; -1: when --control says enable" },
	{ "no-lifetimes", RT_OPT_NO_LIFETIMES, NULL, 0, "do not trace objects, not even with -t or -P" },
	{ NULL, 0, NULL, 0, "Recording:", 5 },
	{ "max-size", RT_OPT_MAX_SIZE, "SIZE", 0, "end the recording at about SIZE: 64K, 16M, 1G" },
	{ "switch-output", RT_OPT_SWITCH_OUTPUT, "WHEN", OPTION_ARG_OPTIONAL,
	  "go on in a new file at SIGUSR2 (signal), or when this one has a SIZE (64M) or an age (30s)" },
	{ "control", RT_OPT_CONTROL, "fifo:CTL[,ACK]", 0,
	  "take commands from a fifo: enable, disable, snapshot, stop, ping; each is answered with ack" },
	{ "buildid-all", RT_OPT_BUILDID_ALL, NULL, 0,
	  "keep every mapped binary in the build-id cache, not only those that were hit" },
	{ "no-buildid-cache", 'N', NULL, 0, "keep no binaries in the build-id cache" },
	{ "no-buildid", 'B', NULL, 0, "the same as -N; build-ids are recorded anyhow" },
	{ 0 },
};

static struct rt_error *parse_number(const char *option, const char *arg, uint64_t *ret)
{
	if (rt_parse_u64(arg, strlen(arg), 10, ret) && *ret && *ret < UINT64_MAX / 2)
		return NULL;
	return rt_error_fix(rt_error_new(RT_E_USAGE, "%s '%s' is no number above 0", option, arg), "write %s 99",
			    option);
}

static struct rt_error *parse_frequency(const char *arg, struct rt_options *options)
{
	if (!strcmp(arg, "max")) {
		options->frequency = UINT64_MAX;
		return NULL;
	}
	return parse_number("-F", arg, &options->frequency);
}

/* The size as perf has it: rounded up to 8 bytes. */
static struct rt_error *parse_stack_size(const char *arg, struct rt_options *options)
{
	uint64_t bytes;

	if (!rt_parse_u64(arg, strlen(arg), 10, &bytes) || !bytes || bytes > RT_SAMPLER_STACK_MAX)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "--call-graph dwarf,%s: no size of a stack", arg),
				    "bytes to copy of each stack, 8 to %d: --call-graph dwarf,%d", RT_SAMPLER_STACK_MAX,
				    2 * RT_SAMPLER_STACK);
	options->stack_bytes = ((uint32_t)bytes + 7) & ~7u;
	return NULL;
}

static struct rt_error *parse_call_graph(const char *arg, struct rt_options *options)
{
	options->call_graph = true;
	options->stack_bytes = 0;
	if (!strcmp(arg, "fp"))
		return NULL;
	if (!strncmp(arg, "dwarf,", 6))
		return parse_stack_size(arg + 6, options);
	if (!strcmp(arg, "dwarf")) {
		options->stack_bytes = RT_SAMPLER_STACK;
		return NULL;
	}
	if (!strcmp(arg, "lbr"))
		return rt_error_fix(rt_error_new(RT_E_USAGE,
						 "--call-graph=lbr: the branch records of Intel CPUs hold 8 to "
						 "32 calls, virtual machines have none: not recorded"),
				    "--call-graph dwarf (any code with .eh_frame), or fp (built with "
				    "-fno-omit-frame-pointer)");
	return rt_error_fix(rt_error_new(RT_E_USAGE, "--call-graph=%s is not known", arg),
			    "choose: fp (frame pointers; build with -fno-omit-frame-pointer), or dwarf[,BYTES] (copies "
			    "of stacks)");
}

static struct rt_error *parse_delay(const char *arg, struct rt_options *options)
{
	uint64_t ms;

	if (!strcmp(arg, "-1")) {
		options->delay_forever = true;
		return NULL;
	}
	if (!rt_parse_u64(arg, strlen(arg), 10, &ms) || ms > UINT32_MAX)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "-D '%s' is no time", arg),
				    "milliseconds (-D 500), or -1 with --control");
	options->delay_ns = ms * 1000000;
	return NULL;
}

/* perf's way: capital units are sizes, others times. */
static struct rt_error *parse_switch(const char *arg, struct rt_options *options)
{
	size_t len = arg ? strlen(arg) : 0;

	options->switch_output = true;
	if (!arg || !strcmp(arg, "signal"))
		return NULL;
	if (len && strchr("KMGB", arg[len - 1]))
		return rt_parse_size(arg, &options->switch_bytes);
	return rt_error_fix(rt_parse_duration(arg, &options->switch_ns),
			    "--switch-output (at SIGUSR2), --switch-output=64M, --switch-output=30s");
}

static error_t parse_sample(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case 'F':
		return rt_option_fault(options, parse_frequency(arg, options));
	case 'c':
		return rt_option_fault(options, parse_number("-c", arg, &options->period));
	case 'e':
		return rt_vec_push(&options->events, arg) ? 0 : rt_option_fault(options, rt_error_nomem());
	case 'g':
		options->call_graph = true;
		return 0;
	case RT_OPT_CALL_GRAPH:
		return rt_option_fault(options, parse_call_graph(arg, options));
	case 'a':
		options->all_cpus = true;
		return 0;
	case 'D':
		return rt_option_fault(options, parse_delay(arg, options));
	case RT_OPT_NO_LIFETIMES:
		options->no_lifetimes = true;
		return 0;
	case RT_OPT_MAX_SIZE:
		return rt_option_fault(options, rt_parse_size(arg, &options->max_bytes));
	case RT_OPT_SWITCH_OUTPUT:
		return rt_option_fault(options, parse_switch(arg, options));
	case RT_OPT_CONTROL:
		options->control = arg;
		return 0;
	case RT_OPT_BUILDID_ALL:
		options->cache_all = true;
		return 0;
	case 'N':
	case 'B':
		options->no_cache = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp rt_sample_argp = { sample_options, parse_sample };

bool rt_options_sample(const struct rt_options *o)
{
	return o->frequency || o->period || o->events.len || o->call_graph || o->all_cpus || o->no_lifetimes ||
	       o->delay_ns || o->delay_forever;
}

bool rt_options_lifetimes(const struct rt_options *o)
{
	return !o->no_lifetimes && (o->types.len || o->pairs.len || !rt_options_sample(o));
}

struct rt_error *rt_options_check_sample(const struct rt_options *o)
{
	struct rt_error *err = NULL;

	if (o->frequency && o->period)
		err = rt_error_new(RT_E_USAGE, "%s: both -F and -c", o->verb);
	else if (o->all_cpus && o->pids.len)
		err = rt_error_new(RT_E_USAGE, "%s: both -a and -p", o->verb);
	else if (o->all_cpus && rt_options_lifetimes(o))
		err = rt_error_new(RT_E_USAGE, "%s: -t and -P trace the objects of one program, -a records all",
				   o->verb);
	else if (o->delay_forever && !o->control)
		err = rt_error_new(RT_E_USAGE, "%s: -D -1 without --control would never begin", o->verb);
	else if (o->no_cache && o->cache_all)
		err = rt_error_new(RT_E_USAGE, "%s: both -N and --buildid-all", o->verb);
	else if (o->switch_output && o->output && !strcmp(o->output, "-"))
		err = rt_error_new(RT_E_USAGE, "%s: standard output is one file: no --switch-output", o->verb);
	return rt_error_fix(err, "see: reftrace help %s", o->verb);
}
