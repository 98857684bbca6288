/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one way of a stream through the analysis, whoever yields it (session,
 * recording, .events file):
 *
 *     record -> maps -> names -> lifetime   (and the spool, when one is kept)
 */
#pragma once

#include "capture/spool.h"
#include "lifetime/lifetime.h"
#include "maps/maps.h"
#include "recording/part.h"
#include "session/binaries.h"
#include "session/session.h"
#include "symbol/chain.h"

struct rt_pipeline_options {
	struct rt_lifetime_options lifetime;
	const char *symfs;
	const struct rt_options *fetch; /* with --debuginfod: how; outlives the pipeline; NULL = no server is asked */
	const char *input; /* recording that is read: the folders .debug and sources beside it are asked for files, too;
			      NULL = none */
	struct rt_namer *namer;     /* names its own frames (.events); NULL: by maps and symbols */
	const char *recording;      /* path of the spool to write, NULL = none */
	const char *const *command; /* for the spool's header */
	bool parts;                 /* it will be closed and opened anew while lifetimes are traced */
	bool recording_only;        /* a recording that cannot be written ends the stream */
};

struct rt_pipeline {
	struct rt_event_sink sink; /* take records here */
	struct rt_event_sink
		names; /* and here those that are for names only: modules and mappings of perf's side-band */
	struct rt_maps *maps;
	struct rt_image *vdso;      /* our own; NULL until it is needed */
	char *sources;              /* folder of kept source files */
	struct rt_cache *caches[4]; /* asked for files that are gone; NULL-terminated */
	struct rt_chain *chain;
	const struct rt_options *fetch; /* NULL: no server is asked, or none any more */
	struct rt_lifetime *lifetime;
	struct rt_namer *namer;
	struct rt_binaries *binaries; /* keeps the files that are mapped; not owned, NULL = none */
	struct rt_spool_writer *writer;
	struct rt_sink file;
	int fd;
	const char *recording;
	bool recording_only;
	struct rt_part_writer *parts;             /* lifetimes go into several files; NULL: into one */
	char *cut;                                /* what the first cut of the stream says; owned, NULL = whole */
	struct rt_error *recording_error;         /* the first one; the analysis went on; owned */
	const char *const *command;               /* for the recording's header */
	struct rt_error *(*on_moment)(void *arg); /* a look at what lives (session/session.h); may be NULL */
	void *on_moment_arg;
	void (*on_tick)(void *arg); /* called with the session's tick; may be NULL */
	void *on_tick_arg;
	bool say_doubts; /* warn of each at once: nobody has read of it in a report */
	uint64_t events, samples, lost, first_ns, last_ns;
};

/* Fills *ret (caller's memory; it must not move). Deinit it also after a failure. */
RT_CHECK struct rt_error *rt_pipeline_init(struct rt_pipeline *ret, const struct rt_pipeline_options *options);
void rt_pipeline_deinit(struct rt_pipeline *pipeline);

/* Takes n records of kind EVENT, one behind the other: as the sink takes each of them. */
RT_CHECK struct rt_error *rt_pipeline_events(struct rt_pipeline *pipeline, const struct rt_wire_event *events,
					     size_t n);

/* What a session shall call. */
struct rt_session_hooks rt_pipeline_hooks(struct rt_pipeline *pipeline);

/* Says in the stream that it ends early. */
RT_CHECK struct rt_error *rt_pipeline_cut(struct rt_pipeline *pipeline, const char *why);

/* Ends the recording, if one is kept. */
RT_CHECK struct rt_error *rt_pipeline_end_recording(struct rt_pipeline *pipeline, int program_status);

/* Hands what is buffered for the recording to the kernel. */
RT_CHECK struct rt_error *rt_pipeline_flush(struct rt_pipeline *pipeline);

/*
 * Ends the recording's file, and opens it anew: for a recording in several files. Between the two the path is free.
 * earlier: what the files before it are called, oldest first.
 */
RT_CHECK struct rt_error *rt_pipeline_close_recording(struct rt_pipeline *pipeline);
RT_CHECK struct rt_error *rt_pipeline_open_recording(struct rt_pipeline *pipeline, const char *const *earlier,
						     size_t count);

/* Ends the stream. The verdict is valid until deinit. */
RT_CHECK struct rt_error *rt_pipeline_verdict(struct rt_pipeline *pipeline, const struct rt_verdict **ret);
