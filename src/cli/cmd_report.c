/* SPDX-License-Identifier: GPL-2.0-only */
/* report: a recording, or an .events file, through the same analysis as a run. */
#include <string.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/input.h"
#include "cli/output.h"

static const struct argp_option own[] = {
	{ "input", 'i', "FILE", 0,
	  "recording of reftrace record, of run -w or of perf, or an .events file (default " RT_DEFAULT_RECORDING
	  "); repeated: the files of --switch-output",
	  1 },
	{ "type", 't', "NAME", 0, "only this type of object (repeatable)", 1 },
	{ "samples", RT_OPT_SAMPLES, NULL, 0, "only the samples, not the lifetimes", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case 'i':
		return rt_input_name(options, arg);
	case RT_OPT_SAMPLES:
		options->samples_only = true;
		return 0;
	case 't':
		if (!strncmp(arg, "struct ", 7))
			arg += 7;
		return rt_vec_push(&options->types, arg) ? 0 : rt_option_fault(options, rt_error_nomem());
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp report_argp = { own, parse };
static const struct argp_child children[] = {
	{ &report_argp }, { &rt_output_argp }, { &rt_debuginfod_argp }, { &rt_common_argp }, { 0 },
};
const struct argp rt_report_argp = { NULL, rt_parse_operands, "-i FILE\nFILE...",
				     "Reports what a recording or an .events file holds, on standard output.",
				     children };

/* Where the parts of a recording go. */
struct takers {
	struct rt_recording_sink sink;
	struct rt_pipeline *pipeline;
	struct rt_samples *samples;
	bool lifetimes; /* the recording has some */
};

static struct rt_error *take_wire(struct rt_recording_sink *self, const struct rt_wire_head *record)
{
	struct takers *t = (struct takers *)(void *)self;

	t->lifetimes |= record->kind == RT_WIRE_TYPE || record->kind == RT_WIRE_EVENT;
	return t->pipeline->sink.record(&t->pipeline->sink, record);
}

static struct rt_error *take_events(struct rt_recording_sink *self, const struct rt_wire_event *events, size_t n)
{
	struct takers *t = (struct takers *)(void *)self;

	t->lifetimes = true;
	return rt_pipeline_events(t->pipeline, events, n);
}

static struct rt_error *take_perf(struct rt_recording_sink *self, const struct rt_perf_event *events,
				  const struct rt_perf_record *record)
{
	struct takers *t = (struct takers *)(void *)self;

	return rt_samples_record(t->samples, events, record);
}

static struct rt_error *read_recording(struct rt_input *input, struct rt_pipeline *pipeline, struct rt_samples *samples,
				       bool *ret_lifetimes)
{
	struct takers t = { .sink = { .wire = take_wire, .events = take_events },
			    .pipeline = pipeline,
			    .samples = samples };

	/* numbers of modules and events are those of one file */
	if (rt_recording_info(input->recording).has_perf && !input->more_count) {
		RT_TRY(rt_input_code(input, pipeline));
		t.sink.side = &pipeline->names;
		t.sink.perf = take_perf;
	}
	RT_TRY(rt_input_drain(input, &t.sink));
	/* what was made to hold lifetimes and was cut before the first still speaks of lifetimes */
	*ret_lifetimes = t.lifetimes || input->more_count || !rt_recording_info(input->recording).has_perf;
	return NULL;
}

/* Status of a report that has samples only: 24 when something is missing. */
static struct rt_error *report_samples(const struct rt_options *options, const struct rt_output *output,
				       const struct rt_input *input, const struct rt_pipeline *pipeline,
				       struct rt_samples *samples, int *ret)
{
	struct rt_profile_head head = { .command = rt_recording_info(input->recording).command,
					.lost = samples->lost,
					.damage = rt_recording_damage(input->recording),
					.stacks = rt_recording_unwound(input->recording) };

	if (pipeline->chain)
		head.unnamed_count = rt_chain_notes(pipeline->chain, &head.unnamed);
	if (head.damage || head.lost || !samples->samples)
		*ret = RT_EXIT_TRUST;
	if (head.damage)
		fprintf(stderr, "reftrace: %s %s: %s; the answer covers what came before\n",
			rt_code_text(RT_E_TRUNCATED), input->path, head.damage);
	if (!samples->samples)
		fprintf(stderr, "reftrace: %s %s holds no sample\n", rt_code_text(RT_E_NO_EVENT), input->path);
	return rt_output_samples(options, output, samples, &head);
}

static struct rt_error *report(const struct rt_options *options, struct rt_input *input, struct rt_pipeline *pipeline,
			       const char *const *types, struct rt_output *output, int *ret)
{
	struct rt_pipeline_options how = {
		.lifetime = { .types = types, .strict = options->strict },
		.symfs = options->symfs,
		.fetch = options,
		.input = input->path,
		.namer = input->text ? rt_text_namer(input->text) : NULL,
	};
	struct rt_run_info run = { .engine = input->text ? "text" : "replay" };
	_cleanup_(rt_samples_deinit) struct rt_samples samples = { 0 };
	bool lifetimes = true;

	RT_TRY(rt_pipeline_init(pipeline, &how));
	if (input->text) {
		RT_TRY(rt_source_drain(rt_text_source(input->text), &pipeline->sink));
		return rt_output_report(options, output, pipeline, &run, ret);
	}
	if (input->more_count && options->samples_only)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "report: samples of several files are not one report"),
				    "reftrace report --samples -i %s", input->path);
	if (input->more_count && rt_recording_info(input->recording).has_perf && !options->quiet)
		fprintf(stderr,
			"reftrace: the samples of several files are reported one by one: "
			"reftrace report --samples -i %s\n",
			input->path);
	RT_TRY(rt_samples_init(pipeline->namer, &samples));
	RT_TRY(read_recording(input, pipeline, &samples, &lifetimes));
	run.command = rt_recording_info(input->recording).command;
	run.program_ended = rt_input_status(input, &run.program_status);
	run.recording = input->path;
	run.more = options->more_inputs.data;
	run.more_count = options->more_inputs.len;
	/* one JSON text is one document: lifetimes, where there are any */
	if (lifetimes && !options->samples_only)
		RT_TRY(rt_output_report(options, output, pipeline, &run, ret));
	if (!lifetimes || options->samples_only || (samples.samples && options->format == RT_FORMAT_TEXT))
		return report_samples(options, output, input, pipeline, &samples, ret);
	return NULL;
}

