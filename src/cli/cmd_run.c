/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * run: trace a program and report when it has ended. Standard output stays the
 * program's; the report goes to standard error or -o FILE.
 */
#include <signal.h>
#include <string.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/interrupt.h"
#include "cli/launch.h"
#include "cli/models.h"
#include "cli/narrow.h"
#include "cli/output.h"

static const struct argp_option own[] = {
	{ "write", 'w', "FILE", 0, "keep a recording in FILE, for reftrace report -i FILE", 5 },
	{ "at", RT_OPT_AT, "WHEN", 0,
	  "when to judge: exit (default), main-return, USR1 or USR2 (sent to reftrace), or every TIME (10s); "
	  "repeatable",
	  2 },
	{ "narrow", RT_OPT_NARROW, NULL, 0,
	  "run the program once more where the evidence for a leak is thin, with a closer look at its types", 2 },
	{ 0 },
};

static struct rt_error *parse_at(struct rt_options *options, const char *arg)
{
	struct rt_error *err;

	if (!strcmp(arg, "exit")) {
		options->at.exit = true;
	} else if (!strcmp(arg, "main-return")) {
		options->at.main_return = true;
	} else if (!strcmp(arg, "USR1") || !strcmp(arg, "SIGUSR1")) {
		options->at.signal = SIGUSR1;
	} else if (!strcmp(arg, "USR2") || !strcmp(arg, "SIGUSR2")) {
		options->at.signal = SIGUSR2;
	} else {
		err = rt_parse_duration(arg, &options->at.interval_ns);
		if (!err)
			return NULL;
		rt_error_free(err);
		return rt_error_fix(rt_error_new(RT_E_USAGE, "--at=%s is no moment", arg),
				    "choose exit, main-return, USR1, USR2, or an interval: --at=10s");
	}
	return NULL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case 'w':
		options->recording = arg;
		return 0;
	case RT_OPT_NARROW:
		options->narrow = true;
		return 0;
	case RT_OPT_AT:
		return rt_option_fault(options, parse_at(options, arg));
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp run_argp = { own, parse };
static const struct argp_child children[] = {
	{ &run_argp }, { &rt_target_argp }, { &rt_trace_argp }, { &rt_output_argp }, { &rt_common_argp }, { 0 },
};
const struct argp rt_run_argp = { NULL, rt_parse_program, "[--] PROG [ARGS...]\n-p PID[,PID]",
				  "Traces a program and reports leaks and extra puts when it has ended. Options behind "
				  "PROG are the program's own.",
				  children };

/* One run, and what was said of it so far. */
struct run {
	struct rt_launch launch;
	struct rt_output output;
	const struct rt_options *options;
	unsigned moments; /* at which the program was looked at while it lived */
	int found;        /* exit status of the first moment with findings that are to change it */
};

static struct rt_run_info describe(const struct run *r)
{
	return (struct rt_run_info){ .command = r->options->command,
				     .engine = r->launch.engine->name,
				     .pid = rt_session_pid(r->launch.session),
				     .pairs = rt_session_pairs(r->launch.session),
				     .moment = r->moments };
}

/* All processes stand. A report that cannot be written is no reason to end the program's run early: it is said at once.
 */
static struct rt_error *look(void *arg)
{
	struct run *r = arg;
	struct rt_run_info info;
	struct rt_error *err;
	int status = 0;

	r->moments++;
	info = describe(r);
	err = rt_output_report(r->options, &r->output, &r->launch.pipeline, &info, &status);
	if (err)
		r->output.failed = rt_failure(err);
	if (!r->found && r->options->error_exitcode && status == r->options->error_exitcode)
		r->found = status;
	return NULL;
}

static struct rt_error *end_without_report(struct run *r, const struct rt_run_info *info, int *ret)
{
	struct rt_options plain = *r->options;
	const struct rt_verdict *verdict;

	plain.error_exitcode = 0;
	RT_TRY(rt_pipeline_verdict(&r->launch.pipeline, &verdict));
	*ret = r->output.failed ?: rt_exit_status(verdict, &plain, info->program_ended, info->program_status);
	*ret = r->found ?: *ret;
	return NULL;
}

static struct rt_error *report(struct run *r, int *ret)
{
	const struct rt_options *options = r->options;
	bool live = options->at.signal || options->at.interval_ns, at_end = options->at.exit || options->at.main_return;
	unsigned moments = r->moments;
	struct rt_run_info info;
	struct rt_error *err;

