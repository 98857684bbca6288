/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What record adds to a launch: the sampler, and how the recording is steered while it runs (delay, commands, size,
 * new files, the running count). All of it are side sources of the session.
 */
#pragma once

#include "base/vec.h"
#include "cli/bpf_source.h"
#include "cli/control.h"
#include "cli/options.h"
#include "cli/pipeline.h"
#include "cli/progress.h"
#include "engine/sampler.h"

enum { RT_RECORDER_SOURCES = 8 };

struct rt_recorder {
	const struct rt_options *options;
	const char *const *argv;
	struct rt_pipeline *pipeline; /* bound by rt_launch_run() */
	struct rt_session *session;
	struct rt_sampler *sampler; /* NULL: lifetimes alone */
	struct rt_marker_target markers;
	char *cache_root;             /* owned; NULL: the usual one */
	struct rt_binaries *binaries; /* NULL: none are kept */
	struct rt_bpf_source *bpf;    /* beside the sampler: programs whose code it may hit */
	struct rt_control *control;
	struct rt_side_source delay, keeper; /* keeper: size and switching, drained after the others */
	struct rt_side_source *sources[RT_RECORDER_SOURCES];
	size_t source_count;
	bool observe_only;
	struct rt_progress progress;
	const char *ended; /* why the recording ended before its target: static; NULL = it did not */
	uint64_t file_began_ns;
	size_t switched;         /* files that were ended before the last one */
	uint64_t all_bytes;      /* in them */
	RT_VEC(char *) finished; /* files that were handed over, in their order; owned */
	struct rt_converter *converter;
	const char *last;    /* the last of them */
	int pipe_fd;         /* -o -: standard output as it was; -1 = a file is written */
	char *aside;         /* -o -: where the spool lies until it goes there; owned */
	uint64_t perf_bytes; /* of all of them as perf.data */
	uint64_t bpf_lost;   /* BPF programs of which something is missing in them */
};

/* Opens what options ask for; nothing runs yet. *ret is to be deinited in any case. argv: for the recording's header.
 */
RT_CHECK struct rt_error *rt_recorder_init(struct rt_recorder *ret, const struct rt_options *options,
					   const char *const *argv);
void rt_recorder_deinit(struct rt_recorder *recorder);

/*
 * The path to record to. For "-": a spool in the folder for temporary files; the program's own output goes to standard
 * error from now on, for standard output is the recording's, as perf has it.
 */
RT_CHECK struct rt_error *rt_recorder_path(struct rt_recorder *recorder, const char **ret);

/* Adds a source that the owner has made. */
RT_CHECK struct rt_error *rt_recorder_add(struct rt_recorder *recorder, struct rt_side_source *source);

/* For the session's tick: the running count. arg: the recorder. */
void rt_recorder_tick(void *arg);

/*
 * The one place where a finished spool is handed over: the file at recorder->pipeline->recording is complete and
 * closed for writing. With --switch-output it gets its name with the time here. It becomes perf.data beside what is
 * still recorded.
 */
RT_CHECK struct rt_error *rt_recorder_hand_over(struct rt_recorder *recorder);

/* Puts the binaries that were hit into the build-id cache; says on stderr what cannot be kept. */
RT_CHECK struct rt_error *rt_recorder_keep(struct rt_recorder *recorder);

/* Waits until everything that was handed over is perf.data. Not while recording: rings would overflow. */
RT_CHECK struct rt_error *rt_recorder_convert(struct rt_recorder *recorder);
