/* SPDX-License-Identifier: GPL-2.0-only */
/* record: trace or sample into a file, and say in one line what is in it. */
#include <sys/wait.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/input.h"
#include "cli/launch.h"
#include "report/words.h"

static const struct argp_option own[] = {
	{ "output", 'o', "FILE", 0,
	  "write the recording to FILE (default " RT_DEFAULT_RECORDING "); -: to standard output", 5 },
	{ "quiet", 'q', NULL, 0, "say nothing when all went well", 5 },
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
	{ &rt_target_argp }, { &rt_trace_argp }, { &rt_sample_argp }, { &record_argp }, { &rt_common_argp }, { 0 },
};
const struct argp rt_record_argp = {
	NULL, rt_parse_program, "[--] PROG [ARGS...]\n-p PID[,PID]\n-a [[--] PROG...]",
	"Traces the objects of a program into a recording, for reftrace report -i FILE; or, "
	"with -F, -c, -e, -g or -a, samples what runs.",
	children
};

/* The target of a recording that ended before it goes on by itself. */
static void say_ended(const struct rt_launch *launch, const struct rt_recorder *recorder,
		      const struct rt_options *options)
{
	int status;

	if (recorder->ended)
		fprintf(stderr, "reftrace: ended: %s\n", recorder->ended);
	if (options->command && !rt_session_status(launch->session, &status))
		fprintf(stderr, "reftrace: process %u goes on without being recorded\n",
			rt_session_pid(launch->session));
}

static void say_written(const struct rt_launch *launch, const struct rt_recorder *recorder)
{
	const struct rt_pipeline *p = &launch->pipeline;
	struct rt_arena arena = { 0 };
	const char *path = recorder->aside ? "standard output" : rt_clean(&arena, recorder->last);
	const char *look = recorder->aside ? "" : rt_format(&arena, "; look: reftrace report -i %s", path);

	/* one file of several speaks of its own time only */
	if (p->parts && recorder->switched)
		look = rt_format(&arena, "; look at all %zu files: reftrace report %s.*", recorder->switched + 1,
				 rt_clean(&arena, p->recording));

	if (recorder->observe_only)
		fprintf(stderr, "reftrace: wrote %s: %llu samples, %llu lost, %s; look: reftrace report -i %s\n", path,
			(unsigned long long)p->samples, (unsigned long long)p->lost,
			rt_bytes_text(&arena, recorder->perf_bytes), path);
	else if (recorder->sampler)
		fprintf(stderr, "reftrace: wrote %s: %llu events, %llu samples, %llu lost, %s%s\n", path,
			(unsigned long long)p->events, (unsigned long long)p->samples, (unsigned long long)p->lost,
			rt_bytes_text(&arena, recorder->perf_bytes), look);
	else
		fprintf(stderr, "reftrace: wrote %s: %llu events, %llu lost, %s%s\n", path,
			(unsigned long long)p->events, (unsigned long long)p->lost,
			rt_bytes_text(&arena, recorder->perf_bytes), look);
	rt_arena_deinit(&arena);
}

/* Markers of libraries that nobody knew when the recording began. true: there are some. */
static bool say_missed(const struct rt_recorder *recorder)
{
	struct rt_arena arena = { 0 };
	const char *unraised = recorder->sampler ? rt_sampler_unraised(recorder->sampler) : NULL;
	const char *fix = NULL, *missed = recorder->sampler ? rt_sampler_missed(recorder->sampler, &fix) : NULL;

	if (recorder->sampler && rt_sampler_debugged(recorder->sampler))
		fprintf(stderr, "reftrace: warning: %s\n", rt_clean(&arena, rt_sampler_debugged(recorder->sampler)));
	if (unraised)
		fprintf(stderr, "reftrace: not recorded: %s\n", rt_clean(&arena, unraised));
	if (missed) {
		fprintf(stderr, "reftrace: not recorded, for it was loaded later: %s\n", rt_clean(&arena, missed));
		fprintf(stderr, "  fix: %s\n", rt_clean(&arena, fix));
	}
	rt_arena_deinit(&arena);
	return missed || unraised;
}