	r->output.own_run = true;
	r->moments = 0;
	info = describe(r);
	info.program_ended = rt_session_status(r->launch.session, &info.program_status);
	info.again = info.program_ended && !options->narrow && !options->recording && !live;
	err = rt_pipeline_end_recording(&r->launch.pipeline, info.program_status);
	/* a recording or a session that failed does not take away what was analysed */
	if (err)
		r->output.failed = rt_failure(err);
	else
		info.recording = r->launch.pipeline.recording;
	if (r->launch.failure)
		r->output.failed = rt_failure(rt_take(r->launch.failure));
	/* judged while it lived, as was asked for: the end has no say */
	if (live && !at_end && moments)
		return end_without_report(r, &info, ret);
	if (live && !at_end)
		fprintf(stderr, "reftrace: the program ended before it was looked at: judged at its end\n");
	RT_TRY(rt_output_report(options, &r->output, &r->launch.pipeline, &info, ret));
	if (r->found)
		*ret = r->found;
	return NULL;
}

/*
 * The program once more, where the first run leaves it open who is guilty. Its report follows the first one, and is the
 * one that counts, if the same happened again.
 */
static struct rt_error *look_closer(struct run *first, const struct rt_verdict *before, struct rt_narrow *plan,
				    int *ret)
{
	struct run again = { .launch = { .pipeline.fd = -1, .spec = plan->spec }, .output = first->output };
	struct rt_options options = *first->options;
	const struct rt_verdict *verdict;
	struct rt_error *err;

	plan->spec = (struct rt_spec){ 0 };
	options.frames = RT_STACK_MAX;
	options.sample = options.overhead = 0;
	options.counts = false;
	again.options = &options;
	fprintf(stderr,
		"reftrace: --narrow: for %zu of the suspicions above (struct %s%s) the evidence is thin: "
		"the program runs once more, and what %zu functions return is watched\n",
		plan->thin, plan->type, plan->thin > 1 ? ", ..." : "", plan->watched);
	err = rt_launch_run(&again.launch, &options, NULL, false, NULL);
	if (!err)
		err = rt_models_load(&options, again.launch.pipeline.lifetime);
	if (!err)
		err = rt_pipeline_verdict(&again.launch.pipeline, &verdict);
	if (!err && rt_narrow_recurred(before, verdict))
		err = report(&again, ret);
	else if (!err)
		fprintf(stderr, "reftrace: --narrow: it did not happen again: the report above stands\n");
	first->output = again.output;
	rt_launch_deinit(&again.launch);
	return err;
}

static struct rt_error *narrow(struct run *first, int *ret)
{
	_cleanup_(rt_narrow_deinit) struct rt_narrow plan = { 0 };
	const struct rt_verdict *verdict;
	int end;

	/* whoever ends it wants no more of it; and one that goes on is not started beside itself */
	if (rt_session_interrupted(first->launch.session) || !rt_session_status(first->launch.session, &end))
		return NULL;
	RT_TRY(rt_pipeline_verdict(&first->launch.pipeline, &verdict));
	RT_TRY(rt_narrow_plan(verdict, first->launch.session, &plan));
	return plan.spec.types.len ? look_closer(first, verdict, &plan, ret) : NULL;
}

/* A second run is the same run: a program that can be started again, judged at its end, and kept nowhere. */
static struct rt_error *check_narrow(const struct rt_options *options)
{
	if (!options->narrow)
		return NULL;
	if (options->pids.len)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "--narrow cannot start processes again that run already"),
				    "start the program by reftrace: reftrace run --narrow -- PROG");
	if (options->recording)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "--narrow runs the program twice, and -w keeps one run"),
				    "leave one of them out");
	if (options->at.signal || options->at.interval_ns)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "--narrow compares ends, and --at judges before"),
				    "leave one of them out");
	return NULL;
}

int cmd_run(int argc, char **argv)
{
	struct run r = { .launch.pipeline.fd = -1, .output = { .file_fd = -1, .json_fd = -1 } };
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_run_argp, argc, argv, &options);
	int status = RT_EXIT_OK;

	r.options = &options;
	r.launch.on_moment = look;
	r.launch.on_moment_arg = &r;
	if (!err && options.help) {
		rt_options_help(&rt_run_argp, "run", stdout);
	} else {
		if (!err)
			err = rt_launch_check(&options);
		if (!err)
			err = check_narrow(&options);
		if (!err)
			err = rt_output_open(&options, STDERR_FILENO, &r.output);
		if (!err && options.at.signal)
			rt_interrupt_watch_moment(options.at.signal);
		if (!err)
			err = rt_launch_run(&r.launch, &options, options.recording, false, NULL);
		if (!err)
			err = report(&r, &status);
		if (!err && options.narrow)
			err = narrow(&r, &status);
		if (err)
			status = rt_failure(err);
	}
	rt_output_close(&r.output);
	rt_launch_deinit(&r.launch);
	rt_options_deinit(&options);
	return status;
}
