/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/output.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/file.h"
#include "cli/models.h"
#include "cli/suppression_options.h"
#include "report/words.h"

bool rt_output_color(enum rt_color color, int fd)
{
	const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE"), *term = getenv("TERM");

	if (color != RT_COLOR_AUTO)
		return color == RT_COLOR_ALWAYS;
	if (no && *no)
		return false;
	if (force && *force && strcmp(force, "0") != 0)
		return true;
	return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

unsigned rt_output_width(int fd)
{
	struct winsize size;

	if (isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size))
		return size.ws_col;
	return 0;
}

int rt_exit_status(const struct rt_verdict *verdict, const struct rt_options *options, bool program_ended,
		   int program_status)
{
	bool broke = !verdict->trust.complete || verdict->trust.nothing_seen || verdict->trust.lost;
	int own = 0;

	if (program_ended)
		own = WIFSIGNALED(program_status) ? 128 + WTERMSIG(program_status) : WEXITSTATUS(program_status);
	if (options->error_exitcode && verdict->finding_count)
		return options->error_exitcode;
	if (broke && (!own || options->error_exitcode))
		return RT_EXIT_TRUST;
	return own;
}

static struct rt_error *write_text(const struct rt_options *options, struct rt_pipeline *pipeline,
				   const struct rt_verdict *verdict, const struct rt_run_info *run, int fd,
				   struct rt_sink *sink)
{
	struct rt_text_options text = {
		.width = rt_output_width(fd),
		.color = rt_output_color(options->color, fd),
		.quiet = options->quiet,
		.verbose = options->verbose,
	};

	return rt_report_text(verdict, run, &text, pipeline->namer, sink);
}

static struct rt_error *write_to(const struct rt_options *options, const struct rt_output *output,
				 enum rt_format format, struct rt_pipeline *pipeline, const struct rt_verdict *verdict,
				 const struct rt_run_info *run, int fd, const char *name)
{
	struct rt_error *err;
	struct rt_sink sink;

	/* a file of JSON is one document: that of the last look */
	if (format == RT_FORMAT_JSON && (fd == output->file_fd || fd == output->json_fd) && output->reports &&
	    (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET)))
		return rt_error_errno(RT_E_UNWRITABLE, errno, "cannot write %s anew", name);
	rt_sink_init_fd(&sink, fd, name);
	if (format == RT_FORMAT_JSON)
		err = rt_report_json(verdict, run, &sink);
	else
		err = write_text(options, pipeline, verdict, run, fd, &sink);
	rt_sink_deinit(&sink);
	return err;
}

struct rt_error *rt_output_open(const struct rt_options *options, int fd, struct rt_output *ret)
{
	*ret = (struct rt_output){ .fd = fd, .file_fd = -1, .json_fd = -1 };
	if (options->output)
		RT_TRY(rt_file_create(options->output, &ret->file_fd));
	if (options->json)
		RT_TRY(rt_file_create(options->json, &ret->json_fd));
	return rt_suppressions_read(options, &ret->suppressions);
}

void rt_output_close(struct rt_output *output)
{
	rt_closep(&output->file_fd);
	rt_closep(&output->json_fd);
	rt_suppressions_deinit(&output->suppressions);
}

/* Also without a look into the report: what a script's log has to show. */
static void warn(const struct rt_output *output, const struct rt_pipeline *pipeline, const struct rt_trust *trust,
		 bool report_elsewhere)
{
	struct rt_arena arena = { 0 };

	if (pipeline->cut && !output->failed)
		fprintf(stderr, "reftrace: %s %s; the answer covers what came before\n", rt_code_text(RT_E_TRUNCATED),
			rt_clean(&arena, *pipeline->cut ? pipeline->cut : "the input ends early"));
	if (trust->lost)
		fprintf(stderr,
			"reftrace: %s %llu of %llu events were lost: leaks may be too high\n"
			"      fix: a larger ring: -m 64M; fewer functions: -t NAME\n",
			rt_code_text(RT_E_LOST), (unsigned long long)trust->lost,
			(unsigned long long)trust->events + (unsigned long long)trust->lost);
	if (trust->nothing_seen && report_elsewhere)
		fprintf(stderr, "reftrace: %s no get/put event was seen: this is NOT a clean result\n",
			rt_code_text(RT_E_NO_EVENT));
	rt_arena_deinit(&arena);
}

