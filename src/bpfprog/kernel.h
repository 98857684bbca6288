/* SPDX-License-Identifier: GPL-2.0-only */
/* Asking the kernel about one program, by bpf(2). */
#pragma once

#include <linux/bpf.h>

#include "base/bytes.h"
#include "base/error.h"

/* bpf_prog_info whose pointers are arrays of ours. */
struct rt_bpf_dump {
	struct bpf_prog_info info;
	void *arrays[9]; /* owned: what the pointers of info point to */
};
void rt_bpf_dump_deinit(struct rt_bpf_dump *dump);

/* An fd of the program; -errno. */
int rt_bpf_prog_open(uint32_t id);
/* Only the numbers: all pointers 0. false: errno says why. */
bool rt_bpf_prog_info(int fd, struct bpf_prog_info *ret);
/* All arrays. RT_E_NOT_FOUND: there is no such program any more. */
RT_CHECK struct rt_error *rt_bpf_dump_read(uint32_t id, struct rt_bpf_dump *ret);
/* Raw BTF; *ret is owned by the caller. RT_E_NOT_FOUND when it is gone. */
RT_CHECK struct rt_error *rt_bpf_btf_read(uint32_t id, uint8_t **ret, uint32_t *ret_size);
/* Name of a map: "" when it is gone or has none. name: 16 bytes + NUL. */
void rt_bpf_map_name_of(uint32_t id, char *name);
/* The error for a refused bpf(2) or perf_event_open(2). */
RT_CHECK struct rt_error *rt_bpf_refused(int errnum, const char *what);
