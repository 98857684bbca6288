/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Samples and side-band records by perf_event_open(2): CPU sampling, software
 * events, tracepoints, uprobes. Nothing is changed in the target: no ptrace,
 * no stop.
 *
 * What is emitted:
 *     RT_WIRE_ATTR         each event with its ids, before the first record; further ATTR records with the id of an
 *                          earlier one hold further event ids of it
 *     RT_WIRE_PERF         each record of the rings in the kernel's bytes; the pid carries no exec generation
 *     RT_WIRE_PERF         COMM, FORK, MMAP2, KSYMBOL and BPF_EVENT of what was there before, time 0 (no time)
 *     RT_WIRE_PERF         FINISHED_ROUND (type 68) after each pass over all rings
 *     RT_WIRE_PERF         samples of module:module_load and module_free, where the kernel has modules and lets us
 *                          look at every CPU; then MMAP2 of what came, at the tracepoint's time
 *     RT_BLOB_HOST         the machine; RT_BLOB_TRACING_DATA where a tracepoint is used
 *
 * Two rings per CPU: one for the samples of all events, one for the side-band, which wakes at once. Every sample holds
 * IDENTIFIER, IP, TID, TIME (CLOCK_MONOTONIC), CPU and PERIOD; CALLCHAIN when asked for, REGS_USER and
 * STACK_USER with stack_bytes, RAW for tracepoints.
 */
#pragma once

#include "engine/marker_files.h"
#include "event/side.h"

struct rt_sampler;

/* A sample and its stack fit in one record of the kernel's and in one of ours. */
enum { RT_SAMPLER_STACK = 8192, RT_SAMPLER_STACK_MAX = 61440 };

struct rt_sampler_options {
	const char *const *events; /* lists as behind -e (engine/event_name.h); count 0: cycles, else cpu-clock */
	size_t event_count;
	uint64_t frequency;   /* samples per second and CPU; 0: not told; UINT64_MAX: as much as the kernel allows */
	uint64_t period;      /* one sample per so many events; 0: not told. Both 0: 4000 Hz, tracepoints every hit */
	bool call_graph;      /* keep the call chain: by frame pointers, or as stack_bytes says */
	uint32_t stack_bytes; /* 0; else keep user registers and so much of the stack instead of the user's part of the
				 chain, for a reader to unwind: a multiple of 8, RT_SAMPLER_STACK_MAX at most */
	bool system_wide;     /* every process */
	bool no_follow;       /* leave forked children alone */
	bool delayed;         /* take no samples until rt_sampler_enable() */
	size_t ring_bytes;    /* per CPU, rounded up to a power of two of pages; 0 = default */
	const char *const *command_line;        /* NULL-terminated, for RT_BLOB_HOST; may be NULL */
	const char *version;                    /* of reftrace; may be NULL */
	int root_fd;                            /* directory that stands for "/", AT_FDCWD */
	const struct rt_marker_target *markers; /* where SDT markers are looked for; NULL: they are no events */
};

struct rt_sampler_stats {
	uint64_t records, samples;
	uint64_t lost;       /* records that a full ring dropped */
	uint64_t throttled;  /* times that the kernel held back sampling */
	uint64_t unreadable; /* rings found damaged, records too large for the stream */
};

/* Tries whether what options ask for works here and now. */
RT_CHECK struct rt_error *rt_sampler_probe(const struct rt_sampler_options *options);

/*
 * Parses names, checks that the kernel allows them. RT_E_USAGE, RT_E_PARANOID, RT_E_PRIVILEGE, RT_E_UNSUPPORTED, with
 * the fix. Strings of options must outlive the sampler. Starts nothing.
 */
RT_CHECK struct rt_error *rt_sampler_open(const struct rt_sampler_options *options, struct rt_sampler **ret);

/*
 * Opens the events for the target (a launched one: they begin at its exec), emits what stands before the records, and
 * begins, unless delayed. Processes that ended meanwhile are left out; RT_E_NO_PROCESS when none is left.
 */
RT_CHECK struct rt_error *rt_sampler_start(struct rt_sampler *sampler, const struct rt_side_target *target,
					   struct rt_event_sink *sink);
/* One pass over the rings; never blocks. */
RT_CHECK struct rt_error *rt_sampler_drain(struct rt_sampler *sampler, struct rt_event_sink *sink);
/* Says again what a reader of a new file needs: ATTR, blobs, the processes as they are now. */
RT_CHECK struct rt_error *rt_sampler_restate(struct rt_sampler *sampler, struct rt_event_sink *sink);
/* Ends sampling and hands over the last records. */
RT_CHECK struct rt_error *rt_sampler_stop(struct rt_sampler *sampler, struct rt_event_sink *sink);

/* Takes samples, or none; side-band records always come. Before start: how it will begin. */
void rt_sampler_enable(struct rt_sampler *sampler, bool on);

/* Names of the events, one per line, for people. Owned by the sampler. */
const char *rt_sampler_names(const struct rt_sampler *sampler);
/* What differs from what was asked ("no CPU counters here: cpu-clock instead of cycles"), NULL = nothing. */
const char *rt_sampler_note(const struct rt_sampler *sampler);
/* What may be wrong with the events, because it was allowed; NULL = nothing. */
const char *rt_sampler_warning(const struct rt_sampler *sampler);
/* A debugger that holds the target now that it has ended, and what that means; NULL: none. */
const char *rt_sampler_debugged(const struct rt_sampler *sampler);
/* Semaphores that --semaphore=write could not raise, now that it has ended; NULL: none. */
const char *rt_sampler_unraised(const struct rt_sampler *sampler);
/*
 * What was not recorded because the target loaded it later ("sdt_x:y in /lib/z.so"), NULL = nothing. *ret_fix: what
 * helps. Both owned by the sampler, true when it has stopped.
 */
const char *rt_sampler_missed(const struct rt_sampler *sampler, const char **ret_fix);
void rt_sampler_stats(const struct rt_sampler *sampler, struct rt_sampler_stats *ret);
/* The same as a side source of a session; its fd is readable when a ring is filled well. Owned by the sampler. */
struct rt_side_source *rt_sampler_source(struct rt_sampler *sampler);

/* Emits RT_BLOB_HOST alone, for recordings without a sampler (which emits it itself). */
RT_CHECK struct rt_error *rt_sampler_host(const char *const *command_line, const char *version,
					  struct rt_event_sink *sink);

void rt_sampler_close(struct rt_sampler *sampler);
RT_CLEANUP(struct rt_sampler *, rt_sampler_close);
