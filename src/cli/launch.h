/* SPDX-License-Identifier: GPL-2.0-only */
/* What run and record share: from options to a finished session. */
#pragma once

#include "cli/options.h"
#include "cli/pipeline.h"
#include "cli/recorder.h"
#include "cli/spec_choice.h"

struct rt_launch {
	/* set by the caller before the run: pipeline.on_moment and its argument; NULL = nobody looks */
	struct rt_error *(*on_moment)(void *arg);
	void *on_moment_arg;
	struct rt_spec spec; /* and what is traced; no types: what the options say */
	struct rt_pipeline pipeline;
	struct rt_presets *presets; /* NULL: something was told */
	struct rt_session *session; /* lives as long as the images that the names come from */
	struct rt_error *failure;   /* why the run ended early, after events had come; owned */
	const struct rt_engine_ops *engine;
	struct rt_cache *cache; /* of %GROUP:EVENT; NULL: none could be read */
};

/*
 * Runs a session into launch->pipeline. An error before the first event is
 * returned; a later one is kept in launch->failure, and the stream says that it was cut.
 * recorder: side sources and their wishes; NULL = none.
 */
RT_CHECK struct rt_error *rt_launch_run(struct rt_launch *launch, const struct rt_options *options,
					const char *recording, bool recording_only, struct rt_recorder *recorder);
void rt_launch_deinit(struct rt_launch *launch);

/* RT_E_USAGE when there is no target, or two. */
RT_CHECK struct rt_error *rt_launch_check(const struct rt_options *options);
