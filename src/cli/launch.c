/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/launch.h"

#include <fcntl.h>

#include "cli/file.h"
#include "cli/interrupt.h"
#include "probe/call.h"

enum { COUNTED_FRAMES = 8 }; /* of who counts by place: more only tell one place from itself */

struct rt_error *rt_launch_check(const struct rt_options *options)
{
	struct rt_error *err = NULL;

	if (!options->command && !options->pids.len && !options->all_cpus)
		err = rt_error_new(RT_E_USAGE, "%s: no program and no -p PID", options->verb);
	else if (options->command && options->pids.len)
		err = rt_error_new(RT_E_USAGE, "%s: both a program and -p PID", options->verb);
	else if (!options->command && (options->user || options->as_root || options->env.len))
		err = rt_error_new(RT_E_USAGE, "%s: -u, --as-root and -E are for programs that reftrace starts",
				   options->verb);
	else if (options->user && options->as_root)
		err = rt_error_new(RT_E_USAGE, "%s: both -u and --as-root", options->verb);
	else if (options->inject && !options->pids.len)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "%s: --inject is for running programs", options->verb),
				    "reftrace %s --inject -p PID; a program that is launched: --engine agent",
				    options->verb);
	else if (options->inject && options->engine && options->engine != &rt_engine_agent)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "%s: --inject is engine agent's", options->verb),
				    "leave --engine out, or --inject");
	else if (options->counts && (options->sample > 0 || options->overhead > 0))
		return rt_error_fix(rt_error_new(RT_E_USAGE, "%s: --counts counts every object", options->verb),
				    "leave --sample and --max-overhead out");
	else if (options->sample > 0 && options->overhead > 0)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "%s: both --sample and --max-overhead", options->verb),
				    "--max-overhead picks the rate by itself: leave --sample out");
	if (options->command && !**options->command)
		err = err ?: rt_error_new(RT_E_USAGE, "%s: the program's name is empty", options->verb);
	return rt_error_fix(err, "reftrace %s -- PROG ARGS, or reftrace %s -p PID", options->verb, options->verb);
}

/* A NULL-terminated copy for interfaces that want one; NULL when empty. */
static struct rt_error *list(const char *const *data, size_t len, const char ***ret)
{
	const char **copy = NULL;

	if (len) {
		copy = calloc(len + 1, sizeof(*copy));
		if (!copy)
			return rt_error_nomem();
		for (size_t i = 0; i < len; i++)
			copy[i] = data[i];
	}
	*ret = copy;
	return NULL;
}

/* Types whose operations are system calls. */
static size_t calls_in(const struct rt_spec *spec)
{
	size_t n = 0;

	for (size_t i = 0; i < spec->types.len; i++)
		n += rt_spec_is_calls(&spec->types.data[i]);
	return n;
}

static bool wants_calls(const struct rt_spec *spec)
{
	return calls_in(spec);
}

/* Nothing else is told: what happens in the kernel needs nothing in the program. */
static bool wants_only_calls(const struct rt_spec *spec)
{
	return spec->types.len && calls_in(spec) == spec->types.len;
}

static struct rt_engine_sample sample_of(const struct rt_options *options)
{
	double rate = options->sample * 4294967296.0;

	if (options->overhead > 0)
		return (struct rt_engine_sample){ .on = true, .governed = true };
	if (options->sample <= 0 || options->sample >= 1)
		return (struct rt_engine_sample){ 0 };
	return (struct rt_engine_sample){ .on = true, .rate = rate < 1 ? 1 : (uint32_t)rate };
}