static struct rt_error *run(const struct rt_options *options, int *ret)
{
	_cleanup_free_ const char **types = NULL;
	struct rt_pipeline pipeline = { .fd = -1 };
	struct rt_output output = { .file_fd = -1, .json_fd = -1 };
	struct rt_input input = { 0 };
	struct rt_error *err;

	if (options->types.len) {
		types = calloc(options->types.len + 1, sizeof(*types));
		if (!types)
			return rt_error_nomem();
		for (size_t i = 0; i < options->types.len; i++)
			types[i] = options->types.data[i];
	}
	err = rt_input_open_all(options, &input);
	/* the program's status belongs to its run, not to the reading of it: own_run stays false */
	if (!err)
		err = rt_output_open(options, STDOUT_FILENO, &output);
	if (!err)
		err = report(options, &input, &pipeline, types, &output, ret);
	rt_output_close(&output);
	rt_pipeline_deinit(&pipeline);
	rt_input_close(&input);
	return err;
}

int cmd_report(int argc, char **argv)
{
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_report_argp, argc, argv, &options);
	int status = RT_EXIT_OK;

	for (size_t i = 0; !err && i < options.operands.len; i++)
		rt_input_name(&options, options.operands.data[i]);
	if (!err)
		err = rt_take(options.err);
	if (!err && options.help)
		rt_options_help(&rt_report_argp, "report", stdout);
	else if (!err)
		err = run(&options, &status);
	if (err) {
		bool cut = err->code == RT_E_TRUNCATED;

		status = rt_failure(err);
		status = cut ? RT_EXIT_TRUST : status;
	}
	rt_options_deinit(&options);
	return status;
}
