/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recordings for viewers: folded stacks, Perfetto, speedscope, the Firefox
 * profiler, pprof, Mozilla's refcount log. Pure: lives (as the analysis counts
 * them) and perf's records in, bytes to a sink out, all of it at the end.
 *
 * Which get a put gave back is the analysis' business for objects that leaked; for
 * viewers each put is paired on its own: with the open reference kept in
 * the same slot; else taken by the same activation; else of the same thread, taken
 * in the same function, nearest in the tree of calls, last taken first; each of these as far as it goes.
 *
 * Memory grows with distinct call paths (limited), with live objects, and with what
 * is kept one by one: lives and steps by options.limit, samples by RT_EXPORT_SAMPLES.
 */
#pragma once

#include "base/sink.h"
#include "event/names.h"
#include "lifetime/lifetime.h"
#include "perfdata/record.h"

enum rt_export_format {
	RT_EXPORT_FOLDED,
	RT_EXPORT_PERFETTO,
	RT_EXPORT_SPEEDSCOPE,
	RT_EXPORT_FIREFOX,
	RT_EXPORT_PPROF,
	RT_EXPORT_REFCOUNT,
	RT_EXPORT_NR
};

/* What folded stacks count. */
enum rt_export_of {
	RT_EXPORT_OF_AUTO,    /* open; without lives: period */
	RT_EXPORT_OF_OPEN,    /* references of objects alive at the end that nothing gave back */
	RT_EXPORT_OF_GETS,    /* references taken, by new and get */
	RT_EXPORT_OF_PUTS,    /* references given back */
	RT_EXPORT_OF_BALANCE, /* two numbers a line: given back, taken; lines where they are equal are left out */
	RT_EXPORT_OF_SAMPLES, /* samples of perf */
	RT_EXPORT_OF_PERIOD,  /* their periods */
};

enum { RT_EXPORT_LIMIT = 5000, RT_EXPORT_SAMPLES = 4000000 };

/* Strings outlive the export. */
struct rt_export_options {
	enum rt_export_of of;
	const char *event;             /* only samples of this event; NULL = folded: the first one; others: all */
	const char *const *types;      /* only lives of these types; NULL-terminated, NULL = all */
	const char *version;           /* of reftrace */
	size_t limit;                  /* lives shown one by one; 0 = RT_EXPORT_LIMIT */
	uint32_t (*pid)(uint32_t pid); /* pid as the namer wants it, from perf's plain one; NULL: as it is */
};

struct rt_export;

/* namer, lifetime and sink outlive the export. lifetime: shall get the same wire records as rt_export_wire(). */
RT_CHECK struct rt_error *rt_export_create(enum rt_export_format format, struct rt_namer *namer,
					   struct rt_lifetime *lifetime, const struct rt_export_options *options,
					   struct rt_sink *sink, struct rt_export **ret);
void rt_export_destroy(struct rt_export *export);
RT_CLEANUP(struct rt_export *, rt_export_destroy);

/* Takes the names of types and points; to be called before the lifetime gets the record. */
RT_CHECK struct rt_error *rt_export_wire(struct rt_export *export, const struct rt_wire_head *record);
/* Takes one of perf's records. */
RT_CHECK struct rt_error *rt_export_perf(struct rt_export *export, const struct rt_perf_event *events,
					 const struct rt_perf_record *record);

/* What was written, and what was not. */
struct rt_export_result {
	uint64_t lives_seen;
	uint64_t lives, lives_left_out;  /* shown one by one; counted only */
	uint64_t steps_left_out;         /* of lives that are shown */
	uint64_t references, samples;    /* open at the end; of perf */
	uint64_t samples_left_out;       /* counted only */
	uint64_t other_samples;          /* of events that were not asked for */
	uint64_t cut_stacks;             /* too many distinct call paths */
	const char *event, *other_event; /* folded: what was taken, and one that was not; of the export */
};

/*
 * Writes it all. After rt_lifetime_verdict(), which ends the lives. Once. command: of the recorded program;
 * NULL-terminated, NULL = unknown.
 */
RT_CHECK struct rt_error *rt_export_end(struct rt_export *export, const char *const *command,
					struct rt_export_result *ret);
