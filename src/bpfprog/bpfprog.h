/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * BPF programs as the kernel has them: what was loaded while we watched, whole,
 * even when its loader closed it at once; and what was loaded before.
 *
 * A watch sends everything about a program as BLOB records (event/blob.h):
 * RT_BLOB_BPF_PROG (rt_bpf_image_encode), RT_BLOB_BTF once per BTF,
 * RT_BLOB_BPF_EXTRA (rt_bpf_extra_encode; sent again when more is known: the last one counts),
 * and RT_BLOB_BPF_LOST with a text where something could not be kept.
 *
 * How nothing is lost: a BPF program at the exit of bpf(2) copies the new
 * program out of kernel memory in the loader's own thread (bpf/bpfload.bpf.c).
 * The kernel is asked only for what that copy lacks. The perf side band says
 * when programs go, and names loads that the copy did not see.
 */
#pragma once

#include "bpfprog/catalog.h"
#include "event/stream.h"

struct rt_bpf_watch_options {
	const uint32_t *pids; /* follow these processes and the children that they will have */
	size_t pid_count;
	bool all;          /* follow every process */
	bool stats;        /* let the kernel count run times (costs each run of each BPF program some ns) */
	size_t ring_bytes; /* 0 = 16 MiB; rounded up to a power of two */
};

struct rt_bpf_watch;

/*
 * Starts watching. RT_E_PRIVILEGE without CAP_BPF and CAP_PERFMON, RT_E_UNSUPPORTED in a build without BPF.
 * Our own process is never followed.
 */
RT_CHECK struct rt_error *rt_bpf_watch_create(const struct rt_bpf_watch_options *options, struct rt_bpf_watch **ret);

/* Follows one more process from now on, and the children that it will have. */
RT_CHECK struct rt_error *rt_bpf_watch_follow(struct rt_bpf_watch *watch, uint32_t pid);

/* Becomes readable (poll) when a load was copied. Call drain at least every 100 ms all the same. */
int rt_bpf_watch_fd(const struct rt_bpf_watch *watch);

/* Hands on what has come. sink may be NULL: only the catalog is kept. */
RT_CHECK struct rt_error *rt_bpf_watch_drain(struct rt_bpf_watch *watch, struct rt_event_sink *sink);

/* Programs that are loaded now and were not seen being loaded. */
RT_CHECK struct rt_error *rt_bpf_watch_existing(struct rt_bpf_watch *watch, struct rt_event_sink *sink);

/* The last drain: what is still missing is asked for or declared lost; EXTRA blobs of all programs that live. */
RT_CHECK struct rt_error *rt_bpf_watch_finish(struct rt_bpf_watch *watch, struct rt_event_sink *sink);

/* What is known so far. Owned by the watch. */
struct rt_bpf_catalog *rt_bpf_watch_catalog(struct rt_bpf_watch *watch);

/* Why short-lived programs may be missed on this machine; NULL where they are not. Owned by the watch. */
const char *rt_bpf_watch_limit(const struct rt_bpf_watch *watch);

void rt_bpf_watch_destroy(struct rt_bpf_watch *watch);
RT_CLEANUP(struct rt_bpf_watch *, rt_bpf_watch_destroy);
