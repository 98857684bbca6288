/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where samples fell: counts by command, module and function, callers below
 * them as a tree, hits by instruction for annotate. Pure: samples in time order
 * in, tables out; names through struct rt_namer. Memory grows with distinct
 * places and call paths, not with samples.
 */
#pragma once

#include "base/error.h"
#include "event/names.h"

struct rt_profile;

/* namer must outlive the profile and its tables. */
RT_CHECK struct rt_error *rt_profile_create(struct rt_namer *namer, struct rt_profile **ret);
void rt_profile_destroy(struct rt_profile *profile);
RT_CLEANUP(struct rt_profile *, rt_profile_destroy);

/* Everywhere, pid is what the namer takes, tid a plain thread id. */

/* The thread's name from now on; with exec it is a new image. */
RT_CHECK struct rt_error *rt_profile_comm(struct rt_profile *profile, uint32_t pid, uint32_t tid, const char *comm,
					  bool exec);
/* A new thread, or (process) the first one of a new process, with its parent's name. */
RT_CHECK struct rt_error *rt_profile_fork(struct rt_profile *profile, uint32_t parent_tid, uint32_t pid, uint32_t tid,
					  bool process);

struct rt_profile_sample {
	unsigned event; /* index of the caller's choice, below RT_PROFILE_EVENTS */
	uint32_t pid, tid;
	uint64_t time_ns, period;
	uint64_t ip;
	const uint64_t *chain; /* as PERF_SAMPLE_CALLCHAIN: PERF_CONTEXT_* marks, then addresses; may be NULL */
	size_t chain_count;
};

enum { RT_PROFILE_EVENTS = 1024 };

/* RT_E_LIMIT for an event index beyond that. */
RT_CHECK struct rt_error *rt_profile_sample(struct rt_profile *profile, const struct rt_profile_sample *sample);

/* A function as the symbol table has it (what is inlined belongs to it). Strings live as long as the profile. */
struct rt_profile_symbol {
	const char *function; /* NULL = unknown: then address tells */
	const char *module;   /* "[unknown]" */
	uint32_t module_id;
	uint64_t entry;   /* ELF address of its start, 0 = unknown */
	uint64_t address; /* ELF address of the first hit seen */
	bool kernel;
};

/* One way to (callers) or one function; children by period. */
struct rt_profile_node {
	struct rt_profile_symbol symbol;
	uint64_t samples, period;
	struct rt_profile_node *children;
	size_t child_count;
};

struct rt_profile_row {
	const char *comm;
	struct rt_profile_symbol symbol;
	uint64_t samples, period;             /* with ip in it */
	uint64_t total_samples, total_period; /* it or what it called */
	struct rt_profile_node *callers;      /* innermost caller first */
	size_t caller_count;
};

struct rt_profile_table {
	uint64_t samples, period;
	uint64_t without_chain; /* samples that had no callchain */
	uint64_t cut_chains;    /* callchains whose deeper part was left out: memory limit */
	bool has_chains;
	struct rt_profile_row *rows; /* by period, largest first */
	size_t row_count;
};

/* Table of one event; owned by the profile, as it is now. */
RT_CHECK struct rt_error *rt_profile_table(struct rt_profile *profile, unsigned event,
					   const struct rt_profile_table **ret);

struct rt_profile_hit {
	uint64_t address; /* ELF address; kernel and BPF code: run-time address */
	uint64_t samples, period;
};

/* Hits inside a function (by symbol.module_id and entry), by address. Owned as the table. */
RT_CHECK struct rt_error *rt_profile_hits(struct rt_profile *profile, unsigned event,
					  const struct rt_profile_symbol *symbol, const struct rt_profile_hit **ret,
					  size_t *ret_count);
