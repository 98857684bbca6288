/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside a watch.
 *
 *   watch.c      the rings: what comes from where, and in which order it is looked at
 *   emit.c       a program, copied or asked for -> catalog entry and blobs
 *   copy.c       records of the copying program -> one load
 *   dump.c       a load -> bpf_prog_info
 *   kernel.c     questions to the kernel about one program
 *   sideband.c   loads and unloads as perf tells them
 *   catalog.c    the lives; holders.c, links.c: who holds them
 */
#pragma once

#include "bpfprog/bpfprog.h"
#include "bpfprog/copy.h"
#include "bpfprog/sideband.h"

struct bpfload_bpf;
struct ring_buffer;

struct rt_bpf_watch {
	bool all, stats;
	struct bpfload_bpf *bpf; /* NULL: this kernel does not take the copying program */
	struct ring_buffer *ring;
	struct rt_bpf_sideband band;
	struct rt_bpf_copies copies;
	struct rt_bpf_catalog catalog;
	struct rt_map btfs;     /* BTF id -> 1: was handed on */
	struct rt_map expected; /* program id -> time of its load, as the side band says; not copied yet */
	struct rt_map loaders;  /* program id -> pid, beside expected */
	struct rt_map unloads;  /* program id -> time, of programs whose copy has not come yet */
	uint64_t start_ns;      /* from when on every load is copied */
	int stats_fd;           /* the kernel counts run times as long as it is open; -1 */
	uint64_t stats_ns;      /* when they were asked for last */
	char *limit;
	struct rt_event_sink *sink; /* of the drain that runs now; may be NULL */
	struct rt_error *err;       /* first failure in a callback */
};

/* Takes a load that is whole (or ended without its end, by why). */
RT_CHECK struct rt_error *rt_bpf_emit_copy(struct rt_bpf_watch *w, const struct rt_bpf_copy *copy);
/* Asks the kernel for a program that was not copied. comm may be NULL. RT_E_NOT_FOUND when it is gone. */
RT_CHECK struct rt_error *rt_bpf_emit_asked(struct rt_bpf_watch *w, uint32_t id, uint32_t pid, const char *comm,
					    uint64_t load_ns, bool before);
/* A program of which nothing could be kept. */
RT_CHECK struct rt_error *rt_bpf_emit_lost(struct rt_bpf_watch *w, uint32_t id, uint32_t pid, const char *comm,
					   uint64_t load_ns, const char *why);
/* Sends what is known beyond bpf_prog_info. */
RT_CHECK struct rt_error *rt_bpf_emit_extra(struct rt_bpf_watch *w, struct rt_bpf_entry *entry);