static struct rt_error *report(const struct rt_options *options, const struct rt_output *output,
			       struct rt_pipeline *pipeline, const struct rt_verdict *verdict, struct rt_run_info *run)
{
	int fd = output->fd;

	if (pipeline->chain)
		run->unnamed_count = rt_chain_notes(pipeline->chain, &run->unnamed);
	run->exit_status = rt_exit_status(verdict, options, output->own_run && run->program_ended, run->program_status);
	if (output->failed)
		run->exit_status = output->failed;
	if (!run->pid && verdict->process_count)
		run->pid = RT_PID_OF(verdict->processes[0].pid);
	warn(output, pipeline, &verdict->trust, fd != STDERR_FILENO || output->file_fd >= 0);
	if (output->json_fd >= 0)
		RT_TRY(write_to(options, output, RT_FORMAT_JSON, pipeline, verdict, run, output->json_fd,
				options->json));
	if (output->file_fd >= 0)
		RT_TRY(write_to(options, output, options->format, pipeline, verdict, run, output->file_fd,
				options->output));
	else
		RT_TRY(write_to(options, output, options->format, pipeline, verdict, run, fd,
				fd == STDOUT_FILENO ? "standard output" : "standard error"));
	return NULL;
}

struct rt_error *rt_output_report(const struct rt_options *options, struct rt_output *output,
				  struct rt_pipeline *pipeline, struct rt_run_info *run, int *ret)
{
	_cleanup_(rt_suppression_result_deinit) struct rt_suppression_result known = { 0 };
	const struct rt_verdict *verdict;

	if (!output->reports)
		RT_TRY(rt_models_load(options, pipeline->lifetime));
	RT_TRY(rt_pipeline_verdict(pipeline, &verdict));
	RT_TRY(rt_models_save(options, pipeline->lifetime));
	run->generate = options->gen_suppressions;
	if (options->suppressions.len) {
		RT_TRY(rt_suppress(&output->suppressions, verdict, &known));
		run->suppressions = &output->suppressions;
		run->suppressed = known.suppressed;
		run->suppressed_count = known.count;
		verdict = &known.verdict;
	}
	RT_TRY(report(options, output, pipeline, verdict, run));
	output->reports++;
	/* they end with known */
	run->suppressed_count = 0;
	*ret = run->exit_status;
	return NULL;
}

static struct rt_error *samples_to(const struct rt_options *options, enum rt_format format,
				   const struct rt_profile_part *parts, size_t count,
				   const struct rt_profile_head *head, int fd, const char *name)
{
	const struct rt_profile_text_options text = {
		.width = rt_output_width(fd),
		.color = rt_output_color(options->color, fd),
		.min_percent = options->verbose ? 1e-9 : 0,
	};
	struct rt_error *err;
	struct rt_sink sink;

	rt_sink_init_fd(&sink, fd, name);
	err = format == RT_FORMAT_JSON ? rt_profile_json(head, parts, count, &sink)
				       : rt_profile_text(head, parts, count, &text, &sink);
	rt_sink_deinit(&sink);
	return err;
}

struct rt_error *rt_output_samples(const struct rt_options *options, const struct rt_output *output,
				   struct rt_samples *samples, const struct rt_profile_head *head)
{
	_cleanup_free_ struct rt_profile_part *parts = NULL;
	int fd = output->file_fd >= 0 ? output->file_fd : output->fd;
	size_t count;

	RT_TRY(rt_samples_parts(samples, &parts, &count));
	if (output->json_fd >= 0)
		RT_TRY(samples_to(options, RT_FORMAT_JSON, parts, count, head, output->json_fd, options->json));
	return samples_to(options, options->format, parts, count, head, fd,
			  options->output
				  ?: fd == STDOUT_FILENO ? "standard output"
							 : "standard error");
}
