/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * run: trace a program and report when it has ended. Standard output stays the
 * program's; the report goes to standard error or -o FILE.
 */
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/launch.h"
#include "cli/output.h"

static const struct argp_option own[] = {
	{ "write", 'w', "FILE", 0, "keep a recording in FILE, for reftrace report -i FILE", 5 },
	{ 0 },
};
static const struct argp_child children[] = {
	{ &rt_target_argp }, { &rt_trace_argp }, { &rt_output_argp }, { &rt_common_argp }, { 0 },
};
const struct argp rt_run_argp = { own, rt_parse_program, "[--] PROG [ARGS...]\n-p PID[,PID]",
				  "Traces a program and reports leaks and extra puts when it has ended. Options behind "
				  "PROG are the program's own.",
				  children };

static struct rt_error *report(struct rt_launch *launch, const struct rt_options *options, struct rt_output *output,
			       int *ret)
{
	struct rt_run_info run = { .command = options->command, .engine = launch->engine->name };
	struct rt_error *err;

	output->own_run = true;
	run.pid = rt_session_pid(launch->session);
	run.pairs = rt_session_pairs(launch->session);
	run.program_ended = rt_session_status(launch->session, &run.program_status);
	err = rt_pipeline_end_recording(&launch->pipeline, run.program_status);
	/* a recording or a session that failed does not take away what was analysed */
	if (err)
		output->failed = rt_failure(err);
	else
		run.recording = launch->pipeline.recording;
	if (launch->failure)
		output->failed = rt_failure(rt_take(launch->failure));
	return rt_output_report(options, output, &launch->pipeline, &run, ret);
}

int cmd_run(int argc, char **argv)
{
	struct rt_launch launch = { .pipeline.fd = -1 };
	struct rt_output output = { .file_fd = -1, .json_fd = -1 };
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_run_argp, argc, argv, &options);
	int status = RT_EXIT_OK;

	if (!err && options.help) {
		rt_options_help(&rt_run_argp, "run", stdout);
	} else {
		if (!err)
			err = rt_launch_check(&options);
		if (!err)
			err = rt_output_open(&options, STDERR_FILENO, &output);
		if (!err)
			err = rt_launch_run(&launch, &options, options.recording, false, NULL);
		if (!err)
			err = report(&launch, &options, &output, &status);
		if (err)
			status = rt_failure(err);
	}
	rt_output_close(&output);
	rt_launch_deinit(&launch);
	rt_options_deinit(&options);
	return status;
}
