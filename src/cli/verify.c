/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/verify.h"

#include <errno.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/file.h"
#include "cli/input.h"
#include "cli/launch.h"
#include "cli/output.h"
#include "lifetime/effects.h"
#include "report/effects_report.h"
#include "report/words.h"

struct taker {
	struct rt_recording_sink sink;
	struct rt_effects *effects;
};

static struct rt_error *take(struct rt_recording_sink *self, const struct rt_wire_head *record)
{
	return rt_effects_record(((struct taker *)(void *)self)->effects, record);
}

static struct rt_error *print(const struct rt_options *options, const struct rt_effect *table, size_t count)
{
	const char *name = options->output ?: "standard error";
	_cleanup_close_ int fd = -1;
	struct rt_sink sink;
	struct rt_error *err;

	if (options->output)
		RT_TRY(rt_file_create(options->output, &fd));
	rt_sink_init_fd(&sink, fd >= 0 ? fd : STDERR_FILENO, name);
	err = options->format == RT_FORMAT_JSON ? rt_effects_json(table, count, &sink)
						: rt_effects_text(table, count, &sink);
	rt_sink_deinit(&sink);
	return err;
}

static struct rt_error *judge(const struct rt_options *options, const char *path, const struct rt_verdict *verdict,
			      int *ret)
{
	_cleanup_(rt_effects_destroyp) struct rt_effects *effects = NULL;
	_cleanup_(rt_input_close) struct rt_input input = { 0 };
	struct taker t = { .sink = { .wire = take } };
	const struct rt_trust *trust = &verdict->trust;
	const struct rt_effect *table;
	struct rt_arena arena = { 0 };
	size_t count;

	RT_TRY(rt_input_open(path, &input));
	RT_TRY(rt_effects_create(&effects));
	t.effects = effects;
	RT_TRY(rt_input_drain(&input, &t.sink));
	RT_TRY(rt_effects_table(effects, &table, &count));
	RT_TRY(print(options, table, count));
	*ret = trust->lost || trust->nothing_seen ? RT_EXIT_TRUST : RT_EXIT_OK;
	for (size_t i = 0; i < count; i++) {
		if (table[i].verdict == RT_EFFECT_CONTRADICTED)
			*ret = RT_EXIT_FINDINGS;
	}
	for (size_t i = 0; i < trust->unarmed_count; i++)
		fprintf(stderr, "reftrace: not armed: %s\n", rt_clean(&arena, trust->unarmed[i]));
	if (trust->lost)
		fprintf(stderr, "reftrace: %s %llu events were lost: what is contradicted may be so for that reason\n",
			rt_code_text(RT_E_LOST), (unsigned long long)trust->lost);
	if (trust->nothing_seen)
		fprintf(stderr, "reftrace: %s no get/put event was seen: nothing is verified\n",
			rt_code_text(RT_E_NO_EVENT));
	rt_arena_deinit(&arena);
	return NULL;
}

static struct rt_error *run(const struct rt_options *options, const char *path, int *ret)
{
	struct rt_launch launch = { .pipeline.fd = -1 };
	const struct rt_verdict *verdict;
	struct rt_error *err = rt_launch_run(&launch, options, path, true, NULL);
	int program = 0;

	/* the verdict first: it takes what the order still holds back */
	if (!err)
		err = rt_pipeline_verdict(&launch.pipeline, &verdict);
	if (!err) {
		(void)rt_session_status(launch.session, &program);
		err = rt_pipeline_end_recording(&launch.pipeline, program);
	}
	if (!err)
		err = launch.failure ? rt_take(launch.failure) : judge(options, path, verdict, ret);
	rt_launch_deinit(&launch);
	return err;
}

struct rt_error *rt_verify(const struct rt_options *options, int *ret)
{
	const char *tmp = getenv("TMPDIR");
	_cleanup_free_ char *folder = NULL, *path = NULL;
	struct rt_error *err;

	if (options->pids.len || !options->command)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "scan --verify runs a program, and was told %s",
						 options->pids.len ? "a process" : "none"),
				    "reftrace scan --verify -P ./FILE -- PROG ARGS");
	if (asprintf(&folder, "%s/reftrace-verify-XXXXXX", tmp && *tmp ? tmp : "/tmp") < 0) {
		folder = NULL;
		return rt_error_nomem();
	}
	if (!mkdtemp(folder))
		return rt_error_errno(RT_E_UNWRITABLE, errno, "cannot make a folder %s", folder);
	if (asprintf(&path, "%s/events", folder) < 0) {
		path = NULL;
		err = rt_error_nomem();
	} else {
		err = run(options, path, ret);
		unlink(path);
	}
	rmdir(folder);
	return err;
}