static struct rt_error *run(struct rt_launch *launch, const struct rt_options *options, const char *const *types,
			    bool scan, struct rt_recorder *recorder)
{
	_cleanup_free_ const char **env = NULL;
	struct rt_session_hooks hooks = rt_pipeline_hooks(&launch->pipeline);
	struct rt_session_options session = {
		.command = options->command,
		.pids = options->pids.data,
		.pid_count = options->pids.len,
		.no_follow = options->no_follow,
		.user = options->user,
		.as_root = options->as_root,
		.duration_ns = options->duration_ns,
		.spec = &launch->spec,
		.scan = scan,
		.presets = launch->presets,
		.types = types,
		.engine = { .attach = options->attach,
			    .ring_bytes = options->ring_bytes,
			    .frames = options->frames
					      ?: options->counts ? COUNTED_FRAMES
								 : 0,
			    .root_fd = AT_FDCWD,
			    .semaphore = options->semaphore,
			    .calls = wants_calls(&launch->spec),
			    .sample = sample_of(options),
			    .counting = options->counts },
		.max_overhead = options->overhead,
		.plan = { .first_insn = options->first_insn,
			  .allow = { options->allow_unverified, options->allow_mismatch } },
		.no_census = options->no_census,
		.interval_ns = options->at.interval_ns,
		.at_main_return = options->at.main_return,
		.ops = launch->engine,
	};
	struct rt_error *err;

	RT_TRY(list(options->env.data, options->env.len, &env));
	session.env = env;
	if (recorder) {
		session.sources = recorder->sources;
		session.source_count = recorder->source_count;
		session.observe_only = recorder->observe_only;
		session.system_wide = options->all_cpus;
		launch->pipeline.on_tick = rt_recorder_tick;
		launch->pipeline.on_tick_arg = recorder;
	}
	session.plan.cache = launch->cache;
	RT_TRY(rt_session_create(&session, &hooks, &launch->session));
	if (recorder)
		recorder->session = launch->session;
	rt_interrupt_watch(launch->session);
	err = rt_session_run(launch->session);
	/* whoever has ended the run, and ends once more, wants no report */
	rt_interrupt_unwatch(!rt_session_interrupted(launch->session));
	return err;
}

/*
 * A program that is launched has the agent, and uprobes for what that cannot see, where they are permitted. One engine
 * only can count: then it is the one that sees all.
 */
static void choose_for_launch(struct rt_launch *launch, const struct rt_options *options,
			      const struct rt_engine_options *engine)
{
	struct rt_error *uprobe = rt_engine_uprobe.probe(engine);
	struct rt_error *agent = rt_engine_agent.probe(engine);

	if (uprobe && !agent && !wants_calls(&launch->spec))
		launch->engine = &rt_engine_agent;
	else if (!uprobe && !agent && options->overhead <= 0 && !options->counts)
		launch->engine = &rt_engine_mixed;
	rt_error_free(uprobe);
	rt_error_free(agent);
}

/*
 * Which engine it is if none is named: running programs are reached by uprobes alone, and what one engine only can do
 * is done by that one. That none works is said by who is asked first.
 */
static struct rt_error *choose_engine(struct rt_launch *launch, const struct rt_options *options)
{
	struct rt_engine_options engine = { .attach = options->attach, .root_fd = AT_FDCWD };
	bool inside; /* the program has the agent */

