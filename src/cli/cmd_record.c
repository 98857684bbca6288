/* SPDX-License-Identifier: GPL-2.0-only */
/* record: trace into a file, and say in one line what is in it. */
#include <sys/wait.h>

#include "cli/command.h"
#include "cli/convert.h"
#include "cli/failure.h"
#include "cli/input.h"
#include "cli/launch.h"
#include "report/words.h"

static const struct argp_option own[] = {
	{ "output", 'o', "FILE", 0, "write the recording to FILE (default " RT_DEFAULT_RECORDING ")", 4 },
	{ "quiet", 'q', NULL, 0, "say nothing when all went well", 4 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	if (key == 'o')
		options->output = arg;
	else if (key == 'q')
		options->quiet = true;
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static const struct argp record_argp = { own, parse };
static const struct argp_child children[] = {
	{ &rt_target_argp }, { &rt_trace_argp }, { &record_argp }, { &rt_common_argp }, { 0 },
};
const struct argp rt_record_argp = { NULL, rt_parse_program, "[--] PROG [ARGS...]\n-p PID[,PID]",
				     "Traces a program into a recording, for reftrace report -i FILE.", children };

static struct rt_error *finish(struct rt_launch *launch, const struct rt_options *options, const char *path, int *ret)
{
	struct rt_pipeline *p = &launch->pipeline;
	struct rt_to_perf_result converted = { 0 };
	struct rt_arena arena = { 0 };
	uint64_t bytes = 0;
	int program = 0, own_status = 0;

	if (rt_session_status(launch->session, &program))
		own_status = WIFSIGNALED(program) ? 128 + WTERMSIG(program) : WEXITSTATUS(program);
	RT_TRY(rt_pipeline_end_recording(p, program));
	*ret = own_status ? own_status : p->lost ? RT_EXIT_TRUST : RT_EXIT_OK;
	if (!p->events) {
		*ret = own_status ? own_status : RT_EXIT_TRUST;
		return rt_error_fix(
			rt_error_new(RT_E_NO_EVENT, "no get/put event was seen: %s holds none (exit 24)", path),
			"see what can be traced: reftrace scan %s", options->command ? options->command[0] : "-p PID");
	}
	RT_TRY(rt_convert_in_place(path, &converted, &bytes));
	if (!options->quiet)
		fprintf(stderr, "reftrace: wrote %s: %llu events, %llu lost, %s; look: reftrace report -i %s\n",
			rt_clean(&arena, path), (unsigned long long)p->events, (unsigned long long)p->lost,
			rt_bytes_text(&arena, bytes), rt_clean(&arena, path));
	rt_arena_deinit(&arena);
	return NULL;
}

int cmd_record(int argc, char **argv)
{
	struct rt_launch launch = { .pipeline.fd = -1 };
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_record_argp, argc, argv, &options);
	const char *path = !err && options.output ? options.output : RT_DEFAULT_RECORDING;
	int status = RT_EXIT_OK;

	if (!err && options.help) {
		rt_options_help(&rt_record_argp, "record", stdout);
	} else {
		if (!err)
			err = rt_launch_check(&options);
		if (!err)
			err = rt_launch_run(&launch, &options, path, true);
		if (!err)
			err = finish(&launch, &options, path, &status);
		if (err && err->code == RT_E_NO_EVENT)
			rt_failure(err);
		else if (err)
			status = rt_failure(err);
		if (launch.failure)
			status = rt_failure(rt_take(launch.failure));
	}
	rt_launch_deinit(&launch);
	rt_options_deinit(&options);
	return status;
}
