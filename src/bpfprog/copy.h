/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Putting a load together from the records of the watching BPF program. Bytes
 * of the ring are checked like foreign ones; memory is bounded.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "bpfprog/kernel.h"
#include "wire/bpfload.h"

#define RT_BPF_COPY_MAX (64u << 20)    /* bytes of one array */
#define RT_BPF_COPIES_MAX (256u << 20) /* bytes of all loads under way */

struct rt_bpf_buffer {
	uint8_t *data; /* owned */
	uint32_t size, have;
};

/* One load. */
struct rt_bpf_copy {
	struct rt_load_start start;
	RT_VEC(struct rt_load_function) functions;
	RT_VEC(struct rt_load_map) maps;
	struct rt_bpf_buffer array[RT_ARRAY_NR]; /* JIT: of all functions, one behind the other */
	uint32_t jit_function, jit_at;           /* the function whose bytes come, and how many came */
	uint32_t lost;                           /* bits 1 << enum rt_load_array */
};

/* Loads under way. All zeroes is none. */
struct rt_bpf_copies {
	struct rt_map by_id; /* struct rt_bpf_copy * */
	uint64_t bytes;      /* in all buffers */
};

/*
 * Takes a record of START, PART or END. A load that is whole now is handed over
 * in *ret (rt_bpf_copy_destroy), else NULL.
 */
void rt_bpf_copies_take(struct rt_bpf_copies *copies, const void *record, size_t size, struct rt_bpf_copy **ret);
/* Ends a load of which no END will come; NULL: there is none. */
struct rt_bpf_copy *rt_bpf_copies_end(struct rt_bpf_copies *copies, uint32_t id);
void rt_bpf_copies_deinit(struct rt_bpf_copies *copies);
void rt_bpf_copy_destroy(struct rt_bpf_copy *copy);
RT_CLEANUP(struct rt_bpf_copy *, rt_bpf_copy_destroy);

/*
 * What BPF_OBJ_GET_INFO_BY_FD would have said, array by array: what was lost is left
 * out. The instructions are put in the form that the kernel shows (maps by id).
 */
RT_CHECK struct rt_error *rt_bpf_copy_dump(const struct rt_bpf_copy *copy, struct rt_bpf_dump *ret);
