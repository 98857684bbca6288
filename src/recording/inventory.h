/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * First reading of a spool on its way to perf.data: everything that has to be
 * known before the first byte of data is written: the events, the machine, the
 * kept BPF programs, which kernel functions samples need.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "event/blob.h"
#include "perfdata/reader.h"
#include "perfdata/reftrace_events.h"

/* A probe point: its type, and for each op the index of the event in ours + 1. */
struct rt_inventory_point {
	uint32_t type;
	unsigned event[RT_OP_NR];
};

/* All zeroes is an empty one. */
struct rt_inventory {
	RT_VEC(struct rt_perf_event) attrs; /* perf's own, by ATTR id - 1; names and ids owned */
	struct rt_reftrace_events *ours;
	RT_VEC(char *) types; /* names by type id */
	RT_VEC(struct rt_inventory_point) points;
	struct rt_map point_by_id;    /* id -> index + 1: a hostile id must not cost a table of its size */
	unsigned meta[256];           /* wire kind -> index in ours + 1; 0 = none seen */
	unsigned command, status;     /* as meta: what the spool's own header and end say */
	struct rt_perf_header header; /* what is in it is owned */
	struct rt_blob_join join;
	struct rt_map bpf_by_id, btf_by_id; /* id -> index + 1: a later copy replaces an earlier one */
	struct rt_map paths;                /* hash of path -> 1: build-ids that header has */
	struct rt_map kernel;               /* kernel addresses that samples hold -> 1 */
	struct rt_perf_decoder *decoder;
	bool has_wire, has_perf, torn;
	RT_VEC(uint32_t) bpf_cut; /* ids of programs whose entry says more than it has: left out */
	uint64_t events, samples, lost, bpf_lost;
};

RT_CHECK struct rt_error *rt_inventory_record(struct rt_inventory *inventory, const struct rt_wire_head *record);
void rt_inventory_deinit(struct rt_inventory *inventory);

/* Index in ours of the event for op at this point; false: the stream never named the point. */
bool rt_inventory_op_event(const struct rt_inventory *inventory, uint32_t point, uint8_t op, unsigned *ret);

/* Fields of header from the lines of a HOST blob (engine/sampler_host.c). */
RT_CHECK struct rt_error *rt_inventory_host(struct rt_perf_header *header, struct rt_bytes text);
