/* SPDX-License-Identifier: GPL-2.0-only */
/* probe show: the lines of uprobe_events that definitions stand for. probe add: hands them to the kernel. */
#include <fcntl.h>
#include <string.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/probe_cached.h"
#include "cli/probe_command.h"
#include "cli/probe_file.h"
#include "cli/probe_kernel.h"
#include "cli/root.h"
#include "engine/tracefs.h"
#include "report/words.h"

enum { OPT_PARTIAL = 0x1000, OPT_ALL_PLACES, OPT_CACHE, OPT_UNVERIFIED, OPT_MISMATCH };

static const struct argp_option own[] = {
	{ "exec", 'x', "FILE", 0, "the program or library", 1 },
	{ "dry-run", 'n', NULL, 0, "add: resolve and print, define nothing", 1 },
	{ "definition", 'D', NULL, 0, "add: only print the lines of uprobe_events", 1 },
	{ "force", 'f', NULL, 0, "take another name where one is taken; hook returns that exceptions may pass", 1 },
	{ "partial", OPT_PARTIAL, NULL, 0, "leave out places where an argument is unknown", 1 },
	{ "all-places", OPT_ALL_PLACES, NULL, 0, "of a line: each place where code of it begins, not only the first",
	  1 },
	{ "quiet", 'q', NULL, 0, "no notes on stderr", 1 },
	{ "cache", OPT_CACHE, NULL, 0,
	  "add: keep the definitions in the build-id cache, where perf finds them, too; with -D there alone", 1 },
	{ "allow-unverified", OPT_UNVERIFIED, NULL, 0, "use cached definitions on a file without build-id", 1 },
	{ "allow-mismatch", OPT_MISMATCH, NULL, 0, "use cached definitions on a file with another build-id", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_probe_options *options = state->input;

	switch (key) {
	case 'x':
		options->file = arg;
		return 0;
	case 'n':
		options->dry_run = true;
		return 0;
	case 'D':
		options->definition = true;
		return 0;
	case 'f':
		options->force = true;
		return 0;
	case 'q':
		options->common.quiet = true;
		return 0;
	case OPT_ALL_PLACES:
		options->all_places = true;
		return 0;
	case OPT_CACHE:
		options->cache = true;
		return 0;
	case OPT_UNVERIFIED:
		options->allow.unverified = true;
		return 0;
	case OPT_MISMATCH:
		options->allow.mismatch = true;
		return 0;
	case OPT_PARTIAL:
		options->partial = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp rt_probe_add_options = { own, parse };
static const struct argp_child children[] = {
	{ &rt_probe_add_options }, { &rt_probe_kernel_argp }, { &rt_root_argp }, { &rt_common_argp }, { 0 }
};
static const struct argp add_argp = {
	NULL, rt_parse_operands,
	"show|add -x FILE DEFINITION...\nshow|add [-x FILE] %[GROUP:]EVENT...\nshow -k VMLINUX DEFINITION...",
	"Resolves probe definitions of perf's kind exactly, and defines their events.", children
};

static struct rt_error *print(const struct rt_probe_plan *plan)
{
	_cleanup_(rt_sink_deinit) struct rt_sink out;

	rt_sink_init_fd(&out, STDOUT_FILENO, "standard output");
	for (size_t i = 0; i < plan->lines.len; i++)
		rt_sink_printf(&out, "%s\n", plan->lines.data[i].text);
	return rt_sink_end(&out);
}

static size_t points_of(const struct rt_probe_plan *plan, const struct rt_probe_line *line)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->lines.len; i++)
		n += !strcmp(plan->lines.data[i].group, line->group) && !strcmp(plan->lines.data[i].event, line->event);
	return n;
}

static struct rt_error *tell(const struct rt_probe_plan *plan, bool dry)
{
	_cleanup_(rt_sink_deinit) struct rt_sink out;
	struct rt_arena arena = { 0 };
	struct rt_error *err;

	rt_sink_init_fd(&out, STDOUT_FILENO, "standard output");
	for (size_t i = 0; i < plan->lines.len; i++) {
		const struct rt_probe_line *l = &plan->lines.data[i];
		size_t n = points_of(plan, l);

		if (l->first)
			rt_sink_printf(&out, "%s %s:%s  (%zu point%s in %s)\n", dry ? "would add" : "added", l->group,
				       l->event, n, rt_plural(n), rt_clean(&arena, plan->path));
	}
	if (!dry)
		rt_sink_printf(&out, "record: reftrace record -e %s:%s -- PROGRAM\n", plan->lines.data[0].group,
			       plan->lines.data[0].event);
	err = rt_sink_end(&out);
	rt_arena_deinit(&arena);
	return err;
}

/* All or nothing. */
static struct rt_error *define(const struct rt_probe_plan *plan, int tracefs)
{
	struct rt_error *err = NULL;
	size_t done = 0;

	for (; done < plan->lines.len && !err; done++)
		err = rt_probe_events_define(tracefs, plan->lines.data[done].text);
	/* what failed is none of them; a file that was replaced is behind the last */
	if (!err) {
		err = rt_probe_plan_check(plan);
		done++;
	}
	if (!err)
		return NULL;
	for (size_t i = 0; i + 1 < done; i++)
		if (plan->lines.data[i].first)
			rt_error_free(
				rt_probe_events_remove(tracefs, plan->lines.data[i].group, plan->lines.data[i].event));
	return err;
}

static struct rt_error *work(const struct rt_probe_options *options, bool add, struct rt_probe_plan *plan)
{
	struct rt_probe_events taken = { .text = NULL };
	_cleanup_close_ int tracefs = -1;
	struct rt_error *err;
	bool defines = add && !options->definition && !options->dry_run;

	*plan = (struct rt_probe_plan){ .root = AT_FDCWD, .fd = -1 };
	if (options->cache && !add)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe show keeps nothing: --cache is an option of add"),
				    "reftrace probe add --cache -D, which leaves the kernel alone");
	if (defines && (options->common.symfs || options->common.list.target_ns))
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe add: the kernel opens the file below its own root"),
				    "reftrace probe show, and hand its lines over there");
	if (defines && rt_probe_of_kernel(options))
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe add: kernel functions are probed by a script"),
				    "reftrace probe export %s DEFINITION... | sudo sh",
				    options->running ? "--kernel" : "-k VMLINUX");
	err = rt_tracefs_open(AT_FDCWD, defines, &tracefs);
	if (!err)
		err = rt_probe_events_read(tracefs, &taken);
	/* who only looks need not be allowed to */
	if (err && !defines) {
		rt_error_free(err);
		err = NULL;
	}
	if (!err)
		err = rt_probe_plan_make(options, taken.text ? &taken : NULL, plan);
	if (!err)
		rt_probe_plan_notes(plan, &options->common);
	if (!err && defines)
		err = define(plan, tracefs);
	if (!err && options->cache && !options->dry_run)
		err = rt_probe_cached_keep(plan);
	rt_probe_events_deinit(&taken);
	if (err)
		return err;
	return !add || options->definition ? print(plan) : tell(plan, options->dry_run);
}

static int run(int argc, char **argv, bool add)
{
	struct rt_probe_options options = { .file = NULL };
	struct rt_error *err = rt_options_parse(&add_argp, argc, argv, &options.common);
	struct rt_probe_plan plan;
	int status = RT_EXIT_OK;

	if (!err && options.common.help) {
		rt_options_help(&add_argp, "probe", stdout);
	} else if (!err) {
		err = work(&options, add, &plan);
		rt_probe_plan_deinit(&plan);
	}
	if (err)
		status = rt_failure(err);
	rt_options_deinit(&options.common);
	return status;
}

int rt_probe_show(int argc, char **argv)
{
	return run(argc, argv, false);
}

int rt_probe_add(int argc, char **argv)
{
	return run(argc, argv, true);
}
