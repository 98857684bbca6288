/* SPDX-License-Identifier: GPL-2.0-only */
/* export: a recording in the format of another viewer. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/convert.h"
#include "cli/failure.h"
#include "cli/file.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/pipeline.h"
#include "probe/near.h"
#include "report/export.h"
#include "report/words.h"

enum { OPT_OF = 0x1000, OPT_LIMIT };

static const struct argp_option own[] = {
	{ "input", 'i', "FILE", 0,
	  "recording of reftrace or of perf, or an .events file (default " RT_DEFAULT_RECORDING ")", 1 },
	{ "output", 'o', "FILE", 0, "write to FILE (default: standard output)", 1 },
	{ "of", OPT_OF, "WHAT", 0,
	  "folded: open (references that nothing gave back, the default), gets, puts, balance, samples or period", 1 },
	{ "event", 'e', "NAME", 0, "only samples of this event", 1 },
	{ "type", 't', "NAME", 0, "only this type of object (repeatable)", 1 },
	{ "limit", OPT_LIMIT, "N", 0, "show at most N lives one by one (default 5000)", 1 },
	{ "symfs", RT_OPT_SYMFS, "DIR", 0, "look for binaries below DIR", 1 },
	{ 0 },
};

static const char *const of_names[] = { "", "open", "gets", "puts", "balance", "samples", "period" };

static const struct {
	const char *name;
	enum rt_export_format format; /* RT_EXPORT_NR: perf.data */
	bool binary;
} formats[] = {
	{ "folded", RT_EXPORT_FOLDED, false },
	{ "perfetto", RT_EXPORT_PERFETTO, true },
	{ "speedscope", RT_EXPORT_SPEEDSCOPE, false },
	{ "firefox", RT_EXPORT_FIREFOX, false },
	{ "pprof", RT_EXPORT_PPROF, true },
	{ "refcount", RT_EXPORT_REFCOUNT, false },
	{ "perfdata", RT_EXPORT_NR, true },
	/* as others call them */
	{ "collapsed", RT_EXPORT_FOLDED, false },
	{ "mozilla", RT_EXPORT_REFCOUNT, false },
};
enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

static struct rt_error *parse_of(const char *arg, int *ret)
{
	for (size_t i = 1; i < sizeof(of_names) / sizeof(of_names[0]); i++) {
		if (!strcmp(arg, of_names[i])) {
			*ret = (int)i;
			return NULL;
		}
	}
	return rt_error_fix(rt_error_new(RT_E_USAGE, "export: nothing is called '%s'", arg),
			    "--of open, gets, puts, balance, samples or period");
}

static struct rt_error *parse_limit(const char *arg, size_t *ret)
{
	uint64_t n;

	if (!rt_parse_u64(arg, strlen(arg), 10, &n) || !n || n > UINT32_MAX)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "export: '%s' is no number of lives", arg),
				    "--limit 5000");
	*ret = (size_t)n;
	return NULL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case 'i':
		options->input = arg;
		return 0;
	case 'o':
		options->output = arg;
		return 0;
	case 'e':
		return rt_vec_push(&options->events, arg) ? 0 : rt_option_fault(options, rt_error_nomem());
	case 't':
		if (!strncmp(arg, "struct ", 7))
			arg += 7;
		return rt_vec_push(&options->types, arg) ? 0 : rt_option_fault(options, rt_error_nomem());
	case OPT_OF:
		return rt_option_fault(options, parse_of(arg, &options->export.of));
	case OPT_LIMIT:
		return rt_option_fault(options, parse_limit(arg, &options->export.limit));
	case RT_OPT_SYMFS:
		options->symfs = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp export_argp = { own, parse };
static const struct argp_child children[] = { { &export_argp }, { &rt_common_argp }, { 0 } };
const struct argp rt_export_argp = {
	NULL, rt_parse_operands, "FORMAT [-i FILE] [-o FILE]",
	"Writes a recording for another viewer. FORMAT: folded (flamegraph.pl, inferno), perfetto (ui.perfetto.dev), "
	"speedscope, firefox (profiler.firefox.com), pprof, refcount (Mozilla's refcount log), perfdata (perf).",
	children
};

struct taker {
	struct rt_recording_sink sink;
	struct rt_event_sink text;
	struct rt_pipeline *pipeline;
	struct rt_export *export;
};

static struct rt_error *take(struct taker *t, const struct rt_wire_head *record)
{
	RT_TRY(rt_export_wire(t->export, record));
	return t->pipeline->sink.record(&t->pipeline->sink, record);
}

static struct rt_error *take_wire(struct rt_recording_sink *self, const struct rt_wire_head *record)
{
	return take((struct taker *)(void *)self, record);
}

