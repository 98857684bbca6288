/* SPDX-License-Identifier: GPL-2.0-only */
/* script: the records of a recording one by one. */
#include <string.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/events.h"
#include "report/script.h"

enum { OPT_TASKS = 0x1000, OPT_MAPPINGS, OPT_LOST, OPT_BPF, OPT_EVENTS };

static const struct argp_option own[] = {
	{ "input", 'i', "FILE", 0, "recording of reftrace or of perf (default " RT_DEFAULT_RECORDING ")", 1 },
	{ "show-task-events", OPT_TASKS, NULL, 0, "names, forks and exits as well", 1 },
	{ "show-mmap-events", OPT_MAPPINGS, NULL, 0, "mappings as well", 1 },
	{ "show-lost-events", OPT_LOST, NULL, 0, "losses as well", 1 },
	{ "show-bpf-events", OPT_BPF, NULL, 0, "loads and unloads of BPF programs as well", 1 },
	{ "events", OPT_EVENTS, NULL, 0, "the lifetimes, as an .events text that report reads", 1 },
	{ "symfs", RT_OPT_SYMFS, "DIR", 0, "look for binaries below DIR", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case 'i':
		options->input = arg;
		return 0;
	case OPT_TASKS:
		options->show.tasks = true;
		return 0;
	case OPT_MAPPINGS:
		options->show.mappings = true;
		return 0;
	case OPT_LOST:
		options->show.lost = true;
		return 0;
	case OPT_BPF:
		options->show.bpf = true;
		return 0;
	case OPT_EVENTS:
		options->events_text = true;
		return 0;
	case RT_OPT_SYMFS:
		options->symfs = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp script_argp = { own, parse };
static const struct argp_child children[] = { { &script_argp }, { &rt_debuginfod_argp }, { &rt_common_argp }, { 0 } };
const struct argp rt_script_argp = { NULL, rt_parse_operands, "[-i FILE]",
				     "Prints the records of a recording by time, as perf script does.", children };

struct taker {
	struct rt_recording_sink sink;
	struct rt_script *script;
	struct rt_sink out;
};

static struct rt_error *take_perf(struct rt_recording_sink *self, const struct rt_perf_event *events,
				  const struct rt_perf_record *record)
{
	struct taker *t = (struct taker *)(void *)self;

	RT_TRY(rt_script_record(t->script, events, record, &t->out));
	/* a closed pipe ends the printing */
	return t->out.err ? rt_sink_end(&t->out) : NULL;
}

struct lives {
	struct rt_recording_sink sink;
	struct rt_pipeline *pipeline;
	struct rt_events *events;
	struct rt_sink out;
	bool any;
};

static struct rt_error *take_wire(struct rt_recording_sink *self, const struct rt_wire_head *record)
{
	struct lives *t = (struct lives *)(void *)self;

	t->any |= record->kind == RT_WIRE_TYPE || record->kind == RT_WIRE_EVENT;
	RT_TRY(t->pipeline->names.record(&t->pipeline->names, record));
	RT_TRY(rt_events_record(t->events, record, &t->out));
	return t->out.err ? rt_sink_end(&t->out) : NULL;
}

/* Says that what was printed is not all. */
static void say_cut(const struct rt_input *input, int *ret)
{
	if (!rt_recording_damage(input->recording))
		return;
	fprintf(stderr, "reftrace: %s %s: %s; what came before is above\n", rt_code_text(RT_E_TRUNCATED), input->path,
		rt_recording_damage(input->recording));
	*ret = RT_EXIT_TRUST;
}

static struct rt_error *print_events(const struct rt_options *options, struct rt_input *input,
				     struct rt_pipeline *pipeline, int *ret)
{
	const struct rt_pipeline_options how = { .symfs = options->symfs, .fetch = options, .input = input->path };
	_cleanup_(rt_events_destroyp) struct rt_events *events = NULL;
	struct lives t = { .sink = { .wire = take_wire }, .pipeline = pipeline };
	struct rt_error *err;

	RT_TRY(rt_pipeline_init(pipeline, &how));
	RT_TRY(rt_events_create(pipeline->namer, &events));
	t.events = events;
	rt_sink_init_fd(&t.out, STDOUT_FILENO, "standard output");
	err = rt_recording_drain(input->recording, &t.sink);
	if (!err)
		err = rt_sink_end(&t.out);
	rt_sink_deinit(&t.out);
	if (!err && !t.any && !rt_recording_damage(input->recording))
		err = rt_error_fix(rt_error_new(RT_E_NO_EVENT, "%s holds no lifetimes of objects", input->path),
				   "record them: reftrace record PROG ARGS; what was sampled: reftrace script -i %s",
				   input->path);
	if (!err)
		say_cut(input, ret);
	return err;
}

static struct rt_error *print(const struct rt_options *options, struct rt_input *input, struct rt_pipeline *pipeline,
			      int *ret)
{
	const struct rt_pipeline_options how = { .symfs = options->symfs, .fetch = options, .input = input->path };
	_cleanup_(rt_tracing_destroyp) struct rt_tracing *tracing = NULL;
	_cleanup_(rt_script_destroyp) struct rt_script *script = NULL;
	struct rt_script_options show = options->show;
	struct taker t = { .sink = { .side = &pipeline->names, .perf = take_perf, .all = true } };
	const struct rt_perf_header *header;
	struct rt_error *err;

	RT_TRY(rt_pipeline_init(pipeline, &how));
	RT_TRY(rt_input_code(input, pipeline));
	header = rt_recording_info(input->recording).header;
	if (header->tracing_data.size)
		RT_TRY(rt_tracing_create(header->tracing_data, &tracing));
	show.pid = rt_side_pid;
	show.big_endian = header->big_endian;
	RT_TRY(rt_script_create(pipeline->namer, tracing, &show, &script));
	t.script = script;
	rt_sink_init_fd(&t.out, STDOUT_FILENO, "standard output");
	err = rt_recording_drain(input->recording, &t.sink);
	if (!err)
		err = rt_sink_end(&t.out);
	rt_sink_deinit(&t.out);
	if (!err) {
		rt_input_say_stacks(input);
		say_cut(input, ret);
	}
	return err;
}

int cmd_script(int argc, char **argv)
{
	struct rt_pipeline pipeline = { .fd = -1 };
	struct rt_input input = { 0 };
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_script_argp, argc, argv, &options);
	int status = RT_EXIT_OK;

	if (!err && !options.input && options.operands.len == 1) {
		options.input = options.operands.data[0];
		options.operands.len = 0;
	}
	if (!err && options.help) {
		rt_options_help(&rt_script_argp, "script", stdout);
	} else {
		if (!err && options.operands.len)
			err = rt_error_fix(rt_error_new(RT_E_USAGE, "script: more than one input"),
					   "reftrace script -i FILE");
		if (!err)
			err = rt_input_open(options.input, &input);
		if (!err && input.text)
			err = rt_error_new(RT_E_FORMAT, "%s is a text of events already", input.path);
		if (!err && options.events_text)
			err = print_events(&options, &input, &pipeline, &status);
		else if (!err)
			err = print(&options, &input, &pipeline, &status);
		if (err)
			status = rt_failure(err);
	}
	rt_pipeline_deinit(&pipeline);
	rt_input_close(&input);
	rt_options_deinit(&options);
	return status;
}