	launch->engine = options->engine ?: options->inject ? &rt_engine_agent : &rt_engine_uprobe;
	inside = launch->engine != &rt_engine_uprobe;
	if (wants_calls(&launch->spec) && launch->engine == &rt_engine_agent)
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED,
						 "descriptors and mappings are seen in the kernel, which engine agent "
						 "does not look into"),
				    "as root: --engine uprobe, or --engine agent+uprobe");
	if (options->overhead > 0 && launch->engine == &rt_engine_mixed)
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED,
						 "what a hit costs is one number, and engine agent+uprobe has two"),
				    "--engine agent or --engine uprobe; or a rate of your own: --sample");
	if (options->counts && launch->engine == &rt_engine_mixed)
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED,
						 "two engines would each count a part of what is done to an object"),
				    "--engine agent; or as root: --engine uprobe");
	if (options->counts && wants_calls(&launch->spec))
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED,
						 "descriptors and mappings are ranges, which counts do not tell apart"),
				    "trace them without --counts");
	if (options->pids.len && inside && !options->inject)
		return rt_error_fix(
			rt_error_new(RT_E_UNSUPPORTED, "engine agent changes running programs only when that is told"),
			"--inject, if its risks may be taken (man reftrace-run); or as root: --engine uprobe");
	if (options->at.main_return && inside)
		return rt_error_fix(
			rt_error_new(RT_E_UNSUPPORTED, "engine agent does not stop a program at main's return"),
			"as root: --engine uprobe; or another moment: --at=USR1, --at=10s");
	if (options->semaphore == RT_SEMAPHORE_KERNEL && inside)
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED, "engine agent raises semaphores by itself"),
				    "leave --semaphore=kernel out, or as root: --engine uprobe");
	if (options->engine || options->pids.len || options->at.main_return ||
	    options->semaphore == RT_SEMAPHORE_KERNEL || options->attach != RT_ATTACH_AUTO ||
	    wants_only_calls(&launch->spec))
		return NULL;
	choose_for_launch(launch, options, &engine);
	return NULL;
}

/* Of who called sudo. A cache that cannot be read knows nothing. */
static struct rt_error *open_cache(struct rt_launch *launch)
{
	_cleanup_free_ char *root = NULL;
	struct rt_error *err = rt_user_cache_root(&root);

	if (!err)
		err = rt_cache_open(root, false, &launch->cache);
	if (err && err->code == RT_E_NOMEM)
		return err;
	rt_error_free(err);
	return NULL;
}

struct rt_error *rt_launch_run(struct rt_launch *launch, const struct rt_options *options, const char *recording,
			       bool recording_only, struct rt_recorder *recorder)
{
	_cleanup_free_ const char **types = NULL;
	struct rt_pipeline_options pipeline = { .recording = recording,
						.recording_only = recording_only,
						.symfs = options->symfs,
						.parts = options->switch_output && rt_options_lifetimes(options),
						.command = options->command };
	struct rt_error *err;
	bool scan = false;

	*launch = (struct rt_launch){ .on_moment = launch->on_moment,
				      .on_moment_arg = launch->on_moment_arg,
				      .spec = launch->spec,
				      .pipeline.fd = -1 };
	RT_TRY(list(options->types.data, options->types.len, &types));
	if ((!recorder || !recorder->observe_only) && !launch->spec.types.len)
		RT_TRY(rt_spec_choose(options, &launch->spec, &scan));
	if (scan)
		RT_TRY(rt_spec_presets(options, &launch->presets));
	RT_TRY(open_cache(launch));
	if (!recorder || !recorder->observe_only)
		RT_TRY(choose_engine(launch, options));
	/* record -e says it by itself */
	if (launch->engine && options->semaphore == RT_SEMAPHORE_WRITE && !options->quiet)
		fprintf(stderr, "reftrace: %s\n", RT_SEMAPHORE_WRITE_NOTE);
	pipeline.lifetime.types = types;
	pipeline.lifetime.strict = options->strict;
	RT_TRY(rt_pipeline_init(&launch->pipeline, &pipeline));
	launch->pipeline.say_doubts = true;
	launch->pipeline.on_moment = launch->on_moment;
	launch->pipeline.on_moment_arg = launch->on_moment_arg;
	if (recorder) {
		recorder->pipeline = &launch->pipeline;
		launch->pipeline.binaries = recorder->binaries;
	}
	err = run(launch, options, types, scan, recorder);
	if (!err || !(launch->pipeline.events || launch->pipeline.samples))
		return err;
	launch->failure = err;
	return rt_pipeline_cut(&launch->pipeline, err->message);
}

void rt_launch_deinit(struct rt_launch *launch)
{
	rt_pipeline_deinit(&launch->pipeline);
	rt_session_destroyp(&launch->session);
	rt_spec_deinit(&launch->spec);
	rt_presets_destroyp(&launch->presets);
	rt_error_free(launch->failure);
	rt_cache_close(launch->cache);
}