static struct rt_error *take_text(struct rt_event_sink *self, const struct rt_wire_head *record)
{
	return take((struct taker *)(void *)((char *)self - offsetof(struct taker, text)), record);
}

static struct rt_error *take_perf(struct rt_recording_sink *self, const struct rt_perf_event *events,
				  const struct rt_perf_record *record)
{
	return rt_export_perf(((struct taker *)(void *)self)->export, events, record);
}

static struct rt_error *read_input(struct rt_input *input, struct rt_pipeline *pipeline, struct rt_export *export)
{
	struct taker t = {
		.sink = { .wire = take_wire }, .text = { take_text }, .pipeline = pipeline, .export = export
	};
	const struct rt_verdict *verdict;

	if (input->text) {
		RT_TRY(rt_source_drain(rt_text_source(input->text), &t.text));
	} else {
		if (rt_recording_info(input->recording).has_perf) {
			RT_TRY(rt_input_code(input, pipeline));
			t.sink.side = &pipeline->names;
			t.sink.perf = take_perf;
		}
		RT_TRY(rt_recording_drain(input->recording, &t.sink));
		rt_input_say_stacks(input);
	}
	/* ends the lives */
	return rt_pipeline_verdict(pipeline, &verdict);
}

/* What was written, and above all what was not. */
static void tell(const struct rt_export_result *r, const char *name, uint64_t bytes)
{
	struct rt_arena arena = { 0 };

	if (name)
		fprintf(stderr, "reftrace: wrote %s: %s\n", rt_clean(&arena, name), rt_bytes_text(&arena, bytes));
	if (r->lives_left_out)
		fprintf(stderr, "reftrace: %llu lives are shown, %llu more were left out; all: --limit %llu\n",
			(unsigned long long)r->lives, (unsigned long long)r->lives_left_out,
			(unsigned long long)r->lives + (unsigned long long)r->lives_left_out);
	if (r->steps_left_out)
		fprintf(stderr, "reftrace: %llu steps of long lives were left out\n",
			(unsigned long long)r->steps_left_out);
	if (r->samples_left_out)
		fprintf(stderr, "reftrace: %llu samples beyond the first %d were left out\n",
			(unsigned long long)r->samples_left_out, RT_EXPORT_SAMPLES);
	if (r->cut_stacks)
		fprintf(stderr, "reftrace: %llu stacks were cut: too many distinct call paths\n",
			(unsigned long long)r->cut_stacks);
	if (r->other_samples && r->event)
		fprintf(stderr, "reftrace: these are samples of %s; %llu of other events were left out: -e %s\n",
			rt_clean(&arena, r->event), (unsigned long long)r->other_samples,
			rt_clean(&arena, r->other_event));
	rt_arena_deinit(&arena);
}

static struct rt_error *nothing(const struct rt_options *options, enum rt_export_format format,
				const struct rt_input *input, const struct rt_export_result *r)
{
	enum rt_export_of of = format == RT_EXPORT_FOLDED ? (enum rt_export_of)options->export.of : RT_EXPORT_OF_AUTO;

	if (r->lives_seen && !(of == RT_EXPORT_OF_SAMPLES || of == RT_EXPORT_OF_PERIOD))
		return NULL;
	if (r->samples && format != RT_EXPORT_REFCOUNT && (of == RT_EXPORT_OF_AUTO || of >= RT_EXPORT_OF_SAMPLES))
		return NULL;
	if (r->other_samples && options->events.len)
		return rt_error_fix(
			rt_error_new(RT_E_NO_EVENT, "%s holds no sample of %s", input->path, options->events.data[0]),
			"it has some of %s: -e %s", r->other_event, r->other_event);
	return rt_error_new(RT_E_NO_EVENT, "%s holds no life of an object%s and no sample", input->path,
			    options->types.len ? " of that type" : "");
}

