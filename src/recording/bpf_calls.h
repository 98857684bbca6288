/* SPDX-License-Identifier: GPL-2.0-only */
/* What the code of kept BPF programs calls in the kernel. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "base/map.h"

/* The kernel's anchor: calls in eBPF instructions are distances from this function. */
#define RT_BPF_CALL_BASE "__bpf_call_base"

/*
 * Adds to addresses (keys) where the program in entry (RT_BLOB_BPF_PROG) calls or jumps to outside of itself: by its
 * JITed code, where machine (EM_*) is one that can be decoded, and by its eBPF instructions, where call_base is known
 * (0 = not). A damaged entry adds nothing.
 */
RT_CHECK struct rt_error *rt_bpf_calls(struct rt_bytes entry, uint16_t machine, uint64_t call_base,
				       struct rt_map *addresses);
