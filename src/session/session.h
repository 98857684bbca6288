/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One tracing run: starts or attaches to the target, follows its children,
 * finds modules as they are mapped, extends the plan, arms points, drains the engine and
 * fans the stream out to the sinks (analysis, recording). Owns everything that touches the target.
 */
#pragma once

#include "engine/engine.h"
#include "event/side.h"
#include "lifetime/lifetime.h"
#include "probe/presets.h"
#include "probe/scan.h"

struct rt_session_options {
	const char *const *command; /* launch: NULL-terminated argv; NULL when attaching */
	const uint32_t *pids;       /* attach */
	size_t pid_count;
	bool no_follow;             /* leave children alone */
	const char *user;           /* -u; NULL: the invoking user under sudo */
	bool as_root;               /* keep root under sudo */
	const char *const *env;     /* -E VAR=VAL, NULL-terminated, or NULL */
	uint64_t duration_ns;       /* stop after; 0 = until ended or interrupted */
	struct rt_spec *spec;       /* told types; the scan appends to it when scan is set */
	bool scan;                  /* find families: no spec was told, or -t names unknown types */
	struct rt_presets *presets; /* with scan: of libraries that a module may be; types go over to specs; or NULL */
	const char *const *types;   /* -t names, NULL-terminated, or NULL */
	const struct rt_engine_ops *ops; /* the engine; NULL: engine K (rt_engine_uprobe) */
	struct rt_engine_options engine;
	double max_overhead; /* with engine.sample.governed: what hooks may cost of the programs' own CPU time, 0.05 */
	struct rt_plan_options plan;
	bool no_census;
	uint64_t interval_ns; /* hooks.moment is called so often; 0 = only when rt_session_moment() asks */
	bool at_main_return;  /* a process ends for the stream where it calls exit(), before its handlers; engine K */
	/* What records beside the engine; each gets start, drain and stop. The list outlives the session. */
	struct rt_side_source *const *sources;
	size_t source_count;
	bool observe_only; /* side sources alone: no engine, no ptrace; spec may be NULL */
	bool system_wide;  /* with observe_only: sources record every process; command may be NULL as well */
};

/* What the session asks of its owner. */
struct rt_session_hooks {
	struct rt_event_sink *sink; /* the stream */
	/* Opened images, for the symbol chain; image lives until rt_session_destroy(), its file fd during the call.
	 * Before MAP records name the module. May be NULL. */
	void (*image)(void *arg, uint32_t module, const struct rt_image *image, int fd);
	/* Live objects of a process, for the census. May be NULL. */
	void (*live)(void *arg, uint32_t pid, bool (*visit)(const struct rt_live *live, void *visit_arg),
		     void *visit_arg);
	/* Called about every 100 ms (flush a spool, redraw). May be NULL. */
	struct rt_error *(*tick)(void *arg);
	/* All processes stand and were looked through: what is to be said now? Then they go on. May be NULL. */
	struct rt_error *(*moment)(void *arg);
	void *arg;
};

struct rt_session;

RT_CHECK struct rt_error *rt_session_create(const struct rt_session_options *options,
					    const struct rt_session_hooks *hooks, struct rt_session **ret);

/*
 * Runs to the end: until every followed process is gone, the duration is over,
 * or rt_session_interrupt(). Afterwards everything is disarmed and detached.
 */
RT_CHECK struct rt_error *rt_session_run(struct rt_session *session);

/* Asks the run to end; async-signal-safe. First call: launched targets get the signal too (as on a terminal); second:
 * stop now. terminal: the signal came from one, so that the target has it already. */
void rt_session_interrupt(struct rt_session *session, int signal, bool terminal);

/* Ends the run as soon as it can be: the targets go on by themselves. For owners and side sources, from the run's own
 * thread. */
void rt_session_end(struct rt_session *session);

/* Asks for a look at the processes as soon as it can be (hooks.moment); async-signal-safe. */
void rt_session_moment(struct rt_session *session);

/* Wait status of the launched program; false while unknown or when attached. */
bool rt_session_status(const struct rt_session *session, int *ret);
/* Whether rt_session_interrupt() was called. */
bool rt_session_interrupted(const struct rt_session *session);
/* pid of the first process. */
uint32_t rt_session_pid(const struct rt_session *session);
/* One line: which families are traced and why ("pairs: new obj_new, get obj_get, put obj_put -> struct obj (found by
 * name and type; change: -P)"). Owned by the session. */
const char *rt_session_pairs(const struct rt_session *session);

/*
 * Adds to *to what was traced: the types that had points, with all that is known of them, told or found. Of two of one
 * name the first.
 */
RT_CHECK struct rt_error *rt_session_copy_spec(const struct rt_session *session, struct rt_spec *to);

/* Whether the code behind a call takes its result for an address; after: where the call returns to in the module. */
bool rt_session_takes_result(const struct rt_session *session, uint32_t module, struct rt_elfaddr after);

void rt_session_destroy(struct rt_session *session);
RT_CLEANUP(struct rt_session *, rt_session_destroy);