static struct rt_error *convert(const struct rt_options *options, enum rt_export_format format, struct rt_input *input,
				int fd, int *ret)
{
	_cleanup_free_ const char **types = calloc(options->types.len + 1, sizeof(*types));
	struct rt_pipeline_options how = { .symfs = options->symfs,
					   .input = input->path,
					   .namer = input->text ? rt_text_namer(input->text) : NULL };
	struct rt_export_options what = { .of = (enum rt_export_of)options->export.of,
					  .limit = options->export.limit,
					  .version = RT_VERSION,
					  .pid = rt_side_pid };
	_cleanup_(rt_export_destroyp) struct rt_export *export = NULL;
	struct rt_pipeline pipeline = { .fd = -1 };
	struct rt_export_result result;
	struct rt_sink sink;
	struct rt_error *err;

	if (!types)
		return rt_error_nomem();
	if (options->types.len)
		memcpy(types, options->types.data, options->types.len * sizeof(*types));
	what.types = options->types.len ? types : NULL;
	what.event = options->events.len ? options->events.data[0] : NULL;
	rt_sink_init_fd(&sink, fd, options->output ?: "standard output");
	err = rt_pipeline_init(&pipeline, &how);
	if (!err)
		err = rt_export_create(format, pipeline.namer, pipeline.lifetime, &what, &sink, &export);
	if (!err)
		err = read_input(input, &pipeline, export);
	if (!err)
		err = rt_export_end(export, input->recording ? rt_recording_info(input->recording).command : NULL,
				    &result);
	if (!err) {
		tell(&result, options->output, sink.written);
		err = nothing(options, format, input, &result);
	}
	if (!err && pipeline.cut) {
		fprintf(stderr, "reftrace: %s %s: %s; what came before is there\n", rt_code_text(RT_E_TRUNCATED),
			input->path, pipeline.cut);
		*ret = RT_EXIT_TRUST;
	}
	rt_sink_deinit(&sink);
	rt_export_destroy(rt_take(export));
	rt_pipeline_deinit(&pipeline);
	return err;
}

static struct rt_error *to_perf(const struct rt_options *options, const struct rt_input *input, int fd, int *ret)
{
	struct rt_to_perf_result result = { 0 };
	uint64_t bytes = 0;
	struct rt_error *err;
	struct stat st;

	if (input->text || strcmp(rt_recording_info(input->recording).format, "spool") != 0)
		return rt_error_fix(rt_error_new(RT_E_FORMAT, "%s is %s", input->path,
						 input->text ? "a text of events" : "perf.data already"),
				    "perfdata is made of spools: of run -w, or of a record that was killed");
	err = rt_convert_to(input->path, fd, options->output ?: "standard output",
			    fstat(fd, &st) || !S_ISREG(st.st_mode), &result, &bytes);
	if (!err && result.damage) {
		fprintf(stderr, "reftrace: %s %s: %s; what came before is there\n", rt_code_text(RT_E_TRUNCATED),
			input->path, result.damage);
		*ret = RT_EXIT_TRUST;
	}
	if (!err && options->output)
		fprintf(stderr, "reftrace: wrote %s: %llu bytes\n", options->output, (unsigned long long)bytes);
	free(result.damage);
	return err;
}

static struct rt_error *format_of(const struct rt_options *options, size_t *ret)
{
	const char *name = options->operands.len ? options->operands.data[0] : NULL;
	struct rt_near near = { .wanted = name };

	for (size_t i = 0; name && i < FORMATS; i++) {
		if (!strcmp(name, formats[i].name)) {
			*ret = i;
			return NULL;
		}
		rt_near_offer(&near, formats[i].name);
	}
	return rt_error_fix(name ? rt_error_new(RT_E_USAGE, "export: no format is called '%s'", name)
				 : rt_error_new(RT_E_USAGE, "export: which format?"),
			    "%s%s%sfolded, perfetto, speedscope, firefox, pprof, refcount or perfdata",
			    near.count ? "did you mean " : "", near.count ? near.names[0] : "", near.count ? "? " : "");
}

static struct rt_error *act(const struct rt_options *options, int *ret)
{
	struct rt_input input = { 0 };
	_cleanup_close_ int file = -1;
	struct rt_error *err;
	size_t format = 0;

	RT_TRY(format_of(options, &format));
	if (options->operands.len > 1)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "export: more than one format"),
				    "reftrace export %s -i FILE", formats[format].name);
	if (formats[format].binary && !options->output && isatty(STDOUT_FILENO))
		return rt_error_fix(rt_error_new(RT_E_USAGE, "export: %s is not for a terminal", formats[format].name),
				    "reftrace export %s -o FILE", formats[format].name);
	err = rt_input_open(options->input, &input);
	if (!err && options->output)
		err = rt_file_create(options->output, &file);
	if (!err && formats[format].format == RT_EXPORT_NR)
		err = to_perf(options, &input, options->output ? file : STDOUT_FILENO, ret);
	else if (!err)
		err = convert(options, formats[format].format, &input, options->output ? file : STDOUT_FILENO, ret);
	rt_input_close(&input);
	return err;
}

int cmd_export(int argc, char **argv)
{
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&rt_export_argp, argc, argv, &options);
	int status = RT_EXIT_OK;

	if (!err && options.help)
		rt_options_help(&rt_export_argp, "export", stdout);
	else if (!err)
		err = act(&options, &status);
	if (err)
		status = rt_failure(err);
	rt_options_deinit(&options);
	return status;
}
