/* SPDX-License-Identifier: GPL-2.0-only */
/* report: a recording, or an .events file, through the same analysis as a run. */
#include <fcntl.h>
#include <string.h>

#include "base/fs.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "engine/text.h"

static const struct argp_option own[] = {
	{ "input", 'i', "FILE", 0, "recording of reftrace record, of run -w, or an .events file", 1 },
	{ "type", 't', "NAME", 0, "only this type of object (repeatable)", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case 'i':
		options->input = arg;
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
	{ &report_argp },
	{ &rt_output_argp },
	{ &rt_common_argp },
	{ 0 },
};
const struct argp rt_report_argp = { NULL, rt_parse_operands, "-i FILE",
				     "Reports what a recording or an .events file holds, on standard output.",
				     children };

/* An opened input; one of reader and text is set. */
struct input {
	struct rt_bytes bytes;
	struct rt_spool_reader *reader;
	struct rt_text *text;
	struct rt_source *source;
};

/* Text, by its first bytes: no control characters but blanks. */
static bool is_text(struct rt_bytes bytes)
{
	size_t n = bytes.size < 4096 ? bytes.size : 4096;

	for (size_t i = 0; i < n; i++) {
		uint8_t c = bytes.data[i];

		if (c < 0x20 && c != '\n' && c != '\t' && c != '\r')
			return false;
	}
	return true;
}

static struct rt_error *open_input(const char *path, struct input *ret)
{
	_cleanup_close_ int fd = -1;
	struct rt_error *err;

	RT_TRY(rt_fs_open_file(AT_FDCWD, path, false, &fd));
	RT_TRY(rt_fs_map(fd, path, &ret->bytes));
	err = rt_spool_reader_create(ret->bytes, path, &ret->reader);
	if (!err) {
		ret->source = rt_spool_reader_source(ret->reader);
		return NULL;
	}
	if (err->code != RT_E_FORMAT || !ret->bytes.size || !is_text(ret->bytes))
		return rt_error_fix(err, "record one: reftrace record -o FILE -- PROG ARGS");
	rt_error_free(err);
	err = rt_text_create((const char *)ret->bytes.data, ret->bytes.size, path, &ret->text);
	if (err)
		return rt_error_wrap(err, "neither a recording nor an .events text");
	ret->source = rt_text_source(ret->text);
	return NULL;
}

static void close_input(struct input *input)
{
	rt_spool_reader_destroyp(&input->reader);
	rt_text_destroyp(&input->text);
	rt_fs_unmap(input->bytes);
}

static struct rt_error *report(const struct rt_options *options, struct input *input, struct rt_pipeline *pipeline,
			       const char *const *types, const struct rt_output *output, int *ret)
{
	struct rt_pipeline_options how = {
		.lifetime = { .types = types, .strict = options->strict },
		.symfs = options->symfs,
		.namer = input->text ? rt_text_namer(input->text) : NULL,
	};
	struct rt_run_info run = { .engine = input->text ? "text" : "replay" };

	RT_TRY(rt_pipeline_init(pipeline, &how));
	RT_TRY(rt_source_drain(input->source, &pipeline->sink));
	if (input->reader) {
		run.command = rt_spool_reader_command(input->reader);
		run.program_ended = rt_spool_reader_status(input->reader, &run.program_status);
		run.recording = options->input;
	}
	return rt_output_report(options, output, pipeline, &run, ret);
}

static struct rt_error *run(const struct rt_options *options, int *ret)
{
	_cleanup_free_ const char **types = NULL;
	struct rt_pipeline pipeline = { .fd = -1 };
	struct rt_output output = { .file_fd = -1, .json_fd = -1 };
	struct input input = { 0 };
	struct rt_error *err;

	if (options->types.len) {
		types = calloc(options->types.len + 1, sizeof(*types));
		if (!types)
			return rt_error_nomem();
		for (size_t i = 0; i < options->types.len; i++)
			types[i] = options->types.data[i];
	}
	err = open_input(options->input, &input);
	/* the program's status belongs to its run, not to the reading of it: own_run stays false */
	if (!err)
		err = rt_output_open(options, STDOUT_FILENO, &output);
	if (!err)
		err = report(options, &input, &pipeline, types, &output, ret);
	rt_output_close(&output);
	rt_pipeline_deinit(&pipeline);
	close_input(&input);
	return err;
}

int cmd_report(int argc, char **argv)
{
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_report_argp, argc, argv, &options);
	int status = RT_EXIT_OK;

	if (!err && !options.input && options.operands.len == 1) {
		options.input = options.operands.data[0];
		options.operands.len = 0;
	}
	if (!err && options.help)
		rt_options_help(&rt_report_argp, "report", stdout);
	else if (!err && (!options.input || options.operands.len))
		err = rt_error_fix(
			rt_error_new(RT_E_USAGE, options.input ? "report: more than one input" : "report: no input"),
			"reftrace report -i FILE, with a file of: reftrace record -o FILE -- PROG");
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