static struct rt_error *finish(struct rt_launch *launch, struct rt_recorder *recorder, const struct rt_options *options,
			       int *ret)
{
	struct rt_pipeline *p = &launch->pipeline;
	int program = -1, own_status = 0;
	bool missed;

	rt_progress_clear(&recorder->progress);
	if (rt_session_status(launch->session, &program))
		own_status = WIFSIGNALED(program) ? 128 + WTERMSIG(program) : WEXITSTATUS(program);
	RT_TRY(rt_pipeline_end_recording(p, program));
	RT_TRY(rt_recorder_hand_over(recorder));
	RT_TRY(rt_recorder_keep(recorder));
	RT_TRY(rt_recorder_convert(recorder));
	missed = say_missed(recorder);
	*ret = own_status ? own_status : p->lost || recorder->bpf_lost || missed ? RT_EXIT_TRUST : RT_EXIT_OK;
	if (!p->events && !recorder->observe_only) {
		*ret = own_status ? own_status : RT_EXIT_TRUST;
		return rt_error_fix(rt_error_new(RT_E_NO_EVENT, "no get/put event was seen: %s holds none (exit 24)",
						 recorder->last),
				    "see what can be traced: reftrace scan %s",
				    options->command ? options->command[0] : "-p PID");
	}
	if (recorder->bpf && rt_bpf_source_note(recorder->bpf))
		fprintf(stderr, "reftrace: BPF programs that were loaded and unloaded meanwhile may be missing: %s\n",
			rt_bpf_source_note(recorder->bpf));
	if (recorder->bpf_lost)
		fprintf(stderr, "reftrace: not all of %llu BPF programs could be kept; reftrace report says what\n",
			(unsigned long long)recorder->bpf_lost);
	if (!options->quiet) {
		say_ended(launch, recorder, options);
		say_written(launch, recorder);
	} else if (p->lost) {
		fprintf(stderr, "reftrace: %llu events or samples were lost (exit %d); a larger buffer: -m SIZE\n",
			(unsigned long long)p->lost, *ret);
	}
	return NULL;
}

/* A recording that broke off: what was written until then can be read. */
static struct rt_error *kept(const struct rt_launch *launch, struct rt_error *err)
{
	const struct rt_pipeline *p = &launch->pipeline;

	if (!err || err->fix || !p->file.written || err->code != RT_E_DISK_FULL)
		return err;
	return rt_error_fix(err, "%s holds what was recorded until then; with more room, or --max-size, it holds all",
			    p->recording);
}

static struct rt_error *record(struct rt_launch *launch, struct rt_recorder *recorder, const struct rt_options *options,
			       char **argv, int *ret)
{
	struct rt_error *err;
	const char *path;

	RT_TRY(rt_launch_check(options));
	RT_TRY(rt_options_check_sample(options));
	RT_TRY(rt_recorder_init(recorder, options, (const char *const *)argv));
	RT_TRY(rt_recorder_path(recorder, &path));
	err = rt_launch_run(launch, options, path, true, recorder);
	rt_progress_clear(&recorder->progress);
	return err ? kept(launch, err) : finish(launch, recorder, options, ret);
}

int cmd_record(int argc, char **argv)
{
	struct rt_launch launch = { .pipeline.fd = -1 };
	struct rt_recorder recorder = { .delay.fd = -1, .pipe_fd = -1 };
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_record_argp, argc, argv, &options);
	int status = RT_EXIT_OK;

	if (!err && options.help) {
		rt_options_help(&rt_record_argp, "record", stdout);
	} else {
		if (!err)
			err = record(&launch, &recorder, &options, argv, &status);
		/* a disk that is full says so twice: the stream's end could not be written either */
		if (err && launch.failure && launch.failure->code == err->code)
			rt_error_free(rt_take(launch.failure));
		if (err && err->code == RT_E_NO_EVENT)
			rt_failure(err);
		else if (err)
			status = rt_failure(err);
		if (launch.failure)
			status = rt_failure(kept(&launch, rt_take(launch.failure)));
	}
	rt_launch_deinit(&launch);
	rt_recorder_deinit(&recorder);
	rt_options_deinit(&options);
	return status;
}
